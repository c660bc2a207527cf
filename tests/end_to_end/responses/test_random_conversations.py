"""Random conversations with random violations: upstream refuses nothing and the client sees no violation."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from coding_agent import ResponsesAgent
from proxy_under_test import Workspace, running_proxy
from strict_anthropic import Turn, fresh_id, server_tool, text, thinking, tool, turn
from strict_openai_responses import StrictResponsesUpstream, custom, reasoning, refusal, shell

from ttsr_proxy.config import BudgetSettings

BAD = "BADWORD"
SOFT = "SOFTWORD"
STEPS = 10
WORDS = ("alpha ", "beta ", "B", "BAD", "BADW ", "gamma. ", "\n", "S", "SOFT ", "é✓ ", "delta, ")

KEEPING: dict[str, dict[str, Any]] = {
    "stateless": {},
    "stateless, no ids": {"ids": False},
    "stateless, interleaved": {"interleaves": True},
    "whole history, stored": {"store": True},
    "chained": {"chains": True},
}


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
        match self._random.randint(0, 3):
            case 0:
                added = self._words().replace("\n", "\n+")
                return custom("apply_patch", f"*** Begin Patch\n*** Add File: a\n+{added}")
            case 1:
                return shell(f"echo {self._words()}")
            case _:
                return tool("Write", {"file_path": f"{fresh_id('f')}.py", "content": self._words()})

    def __call__(self, body: dict[str, Any]) -> Turn:
        rng = self._random
        steps: list[Any] = []
        if rng.random() < 0.7:
            steps.append(
                rng.choice(
                    (thinking(self._words()), thinking("", omitted=True), reasoning(self._words(), "more"))
                )
            )
        if rng.random() < 0.1:
            steps.append(server_tool("web_search", {"query": fresh_id("q")}, []))
        if rng.random() < 0.7:
            steps.append(text(self._words()) if rng.random() < 0.9 else refusal(self._words()))
            if rng.random() < 0.2:
                steps += [thinking(self._words()), text(self._words())]
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            if steps and rng.random() < 0.15:
                steps.append(thinking(self._words()))
            steps.append(self._call())
        if not steps or "Block" not in steps[-1].__class__.__name__ or _is_reasoning(steps[-1]):
            steps.append(text(self._words()))
        return turn(*steps, chunk=rng.choice((1, 3, 7, 40, 1000)))


def _is_reasoning(step: Any) -> bool:
    return step.__class__.__name__ in ("ThinkingBlock", "ReasoningBlock")


async def step(agent: ResponsesAgent, rng: random.Random) -> None:
    """One turn of the user: answer calls if there are any, else say something."""
    agent.stream = rng.random() < 0.8
    answer = await (agent.results() if agent.open_calls else agent.say(fresh_id("question")))
    assert answer.status == 200, answer.raw[:500]
    assert answer.complete, answer.error
    assert BAD not in answer.raw.decode()
    assert BAD not in str(answer.blocks)
    last = agent.messages[-1]
    if not agent.chains and last["type"] == "message" and rng.random() < 0.15:
        # the user pressed Escape: the client keeps what it had shown
        part = last["content"][0]
        shorter = part.get("text", "")[: rng.randint(2, 40)].rstrip()
        if shorter.strip():
            part["text"] = shorter


@pytest.mark.parametrize("keeping", KEEPING.values(), ids=KEEPING.keys())
@pytest.mark.parametrize("context_mode", ["discard", "keep"])
@pytest.mark.parametrize("seed", range(2))
async def test_a_random_conversation_is_legal_and_clean(
    workspace: Workspace,
    upstream: StrictResponsesUpstream,
    new_agent: Any,
    seed: int,
    context_mode: str,
    keeping: dict[str, Any],
) -> None:
    rng = random.Random(seed)
    workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"], repeatMode="always")
    workspace.rule("no-soft-word", SOFT, scope=["text", "tool"], repeatMode="always", interruptMode="never")
    budget = BudgetSettings(per_rule=50, per_response=50, per_conversation=10_000)
    upstream.otherwise(RandomModel(seed))

    def proxy() -> Any:
        return running_proxy(workspace, upstream.url, context_mode=context_mode, budget=budget)

    async with proxy() as running:
        agent: ResponsesAgent = await new_agent(running, **keeping)
        snapshots = await _talk(agent, rng, STEPS)
    async with proxy() as running:
        agent.base_url = running.url
        _rewind(agent, rng.choice(snapshots))
        await _talk(agent, rng, STEPS // 2)
    assert upstream.refusals == []


Snapshot = tuple[list[dict[str, Any]], str | None, int]


def _snapshot(agent: ResponsesAgent) -> Snapshot:
    return copy.deepcopy(agent.messages), agent.last_id, agent.sent


def _rewind(agent: ResponsesAgent, to: Snapshot) -> None:
    agent.messages, agent.last_id, agent.sent = copy.deepcopy(to[0]), to[1], to[2]


async def _talk(agent: ResponsesAgent, rng: random.Random, steps: int) -> list[Snapshot]:
    """So many turns, with rewinds to earlier points; the histories after each."""
    snapshots = [_snapshot(agent)]
    for _ in range(steps):
        if rng.random() < 0.2:
            _rewind(agent, rng.choice(snapshots))
        await step(agent, rng)
        snapshots.append(_snapshot(agent))
    return snapshots
