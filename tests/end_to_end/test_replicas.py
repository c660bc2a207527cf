"""Several proxies on one Redis server: any of them may answer any request of a conversation."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from coding_agent import Agent
from interleaved_turns import CountingModel, converse, write_rules
from proxy_under_test import Proxy, Workspace
from redis_server import RedisServer, running_redis
from strict_anthropic import StrictUpstream, text, thinking, turn
from ttsr_asserts import assert_clean, interrupts_in

from ttsr_proxy.redis import RedisUrl

pytestmark = pytest.mark.redis

BAD = "BADWORD"


@pytest.fixture
def server(workspace: Workspace) -> Iterator[RedisServer]:
    """A server of the test's own, with a password, which it may stop and start."""
    with running_redis("s3cret") as running:
        workspace.redis = RedisUrl(running.url)
        yield running


@pytest.fixture
async def replicas(workspace: Workspace, redis_url: str, start_proxy: Any) -> tuple[Proxy, Proxy]:
    workspace.redis = RedisUrl(redis_url)
    return await start_proxy(), await start_proxy()


async def readiness(proxy: Proxy) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"{proxy.url}/readyz") as response:
        return response.status, (await response.json())["status"]


async def page(proxy: Proxy, path: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"{proxy.url}{path}") as response:
        assert response.status == 200
        return await response.text()


async def logged(proxy: Proxy) -> int:
    """The interrupts whose retry is known to be clean."""
    return [(item["action"], item["outcome"]) for item in await proxy.interrupts()].count(
        ("interrupted", "clean")
    )


async def test_another_replica_goes_on_with_what_the_first_one_hid(
    workspace: Workspace, upstream: StrictUpstream, replicas: tuple[Proxy, Proxy], new_agent: Any
) -> None:
    first, second = replicas
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(
        turn(thinking("a"), text(f"Shown. {BAD}")), turn(thinking("b"), text("Better.")), turn(text("Two."))
    )
    agent: Agent = await new_agent(first)
    assert_clean(await agent.say("go"), BAD)
    agent.base_url = second.url
    assert_clean(await agent.say("more"), BAD)
    assert upstream.refusals == []
    assert interrupts_in(upstream.calls[2]) == interrupts_in(upstream.calls[1]) != []
    (record,) = await second.log(("interrupted", "clean"))
    assert await first.interrupts() == [record]
    assert "no-bad-word" in await page(second, "/ttsr/")
    assert BAD in await page(second, f"/ttsr/interrupts/{record['id']}")
    assert record["conversation"] in await page(second, "/ttsr/conversations")


async def test_the_live_feed_of_a_replica_has_what_another_one_interrupts(
    workspace: Workspace, upstream: StrictUpstream, replicas: tuple[Proxy, Proxy], new_agent: Any
) -> None:
    first, second = replicas
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(turn(text(f"It is {BAD}.")), turn(text("Better.")))
    agent: Agent = await new_agent(first)
    feed = {"Accept": "text/event-stream"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{second.url}/ttsr/api/interrupts", headers=feed) as live,
        asyncio.timeout(10),
    ):
        await live.content.readuntil(b"\n\n")
        await agent.say("go")
        event = await live.content.readuntil(b"\n\n")
    data = next(line for line in event.splitlines() if line.startswith(b"data: "))
    assert json.loads(data[6:])["rule"] == "no-bad-word"


async def test_no_reminder_is_lost_or_doubled_when_turns_go_to_both_replicas(
    workspace: Workspace, upstream: StrictUpstream, replicas: tuple[Proxy, Proxy], new_agent: Any
) -> None:
    write_rules(workspace)
    model = CountingModel()
    upstream.otherwise(model)
    rng = random.Random(7)
    agents = [await new_agent(replicas[0]) for _ in range(10)]
    urls = [replica.url for replica in replicas]
    await asyncio.gather(*(converse(agent, urls, 20, rng) for agent in agents))
    assert model.faults == []
    assert upstream.refusals == []
    assert min(model.asked[kind] for kind in ("hard", "soft", "clean", "retry")) > 20
    assert model.asked["retry"] == model.asked["hard"]
    async with asyncio.timeout(10):
        # The log is written behind the answers.
        while await logged(replicas[0]) != model.asked["hard"]:
            pass
    assert await logged(replicas[1]) == model.asked["hard"]


async def test_traffic_goes_on_without_the_server_and_remembers_again_when_it_is_there(
    workspace: Workspace, upstream: StrictUpstream, server: RedisServer, start_proxy: Any, new_agent: Any
) -> None:
    server.stop()
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(turn(text(f"It is {BAD}.")), turn(text("Better.")))
    proxy = await start_proxy()
    assert await readiness(proxy) == (503, "degraded")
    assert_clean(await (await new_agent(proxy)).say("go"), BAD)
    server.start()
    assert await readiness(proxy) == (200, "ready")
    upstream.script(
        turn(thinking("a"), text(f"Shown. {BAD}")), turn(thinking("b"), text("Better.")), turn(text("Two."))
    )
    agent: Agent = await new_agent(proxy)
    assert_clean(await agent.say("go"), BAD)
    assert_clean(await agent.say("more"), BAD)
    assert upstream.refusals == []
    assert len(interrupts_in(upstream.calls[-1])) == 1
    await proxy.log(("interrupted", "clean"))


async def test_a_conversation_outlives_the_loss_of_the_server_and_of_all_it_held(
    workspace: Workspace,
    upstream: StrictUpstream,
    server: RedisServer,
    start_proxy: Any,
    new_agent: Any,
    capfd: pytest.CaptureFixture[str],
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text", repeatMode="always")
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)

    def violation() -> None:
        upstream.script(turn(thinking("a"), text(f"Shown. {BAD}")), turn(thinking("b"), text("Better.")))

    violation()
    assert_clean(await agent.say("one"), BAD)
    server.stop()
    violation()
    assert_clean(await agent.say("two"), BAD)
    assert (await readiness(proxy))[0] == 503
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{proxy.url}/ttsr/api/interrupts") as response,
    ):
        told = await response.text()
        assert (response.status, "it cannot be reached" in told) == (503, True)
    server.start()
    violation()
    assert_clean(await agent.say("three"), BAD)
    upstream.script(turn(thinking("a"), text("Four.")))
    assert_clean(await agent.say("four"), BAD)
    assert len(interrupts_in(upstream.calls[-1])) == 1, "the third answer's, which the new server knows"
    assert (await readiness(proxy))[0] == 200
    output = capfd.readouterr()
    assert "s3cret" not in told + output.out + output.err


async def test_a_feed_ends_with_the_server_and_goes_on_with_its_successor(
    workspace: Workspace, upstream: StrictUpstream, server: RedisServer, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    proxy = await start_proxy()
    feed = {"Accept": "text/event-stream"}
    async with aiohttp.ClientSession() as session, asyncio.timeout(20):
        async with session.get(f"{proxy.url}/ttsr/api/interrupts", headers=feed) as live:
            await live.content.readuntil(b"\n\n")
            server.stop()
            await live.content.read()
        server.start()
        async with session.get(f"{proxy.url}/ttsr/api/interrupts", headers=feed) as live:
            await live.content.readuntil(b"\n\n")
            upstream.script(turn(text(f"It is {BAD}.")), turn(text("Better.")))
            await (await new_agent(proxy)).say("go")
            assert b"no-bad-word" in await live.content.readuntil(b"\n\n")
