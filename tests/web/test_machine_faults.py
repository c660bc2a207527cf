"""What the machine does to the proxy: its clock jumps, its disk fills, its directories go."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest
from proxy_under_test import Workspace
from raw_http import RawUpstream, ask, response
from raw_http.dialects import DIALECTS, Dialect

from ttsr_proxy.sqlite import Database

BAD = "BADWORD"


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")


@pytest.fixture(params=DIALECTS.values(), ids=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


async def violate(url: str, upstream: RawUpstream, dialect: Dialect) -> bytes:
    """The client's answer to a violation that the model then corrects."""
    for said in (f"{BAD} here", "Done."):
        upstream.script.append(response(b"".join(dialect.events(said)), kind="text/event-stream"))
    answer = await ask(url, "POST", dialect.path, *dialect.headers, body=dialect.body())
    upstream.script.clear()
    assert answer.status == 200
    return answer.body


def assert_clean(body: bytes, dialect: Dialect) -> None:
    assert BAD.encode() not in body
    assert b"Done." in body
    assert dialect.terminal in body


@pytest.mark.parametrize("jump", [-400 * 86_400.0, 86_400.0])
async def test_a_clock_that_jumps_changes_nothing_but_the_times_in_the_log(
    upstream: RawUpstream, start_proxy: Any, monkeypatch: pytest.MonkeyPatch, dialect: Dialect, jump: float
) -> None:
    proxy = await start_proxy()
    assert_clean(await violate(proxy.url, upstream, dialect), dialect)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + jump)
    assert_clean(await violate(proxy.url, upstream, dialect), dialect)
    monkeypatch.undo()
    assert_clean(await violate(proxy.url, upstream, dialect), dialect)
    await asyncio.wait_for(_logged(proxy, 3), 10)


async def _logged(proxy: Any, count: int) -> None:
    while [item["outcome"] for item in await proxy.interrupts()] != ["clean"] * count:
        pass


def full(connection: Any) -> None:
    connection.execute("PRAGMA max_page_count=1")


def read_only(connection: Any) -> None:
    connection.execute("PRAGMA query_only=ON")


@pytest.mark.parametrize("spoil", [full, read_only])
async def test_a_disk_that_takes_nothing_more_stops_no_traffic_and_rules_hold(
    upstream: RawUpstream,
    start_proxy: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    dialect: Dialect,
    spoil: Callable[[Any], None],
) -> None:
    proxy = await start_proxy()
    write = Database.write

    async def spoiled(self: Database, work: Any, **options: Any) -> Any:
        await self.read(lambda connection: spoil(connection))
        return await write(self, work, **options)

    monkeypatch.setattr(Database, "write", spoiled)
    for _ in range(30):
        assert_clean(await violate(proxy.url, upstream, dialect), dialect)
        if "store_failed" in (told := capsys.readouterr().out):
            break
    assert "store_failed" in told
    assert (await ask(proxy.url, "GET", "/readyz")).status == 503
    assert (await ask(proxy.url, "GET", "/ttsr/api/interrupts")).status == 200


async def test_a_rule_directory_that_goes_takes_its_rules_along_and_one_that_comes_back_brings_them(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    assert_clean(await violate(proxy.url, upstream, dialect), dialect)
    shutil.rmtree(workspace.rules)
    assert BAD.encode() in await violate(proxy.url, upstream, dialect)
    workspace.rules.mkdir()
    workspace.rule("no-bad-word", BAD, scope="text")
    assert_clean(await violate(proxy.url, upstream, dialect), dialect)


async def test_a_project_that_goes_stops_no_traffic(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    shutil.rmtree(workspace.project)
    shutil.rmtree(workspace.home)
    assert_clean(await violate(proxy.url, upstream, dialect), dialect)
