"""A request's id joins the client's answer, the program's log and the interrupt log."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from proxy_under_test import Workspace
from raw_http import RawAnswer, RawUpstream, ask, response
from raw_http.dialects import DIALECTS, Dialect

from ttsr_proxy.cli.logging import configure_logging
from ttsr_proxy.interception.exchange import Exchange

STREAM = "text/event-stream"


@pytest.fixture
def told() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configure_logging(stream)
    yield stream
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def events_of(told: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told.getvalue().splitlines()]


def id_in(answer: RawAnswer) -> str:
    (given,) = answer.all("x-ttsr-request-id")
    assert re.fullmatch("[0-9a-f]{28}", given)
    return given


async def post(url: str, dialect: Dialect, *headers: tuple[str, str], **more: Any) -> RawAnswer:
    return await ask(url, "POST", dialect.path, *dialect.headers, *headers, body=dialect.body(**more))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/ttsr/", 200),
        ("GET", "/ttsr/api/interrupts/none", 404),
        ("POST", "/health", 405),
        ("GET", "/p/none/v1/models", 404),
        ("GET", "/v1/models", 200),
        ("POST", "/v1/messages", 200),
        ("POST", "/v1/messages/count_tokens", 200),
    ],
)
async def test_every_answer_has_an_id_of_its_own(
    start_proxy: Any, method: str, path: str, status: int
) -> None:
    proxy = await start_proxy()
    answers = [await ask(proxy.url, method, path) for _ in range(2)]
    assert [answer.status for answer in answers] == [status, status]
    assert id_in(answers[0]) != id_in(answers[1])


async def test_refusals_have_an_id_too(start_proxy: Any) -> None:
    proxy = await start_proxy()
    for header in (("Host", "evil.example"), ("Origin", "https://evil.example")):
        id_in(await ask(proxy.url, "GET", "/ttsr/", header))
    id_in(await ask(proxy.url, "GET", "/v1/responses", ("Upgrade", "websocket")))
    id_in(await ask(proxy.url, "GET", "/v1/models", ("Expect", "what-nobody-knows")))


async def test_ids_of_a_proxy_behind_this_one_are_not_taken_for_its_own(
    start_proxy: Any, upstream: RawUpstream
) -> None:
    proxy = await start_proxy()
    upstream.script.append(response(b"{}", ("x-ttsr-request-id", "other"), ("x-ttsr-interrupts", "7")))
    answer = await ask(proxy.url, "GET", "/v1/models")
    assert id_in(answer) != "other"
    assert answer.all("x-ttsr-interrupts") == []


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_streamed_answer_s_id_finds_its_interrupt(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, name: str
) -> None:
    workspace.rule("no-bad-word", "BADWORD", scope="text")
    dialect = DIALECTS[name]
    proxy = await start_proxy()
    for said in ("BADWORD here", "fine", "BADWORD there", "fine"):
        upstream.script.append(response(b"".join(dialect.events(said)), kind=STREAM))
    first, second = [id_in(await post(proxy.url, dialect)) for _ in range(2)]
    items = await proxy.log(("interrupted", "clean"), ("interrupted", "clean"))
    assert [item["request"] for item in items] == [first, second]
    found = await ask(proxy.url, "GET", f"/ttsr/api/interrupts?request={second}")
    assert [item["request"] for item in json.loads(found.body)["items"]] == [second]
    page = await ask(proxy.url, "GET", f"/ttsr/interrupts?request={first}")
    assert items[0]["id"].encode() in page.body
    assert items[1]["id"].encode() not in page.body


async def test_lines_of_the_log_about_a_request_have_its_id(
    workspace: Workspace,
    upstream: RawUpstream,
    start_proxy: Any,
    monkeypatch: pytest.MonkeyPatch,
    told: io.StringIO,
) -> None:
    workspace.rule("no-bad-word", "BADWORD", scope="text")
    dialect = DIALECTS["anthropic"]
    proxy = await start_proxy()
    unreadable = id_in(await ask(proxy.url, "POST", dialect.path, *dialect.headers, body=b"{"))
    upstream.script.append(response(b"<html>", kind="text/html"))
    odd = id_in(await post(proxy.url, dialect))
    monkeypatch.setattr(Exchange, "start", lambda self, now: 1 / 0)
    faulty = id_in(await post(proxy.url, dialect))
    events = [(event["event"], event["request"]) for event in events_of(told)]
    assert events == [
        ("not_inspected", unreadable),
        ("request", unreadable),
        ("not_inspected", odd),
        ("request", odd),
        ("matching_failed", faulty),
        ("request", faulty),
    ]


def whole(*texts: str) -> bytes:
    content = [{"type": "text", "text": text} for text in texts]
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return response(json.dumps(message).encode())


async def test_a_whole_answer_says_how_often_it_was_interrupted(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any
) -> None:
    workspace.rule("no-bad-word", "BADWORD", scope="text")
    workspace.rule("no-bad", "BAD", scope="text")
    dialect = DIALECTS["anthropic"]
    proxy = await start_proxy(repeat_mode="always")
    for said in (("fine",), ("a BADWORD",), ("BADWORD again",), ("fine",)):
        upstream.script.append(whole(*said))
    upstream.script.append(response(b"{}", status=529))
    told = [(await post(proxy.url, dialect, stream=False)).all("x-ttsr-interrupts") for _ in range(3)]
    assert told == [["0"], ["2"], ["0"]]


async def test_a_stream_that_had_to_wait_for_its_head_says_how_often_it_was_interrupted(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any
) -> None:
    workspace.rule("no-bad-word", "BADWORD", scope="text")
    dialect = DIALECTS["chat"]
    proxy = await start_proxy()
    for said in ("BADWORD here", "fine"):
        chunk = {
            "id": "c",
            "object": "chat.completion.chunk",
            "model": "m",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": said}}],
        }
        end = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        stream = "".join(f"data: {json.dumps(one)}\n\n" for one in (chunk, end)) + "data: [DONE]\n\n"
        upstream.script.append(response(stream.encode(), kind=STREAM))
    answer = await post(proxy.url, dialect)
    assert b"BADWORD" not in answer.body
    assert answer.all("x-ttsr-interrupts") == ["1"]


async def test_a_stream_that_began_at_once_does_not_count_interrupts_in_its_head(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any
) -> None:
    workspace.rule("no-bad-word", "BADWORD", scope="text")
    dialect = DIALECTS["anthropic"]
    proxy = await start_proxy()
    for said in ("A long and harmless sentence. BADWORD", "fine"):
        upstream.script.append(response(b"".join(dialect.events(said)), kind=STREAM))
    answer = await post(proxy.url, dialect)
    await proxy.log(("interrupted", "clean"))
    assert answer.all("x-ttsr-interrupts") == []
