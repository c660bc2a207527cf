"""Redis (or Valkey) as a place for stores: its URL, connecting late and again, errors in our own words."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from ttsr_proxy.errors import StoreError, TtsrError

T = TypeVar("T")

SECONDS: Final = 3.0
"""The longest that one command may take; a store that hangs must not make an agent wait for long."""

REST_SECONDS: Final = 5.0
"""How long a server that did not answer in time is left alone; every call fails at once meanwhile."""

_SCHEMES: Final = ("redis", "rediss")
_EXPECTED: Final = (
    "expected redis://HOST:PORT/DATABASE or rediss://USER:PASSWORD@HOST:PORT/DATABASE, "
    "with special characters percent-encoded"
)

_ADVICE: Final = (
    ("AuthenticationError", "it refused the credentials; check the user and password in the URL"),
    (
        "NoPermissionError",
        "the user may not run a command that is needed; see the list in docs/operations.md",
    ),
    ("BusyLoadingError", "it is still loading its data; it is tried again with each request"),
    ("OutOfMemoryError", "its memory is full; raise maxmemory or lower retention.records"),
    ("ReadOnlyError", "it is a replica that takes no writes; name the primary"),
    ("TimeoutError", f"it did not answer within {SECONDS:.0f} seconds"),
    ("ConnectionError", "it cannot be reached; check that it runs and that the URL is right"),
)
"""What went wrong and what to do, by the client's class of error; the first that fits counts.

Its messages are not shown: they may quote what was sent.
"""


@dataclass(frozen=True, slots=True, repr=False)
class RedisUrl:
    """The URL of a server. As text it is shown without credentials and query; `secret` is the whole of it."""

    secret: str

    @classmethod
    def parse(cls, text: str) -> RedisUrl:
        """The URL. Raises ValueError, whose message never quotes the text, which may hold a password."""
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise ValueError(_EXPECTED) from None
        # An "@" behind the host, or a fragment, is what an unencoded password leaves there.
        misread = "@" in parts.path + parts.query or parts.fragment or port == 0
        if parts.scheme not in _SCHEMES or not parts.hostname or misread:
            raise ValueError(_EXPECTED)
        if not re.fullmatch(r"/?[0-9]*", parts.path):
            raise ValueError(f"the path is the number of the database; {_EXPECTED}")
        return cls(text)

    def __str__(self) -> str:
        parts = urlsplit(self.secret)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __repr__(self) -> str:
        return f"RedisUrl({str(self)!r})"


class RedisDatabase:
    """The server behind `url`. It connects at the first command and again whenever the connection is lost.

    Raises TtsrError when the extra that brings the client is not installed.
    """

    def __init__(self, url: RedisUrl) -> None:
        try:
            import redis.asyncio
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
            from redis.maint_notifications import MaintNotificationsConfig
        except ImportError as error:
            raise TtsrError(
                f"state at {url}: Redis needs the `redis` extra: pip install 'ttsr-proxy[redis]'"
            ) from error
        # Once more at once: a connection that a restarted server closed is found out by using it. Every
        # script may run twice.
        retry = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
        options: dict[str, Any] = {
            "protocol": 2,
            "retry": retry,
            "socket_timeout": SECONDS,
            "socket_connect_timeout": SECONDS,
            "maint_notifications_config": MaintNotificationsConfig(enabled=False),
        }
        try:
            self._client: Any = redis.asyncio.Redis.from_url(url.secret, **options)
        except (ValueError, TypeError):
            raise TtsrError(f"state at {url}: a part of the URL behind the ? has no meaning") from None
        self._failures: tuple[type[Exception], ...] = (redis.RedisError, OSError)
        self._late: tuple[type[Exception], ...] = (redis.TimeoutError, TimeoutError)
        self._url = url
        self._rests_until = 0.0
        self._scripts: dict[str, Any] = {}

    async def call(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """What `work` gets from the client. Raises StoreError, which never shows the URL's credentials."""
        if time.monotonic() < self._rests_until:
            raise StoreError(self._told("TimeoutError"))
        try:
            return await work(self._client)
        except self._failures as error:
            if isinstance(error, self._late):
                self._rests_until = time.monotonic() + REST_SECONDS
            # Without the cause: tracebacks are logged, and the client's messages may quote what was sent.
            raise StoreError(self._told(*(kind.__name__ for kind in type(error).__mro__))) from None

    async def run(self, script: str, keys: Sequence[object], arguments: Sequence[object]) -> Any:
        """What a Lua script gives, which nothing else interrupts. A server that lost it is sent it again."""
        registered = self._scripts.get(script)
        if registered is None:
            registered = self._scripts[script] = self._client.register_script(script)
        return await self.call(lambda client: registered(keys=keys, args=arguments))

    async def ping(self) -> None:
        """Raises StoreError when the server cannot be used."""
        await self.call(lambda client: client.ping())

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _told(self, *kinds: str) -> str:
        advice = next((advice for kind, advice in _ADVICE if kind in kinds), f"unexpected {kinds[0]}")
        return f"The state at {self._url} failed: {advice}."


def key(*parts: str) -> bytes:
    """A key of these parts; unequal parts never give equal keys."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"ttsr:" + b"".join(b"%d:%s" % (len(part), part) for part in encoded)
