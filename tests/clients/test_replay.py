"""A rule that comes later is tried on what a real agent wrote down, and on what the proxy captured."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from proxy_under_test import Workspace
from real_agents import Agent, Scene, available, played
from scripted_model import Say, Think, Write

from ttsr_proxy.cli import main
from ttsr_proxy.config import CaptureSettings

BAD = "BADWORD"
AGENTS = ("claude-code", "codex", "codex-exec", "codex-shell")


@pytest.fixture
async def scene(workspace: Workspace, agent: Agent, binary: str) -> AsyncIterator[Scene]:
    workspace.capture = CaptureSettings(enabled=True)
    async with played(workspace, agent, binary) as made:
        yield made


@pytest.mark.parametrize(("agent", "binary"), available(lambda agent: agent.name in AGENTS))
async def test_a_new_rule_finds_the_same_in_transcripts_and_captures(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = scene.workspace
    scene.model.plan = [
        (Think("a"), Say("I write it."), Write("hello.py", f"print('{BAD}')\n")),
        (Think("all done"), Say(f"FINAL {BAD} all done.")),
    ]
    run = await scene.run("Create hello.py that prints hello")
    assert run.status == 0, run.output[-3000:]
    assert BAD in (workspace.project / "hello.py").read_text()

    workspace.rule("no-bad-word", BAD, scope=["text", "tool"])
    monkeypatch.setenv("HOME", str(workspace.home))
    monkeypatch.setenv("TTSR_BUILTIN_RULES", "false")
    history = workspace.home / (
        ".claude/projects" if scene.agent.protocol == "anthropic" else ".codex/sessions"
    )
    in_transcripts = await replayed(workspace, history)
    in_captures = await replayed(workspace, workspace.state.parent / "captures" / "default")
    assert in_transcripts["lost"] == in_captures["lost"] == []
    matches = [
        [
            (one["turn"], one["source"], one["tool"], one["paths"], one["action"])
            for one in found["matches"]
            if one["action"] != "observed"
        ]
        for found in (in_transcripts, in_captures)
    ]
    assert matches[0] == matches[1]
    wanted = [(0, "tool", "interrupted"), (1, "text", "suppressed")]
    assert [(turn, source, action) for turn, source, *_, action in matches[0]] == wanted
    assert {one["agent"] for one in in_transcripts["matches"]} == {"main"}
    sessions = [{one["conversation"] for one in found["matches"]} for found in (in_transcripts, in_captures)]
    assert sessions[0] == sessions[1]


async def replayed(workspace: Workspace, history: Path) -> Any:
    arguments = ["--project", str(workspace.project), "--rules", str(workspace.rules), "--json"]
    told = await asyncio.to_thread(CliRunner().invoke, main, ["replay", str(history), *arguments])
    assert told.exit_code == 1, told.output
    return json.loads(told.stdout)
