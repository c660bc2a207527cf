"""The Redis server as a place: connections that are lost and come back, and errors that say what to do."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from pathlib import Path

import pytest
import redis
from redis_server import RedisServer, running_redis

from ttsr_proxy import redis as state
from ttsr_proxy.errors import StoreError, TtsrError
from ttsr_proxy.interrupts.redis import RedisInterruptStore
from ttsr_proxy.interrupts.store import InterruptFilter
from ttsr_proxy.redis import RedisDatabase, RedisUrl, key
from ttsr_proxy.sessions.record import ResponseRecord
from ttsr_proxy.sessions.redis import RedisConversationStore
from ttsr_proxy.sessions.store import Unfinished

OPERATIONS = Path(__file__).parent.parent / "docs" / "operations.md"

SHOWN = [
    ("redis://cache", "redis://cache"),
    ("redis://:s3cret@cache:6380/1", "redis://cache:6380/1"),
    ("rediss://me:s3%40cret@cache/?ssl_ca_certs=/s3cret", "rediss://cache/"),
    ("redis://[::1]:6380", "redis://[::1]:6380"),
]


@pytest.mark.parametrize(("url", "shown"), SHOWN)
def test_a_url_is_shown_without_its_credentials(url: str, shown: str) -> None:
    parsed = RedisUrl.parse(url)
    assert parsed.secret == url
    assert str(parsed) == shown
    assert repr(parsed) == f"RedisUrl('{shown}')"


def test_unequal_parts_never_give_equal_keys() -> None:
    assert len({key("a", "bc"), key("ab", "c"), key("abc"), key("a", "b", "c"), key("", "abc")}) == 5


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(TtsrError, match=r"redis://h: Redis needs .* pip install 'ttsr-proxy\[redis\]'"):
        RedisDatabase(RedisUrl.parse("redis://:s3cret@h"))


def test_an_option_in_the_url_that_has_no_meaning_is_an_error() -> None:
    with pytest.raises(TtsrError, match=r"redis://h: .* has no meaning") as caught:
        RedisDatabase(RedisUrl.parse("redis://:s3cret@h?protocol=s3cret"))
    assert "s3cret" not in str(caught.value)


async def failure(url: str) -> str:
    database = RedisDatabase(RedisUrl.parse(url))
    with pytest.raises(StoreError) as caught:
        await database.ping()
    await database.close()
    assert caught.value.__cause__ is None
    assert "s3cret" not in str(caught.value)
    return str(caught.value)


@pytest.mark.redis
async def test_what_a_server_refuses_is_told_with_what_to_do() -> None:
    with running_redis("s3cret") as server:
        right = RedisDatabase(RedisUrl.parse(server.url))
        await right.ping()
        with redis.Redis.from_url(server.url) as client:
            client.config_set("maxmemory", "1")
        with pytest.raises(StoreError, match="its memory is full"):
            await right.call(lambda client: client.set("a", "b"))
        await right.close()
        assert "check the user and password" in await failure(f"redis://:s3cretwrong@127.0.0.1:{server.port}")
        assert "unexpected ResponseError" in await failure(f"{server.url[:-1]}99")
    assert "it cannot be reached" in await failure(server.url)


@pytest.mark.redis
async def test_a_connection_that_was_lost_is_made_again_unnoticed() -> None:
    with running_redis() as server:
        database = RedisDatabase(RedisUrl.parse(server.url))
        await database.ping()
        server.stop()
        server.start()
        assert await database.run("return ARGV[1]", [], ["here"]) == b"here"
        server.stop()
        with pytest.raises(StoreError):
            await database.ping()
        server.start()
        assert await database.run("return ARGV[1]", [], ["again"]) == b"again"
        await database.close()


async def test_a_server_that_does_not_answer_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "SECONDS", 0.05)
    connections = 0

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    database = RedisDatabase(RedisUrl.parse(f"redis://127.0.0.1:{port}"))
    for _ in range(5):
        with pytest.raises(StoreError, match="did not answer"):
            await database.ping()
    assert connections == 1
    monkeypatch.setattr(state, "REST_SECONDS", 0.0)
    database._rests_until = 0.0
    with pytest.raises(StoreError, match="did not answer"):
        await database.ping()
    assert connections == 2
    await database.close()
    server.close()


@pytest.mark.redis
async def test_a_user_with_the_permissions_of_the_documentation_can_do_all_that_is_needed(
    redis_url: str,
) -> None:
    documented = re.search(r"`(~ttsr:\* [^`]+)`", OPERATIONS.read_text())
    assert documented is not None
    with redis.Redis.from_url(redis_url) as admin:
        admin.execute_command("ACL", "SETUSER", "limited", "reset", "on", ">s3cret", *documented[1].split())
    url = RedisUrl.parse(redis_url.replace("//", "//limited:s3cret@"))
    sessions, log = RedisConversationStore(url), RedisInterruptStore(url)
    await sessions.open()
    assert await sessions.recovered()
    await sessions.tenant_secret()
    saved = ResponseRecord(
        id="r", parent=None, tenant="t", project="p", conversation="c", created=1.0, turn=0, anchors=("a",)
    )
    await sessions.save(saved)
    assert await sessions.find("t", ["a"]) == {"a": (saved,)}
    assert await sessions.ancestors("t", "r") == (saved,)
    await sessions.put_unfinished("t", "k", Unfinished(ended=1.0, per_rule={}, total=1))
    await sessions.drop_unfinished("t", "k")
    assert await sessions.sweep(time.time() + 60, 0) == 1
    assert (await log.page(InterruptFilter(), 10, None)).items == ()
    assert await log.sweep(1.0, 0, 1.0) == 0
    await sessions.close()
    await log.close()


@pytest.mark.redis
def test_the_servers_of_the_tests_ask_for_their_password() -> None:
    with running_redis("s3cret") as server, redis.Redis(port=server.port) as stranger:
        assert isinstance(server, RedisServer)
        with pytest.raises(redis.AuthenticationError):
            stranger.ping()
