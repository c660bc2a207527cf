"""Judgement by Jev: yes/no questions to a System One endpoint, through its official client."""

from __future__ import annotations

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog

from ttsr_proxy import jsontext
from ttsr_proxy.jsontext import JsonObject, canonical
from ttsr_proxy.judges.question import Answers, Question

STATE_AND_ALL: Final = 52_000
STATE_AND_LONGEST: Final = 28_000
"""Tokens of one request; the model's own limits are about 64,000 and 33,000."""

BREAK_AFTER: Final = 5
BREAK_SECONDS: Final = 60.0
"""After so many failures in a row nothing is asked for so long; after a refused key at once."""

KEEP_SECONDS: Final = 600.0
KEPT: Final = 20_000
"""Answers are kept so long and so many: agents ask about one context again and again."""

_log = structlog.get_logger()


class JevJudge:
    """Needs its package, the extra `jev`. `timeout` in seconds, for one request."""

    name = "jev_noul"

    def __init__(self, base_url: str, model: str, key: str, timeout: float) -> None:
        # Imported here: it is an extra, and slow to import.
        import typesafe_sdk

        self._sdk: Any = typesafe_sdk
        self._model = model
        self._client: Any = typesafe_sdk.AsyncTypeSafeClient(
            api_key=key,
            base_url=base_url,
            model=model,
            timeout=timeout,
            retry=typesafe_sdk.RetryPolicy(max_retries=2, timeout=timeout),
            compression=False,
        )
        self._kept: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._failures = 0
        self._broken_until = 0.0

    async def ask(self, state: JsonObject, questions: Sequence[Question]) -> Answers:
        told = canonical(state)
        about = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
        digests = [question.digest for question in questions]
        answers = {digest: self._known(about, digest) for digest in digests}
        missing = {
            digest: question
            for digest, question in zip(digests, questions, strict=True)
            if answers[digest] is None
        }
        failure: str | None = None
        batches, too_long = _batches(told, missing)
        if too_long:
            failure = f"what is to be judged is too long for {too_long} question(s)"
        for batch in batches:
            if time.monotonic() < self._broken_until:
                failure = failure or "the judge failed again and again and is left alone for a while"
                break
            try:
                given = await self._judge(state, batch)
            except self._sdk.TypeSafeError as error:
                failure = self._failed(error)
                continue
            self._failures = 0
            for digest in batch:
                if (value := given.get(digest)) is None:
                    failure = failure or "the judge left questions unanswered"
                else:
                    answers[digest] = value
                    self._keep(about, digest, value)
        probabilities = tuple(answers[digest] for digest in digests)
        left = sum(value is None for value in probabilities)
        warning = f"{left} of {len(questions)} not judged: {failure}" if left else None
        return Answers(probabilities, warning)

    async def close(self) -> None:
        await self._client.aclose()

    async def _judge(self, state: JsonObject, batch: Mapping[str, Question]) -> dict[str, float]:
        """The answers by the questions' digests, which are their names."""
        asked = {
            digest: self._sdk.Noul(
                instructions=question.instructions,
                criteria={"true": question.if_true, "false": question.if_false},
            )
            for digest, question in batch.items()
        }
        response = await self._client.system_one(state, asked, model=self._model)
        given: dict[str, float] = {}
        for digest in batch:
            answer = response.nouls.get(digest)
            if answer is not None and math.isfinite(answer.noul) and 0.0 <= answer.noul <= 1.0:
                given[digest] = float(answer.noul)
        return given

    def _failed(self, error: Exception) -> str:
        self._failures += 1
        refused = isinstance(
            error, self._sdk.TypeSafeAuthenticationError | self._sdk.TypeSafePermissionDeniedError
        )
        if refused or self._failures >= BREAK_AFTER:
            self._broken_until = time.monotonic() + BREAK_SECONDS
            self._failures = 0
        _log.warning("judge_failed", error=type(error).__name__)
        return "the judge refused the key" if refused else f"the judge failed ({type(error).__name__})"

    def _known(self, about: str, digest: str) -> float | None:
        kept = self._kept.get((about, digest))
        return kept[1] if kept is not None and kept[0] > time.monotonic() else None

    def _keep(self, about: str, digest: str, value: float) -> None:
        self._kept[about, digest] = (time.monotonic() + KEEP_SECONDS, value)
        self._kept.move_to_end((about, digest))
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)


def _batches(told: str, questions: Mapping[str, Question]) -> tuple[list[dict[str, Question]], int]:
    """Requests that keep the model's limits, and how many questions fit into none."""
    state = _tokens(told)
    batches: list[dict[str, Question]] = []
    left_out = room = 0
    for digest, question in questions.items():
        size = _question_tokens(question)
        if state + size > STATE_AND_LONGEST:
            left_out += 1
            continue
        if not batches or size > room:
            batches.append({})
            room = STATE_AND_ALL - state
        batches[-1][digest] = question
        room -= size
    return batches, left_out


def _tokens(text: str) -> int:
    # Bytes rather than characters, so that it also holds for scripts with a token per character.
    return len(text.encode("utf-8", "surrogatepass")) // 3 + 1


def _question_tokens(question: Question) -> int:
    words = jsontext.encode(question.instructions).decode("utf-8", "replace")
    return _tokens(words) + _tokens(question.if_true) + _tokens(question.if_false)
