"""The client of the library's API, against the real server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from proxy_under_test import Workspace, running_proxy

from ttsr_proxy.client import ApiError, AsyncHTTPClient, SyncHTTPClient

ROOT = "viking://user/default/memories/rules"


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    async with running_proxy(Workspace(tmp_path / "proxy"), "http://127.0.0.1:9") as proxy:
        yield proxy.url


@pytest.fixture
def client(url: str) -> SyncHTTPClient:
    return SyncHTTPClient(url=url, api_key="any")


async def in_thread(function: Callable[[], Any]) -> Any:
    """Call something that blocks while the server runs in this loop."""
    return await asyncio.to_thread(function)


def finished(client: SyncHTTPClient, task: dict[str, Any]) -> dict[str, Any]:
    while (found := client.get_task(task["task_id"])) is not None:
        if found["status"] in ("completed", "failed", "cancelled"):
            return found
        time.sleep(0.02)
    raise AssertionError("the task is gone")


async def test_the_references_calls_work_without_initialising(client: SyncHTTPClient) -> None:
    def use() -> None:
        assert client.health()
        task = client.rule_compile(instruction="Requests must set a timeout.")
        done = finished(client, task)
        assert done["status"] == "completed"
        (operation,) = done["result"]["operations"]
        assert client.read(operation["uri"]).startswith("---\n")
        assert client.read(operation["uri"], offset=0, limit=1) == "---\n"
        assert [entry["name"] for entry in client.ls(ROOT)] == [operation["scenario_id"]]
        assert [entry["task_id"] for entry in client.list_tasks(task_type="rule_compile")] == [
            task["task_id"]
        ]
        assert client.get_task("none") is None
        with pytest.raises(ApiError) as refused:
            client.cancel_task(task["task_id"])
        assert (refused.value.code, refused.value.status) == ("FAILED_PRECONDITION", 412)

    await in_thread(use)


async def test_sources_are_files_directories_urls_and_uris(client: SyncHTTPClient, tmp_path: Path) -> None:
    file = tmp_path / "standards.md"
    file.write_text("Never print.")
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/more.md").write_text("Never log secrets.")
    (folder / "picture.png").write_bytes(b"\0")
    uploads = "viking://user/default/resources/uploads"

    def use() -> None:
        task = client.rule_compile(options={"sources": [str(file), folder]})
        result = finished(client, task)["result"]
        assert result["source_uris"] == [f"{uploads}/standards.md", f"{uploads}/docs"]
        assert [operation["operation"] for operation in result["operations"]] == ["NEW", "NEW"]
        again = finished(client, client.rule_compile(options={"sources": [f"{uploads}/docs"]}))
        assert [operation["operation"] for operation in again["result"]["operations"]] == ["NOOP"]
        with pytest.raises(ApiError) as refused:
            client.rule_compile(options={"sources": ["http://127.0.0.1/x"]})
        assert refused.value.code == "PERMISSION_DENIED"
        with pytest.raises(FileNotFoundError):
            client.rule_compile(options={"sources": [str(tmp_path / "none.md")]})

    await in_thread(use)


async def test_a_refusal_has_the_apis_code_and_details(url: str) -> None:
    with pytest.raises(ApiError) as refused:
        await AsyncHTTPClient(url).rule_compile("  ")
    assert (refused.value.code, refused.value.status) == ("INVALID_ARGUMENT", 422)
    assert refused.value.details["validation_errors"][0]["loc"] == ["body", "instruction"]


async def test_a_server_that_is_not_there_is_an_error_too() -> None:
    client = AsyncHTTPClient("http://127.0.0.1:9")
    assert not await client.health()
    with pytest.raises(ApiError) as refused:
        await client.list_tasks()
    assert (refused.value.code, refused.value.status) == ("UNAVAILABLE", None)


async def test_the_client_works_inside_a_running_event_loop(url: str) -> None:
    # Nothing answers, since the loop that would is blocked by this call; but the call itself works.
    with pytest.raises(ApiError, match="it took too long"):
        SyncHTTPClient(url, timeout=0.2).list_tasks()
