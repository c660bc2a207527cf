"""The proxy beside others on the same streams: nginx, a byte pipe of aiohttp, LiteLLM and mitmproxy.

    python benchmarks/peers.py [--rounds N] [--litellm PATH] [--mitmdump PATH] [--rules 0,30,1000]

One process plays upstream and clients and measures each event from write to read; it runs on the last core,
whatever it measures on the first. All targets are asked in turn, round by round, and the tables show medians.
*CPU* is that of the target's processes. A peer that is not installed is left out, and the output says so:
nginx comes from the distribution; LiteLLM (`pip install "litellm[proxy]"`) and mitmproxy need environments of
their own, whose programs are given by path. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from proxy import DIRECT, Target, ending, proxy_process, stream_parts, text_delta

START_SECONDS = 90.0
BURST_EVENTS = 2_000
PACE_SECONDS = 3.0
STREAM_RATE = 50.0
"""Events per second of a paced stream."""
IDLE_REQUESTS = 10
END = b"0\r\n\r\n"
LAST = b"\r\n" + END
"""How an answer ends; a header may end in a zero too."""
STAMP = re.compile(rb'"text": "(\d+) "')

PIPE = """
import asyncio, sys, aiohttp
from aiohttp import web
async def main():
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    async def handle(request):
        body = await request.read()
        headers = {"content-type": "application/json"}
        async with session.post(sys.argv[1] + request.path_qs, data=body, headers=headers) as answer:
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response
    app = web.Application(client_max_size=0)
    app.router.add_post("/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(sys.argv[2])).start()
    await asyncio.Event().wait()
asyncio.run(main())
"""

NGINX = """
worker_processes 1; daemon off; pid DIR/pid; error_log DIR/error.log;
events { worker_connections 8192; }
http {
  access_log off; client_body_temp_path DIR/b; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f;
  uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
  upstream up { server HOST; keepalive 512; }
  server {
    listen 127.0.0.1:PORT backlog=2048;
    location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
                 proxy_buffering off; tcp_nodelay on; }
  }
}
"""

LITELLM = """
model_list:
  - model_name: claude-opus-5-5
    litellm_params: {model: anthropic/claude-3-5-sonnet-20241022, api_base: UPSTREAM, api_key: none}
litellm_settings: {telemetry: false, drop_params: true}
"""


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def without_chunks(answer: bytes) -> bytes:
    """The body of an answer in chunked coding."""
    parts, at = [], answer.index(b"\r\n\r\n") + 4
    while size := int(answer[at : (end := answer.index(b"\r\n", at))], 16):
        parts.append(answer[end + 2 : end + 2 + size])
        at = end + 4 + size
    return b"".join(parts)


class Upstream(asyncio.Protocol):
    """Answers `max_tokens` events, at once or, if `temperature` is 1, `STREAM_RATE` a second."""

    opening, deltas = stream_parts(BURST_EVENTS)
    tail = chunk(ending("toolu_1")) + END

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.got = b""
        self.pacing: asyncio.Task[None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self.pacing is not None:
            self.pacing.cancel()

    def data_received(self, data: bytes) -> None:
        self.got += data
        head, found, body = self.got.partition(b"\r\n\r\n")
        if not found:
            return
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if length is None or len(body) < int(length[1]):
            return
        self.got = b""
        asked = json.loads(body)
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            + chunk(self.opening)
        )
        if asked.get("temperature") == 1:
            self.pacing = asyncio.create_task(self.pace(asked["max_tokens"]))
        else:
            events = self.deltas[: asked["max_tokens"]]
            self.transport.write(b"".join(map(chunk, events)) + self.tail)

    async def pace(self, events: int) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        for _ in range(events):
            due += 1 / STREAM_RATE
            await asyncio.sleep(due - loop.time())
            self.transport.write(chunk(text_delta(f"{time.perf_counter_ns()} ")))
        self.transport.write(self.tail)


class Client(asyncio.Protocol):
    """Sends one request and reads the answer; `first` and `late` are in seconds."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.pieces: list[bytes] = []
        self.late: list[float] = []
        self.first = 0.0
        self.tail = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.asked = time.perf_counter()
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter_ns()
        if not self.first and b"message_start" in data:
            self.first = now / 1e9 - self.asked
        self.pieces.append(data)
        self.late += [(now - int(sent)) / 1e9 for sent in STAMP.findall(data)]
        self.tail = (self.tail + data)[-len(LAST) :]
        if self.tail == LAST and not self.done.done():
            self.done.set_result(None)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("closed before the end"))


@dataclass(frozen=True, slots=True)
class Peer:
    target: Target
    slow: bool = False

    def cpu(self) -> float:
        """Seconds of CPU of the process and its children, also on threads that have ended."""
        ticks = 0
        for pid in self.pids():
            with suppress(OSError):
                ticks += sum(
                    map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
                )
        return ticks / os.sysconf("SC_CLK_TCK")

    def pids(self) -> list[int]:
        found = [self.target.pid] if self.target.pid is not None else []
        for pid in found:
            with suppress(OSError):
                for children in Path(f"/proc/{pid}/task").glob("*/children"):
                    found += map(int, children.read_text().split())
        return found

    def resident(self) -> float:
        """MB."""
        pages = 0
        for pid in self.pids():
            with suppress(OSError):
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def streams(peer: Peer, count: int, events: int, *, paced: bool) -> list[Client]:
    """Ask for that many streams at once and read them to the end."""
    host, port = peer.target.url.removeprefix("http://").split(":")
    body = json.dumps(
        {
            "model": "claude-opus-5-5",
            "max_tokens": events,
            "stream": True,
            "temperature": 1 if paced else 0,
            "messages": [{"role": "user", "content": "Go on."}],
        }
    ).encode()
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nx-api-key: none\r\n"
        f"anthropic-version: 2023-06-01\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    loop = asyncio.get_running_loop()
    clients = [Client(head.encode() + body) for _ in range(count)]
    for client in clients:
        await loop.create_connection(lambda client=client: client, host, int(port))
    async with asyncio.timeout(120):
        await asyncio.gather(*(client.done for client in clients))
    for client in clients:
        if without_chunks(b"".join(client.pieces)).count(b"content_block_delta\ndata") != events:
            raise SystemExit(f"{peer.target.url} lost events")
    return clients


@dataclass(slots=True)
class Figures:
    rate: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)


BURST, FIVE_THOUSAND, THOUSAND, IDLE = "burst", "5,000/s", "1,000/s", "idle"


async def measure(peer: Peer, figures: dict[str, Figures]) -> None:
    """One round."""
    count, events = (10, 500) if peer.slow else (50, BURST_EVENTS)
    used, began = peer.cpu(), time.perf_counter()
    await streams(peer, count, events, paced=False)
    figures[BURST].rate.append(count * events / (time.perf_counter() - began))
    figures[BURST].cpu.append((peer.cpu() - used) / (count * events))
    for what, count in ((FIVE_THOUSAND, 100), (THOUSAND, 20)):
        events = int(PACE_SECONDS * STREAM_RATE)
        used = peer.cpu()
        clients = await streams(peer, count, events, paced=True)
        figures[what].cpu.append((peer.cpu() - used) / (count * events))
        figures[what].late += [late for client in clients for late in client.late]
    for _ in range(IDLE_REQUESTS):
        figures[IDLE].first += [client.first for client in await streams(peer, 1, 1, paced=False)]
        await asyncio.sleep(0.02)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def started(command: list[str], port: int, folder: Path, **environment: str) -> Iterator[Target]:
    """A peer on the first core, once it accepts connections."""
    log = folder / f"log-{port}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, **environment}, cwd=folder
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[0]} did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield Target(f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


def start_peers(stack: ExitStack, root: Path, upstream: str, options: argparse.Namespace) -> dict[str, Peer]:
    """Every peer that is there."""
    peers: dict[str, Peer] = {}

    def add(name: str, command: list[str], port: int, *, slow: bool = False, **environment: str) -> None:
        peers[name] = Peer(stack.enter_context(started(command, port, root, **environment)), slow)

    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx:
        port = free_port()
        text = NGINX.replace("DIR", str(root)).replace("PORT", str(port))
        (root / "nginx.conf").write_text(text.replace("HOST", upstream.removeprefix("http://")))
        add("nginx", [nginx, "-p", str(root), "-c", str(root / "nginx.conf")], port)
    else:
        print("nginx is not installed and left out")
    port = free_port()
    add("aiohttp byte pipe", [sys.executable, "-c", PIPE, upstream, str(port)], port)
    for count in map(int, options.rules.split(",")):
        proxy = stack.enter_context(proxy_process(root, upstream, count))
        peers[f"ttsr-proxy, {count} rules"] = Peer(proxy)
    if importlib.util.find_spec("uvloop"):
        for count in map(int, options.rules.split(",")):
            proxy = stack.enter_context(proxy_process(root, upstream, count, uvloop=True))
            peers[f"ttsr-proxy, {count} rules, uvloop"] = Peer(proxy)
    else:
        print("uvloop is not installed, so that there are no rows with it")
    if options.litellm:
        port = free_port()
        (root / "litellm.yaml").write_text(LITELLM.replace("UPSTREAM", upstream))
        command = [options.litellm, "--config", str(root / "litellm.yaml"), "--host", "127.0.0.1"]
        add(
            "LiteLLM",
            [*command, "--port", str(port)],
            port,
            slow=True,
            LITELLM_LOCAL_MODEL_COST_MAP="True",
            LITELLM_TELEMETRY="False",
            LITELLM_LOG="ERROR",
            LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY="true",
        )
    else:
        print("LiteLLM is left out: give its program with --litellm")
    if options.mitmdump:
        port = free_port()
        (root / "whole.py").write_text("def responseheaders(flow):\n    flow.response.stream = True\n")
        command = [options.mitmdump, "-q", "--mode", f"reverse:{upstream}", "--listen-host", "127.0.0.1"]
        add("mitmproxy", [*command, "-p", str(port), "-s", str(root / "whole.py")], port, slow=True)
    else:
        print("mitmproxy is left out: give its program with --mitmdump")
    return peers


def ms(values: list[float], part: float) -> str:
    ordered = sorted(values)
    return f"{ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1e3:.2f}"


def table(peers: dict[str, Peer], figures: dict[str, dict[str, Figures]]) -> str:
    lines = [
        "| | burst, events/s | CPU, µs/event | 5,000/s: CPU, µs/event | p50, ms | p99, ms "
        "| 1,000/s: p50, ms | p99, ms | first event idle, ms | memory, MB |",
        "| --- |" + " ---: |" * 9,
    ]

    def us(values: list[float]) -> str:
        return f"{statistics.median(values) * 1e6:.1f}"

    for name, peer in peers.items():
        of = figures[name]
        five, one = of[FIVE_THOUSAND], of[THOUSAND]
        is_direct = peer.target.pid is None
        cells = [
            f"{statistics.median(of[BURST].rate):,.0f}",
            "" if is_direct else us(of[BURST].cpu),
            "" if is_direct else us(five.cpu),
            *(ms(five.late, 0.5), ms(five.late, 0.99), ms(one.late, 0.5), ms(one.late, 0.99)),
            ms(of[IDLE].first, 0.5),
            "" if is_direct else f"{peer.resident():.0f}",
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


async def run(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Upstream, "127.0.0.1", 0, backlog=1024)
    upstream = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[:1])  # What is started now stays on the first core.
        peers = {DIRECT: Peer(Target(upstream)), **start_peers(stack, root, upstream, options)}
        os.sched_setaffinity(0, cores[-1:])
        kinds = (BURST, FIVE_THOUSAND, THOUSAND, IDLE)
        figures = {name: {kind: Figures() for kind in kinds} for name in peers}
        for peer in peers.values():
            await streams(peer, 2, 100, paced=False)
        for _ in range(options.rounds):
            for name, peer in peers.items():
                await measure(peer, figures[name])
        print(f"\n{options.rounds} interleaved rounds, Python {sys.version.split()[0]}. Medians.\n")
        print(table(peers, figures))
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=2, help="measured rounds (default: 2)")
    parser.add_argument("--rules", default="0,30,1000", help="numbers of rules (default: 0,30,1000)")
    parser.add_argument("--litellm", help="the program of LiteLLM")
    parser.add_argument("--mitmdump", help="the program of mitmproxy")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
