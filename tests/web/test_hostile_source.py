"""Source made to break a parser: the call is judged or let go, which the log says, and service goes on."""

from __future__ import annotations

from typing import Any

import pytest
from proxy_under_test import Proxy, Workspace
from raw_http import RawUpstream, ask, response
from raw_http.dialects import DIALECTS
from strict_anthropic import text, tool

DIALECT = DIALECTS["anthropic"]

HALF = "half-a-pair"
"""Stands for the escape of half a surrogate pair, which no encoder would write."""

SOURCES = {
    "brackets without end": "eval(" * 50_000,
    "deep nesting": "(" * 30_000 + "eval(x)" + ")" * 30_000,
    "deep blocks": "{" * 60_000,
    "deep strings": "`${" * 40_000 + "eval(x)",
    "a NUL": "eval(\0x)\n\0",
    "half a surrogate pair": f"eval('{HALF}')\n{HALF}",
    "very many hits": "eval(x);\n" * 20_000,
    "one endless line": "x+" * 120_000 + "eval(x)",
    "more than is parsed": "y = 1;\n" * 60_000 + "eval(x)",
    "an endless comment": "/*" * 100_000 + "eval(x)",
    "no source at all": "\x01\x02\ufffe\uffff eval" * 5_000,
}


async def ask_for(proxy: Proxy, upstream: RawUpstream, path: str, source: str) -> bytes:
    call = tool("Write", {"file_path": path, "content": source})
    for steps in ((call,), (text("Done."),)):
        written = b"".join(DIALECT.answer(*steps, chunk=50_000)).replace(HALF.encode(), rb"\\ud83d")
        upstream.script.append(response(written, kind="text/event-stream"))
    answer = await ask(proxy.url, "POST", DIALECT.path, *DIALECT.headers, body=DIALECT.body())
    upstream.script.clear()
    assert answer.status == 200
    assert DIALECT.terminal in answer.body
    return answer.body


@pytest.mark.parametrize("path", ["a.ts", "a.py"])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
async def test_no_source_stops_the_server_or_the_next_call(
    workspace: Workspace,
    upstream: RawUpstream,
    start_proxy: Any,
    capsys: pytest.CaptureFixture[str],
    source: str,
    path: str,
) -> None:
    workspace.rule("no-eval", "never found", astCondition="eval($X)", scope="tool", repeatMode="always")
    proxy = await start_proxy()
    got = await ask_for(proxy, upstream, path, source)
    assert b"Done." in got or b"tool_use" in got
    if len(source) > 256 * 1024:
        assert "not_inspected" in capsys.readouterr().out
    assert b"Done." in await ask_for(proxy, upstream, path, "x = eval(y)")
