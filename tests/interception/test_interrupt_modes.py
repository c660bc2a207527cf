"""Whether a match interrupts: by the rule's own mode, else by the setting."""

from __future__ import annotations

from typing import Any

import pytest
from playbook import aborted, answers, asked, finished, gets, rule, says
from strict_anthropic import text, thinking, tool

BAD_CALL = {"file_path": "a.py", "content": "BADWORD"}
STREAMS = {
    "text": ([text("BADWORD")], "start text[BADWORD] end_turn stop"),
    "thinking": (
        [thinking("BADWORD"), text("ok")],
        "start thinking[BADWORD +signed] text[ok] end_turn stop",
    ),
    "tool": (
        [tool("Write", BAD_CALL)],
        'start Write[{"file_path": "a.py", "content": "BADWORD"}] tool_use stop',
    ),
}
INTERRUPTED = {
    "always": {"text", "thinking", "tool"},
    "prose-only": {"text", "thinking"},
    "tool-only": {"tool"},
    "never": set(),
}


@pytest.mark.parametrize("source", STREAMS)
@pytest.mark.parametrize("mode", INTERRUPTED)
@pytest.mark.parametrize("where", ["rule", "setting", "rule over setting"])
def test_only_sources_of_the_mode_are_interrupted(playbook: Any, source: str, mode: Any, where: str) -> None:
    setting = {"setting": mode, "rule": "always", "rule over setting": "never"}[where]
    bad = rule("no-bad-word", "BADWORD", interrupt_mode=None if where == "setting" else mode)
    steps, delivered = STREAMS[source]
    book = playbook(bad, interrupt_mode=setting) >> says("go") << asked("user: go") >> answers(*steps)
    if source in INTERRUPTED[mode]:
        book << gets("start") << aborted() << asked("user: go | INTERRUPT(no-bad-word)")
        book >> answers(text("Good.")) << gets("text[Good.] end_turn stop") << finished()
        assert book.logged == ["no-bad-word interrupted clean"]
    else:
        book << gets(delivered) << finished()
        action = "reminded" if source == "tool" else "deferred"
        assert book.logged == [f"no-bad-word {action} pending"]


def test_the_default_interrupts_everything(playbook: Any) -> None:
    for steps, _ in STREAMS.values():
        book = playbook(rule("no-bad-word", "BADWORD")) >> says("go") << asked("user: go")
        book >> answers(*steps) << gets("start") << aborted()
        book << asked("user: go | INTERRUPT(no-bad-word)")


def test_a_rule_that_does_not_interrupt_holds_nothing_back(playbook: Any) -> None:
    stream = text("BAD", "WORD")
    book = playbook(rule("no-bad-word", "BADWORD"), interrupt_mode="never") >> says("go")
    book << asked("user: go") >> answers(stream) << gets("start text[BADWORD] end_turn stop") << finished()
    assert book.log[0].held_chars == 0
