"""Compressed requests are read, compressed answers are inspected, and what cannot be read passes as it is."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import pytest
from backports import zstd
from proxy_under_test import Workspace
from raw_http import RawUpstream, ask, response
from raw_http.messages import BODY, HEADERS, events

BAD = "BADWORD"
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}
CLEAN = b"".join(events("All ", "clean."))
VIOLATION = b"".join(events("Some ", BAD, " here"))


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")


@pytest.mark.parametrize("encoding", ENCODERS)
async def test_a_compressed_request_is_inspected_and_passed_on_as_it_was(
    upstream: RawUpstream, start_proxy: Any, encoding: str
) -> None:
    proxy = await start_proxy()
    upstream.script.extend(response(data, kind="text/event-stream") for data in (VIOLATION, CLEAN))
    body = ENCODERS[encoding](BODY)
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, ("Content-Encoding", encoding), body=body)
    assert BAD.encode() not in answer.body
    first, second = upstream.received
    assert first.all("content-encoding") == []
    assert first.body == BODY
    assert "system-interrupt" in second.body.decode()


@pytest.mark.parametrize("encoding", ENCODERS)
async def test_an_answer_that_is_compressed_against_our_wish_is_inspected_all_the_same(
    upstream: RawUpstream, start_proxy: Any, encoding: str
) -> None:
    proxy = await start_proxy()
    for data in (VIOLATION, CLEAN):
        upstream.script.append(
            response(
                ENCODERS[encoding](data),
                ("Content-Encoding", encoding),
                ("X-Kept", "1"),
                kind="text/event-stream",
            )
        )
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert answer.all("content-encoding") == []
    assert answer.all("x-kept") == ["1"]
    assert BAD.encode() not in answer.body
    assert b"clean." in answer.body
    await proxy.log(("interrupted", "clean"))


@pytest.mark.parametrize("encoding", ENCODERS)
async def test_a_whole_answer_that_is_compressed_is_inspected_too(
    upstream: RawUpstream, start_proxy: Any, encoding: str
) -> None:
    proxy = await start_proxy()

    def message(text: str) -> bytes:
        return json.dumps(
            {
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
                "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ).encode()  # fmt: skip

    for text in (BAD, "Clean."):
        packed = ENCODERS[encoding](message(text))
        upstream.script.append(response(packed, ("Content-Encoding", encoding)))
    body = BODY.replace(b'"stream": true', b'"stream": false')
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=body)
    assert answer.all("content-encoding") == []
    assert json.loads(answer.body)["content"] == [{"type": "text", "text": "Clean."}]


async def test_a_compressed_error_can_still_be_read(upstream: RawUpstream, start_proxy: Any) -> None:
    proxy = await start_proxy()
    error = json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "later"}}).encode()
    upstream.script.append(response(gzip.compress(error), ("Content-Encoding", "gzip"), status=529))
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert (answer.status, answer.body, answer.all("content-encoding")) == (529, error, [])


async def test_an_answer_in_an_unknown_encoding_passes_as_it_came(
    upstream: RawUpstream, start_proxy: Any
) -> None:
    proxy = await start_proxy()
    upstream.script.append(
        response(b"\x01\x02packed", ("Content-Encoding", "x-new"), kind="text/event-stream")
    )
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert answer.body == b"\x01\x02packed"
    assert answer.all("content-encoding") == ["x-new"]
    assert answer.all("content-length") == ["8"]


@pytest.mark.parametrize(("encoding", "body"), [("x-new", b"\x01\x02"), ("gzip", b"no gzip"), ("", b"[1]")])
async def test_a_request_that_cannot_be_read_passes_as_it_came_and_the_program_s_log_says_so(
    upstream: RawUpstream,
    start_proxy: Any,
    encoding: str,
    body: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    proxy = await start_proxy()
    upstream.script.append(response(VIOLATION, kind="text/event-stream"))
    extra = [("Content-Encoding", encoding)] if encoding else []
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, *extra, body=body)
    assert answer.body == VIOLATION
    assert upstream.received[0].body == body
    assert upstream.received[0].all("content-encoding") == [value for _, value in extra]
    assert "not_inspected" in capsys.readouterr().out


async def test_traffic_without_rules_keeps_its_compression(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any
) -> None:
    (workspace.rules / "no-bad-word.md").unlink()
    proxy = await start_proxy()
    packed = gzip.compress(CLEAN)
    upstream.script.append(response(packed, ("Content-Encoding", "gzip"), kind="text/event-stream"))
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, ("Accept-Encoding", "gzip, x"), body=BODY)
    assert upstream.received[0].all("accept-encoding") == ["gzip, x"]
    assert (answer.body, answer.all("content-encoding")) == (packed, ["gzip"])
