"""Secrets that a stream cuts in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_http.dialects import DIALECTS, Dialect
from strict_anthropic.script import text, tool

from ttsr_proxy.captures.masked_stream import masked_stream
from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.protocols.openai_chat import OPENAI_CHAT
from ttsr_proxy.protocols.openai_responses import OPENAI_RESPONSES

PROTOCOLS = {"anthropic": ANTHROPIC, "chat": OPENAI_CHAT, "responses": OPENAI_RESPONSES}
RANDOM = "q7Zp2LxV9rTb4KwN8mJc5HdF1sGy6Ea3"
SECRETS = [
    f"sk-proj-{RANDOM}",
    f'password = "{RANDOM}"',
    f"-----BEGIN RSA PRIVATE KEY-----\n{RANDOM}\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("name", DIALECTS)
@given(secret=st.sampled_from(SECRETS), cuts=st.sets(st.integers(1, 70), max_size=8))
def test_no_way_of_cutting_a_secret_lets_it_through(name: str, secret: str, cuts: set[int]) -> None:
    said = f"It is {secret} \u00e9, and that is all."
    ends = [*sorted(cut for cut in cuts if cut < len(said)), len(said)]
    pieces = [said[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    dialect = DIALECTS[name]
    kept = masked_stream(b"".join(dialect.events(*pieces)), PROTOCOLS[name])
    shown = dialect.said(kept.encode())
    assert RANDOM not in kept
    assert not any(RANDOM[start : start + 12] in shown for start in range(len(RANDOM) - 12))
    assert shown.startswith("It is ")
    assert "[masked]" in shown
    if "END" not in secret:
        assert shown.endswith("and that is all.")
    assert dialect.terminal.decode() in kept


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_what_a_tool_call_writes_is_masked_too(dialect: Dialect) -> None:
    content = f"KEY = 'sk-proj-{RANDOM}'"
    stream = b"".join(dialect.answer(tool("Write", {"file_path": "a.py", "content": content})))
    kept = masked_stream(stream, PROTOCOLS[dialect.name])
    assert RANDOM not in kept
    assert "[masked]" in kept


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_stream_without_secrets_is_kept_byte_for_byte(dialect: Dialect) -> None:
    stream = b"".join(dialect.answer(text("A ", "\u00e9 ", "b"), tool("Bash", {"command": "ls"})))
    assert masked_stream(stream, PROTOCOLS[dialect.name]).encode() == stream


@given(st.binary(max_size=200), st.sampled_from(list(PROTOCOLS.values())))
def test_bytes_of_any_kind_are_kept(data: bytes, protocol: object) -> None:
    assert masked_stream(data, protocol).encode("utf-8", "surrogateescape") == data  # type: ignore[arg-type]


def test_an_event_whose_text_cannot_be_found_in_it_is_left_out() -> None:
    head = event("content_block_start", '"content_block":{"type":"text","text":""}')
    escaped = [
        "".join(f"\\u{ord(char):04x}" for char in half) for half in (f"sk-proj-{RANDOM[:16]}", RANDOM[16:])
    ]
    deltas = [
        event("content_block_delta", f'"delta":{{"type":"text_delta","text":"{text}"}}') for text in escaped
    ]
    body = head + b"".join(deltas)
    kept = masked_stream(body, ANTHROPIC)
    assert kept == head.decode() + ": an event with a part of a secret was left out\n\n" * 2


def event(name: str, more: str) -> bytes:
    return f'event: {name}\ndata: {{"type":"{name}","index":0,{more}}}\n\n'.encode()
