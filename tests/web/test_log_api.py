"""The interrupt log over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import aiohttp
import pytest
from proxy_under_test import Workspace
from raw_http import RawUpstream, ask, response
from raw_http.messages import BODY, HEADERS, events

BAD = "BADWORD"


@pytest.fixture
async def url(workspace: Workspace, upstream: RawUpstream, start_proxy: Any) -> str:
    """A proxy whose log has five interrupts, of two rules in turn."""
    workspace.rule("one", f"{BAD}1", scope="text")
    workspace.rule("two", f"{BAD}2", scope="text")
    proxy = await start_proxy()
    for number in (1, 2, 1, 2, 1):
        await violate(proxy.url, upstream, number)
    await proxy.log(*[("interrupted", "clean")] * 5)
    return str(proxy.url)


async def violate(url: str, upstream: RawUpstream, number: int) -> None:
    for text in (f"{BAD}{number} ", "Clean."):
        upstream.script.append(response(b"".join(events(text)), kind="text/event-stream"))
    await ask(url, "POST", "/v1/messages", *HEADERS, body=BODY)


async def get(url: str, query: str = "", path: str = "/ttsr/api/interrupts") -> tuple[int, Any]:
    answer = await ask(url, "GET", f"{path}{query}")
    assert answer.all("content-type")[0].startswith("application/json")
    return answer.status, json.loads(answer.body)


async def test_pages_lead_to_each_record_once_newest_first(url: str) -> None:
    _, whole = await get(url)
    assert whole["next"] is None
    times = [item["time"] for item in whole["items"]]
    assert times == sorted(times, reverse=True)
    seen: list[str] = []
    query = "?limit=2"
    while query:
        _, page = await get(url, query)
        assert len(page["items"]) <= 2
        seen += [item["id"] for item in page["items"]]
        query = f"?limit=2&cursor={page['next']}" if page["next"] else ""
    assert seen == [item["id"] for item in whole["items"]]


async def test_filters_choose(url: str) -> None:
    _, whole = await get(url)
    _, two = await get(url, "?rule=two&action=interrupted")
    assert [item["rule"] for item in two["items"]] == ["two", "two"]
    middle = whole["items"][2]["time"]
    _, late = await get(url, f"?since={middle}")
    _, early = await get(url, f"?until={middle}")
    assert late["items"] == whole["items"][:3]
    # Times are shown to the millisecond, cut off: the record itself may lie behind its own shown time.
    assert early["items"] in (whole["items"][2:], whole["items"][3:])
    _, none = await get(url, "?since=2999-01-01")
    assert none == {"items": [], "next": None}


async def test_one_record_and_one_that_does_not_exist(url: str) -> None:
    _, whole = await get(url)
    wanted = whole["items"][1]
    status, item = await get(url, path=f"/ttsr/api/interrupts/{wanted['id']}")
    assert (status, item["id"], item["rule"]) == (200, wanted["id"], wanted["rule"])
    status, missing = await get(url, path="/ttsr/api/interrupts/nothing%2Fhere")
    assert status == 404
    assert "nothing/here" in missing["error"]["message"]


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("?limit=0", "limit must be a whole number from 1 to 1000"),
        ("?limit=1001", "limit must be"),
        ("?limit=-1", "limit must be"),
        ("?limit=", "limit must be"),
        ("?limit=1.5", "limit must be"),
        ("?limit=%C2%B2", "limit must be"),
        (f"?limit={'9' * 5000}", "limit must be"),
        ("?cursor=nonsense", "not a cursor"),
        ("?cursor=", "not a cursor"),
        ("?since=yesterday", "since must be"),
        ("?until=nan", "until must be"),
        ("?since=inf", "since must be"),
        ("?colour=red", "unknown parameter 'colour'"),
    ],
)
async def test_a_wrong_query_is_a_400_that_says_what_is_allowed(
    start_proxy: Any, query: str, part: str
) -> None:
    proxy = await start_proxy()
    status, document = await get(proxy.url, query)
    assert status == 400
    assert part in document["error"]["message"]


@pytest.mark.parametrize("limit", ["1", "1000", "0050"])
async def test_limits_up_to_a_thousand_are_taken(start_proxy: Any, limit: str) -> None:
    proxy = await start_proxy()
    assert await get(proxy.url, f"?limit={limit}") == (200, {"items": [], "next": None})


async def next_record(response: aiohttp.ClientResponse) -> dict[str, Any]:
    async with asyncio.timeout(10):
        async for line in response.content:
            if line.startswith(b"data: "):
                record: dict[str, Any] = json.loads(line[6:])
                return record
    raise AssertionError("the feed ended")


async def test_the_feed_has_what_comes_next_and_goes_on_where_a_client_left_off(
    url: str, upstream: RawUpstream
) -> None:
    feed = {"Accept": "text/event-stream"}
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/ttsr/api/interrupts?rule=two", headers=feed) as live:
            assert live.content_type == "text/event-stream"
            await violate(url, upstream, 1)
            await violate(url, upstream, 2)
            record = await next_record(live)
            assert record["rule"] == "two"
        await violate(url, upstream, 2)
        again = {**feed, "Last-Event-ID": record["id"]}
        async with session.get(f"{url}/ttsr/api/interrupts?rule=two", headers=again) as live:
            following = await next_record(live)
    assert following["id"] != record["id"]
    assert following["time"] > record["time"]


async def test_a_feed_with_a_wrong_filter_is_refused(start_proxy: Any) -> None:
    proxy = await start_proxy()
    answer = await ask(proxy.url, "GET", "/ttsr/api/interrupts?colour=red", ("Accept", "text/event-stream"))
    assert answer.status == 400


async def test_a_store_that_cannot_be_read_is_a_503_with_advice(
    workspace: Workspace, start_proxy: Any
) -> None:
    os.mkdir(workspace.state)
    proxy = await start_proxy()
    for path in ("/ttsr/api/interrupts", "/ttsr/api/interrupts/x"):
        status, document = await get(proxy.url, path=path)
        assert status == 503
        assert str(workspace.state) in document["error"]["message"]
