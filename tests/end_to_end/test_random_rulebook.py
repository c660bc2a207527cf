"""Random conversations in which rules are read, broken and edited: legal, and hidden from the client."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from coding_agent import Agent, ChatAgent, EchoStyle, ResponsesAgent
from proxy_under_test import Workspace, running_proxy
from strict_anthropic import Turn, fresh_id, strict_upstream, text, thinking, tool, turn
from strict_openai_chat import Dialect, strict_chat_upstream
from strict_openai_responses import strict_responses_upstream

from ttsr_proxy.config import BudgetSettings

BAD = "BADWORD"
STEPS = 10
KEPT = ("messages", "last_id", "sent")
"""What an agent knows of its conversation."""


@dataclass(frozen=True, slots=True)
class Api:
    upstream: Callable[[], Any]
    agent: type[Agent]
    options: dict[str, Any]
    dialect: Dialect | None = None


ADAPTIVE = {"thinking": {"type": "adaptive"}}
APIS = {
    "anthropic": Api(strict_upstream, Agent, {**ADAPTIVE, "style": EchoStyle(cache_last=False)}),
    "anthropic, own style": Api(
        strict_upstream, Agent, {**ADAPTIVE, "style": EchoStyle(add_defaults=True, reserialise=True)}
    ),
    "chat": Api(strict_chat_upstream, ChatAgent, {}),
    "chat, whole calls": Api(
        strict_chat_upstream, ChatAgent, {"parts": True}, Dialect(whole_calls=True, stop_in_last=True)
    ),
    "responses": Api(strict_responses_upstream, ResponsesAgent, {}),
    "responses, no ids": Api(strict_responses_upstream, ResponsesAgent, {"ids": False}),
    "responses, stored": Api(strict_responses_upstream, ResponsesAgent, {"store": True}),
    "responses, chained": Api(strict_responses_upstream, ResponsesAgent, {"chains": True}),
}


class RandomReader:
    """Answers anything, reads rules, and breaks them now and then."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def __call__(self, body: dict[str, Any]) -> Turn:
        rng = self._rng
        steps: list[Any] = [thinking(fresh_id("hm"))] if rng.random() < 0.6 else []
        if rng.random() < 0.6:
            steps.append(text(self._words()))
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            steps.append(self._read() if rng.random() < 0.5 else self._write())
        if not steps or steps[-1].__class__.__name__ == "ThinkingBlock":
            steps.append(text(self._words()))
        return turn(*steps, chunk=rng.choice((1, 3, 7, 1000)))

    def _words(self) -> str:
        bad = f" {BAD}" if self._rng.random() < 0.15 else ""
        return f"word{bad} and more {fresh_id('n')}"

    def _read(self) -> Any:
        name = self._rng.choice(("db", "brief", "no-bad-word", "unknown"))
        if self._rng.random() < 0.5:
            return tool("Bash", {"command": f"cat rule://{name}"})
        return tool("Read", {"file_path": f"rule://{name}"})

    def _write(self) -> Any:
        if self._rng.random() < 0.3:
            return tool("Read", {"file_path": f"{fresh_id('f')}.py"})
        return tool("Write", {"file_path": f"{fresh_id('f')}.py", "content": self._words()})


def has_calls(agent: Agent) -> bool:
    if isinstance(agent, ResponsesAgent):
        return bool(agent.open_calls)
    if not agent.messages:
        return False
    last = agent.messages[-1]
    if isinstance(agent, ChatAgent):
        return bool(last.get("tool_calls"))
    return any(block["type"] == "tool_use" for block in last["content"])


def snapshot(agent: Agent) -> dict[str, Any]:
    return {name: copy.deepcopy(getattr(agent, name)) for name in KEPT if hasattr(agent, name)}


def rewind(agent: Agent, to: dict[str, Any]) -> None:
    for name, value in to.items():
        setattr(agent, name, copy.deepcopy(value))


async def step(agent: Agent, rng: random.Random) -> None:
    """One turn of the user: answer calls if there are any, else say something."""
    agent.stream = rng.random() < 0.7
    answer = await (agent.results() if has_calls(agent) else agent.say(fresh_id("question")))
    assert answer.status == 200, answer.raw[:500]
    assert answer.complete, answer.error
    for hidden in (BAD, "rule://", "-rules>"):
        assert hidden not in json.dumps(answer.blocks)
        assert hidden not in answer.raw.decode()


def prompts_by_conversation(calls: list[Any]) -> dict[str, set[str]]:
    """The system prompts of each conversation, which is known by what the user said first."""
    prompts: dict[str, set[str]] = {}
    for call in calls:
        body = call.body
        if body.get("previous_response_id"):
            continue
        history = body.get("messages") or body["input"]
        first = next(message for message in history if message["role"] == "user")
        system = body.get("system") or body.get("instructions") or history[0]["content"]
        # A reminder may stand behind what the user said.
        said = json.dumps(first["content"]).split("question")[1][:12]
        prompts.setdefault(said, set()).add(json.dumps(system))
    return prompts


@pytest.mark.parametrize("name", APIS)
@pytest.mark.parametrize("context_mode", ["discard", "keep"])
@pytest.mark.parametrize("seed", range(2))
async def test_a_random_conversation_with_a_rulebook_is_legal_and_hides_it(
    workspace: Workspace, name: str, context_mode: str, seed: int
) -> None:
    api, rng = APIS[name], random.Random(seed)
    workspace.rulebook()
    budget = BudgetSettings(per_rule=50, per_response=50, per_conversation=10_000)
    async with api.upstream() as upstream:
        if api.dialect is not None:
            upstream.dialect = api.dialect
        upstream.otherwise(RandomReader(rng))
        snapshots: list[dict[str, Any]] = []
        async with api.agent("", **api.options) as agent:
            snapshots.append(snapshot(agent))
            for _ in range(3):
                async with running_proxy(
                    workspace, upstream.url, context_mode=context_mode, budget=budget
                ) as proxy:
                    agent.base_url = proxy.url
                    for _ in range(STEPS // 2):
                        if rng.random() < 0.25:
                            rewind(agent, rng.choice(snapshots))
                        if rng.random() < 0.3:
                            workspace.rule_file("brief", f"Be {fresh_id('b')}.", alwaysApply=True)
                        await step(agent, rng)
                        snapshots.append(snapshot(agent))
        assert upstream.refusals == []
        prompts = prompts_by_conversation(upstream.calls)
    assert all(len(sent) == 1 for sent in prompts.values())
