"""Claude Code itself through the proxy, against the strict upstream.

Left out unless `TTSR_CLAUDE_CODE` lists Claude Code binaries (separated by `:`). Run it where nothing but the
loopback interface can be reached, for example `ip netns exec NAME python -m pytest tests/clients`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from proxy_under_test import Proxy, Workspace
from strict_anthropic import StrictUpstream, text, thinking, tool, turn

BINARIES = [path for path in os.environ.get("TTSR_CLAUDE_CODE", "").split(os.pathsep) if path]
MODELS = ["claude-opus-5-5", "claude-sonnet-4-5"]
TIMEOUT = 120.0
BAD = "BADWORD"
_TOLD = ("<system-interrupt", "<system-reminder reason=")

pytestmark = pytest.mark.skipif(not BINARIES, reason="TTSR_CLAUDE_CODE names no Claude Code binary")


@dataclass(frozen=True, slots=True)
class Run:
    status: int | None
    output: str

    @property
    def result(self) -> dict[str, Any]:
        """The last line of the JSON output that is a result."""
        lines = [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]
        return next(line for line in reversed(lines) if line["type"] == "result")


async def claude(binary: str, proxy: Proxy, workspace: Workspace, model: str, prompt: str, *more: str) -> Run:
    """One headless run in the workspace's project with the workspace's home."""
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(workspace.home),
        "XDG_CONFIG_HOME": str(workspace.home / ".config"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CI": "1",
        "IS_SANDBOX": "1",
        "NO_PROXY": "*",
        "ANTHROPIC_BASE_URL": proxy.url,
        "ANTHROPIC_API_KEY": "sk-ant-dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }
    process = await asyncio.create_subprocess_exec(
        binary,
        "-p",
        prompt,
        "--output-format",
        "stream-json",
        "--verbose",
        "--permission-mode",
        "bypassPermissions",
        "--model",
        model,
        *more,
        cwd=workspace.project,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), TIMEOUT)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    return Run(process.returncode, output.decode())


def write(path: Path, *, bad: bool) -> Any:
    content = f"print('{BAD}')\n" if bad else "print('hello')\n"
    return tool("Write", {"file_path": str(path), "content": content})


def model_that(
    first: Callable[[Path], Any], again: Callable[[Path], Any], path: Path
) -> Callable[[Any], Any]:
    """A model that violates until it is told not to, and has finished when its file is written."""

    def answer(body: dict[str, Any]) -> Any:
        if not body.get("tools"):
            return turn(text("A title"))
        blocks = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        if any(block["type"] == "tool_use" and block["name"] == "Write" for block in blocks):
            return turn(thinking("all done"), text("FINAL all done."))
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        told = any(mark in value for value in texts for mark in _TOLD)
        return again(path) if told else first(path)

    return answer


SCENARIOS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "text at the start": (
        lambda path: turn(thinking("a"), text(f"{BAD} is how I start")),
        lambda path: turn(thinking("b"), text("I write it."), write(path, bad=False)),
    ),
    "text after text": (
        lambda path: turn(thinking("a"), text(f"I will write, {BAD} and more")),
        lambda path: turn(thinking("b"), text("I write it."), write(path, bad=False)),
    ),
    "a tool call": (
        lambda path: turn(thinking("a"), write(path, bad=True)),
        lambda path: turn(thinking("b"), write(path, bad=False)),
    ),
    "a tool call after text": (
        lambda path: turn(thinking("a"), text("I write it."), write(path, bad=True)),
        lambda path: turn(thinking("b"), text("Better."), write(path, bad=False)),
    ),
    "the second of two calls": (
        lambda path: turn(thinking("a"), tool("Bash", {"command": "true"}), write(path, bad=True)),
        lambda path: turn(thinking("b"), write(path, bad=False)),
    ),
    "thinking": (
        lambda path: turn(thinking(f"half a thought {BAD}"), write(path, bad=True)),
        lambda path: turn(thinking("b"), write(path, bad=False)),
    ),
}


@pytest.mark.parametrize("binary", BINARIES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_the_file_is_clean_and_the_next_turn_is_accepted(
    workspace: Workspace, upstream: StrictUpstream, proxy: Proxy, binary: str, model: str, scenario: str
) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"])
    path = workspace.project / "hello.py"
    first, again = SCENARIOS[scenario]
    upstream.otherwise(model_that(first, again, path))
    run = await claude(binary, proxy, workspace, model, "Create hello.py that prints hello")
    assert run.status == 0, run.output[-2000:]
    assert path.read_text() == "print('hello')\n"
    assert BAD not in run.output
    assert run.result["is_error"] is False
    assert run.result["result"] == "FINAL all done."
    upstream.otherwise(lambda body: turn(text("Next turn.")))
    run = await claude(binary, proxy, workspace, model, "And now?", "--continue")
    assert (run.status, run.result["result"]) == (0, "Next turn."), run.output[-2000:]
    assert upstream.refusals == []
    actions = [item["action"] for item in await proxy.interrupts()]
    assert actions[0] == ("truncated" if scenario == "the second of two calls" else "interrupted")
