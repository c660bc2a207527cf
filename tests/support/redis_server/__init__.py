"""Real Redis servers on free ports of this machine that keep nothing on the disk."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis

_START_SECONDS = 20.0


class RedisServer:
    """A server that can be killed and started anew on its port, then empty.

    `password` is what it asks its clients for.
    """

    def __init__(self, password: str = "") -> None:
        self.port = free_port()
        self._password = password
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        credentials = f":{self._password}@" if self._password else ""
        return f"redis://{credentials}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        if self._password:
            command += ["--requirepass", self._password]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        with redis.Redis.from_url(self.url) as client:
            until_it_answers(client)

    def stop(self) -> None:
        """Kill it; everything in it is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def until_it_answers(client: redis.Redis) -> None:
    """Wait for a server that is starting."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            client.ping()
            return
        except redis.ConnectionError:
            if time.monotonic() > deadline:
                raise


@contextmanager
def running_redis(password: str = "") -> Iterator[RedisServer]:
    """A server of one's own, as long as the context lasts."""
    server = RedisServer(password)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def emptied(url: str) -> str:
    """The URL of a server that holds nothing any more."""
    with redis.Redis.from_url(url) as client:
        client.flushall()
    return url


def everything_in(url: str) -> bytes:
    """The names of all that the server holds, and the contents of its records."""
    with redis.Redis.from_url(url) as client:
        return b"".join(
            name + (b"".join(client.hgetall(name).values()) if client.type(name) == b"hash" else b"")
            for name in client.scan_iter()
        )
