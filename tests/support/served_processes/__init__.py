"""`ttsr-proxy serve` as processes on one workspace, and what their tests say to them."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from proxy_under_test import Proxy, Workspace
from raw_http import RawRequest, RawUpstream, ask, response, send
from raw_http.messages import BODY, HEADERS, events

BAD = "BADWORD"
HEAD = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: k\r\nContent-Length: %d\r\n\r\n" % len(BODY)
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

Start = Callable[..., Awaitable[tuple[Process, Proxy]]]


@asynccontextmanager
async def serving(workspace: Workspace, upstream: RawUpstream) -> AsyncIterator[Start]:
    """Starts servers for the workspace as processes, all on its one state file; ends what still runs."""
    processes: list[Process] = []
    workspace.rule("no-bad-word", BAD, scope="text")

    async def begin(*more: str) -> tuple[Process, Proxy]:
        options = {"--upstream": upstream.url, "--project": workspace.project, "--rules": workspace.rules}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ttsr_proxy", "serve", "--port", "0", "--state", str(workspace.state)),
            *(str(part) for option in options.items() for part in option),
            *more,
            env={"HOME": str(workspace.home), "PATH": "", "TTSR_BUILTIN_RULES": "false"},
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
        processes.append(process)
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        found = re.search(rb"http://127\.0\.0\.1:\d+", line)
        assert found is not None, (await process.communicate())[1].decode()
        return process, Proxy(found[0].decode())

    yield begin
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def held_stream(upstream: RawUpstream) -> asyncio.Event:
    """Script an answer that stops in the middle until the event is set."""
    go_on = asyncio.Event()

    async def play(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        parts = events("Begun. ", "Done.")
        writer.write(SSE + b"".join(parts[:3]))
        await writer.drain()
        await go_on.wait()
        writer.write(b"".join(parts[3:]))

    upstream.script.append(play)
    return go_on


async def refuses_connections(proxy: Proxy) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                async with send(proxy.url, b""):
                    pass
            except ConnectionRefusedError:
                return
            except ConnectionError:
                continue


def follow_up(said: str) -> bytes:
    document = json.loads(BODY)
    document["messages"] += [{"role": "assistant", "content": said}, {"role": "user", "content": "go on"}]
    return json.dumps(document).encode()


async def interrupted(proxy: Proxy, upstream: RawUpstream) -> None:
    for texts in (("Shown first. ", BAD), ("Then clean.",)):
        upstream.script.append(response(b"".join(events(*texts)), kind="text/event-stream"))
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert answer.status == 200
    assert b"Then clean." in answer.body, answer.body
    assert BAD.encode() not in answer.body


async def goes_on(proxy: Proxy, upstream: RawUpstream) -> Any:
    """The conversation's next request as upstream sees it."""
    said = "Shown first. Then clean."
    await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=follow_up(said))
    return json.loads(upstream.received[-1].body)["messages"]
