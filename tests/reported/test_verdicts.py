"""Rules and outputs for which matchers gave a wrong verdict, and the right one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls import FamilyTable, ToolCallReader
from ttsr_proxy.triggers.match import StreamContext
from ttsr_proxy.triggers.ruleset import RuleSet

FAMILIES = FamilyTable.default()


def fires(
    condition: str | list[str], text: str, source: str = "text", *, size: int | None = None, **rule: Any
) -> bool:
    """Whether the rule matches the text of a block, whole or in pieces of this size."""
    front = json.dumps({"condition": condition, **rule})
    ruleset = RuleSet([Rule.from_markdown("r.md", f"---\n{front}\n---\nbody")])
    matcher = ruleset.stream(StreamContext(source))  # type: ignore[arg-type]
    found = [match for at in range(0, len(text), size or len(text)) for match in
             matcher.feed(text[at : at + (size or len(text))])]  # fmt: skip
    return bool([*found, *matcher.finish()])


def call_fires(
    tool: str, sent: str, condition: str, *, size: int = 1 << 30, root: str | None = None, **rule: Any
) -> bool:
    """Whether the rule matches a call whose arguments come in pieces of this size."""
    front = json.dumps({"condition": condition, **rule})
    ruleset = RuleSet([Rule.from_markdown("r.md", f"---\n{front}\n---\nbody")], project_root=root)
    reader = ToolCallReader(tool, FAMILIES, project_root=root)
    for at in range(0, len(sent), size):
        reader.feed(sent[at : at + size])
    reader.finish()
    contexts = ((StreamContext("tool", tool, view.paths, view.kind), view.text) for view in reader.views())
    return any(ruleset.check(text, context) for context, text in contexts)


IN_TEXT: dict[str, tuple[str | list[str], str, bool]] = {
    "a flag for any case": ("(?i)pre.existing", "These are Pre-existing failures", True),
    "a flag for a group": ("(?i:PRE)-existing", "pre-existing", True),
    "one of several conditions": (["TS\\d{4}", "rejected: edit"], "see TS2304", True),
    "words join without a space": (r"\bass\b", "assisting", False),
    "a word beside other scripts": (r"\btest\b", "测试test通过", True),
    "digits of other scripts": (r"\d", "٣", False),
    "a named group": ("(?<n>x)y", "xy", True),
    "a class of letters, which needs a flag": (r"^\p{L}+$", "é", False),
    "a code point, which needs a flag": (r"\u{1F600}", "😀", False),
    "any character at all": ("a[^]b", "a\nb", True),
    "a lookbehind of any length": ("(?<=a+)b", "aaab", True),
    "control tokens": (r"<\|[a-z]+\|>", "text <|sep|> more", True),
    "a call written as text": (r"to=multi_tool_use\.\w+", "to=multi_tool_use.parallel {}", True),
    "marks without end": ("!{50}", "!" * 2000, True),
    "decoded escapes": ("(?m)^const y", 'x\nconst y: any = "z"', True),
}


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize(("condition", "text", "right"), IN_TEXT.values(), ids=IN_TEXT)
def test_a_text_has_the_right_verdict_however_it_comes(
    condition: str | list[str], text: str, right: bool, size: int | None
) -> None:
    assert fires(condition, text, size=size, scope="text") is right


def test_talk_about_a_command_is_not_the_command() -> None:
    said = "I will not use git push --force here"
    assert not fires("git push --force", said, scope="tool:bash")
    assert call_fires("Bash", '{"command": "git push --force"}', "git push --force", scope="tool:bash")


def test_thinking_is_watched_only_when_it_is_named() -> None:
    assert not fires("pre-existing", "a pre-existing bug", "thinking")
    assert fires("pre-existing", "a pre-existing bug", "thinking", scope=["text", "thinking"])


MARKED = '{"path":"q.cpp","content":"// MARK_ME\\n"}'


@pytest.mark.parametrize("size", [1, 2, 47, 1000, len(MARKED) - 2])
def test_the_last_piece_of_the_arguments_counts(size: int) -> None:
    assert call_fires("write", MARKED, "MARK_ME", size=size, scope="tool:write", globs=["**/*.cpp"])


def test_the_wire_s_escapes_are_no_text() -> None:
    sent = '{"file_path":"a.ts","content":"x\\nconst y: any = \\"z\\""}'
    assert call_fires("Write", sent, "(?m)^const y")
    assert call_fires("Write", sent, 'any = "z"')
    assert not call_fires("Write", sent, r"\bnconst\b")


def test_a_file_of_a_patch_does_not_answer_for_another() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: README.md\n@@\n+note: any\n"
        "*** Update File: a.ts\n@@\n+const a = 1\n*** End Patch"
    )
    sent = json.dumps({"input": patch})
    assert not call_fires("apply_patch", sent, ": any", globs=["*.ts"])
    assert call_fires("apply_patch", sent, ": any", globs=["*.md"])


@pytest.mark.parametrize(
    ("glob", "path", "right"),
    [
        ("*.ts", "src/deep/a.ts", True),
        ("**/*.ts", "a.ts", True),
        ("*.{ts,tsx}", "src/b.tsx", True),
        (".github/**", ".github/workflows/ci.yml", True),
        ("**/*.ts", "/w/app/src/a.ts", True),
        ("**/*.ts", "/tmp/scratch/a.ts", False),
        ("/tmp/**/*.ts", "/tmp/scratch/a.ts", True),
    ],
)
def test_a_glob_reaches_into_its_project_and_not_beyond(glob: str, path: str, right: bool) -> None:
    sent = json.dumps({"file_path": path, "content": "MARK"})
    assert call_fires("Write", sent, "MARK", root="/w/app", globs=[glob]) is right


@pytest.mark.parametrize("globs", [["**/*.ts", "**/*.js"], ["nope/**", "**/*.js"]])
def test_every_glob_of_a_list_counts(globs: list[str]) -> None:
    assert call_fires("Write", '{"file_path":"b.js","content":"MARK"}', "MARK", globs=globs)


def test_the_last_line_of_a_large_file_is_seen() -> None:
    sent = json.dumps({"file_path": "a.py", "content": "line of code\n" * 16_000 + "MARK"})
    assert call_fires("Write", sent, "MARK", size=4096)


def test_a_condition_that_runs_away_is_muted_and_the_others_go_on() -> None:
    runaway = Rule("runaway", condition=("(a+)+$",), scope=("text",))
    other = Rule("other", condition=("STOP",), scope=("text",))
    matcher = RuleSet([runaway, other]).stream(StreamContext("text"))
    found = [*matcher.feed("a" * 40 + "! STOP"), *matcher.finish()]
    assert "other" in {match.rule.name for match in found}


@pytest.mark.parametrize("pattern", [["foo(); bar();"], [".opt($A)"], ["{{{"]])
def test_a_bad_syntax_pattern_costs_only_its_rule(pattern: list[str]) -> None:
    ruleset = RuleSet(
        [
            Rule("bad", ast_condition=tuple(pattern), scope=("tool:write(*.ts)",)),
            Rule("good", condition=("MARK",), scope=("tool",)),
        ]
    )
    found = ruleset.check("foo(); MARK", StreamContext("tool", "Write", ("a.ts",), "write"))
    assert "good" in {match.rule.name for match in found}
