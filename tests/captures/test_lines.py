"""A capture's lines: the format, and what is not in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ttsr_proxy.captures.lines import VERSION, file_name, lines
from ttsr_proxy.captures.tape import Tape
from ttsr_proxy.protocols.anthropic import ANTHROPIC

from .test_tape import Clock, label

KEY = "sk-proj-q7Zp2LxV9rTb4KwN8mJc5HdF1sGy6Ea3"


def written(tape: Tape) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(tape, ANTHROPIC)]


def tape_of(body: bytes, url: str = "/v1/messages", **headers: str) -> Tape:
    tape = Tape(label(), 10_000, Clock())
    tape.asked("POST", url, headers, body)
    return tape


def test_the_first_line_is_the_label_and_each_other_one_a_message() -> None:
    first, message = written(tape_of(b'{"a": 1}', **{"Content-Type": "application/json"}))
    assert first == {
        "ttsr_capture": VERSION, "id": "req-1", "record": "r1", "parent": None, "time": 1_772_366_400.25,
        "project": "default", "root": "/work/app", "conversation": "c1", "turn": 0, "client": "claude-code",
        "agent": "main", "protocol": "anthropic", "observed": None, "truncated": False,
    }  # fmt: skip
    assert message == {
        "kind": "client_request", "at": 0.5, "method": "POST", "url": "/v1/messages",
        "headers": {"content-type": "application/json"}, "body": '{"a": 1}', "pieces": [[1.0, 8]],
        "ended": None,
    }  # fmt: skip


def test_file_names_sort_by_time_and_hold_nothing_but_letters_and_digits() -> None:
    assert file_name(tape_of(b"")) == "20260301T120000.250Z-req-1.capture.jsonl"
    odd = Tape(label(id="../../\u00e9 x" + "y" * 200), 1, Clock())
    assert file_name(odd) == f"20260301T120000.250Z-{'x' + 'y' * 79}.capture.jsonl"


@pytest.mark.parametrize(
    "name", ["authorization", "x-api-key", "cookie", "set-cookie", "x-custom", "x-ttsr-session", "api-key"]
)
def test_headers_that_are_not_known_are_not_kept(name: str) -> None:
    _, message = written(tape_of(b"", **{name: "value", "User-Agent": "agent/1"}))
    assert message["headers"] == {"user-agent": "agent/1"}


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("/v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/v1/messages?key=canary&beta=true", "/v1/messages?key=[masked]&beta=true"),
        ("https://user:canary@up.example/v1/messages", "https://up.example/v1/messages"),
        ("https://canary@up.example:8443/v1?x=canary", "https://up.example:8443/v1?x=[masked]"),
        ("/v1/a@b", "/v1/a@b"),
    ],
)
def test_urls_are_kept_without_what_may_be_a_credential(url: str, kept: str) -> None:
    assert written(tape_of(b"", url))[1]["url"] == kept


@pytest.mark.parametrize(
    "text",
    [
        f'{{"messages": [{{"role": "user", "content": "my key is {KEY}"}}], "end": true}}',
        '{"messages": ["-----BEGIN RSA PRIVATE KEY-----\\nMIICanary"], "end": true}',
    ],
)
def test_a_masked_document_is_still_a_document(text: str) -> None:
    body = written(tape_of(text.encode()))[1]["body"]
    assert json.loads(body)["end"] is True
    assert "[masked]" in body
    assert KEY not in body
    assert "MIICanary" not in body


def test_bytes_that_are_no_text_come_back_from_the_file() -> None:
    body = written(tape_of(b'{"a": "\xff\xc3"}'))[1]["body"]
    assert body.encode("utf-8", "surrogateescape") == b'{"a": "\xff\xc3"}'


def test_every_field_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/replay.md").read_text().partition("### The format")[2]
    tape = tape_of(b"{}")
    tape.asks("POST", "/", {}, b"")
    tape.answered(200, {})
    documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", page, re.M))))
    assert {field for line in written(tape) for field in line} == documented
