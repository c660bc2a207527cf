"""The same rule and the same output give the same verdict over every protocol, streamed and not.

What follows from the verdict may differ: an answer that is not streamed can always be asked for again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest
from coding_agent import Agent, ChatAgent, ResponsesAgent
from proxy_under_test import Workspace, running_proxy
from strict_anthropic import StrictUpstream, strict_upstream, text, thinking, tool, turn
from strict_openai_chat import strict_chat_upstream
from strict_openai_responses import strict_responses_upstream

PROTOCOLS: dict[str, tuple[Callable[[], AbstractAsyncContextManager[StrictUpstream]], type[Agent]]] = {
    "anthropic": (strict_upstream, Agent),
    "openai-chat": (strict_chat_upstream, ChatAgent),
    "openai-responses": (strict_responses_upstream, ResponsesAgent),
}

WRITE = {"file_path": "src/a.py", "content": "x = eval(y)\n"}
EDIT = {"file_path": "src/a.ts", "old_string": "eval(a)", "new_string": "parse(a)"}
EDIT_BACK = {"file_path": "src/a.ts", "old_string": "parse(a)", "new_string": "eval(a)"}
BASH = {"command": "echo 'eval(x)' > src/a.py"}


@dataclass(frozen=True, slots=True)
class Case:
    """A rule, what the model says, and each verdict: source, tool, paths and the text that matched."""

    steps: tuple[Any, ...]
    verdicts: tuple[tuple[str, str | None, tuple[str, ...], str], ...]
    condition: str = r"\beval\("
    rule: dict[str, Any] = field(default_factory=lambda: {"scope": ["text", "tool"]})
    behind_call: bool = False
    """The violation stands behind a call that a client may have run already."""


IN_WRITE = ("tool", "Write", ("src/a.py",), "eval(")

CASES = {
    "text": Case((text("Call eval(x) now."),), (("text", None, (), "eval("),)),
    "clean text": Case((text("Never evaluate."),), ()),
    "text over many lines": Case(
        (text("one\ntwo\nthree"),), (("text", None, (), "one\ntwo\nthree"),), r"one\n.*\nthree"
    ),
    "the very end of the text": Case((text("no foo, but foo"),), (("text", None, (), "foo"),), "foo$"),
    "not the very end": Case((text("foo bar"),), (), "foo$"),
    "what follows undoes it": Case((text("related to it"),), (), "related(?! to)"),
    "what follows does not": Case(
        (text("related things"),), (("text", None, (), "related"),), "related(?! to)"
    ),
    "astral characters": Case((text("a 😀 漢 eval(x)"),), (("text", None, (), "eval("),)),
    "a call": Case((tool("Write", WRITE),), (IN_WRITE,)),
    "a call behind text": Case((text("I write."), tool("Write", WRITE)), (IN_WRITE,)),
    "a call behind another": Case(
        (tool("Read", {"file_path": "b"}), tool("Write", WRITE)), (IN_WRITE,), behind_call=True
    ),
    "text out of scope": Case((text("eval(x)"),), (), rule={"scope": "tool"}),
    "a path in the scope": Case((tool("Write", WRITE),), (IN_WRITE,), rule={"scope": "tool:write(*.py)"}),
    "a path out of the scope": Case((tool("Write", WRITE),), (), rule={"scope": "tool:write(*.ts)"}),
    "another tool's scope": Case((tool("Write", WRITE),), (), rule={"scope": "tool:edit"}),
    "what an edit takes away": Case((tool("Edit", EDIT),), ()),
    "what an edit puts in": Case(
        (tool("Edit", EDIT_BACK),),
        (("tool", "Edit", ("src/a.ts",), "eval("),),
        rule={"scope": "tool:edit(*.ts)"},
    ),
    "globs": Case((tool("Write", WRITE),), (), rule={"scope": "tool", "globs": ["lib/**"]}),
    "syntax": Case(
        (tool("Write", WRITE),),
        (("tool", "Write", ("src/a.py",), "eval(y)"),),
        "never said",
        {"scope": "tool:write(*.py)", "astCondition": ["eval($A)"]},
    ),
    "no such syntax": Case(
        (tool("Write", {"file_path": "src/a.py", "content": "'eval(y)'"}),),
        (),
        "never said",
        {"scope": "tool:write(*.py)", "astCondition": ["eval($A)"]},
    ),
    "a file written by a shell": Case(
        (tool("Bash", BASH),), (("tool", "Bash", ("src/a.py",), "eval("),), rule={"scope": "tool:write(*.py)"}
    ),
    "reasoning": Case(
        (thinking("Perhaps eval(x) helps."), text("Done.")),
        (("thinking", None, (), "eval("),),
        rule={"scope": "thinking"},
    ),
    "reasoning out of scope": Case((thinking("Perhaps eval(x) helps."), text("Done.")), ()),
}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_the_verdict_is_the_same(workspace: Workspace, case: Case, protocol: str, stream: bool) -> None:
    serve, agent_of = PROTOCOLS[protocol]
    workspace.rule("no-eval", case.condition, **case.rule)
    thinks = {"thinking": {"type": "adaptive"}} if protocol == "anthropic" else {}
    async with (
        serve() as upstream,
        running_proxy(workspace, upstream.url) as proxy,
        agent_of(proxy.url, stream=stream, **thinks) as agent,
    ):
        upstream.script(turn(*case.steps, chunk=3))
        upstream.otherwise(lambda body: turn(text("Clean.")))
        answer = await agent.say("go")
        assert answer.complete, answer.error
        outcome = ("truncated", "pending") if stream and case.behind_call else ("interrupted", "clean")
        items = await proxy.log(*(outcome for _ in case.verdicts))
    found = [(item["source"], item["tool"], tuple(item["paths"]), item["matched"]) for item in items]
    assert found == list(case.verdicts)
    assert {item["protocol"] for item in items} <= {protocol}
