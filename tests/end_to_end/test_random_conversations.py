"""Random conversations with random violations: upstream refuses nothing and the client sees no violation."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from coding_agent import Agent, EchoStyle
from proxy_under_test import Workspace, running_proxy
from strict_anthropic import (
    StrictUpstream,
    Turn,
    fresh_id,
    redacted,
    server_tool,
    text,
    thinking,
    tool,
    turn,
)
from ttsr_asserts import assert_clean

from ttsr_proxy.config import BudgetSettings

BAD = "BADWORD"
SOFT = "SOFTWORD"
STEPS = 12
WORDS = ("alpha ", "beta ", "B", "BAD", "BADW ", "gamma. ", "\n", "S", "SOFT ", "é✓ ", "delta, ")


class RandomModel:
    """Answers anything, and breaks the rules now and then."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _words(self) -> str:
        rng = self._random
        words = [rng.choice(WORDS) for _ in range(rng.randint(1, 12))]
        if rng.random() < 0.25:
            words.insert(rng.randint(0, len(words)), BAD)
        if rng.random() < 0.15:
            words.insert(rng.randint(0, len(words)), SOFT)
        # every text is different, so that a mistaken echo is noticed, and none is white space alone
        return "".join(words) + f" {fresh_id('n')}"

    def _call(self) -> Any:
        rng = self._random
        if rng.random() < 0.4:
            return tool("Edit", {"file_path": "a.py", "old_string": "x", "new_string": self._words()})
        return tool("Write", {"file_path": f"{fresh_id('f')}.py", "content": self._words()})

    def __call__(self, body: dict[str, Any]) -> Turn:
        rng = self._random
        steps: list[Any] = []
        if rng.random() < 0.7:
            steps.append(rng.choice((thinking(self._words()), thinking("", omitted=True), redacted())))
        if rng.random() < 0.1:
            steps.append(server_tool("web_search", {"query": fresh_id("q")}, []))
        if rng.random() < 0.7:
            steps.append(text(self._words()))
            if rng.random() < 0.2:
                steps.append(thinking(self._words()))
                steps.append(text(self._words()))
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            if steps and rng.random() < 0.15:
                steps.append(thinking(self._words()))
            steps.append(self._call())
        if not any(step.__class__.__name__ in ("TextBlock", "ToolBlock") for step in steps):
            steps.append(text(self._words()))
        return turn(*steps, chunk=rng.choice((1, 3, 7, 40, 1000)))


def style(rng: random.Random) -> EchoStyle:
    return EchoStyle(
        drop_unsigned=rng.random() < 0.3,
        text_first=rng.random() < 0.7,
        add_defaults=rng.random() < 0.5,
        string_content=rng.random() < 0.3,
        cache_last=rng.random() < 0.5,
        reserialise=rng.random() < 0.5,
    )


async def step(agent: Agent, rng: random.Random) -> None:
    """One turn of the user: answer calls if there are any, else say something."""
    agent.stream = rng.random() < 0.8
    if agent.messages and any(b["type"] == "tool_use" for b in agent.messages[-1]["content"]):
        answer = await agent.results()
    else:
        answer = await agent.say(fresh_id("question"))
    assert_clean(answer, BAD)
    if rng.random() < 0.2:
        counting = agent.fork()
        if any(b["type"] == "tool_use" for b in counting.messages[-1]["content"]):
            counting.add_results()
        else:
            counting.add_user({"type": "text", "text": "count"})
        assert await counting.count_tokens() > 0
    last = agent.messages[-1]["content"][-1]
    if last["type"] == "text" and len(last["text"]) > 4 and rng.random() < 0.15:
        # the user pressed Escape: the client keeps what it had shown
        shorter = last["text"][: rng.randint(2, len(last["text"]))].rstrip()
        if shorter.strip():
            last["text"] = shorter


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-4-5"])
@pytest.mark.parametrize("context_mode", ["discard", "keep"])
@pytest.mark.parametrize("seed", range(10))
async def test_a_random_conversation_is_legal_and_clean(
    workspace: Workspace, upstream: StrictUpstream, new_agent: Any, seed: int, context_mode: str, model: str
) -> None:
    rng = random.Random(seed)
    workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"], repeatMode="always")
    workspace.rule("no-soft-word", SOFT, scope=["text", "tool"], repeatMode="always", interruptMode="never")
    budget = BudgetSettings(per_rule=50, per_response=50, per_conversation=10_000)
    upstream.otherwise(RandomModel(seed))

    def proxy() -> Any:
        return running_proxy(workspace, upstream.url, context_mode=context_mode, budget=budget)

    async with proxy() as running:
        agent: Agent = await new_agent(running, model=model, style=style(rng))
        snapshots = await _talk(agent, rng, STEPS)
    async with proxy() as running:
        agent.base_url = running.url
        agent.messages = copy.deepcopy(rng.choice(snapshots))
        await _talk(agent, rng, STEPS // 2)
    assert upstream.refusals == []


async def _talk(agent: Agent, rng: random.Random, steps: int) -> list[list[dict[str, Any]]]:
    """So many turns, with rewinds to earlier points; the histories after each."""
    snapshots: list[list[dict[str, Any]]] = [copy.deepcopy(agent.messages)]
    for _ in range(steps):
        if rng.random() < 0.2:
            agent.messages = copy.deepcopy(rng.choice(snapshots))
        await step(agent, rng)
        snapshots.append(copy.deepcopy(agent.messages))
    return snapshots
