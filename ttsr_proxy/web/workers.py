"""Several processes on one port: a supervisor opens the sockets, starts the workers and replaces the dead.

Each worker has a listening socket of its own on the same address, among which the kernel spreads connections
(SO_REUSEPORT, socket(7) of Linux). The supervisor keeps every socket open, so that connections to a worker
that died wait for its successor. Where the kernel does not spread them (macOS), the workers share one socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import structlog
from aiohttp import web

from ttsr_proxy.config import Settings
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.web.metrics import remove_own_share, shared_directory, worker_ended
from ttsr_proxy.web.server import keep_for_good, serve_until, shown_url

RESTART_SECONDS = 1.0
"""The pause before a worker is replaced, so that one that cannot live does not keep the machine busy."""

_BACKLOG = 1024
_SPREADS = sys.platform == "linux"

_log = structlog.get_logger()
_spawn = multiprocessing.get_context("spawn")


def run_workers(
    settings: Settings, ready: Callable[[str], None], *, prepare: Callable[[], None] | None = None
) -> None:
    """Serve with `settings.workers` processes until SIGTERM or SIGINT; running responses may finish.

    `ready` gets the URL once every worker listens; `prepare`, which must be importable by name, is called in
    each worker first. Raises OSError when the address cannot be used, TtsrError when a worker cannot start.
    """
    sockets = open_sockets(settings.host, settings.port, settings.workers)
    try:
        with shared_directory() as counted_in:
            asyncio.run(_Supervisor(settings, sockets, prepare, counted_in).run(ready))
    finally:
        _close(sockets)


def open_sockets(host: str, port: int, workers: int) -> list[list[socket.socket]]:
    """For each worker a bound socket per address of the host; the sockets are the same where nothing spreads.

    Raises OSError; also when another server has the port, which SO_REUSEPORT alone would let us share.
    """
    addresses = dict.fromkeys(
        (family, str(address[0]))
        for family, _, _, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        if family in (socket.AF_INET, socket.AF_INET6)
    )
    per_worker: list[list[socket.socket]] = [[] for _ in range(workers)]
    try:
        for family, address in addresses:
            with _bound(family, address, port, shared=False) as free:
                port = free.getsockname()[1]
            for number, own in enumerate(per_worker):
                first = number == 0 or _SPREADS
                own.append(
                    _bound(family, address, port, shared=_SPREADS) if first else per_worker[0][len(own)]
                )
    except BaseException:
        _close(per_worker)
        raise
    return per_worker


def _bound(family: int, address: str, port: int, *, shared: bool) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((address, port))
    except BaseException:
        bound.close()
        raise
    return bound


def _close(sockets: list[list[socket.socket]]) -> None:
    for own in sockets:
        for one in own:
            one.close()


@dataclass(frozen=True, slots=True)
class _Job:
    """What a worker needs to know."""

    number: int
    settings: Settings
    sockets: list[socket.socket]
    prepare: Callable[[], None] | None


class _Supervisor:
    def __init__(
        self,
        settings: Settings,
        sockets: list[list[socket.socket]],
        prepare: Callable[[], None] | None,
        counted_in: str,
    ) -> None:
        self._jobs = [_Job(number, settings, own, prepare) for number, own in enumerate(sockets, 1)]
        self._sockets = sockets
        self._counted_in = counted_in
        self._url = shown_url(settings.host, sockets[0][0].getsockname()[1])
        self._processes: dict[int, SpawnProcess] = {}
        self._stopping = asyncio.Event()

    async def run(self, ready: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        started = [asyncio.Event() for _ in self._jobs]
        telling = asyncio.create_task(self._tell(started, ready))
        keeping = [
            asyncio.create_task(self._keep(job, event))
            for job, event in zip(self._jobs, started, strict=True)
        ]
        try:
            await asyncio.gather(*keeping)
        finally:
            telling.cancel()
            self._stop()
            await asyncio.wait(keeping)

    async def _tell(self, started: list[asyncio.Event], ready: Callable[[str], None]) -> None:
        for event in started:
            await event.wait()
        ready(self._url)

    def _stop(self) -> None:
        """Refuse new connections and let the workers finish; again: let them end at once."""
        self._stopping.set()
        _close(self._sockets)
        for process in self._processes.values():
            if process.is_alive():
                process.terminate()

    async def _keep(self, job: _Job, started: asyncio.Event) -> None:
        """The worker and its successors, until the supervisor stops.

        Raises TtsrError if the first one fails.
        """
        while not self._stopping.is_set():
            process, told = self._start(job)
            failure = await _first_word(told)
            if failure is None:
                started.set()
            await _ended(process)
            worker_ended(process.pid or 0, self._counted_in)
            if self._stopping.is_set():
                return
            reason = failure or f"it ended with status {process.exitcode}"
            if not started.is_set():
                raise TtsrError(f"worker {job.number} cannot start: {reason}")
            _log.error("worker_replaced", worker=job.number, reason=reason)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), RESTART_SECONDS)

    def _start(self, job: _Job) -> tuple[SpawnProcess, Connection]:
        told, tell = _spawn.Pipe(duplex=False)
        process = _spawn.Process(target=_work, args=(job, tell), name=f"ttsr-proxy-{job.number}")
        with _interrupts_blocked():
            process.start()
        tell.close()
        self._processes[job.number] = process
        return process, told


async def _first_word(told: Connection) -> str | None:
    """What a new worker says of itself: None when it listens, else what is wrong."""
    said: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def read() -> None:
        if said.done():
            return
        try:
            said.set_result(told.recv())
        except EOFError:
            said.set_result("it ended before it listened")

    loop = asyncio.get_running_loop()
    loop.add_reader(told.fileno(), read)
    try:
        return await said
    finally:
        loop.remove_reader(told.fileno())
        told.close()


async def _ended(process: SpawnProcess) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(process.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process.sentinel)
    process.join()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A terminal interrupts every process of the group; a worker stops when the supervisor says so."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _work(job: _Job, tell: Connection) -> None:
    """A worker's whole life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if job.prepare is not None:
        job.prepare()
    structlog.contextvars.bind_contextvars(worker=job.number)
    try:
        asyncio.run(_serve(job, tell))
    except (TtsrError, OSError) as error:
        tell.send(str(error))
        sys.exit(1)
    supervisor = multiprocessing.parent_process()
    if supervisor is not None and not supervisor.is_alive():
        remove_own_share()


async def _serve(job: _Job, tell: Connection) -> None:
    stop = asyncio.Event()
    supervisor = multiprocessing.parent_process()
    assert supervisor is not None
    loop = asyncio.get_running_loop()
    # Without its supervisor nobody would stop or replace it.
    loop.add_reader(supervisor.sentinel, stop.set)

    async def listen(runner: web.AppRunner) -> None:
        for own in job.sockets:
            await web.SockSite(runner, own, backlog=_BACKLOG).start()
        keep_for_good()
        tell.send(None)
        tell.close()

    try:
        await serve_until(stop, job.settings, listen, signals=(signal.SIGTERM,))
    finally:
        loop.remove_reader(supervisor.sentinel)
