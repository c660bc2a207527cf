"""What `doctor` says of a Redis server that holds the state."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner
from redis_server import running_redis

from ttsr_proxy.cli import main
from ttsr_proxy.cli.doctor.server import of_server
from ttsr_proxy.redis import RedisUrl


@pytest.mark.redis
async def test_a_server_is_judged_by_whether_it_takes_what_is_written() -> None:
    with running_redis("s3cret") as running:
        url = RedisUrl(running.url)
        found = await of_server(url)
        assert (found.level, found.what) == ("ok", f"{url} answers and takes what is written")
        with redis.Redis.from_url(running.url) as client:
            client.config_set("maxmemory", "1")
        found = await of_server(url)
        assert (found.level, found.what) == ("fail", f"{url} can be read but takes nothing")
    found = await of_server(url)
    assert found.level == "fail"
    assert "cannot be reached" in found.what


async def test_a_missing_extra_is_a_failure_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    found = await of_server(RedisUrl("redis://h"))
    assert (found.level, "ttsr-proxy[redis]" in found.what) == ("fail", True)


def test_the_command_asks_the_server_and_shows_no_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {
        "HOME": str(tmp_path),
        "TTSR_STATE": "redis://me:s3cret@127.0.0.1:1/0",
        "TTSR_LIBRARY_ROOT": str(tmp_path / "library"),
        "TTSR_UPSTREAM": "http://127.0.0.1:9",
    }
    result = CliRunner(env=environ).invoke(main, ["doctor", "--port", "0", "--json"])
    assert "redis://127.0.0.1:1/0 failed: it cannot be reached" in result.stdout
    assert "s3cret" not in result.output
    assert json.loads(result.stdout)
