"""Conversations whose turns go to several replicas in turn and at once, and a model that counts reminders.

The model breaks the rules when it is told to, and each question says how many reminders upstream must see
with it; so every request checks that none was lost and none came twice.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from coding_agent import Agent, Answer
from proxy_under_test import Workspace
from strict_anthropic import Turn, fresh_id, text, thinking, turn

__all__ = ["CountingModel", "converse", "write_rules"]

HARD = "BADWORD"
SOFT = "SOFTWORD"
_ASK = "ask "


def write_rules(workspace: Workspace) -> None:
    """One rule that interrupts and one that only reminds, each as often as it is broken."""
    workspace.rule("hard", HARD, scope="text", repeatMode="always")
    workspace.rule("soft", SOFT, scope="text", repeatMode="always", interruptMode="never")


class CountingModel:
    """Answers what `converse` asks, and notes every request with a wrong number of reminders."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.faults: list[str] = []

    def __call__(self, body: dict[str, Any]) -> Turn:
        texts = [block["text"] for block in _user_texts(body)]
        at, question = [(at, t) for at, t in enumerate(texts) if t.startswith(_ASK)][-1]
        ask = json.loads(question.removeprefix(_ASK))
        interrupts = sum("<system-interrupt" in each for each in texts)
        reminders = sum("<system-reminder" in each for each in texts)
        again = any("<system-interrupt" in each for each in texts[at:])
        self.asked["retry" if again else ask["want"]] += 1
        expected = (ask["hard"] + again, ask["soft"])
        if (interrupts, reminders) != expected:
            self.faults.append(f"{ask}: upstream saw {(interrupts, reminders)} reminders, not {expected}")
        said = f"Answer {fresh_id('n')}."
        if ask["want"] == "hard" and not again:
            return turn(thinking(f"hm {said}"), text(f"{said} It is {HARD}."))
        if ask["want"] == "soft":
            return turn(thinking(f"hm {said}"), text(f"{said} A {SOFT} here."))
        return turn(thinking(f"hm {said}"), text(said))


async def converse(agent: Agent, urls: Sequence[str], turns: int, rng: random.Random) -> int:
    """So many turns of one conversation, each at any of the replicas; the number of requests.

    Now and then two replicas are asked at once to go on from the same point, with the same question or with
    another, and the conversation goes on from one of the answers.
    """
    hard = soft = requests = 0
    for _ in range(turns):
        forks = [agent, agent.fork()] if rng.random() < 0.2 else [agent]
        wants = [rng.choice(("hard", "soft", "clean", "clean")) for _ in forks]
        if rng.random() < 0.5:
            wants = wants[:1] * len(forks)
        homes = rng.sample(list(urls), len(forks))
        questions = [{"want": want, "hard": hard, "soft": soft} for want in wants]
        for fork, home in zip(forks, homes, strict=True):
            fork.base_url = home
        said = await asyncio.gather(
            *(fork.say(_ASK + json.dumps(question)) for fork, question in zip(forks, questions, strict=True))
        )
        for answer in said:
            _check(answer)
        requests += len(forks)
        chosen = rng.randrange(len(forks))
        agent.messages = copy.deepcopy(forks[chosen].messages)
        hard += wants[chosen] == "hard"
        soft += wants[chosen] == "soft"
    return requests


def _check(answer: Answer) -> None:
    assert answer.status == 200, (answer.status, answer.raw[:500])
    assert answer.complete, answer.kinds
    assert HARD not in answer.text


def _user_texts(body: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "user":
            found += [block for block in blocks if block["type"] == "text"]
    return found
