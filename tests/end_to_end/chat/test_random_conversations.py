"""Random conversations with random violations: upstream refuses nothing and the client sees no violation."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from coding_agent import ChatAgent, EchoStyle
from proxy_under_test import Workspace, running_proxy
from strict_anthropic import Turn, fresh_id, ping, text, thinking, tool, turn
from strict_openai_chat import Dialect, StrictChatUpstream
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
        for word, share in ((BAD, 0.25), (SOFT, 0.15)):
            if rng.random() < share:
                words.insert(rng.randint(0, len(words)), word)
        # every text is different, so that a mistaken echo is noticed, and none is white space alone
        return "".join(words) + f" {fresh_id('n')}"

    def _call(self) -> Any:
        if self._random.random() < 0.4:
            return tool("Edit", {"file_path": "a.py", "old_string": "x", "new_string": self._words()})
        return tool("Write", {"file_path": f"{fresh_id('f')}.py", "content": self._words()})

    def __call__(self, body: dict[str, Any]) -> Turn:
        rng = self._random
        steps: list[Any] = []
        if rng.random() < 0.5:
            steps.append(thinking(self._words()))
        if rng.random() < 0.3:
            steps.append(ping())
        if rng.random() < 0.7:
            steps.append(text(self._words()))
        steps += [self._call() for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
        if not steps or type(steps[-1]) in (type(ping()), type(thinking(""))):
            steps.append(text(self._words()))
        return turn(*steps, chunk=rng.choice((1, 3, 7, 40, 1000)), eol=rng.choice(("\n", "\r\n")))


def dialect(rng: random.Random) -> Dialect:
    return Dialect(
        role_everywhere=rng.random() < 0.3,
        whole_calls=rng.random() < 0.3,
        stop_in_last=rng.random() < 0.3,
        prompt_filter=rng.random() < 0.2,
        reasoning=rng.choice(("reasoning", "reasoning_content")),
        takes_reasoning=True,
        done=rng.random() < 0.8,
    )


async def step(agent: ChatAgent, rng: random.Random) -> None:
    """One turn of the user: answer calls if there are any, else say something."""
    agent.stream = rng.random() < 0.8
    calls = bool(agent.messages) and bool(agent.messages[-1].get("tool_calls"))
    answer = await (agent.results() if calls else agent.say(fresh_id("question")))
    assert_clean(answer, BAD)
    last = agent.messages[-1]
    if not answer.calls and rng.random() < 0.15 and isinstance(last["content"], str):
        # the user pressed Escape: the client keeps what it had shown
        last["content"] = last["content"][: rng.randint(2, len(last["content"]))].rstrip() or last["content"]


async def talk(agent: ChatAgent, rng: random.Random, steps: int) -> list[list[dict[str, Any]]]:
    """So many turns, with rewinds to earlier points; the histories after each."""
    snapshots: list[list[dict[str, Any]]] = [copy.deepcopy(agent.messages)]
    for _ in range(steps):
        if rng.random() < 0.2:
            agent.messages = copy.deepcopy(rng.choice(snapshots))
        await step(agent, rng)
        snapshots.append(copy.deepcopy(agent.messages))
    return snapshots


@pytest.mark.parametrize("context_mode", ["discard", "keep"])
@pytest.mark.parametrize("seed", range(10))
async def test_a_random_conversation_is_legal_and_clean(
    workspace: Workspace, upstream: StrictChatUpstream, new_agent: Any, seed: int, context_mode: str
) -> None:
    rng = random.Random(seed)
    workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"], repeatMode="always")
    workspace.rule("no-soft-word", SOFT, scope=["text", "tool"], repeatMode="always", interruptMode="never")
    budget = BudgetSettings(per_rule=50, per_response=50, per_conversation=10_000)
    upstream.otherwise(RandomModel(seed))
    upstream.dialect = dialect(rng)

    def proxy() -> Any:
        return running_proxy(workspace, upstream.url, context_mode=context_mode, budget=budget)

    async with proxy() as running:
        agent: ChatAgent = await new_agent(
            running,
            echo_reasoning=rng.random() < 0.5,
            parts=rng.random() < 0.3,
            style=EchoStyle(reserialise=rng.random() < 0.5, add_defaults=rng.random() < 0.5),
        )
        snapshots = await talk(agent, rng, STEPS)
    async with proxy() as running:
        agent.base_url = running.url
        agent.messages = copy.deepcopy(rng.choice(snapshots))
        await talk(agent, rng, STEPS // 2)
    assert upstream.refusals == []
    assert any("<system-interrupt" in str(call.body) for call in upstream.calls)
