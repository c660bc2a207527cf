"""Answers that no upstream should give: passed on as they are, left out where they cannot be spliced in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playbook import Playbook, asked, rule, says

from ttsr_proxy.interception import exchange
from ttsr_proxy.interception.actions import Action, Finish, Note, Send, UpdateLog

OPENING = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": {}}
ENDING = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def block(index: int, said: str) -> bytes:
    return (
        event("content_block_start", index=index, content_block={"type": "text", "text": ""})
        + event("content_block_delta", index=index, delta={"type": "text_delta", "text": said})
        + event("content_block_stop", index=index)
    )


START = event("message_start", message=OPENING)
END = event("message_delta", delta=ENDING["delta"], usage=ENDING["usage"]) + event("message_stop")


def answer(book: Playbook, *stream: bytes) -> bytes:
    """Upstream answers with these events: what the client gets of them, unread by its strict parser."""
    actions: list[Action] = book.exchange.attempt_answered("", book.now)
    for piece in stream:
        actions += book.exchange.data(piece, book.now)
    return b"".join(action.data for action in actions if isinstance(action, Send))


@pytest.fixture
def book(playbook: Callable[..., Playbook]) -> Playbook:
    return playbook(rule("no-bad-word", "BADWORD")) >> says("go") << asked("user: go")


def lost(index: int) -> bytes:
    return event("content_block_delta", index=index, delta={"type": "text_delta", "text": "lost"})


def test_gaps_in_the_indexes_of_a_first_answer_pass_as_they_came(book: Playbook) -> None:
    stream = [START, block(1, "one"), block(5, "five"), END]
    assert answer(book, *stream) == b"".join(stream)


def test_blocks_of_a_retry_are_counted_on_from_the_last_that_the_client_has(book: Playbook) -> None:
    assert answer(book, START, block(3, "Hello."), block(4, "BADWORD")) == START + block(3, "Hello.")
    rewritten = answer(book, START, block(0, "Good."), END)
    assert [json.loads(line[6:]).get("index") for line in rewritten.splitlines() if line[:5] == b"data:"] == [
        *(4, 4, 4),
        *(None, None),
    ]


def test_an_open_block_of_a_first_answer_is_closed_by_the_index_that_the_client_has(book: Playbook) -> None:
    opening, delta = block(3, "Hello, BADWORD").split(b"\n\n")[:2]
    answer(book, START, opening + b"\n\n", delta + b"\n\n")
    assert b'"index":3' in answer(book, START, block(0, "Good."), END).split(b"\n\n")[0]


def test_what_a_retry_says_of_blocks_that_it_never_opened_is_left_out(book: Playbook) -> None:
    answer(book, START, block(0, "BADWORD"))
    news = event("ping") + event("news") + b": comment\n\n"
    odd = [lost(7), event("content_block_stop", index=7), START, b"data: no json\n\n", news, lost(0)]
    assert answer(book, START, *odd, block(0, "Good."), lost(0), END) == news + block(0, "Good.") + END


def test_what_a_first_answer_says_of_blocks_that_it_never_opened_passes(book: Playbook) -> None:
    stream = [START, lost(7), block(0, "Good."), lost(0), b"data: no json\n\n", END]
    assert answer(book, *stream) == b"".join(stream)


CALL = event(
    "content_block_start",
    index=0,
    content_block={"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {}},
)
ENDLESS = event(
    "content_block_delta",
    index=0,
    delta={"type": "input_json_delta", "partial_json": '{"content": "' + "x" * 400},
)


@pytest.mark.parametrize(("how", "broken"), [("ended", False), ("lost", True)])
def test_an_answer_longer_than_any_passes_from_there_on_as_it_comes(
    book: Playbook, monkeypatch: pytest.MonkeyPatch, how: str, broken: bool
) -> None:
    monkeypatch.setattr(exchange, "MAX_KEPT_BYTES", 2_000)
    # A held call that never ends, cut within its last event; and what no reader would take.
    stream = [START, CALL, ENDLESS * 2, ENDLESS, ENDLESS + ENDLESS[:50], ENDLESS[50:], b"\xff half an ev"]
    assert answer(book, *stream[:3]) == START
    actions = [action for piece in stream[3:] for action in book.exchange.data(piece, book.now)]
    assert b"".join(action.data for action in actions if isinstance(action, Send)) == b"".join(stream[1:])
    assert Note("not_inspected", {"reason": "the answer is too long"}) in actions
    finish = (
        book.exchange.attempt_ended if how == "ended" else lambda now: book.exchange.attempt_lost("x", now)
    )
    assert finish(book.now) == [Finish(broken=broken)]
    assert book.exchange.client_gone(book.now) == []


def test_a_retry_longer_than_any_answer_has_failed(book: Playbook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MAX_KEPT_BYTES", 2_000)
    answer(book, START, block(0, "Fine."), block(1, "BADWORD"))
    actions = book.exchange.attempt_answered("", book.now)
    for piece in (START, CALL, ENDLESS * 4):
        actions += book.exchange.data(piece, book.now)
    *_, end, finish = actions
    assert isinstance(end, Send)
    assert b"end_turn" in end.data
    assert finish == Finish()
    (update,) = [action for action in actions if isinstance(action, UpdateLog) and "detail" in action.changes]
    assert (update.changes["outcome"], update.changes["detail"]) == ("failed", "the answer is too long")
