"""The reference's own Python SDK against the library's API.

The published SDK has no calls for rules yet; those two go through its request and response handling.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from openviking_sdk import AsyncHTTPClient
from openviking_sdk.errors import FailedPreconditionError, InvalidArgumentError
from proxy_under_test import Workspace, running_proxy

ROOT = "viking://user/default/memories/rules"


class RulesClient(AsyncHTTPClient):
    """The SDK with the two calls of the reference."""

    async def call(self, path: str, body: dict[str, Any]) -> Any:
        return self._handle_response(await self._request("POST", path, json=body))

    async def finished(self, task: dict[str, Any]) -> dict[str, Any]:
        while True:
            found = await self.get_task(task["task_id"])
            assert found is not None
            if found["status"] in ("completed", "failed", "cancelled"):
                return found
            await asyncio.sleep(0.02)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[RulesClient]:
    async with running_proxy(Workspace(tmp_path / "proxy"), "http://127.0.0.1:9") as proxy:
        client = RulesClient(url=proxy.url, api_key="your-key")
        await client.initialize()
        yield client
        await client.close()


async def test_compile_tasks_read_and_search(client: RulesClient) -> None:
    assert await client.health()
    task = await client.call("/api/v1/rules/compile", {"instruction": "Requests must set a timeout."})
    assert task["task_type"] == "rule_compile"
    done = await client.finished(task)
    assert done["status"] == "completed"
    (operation,) = done["result"]["operations"]
    assert (await client.read(operation["uri"])).startswith("---\n")
    assert [entry["name"] for entry in await client.ls(ROOT)] == [operation["scenario_id"]]
    listed = await client.list_tasks(task_type="rule_compile")
    assert [entry["task_id"] for entry in listed] == [task["task_id"]]
    found = await client.call("/api/v1/rules/search", {"task_context": "Calling a service with requests."})
    assert [rule["atomic_id"] for rule in found["rules"]] == [operation["atomic_id"]]
    assert found["delivery"]["rendered_chars"] == len(found["rendered"])


async def test_a_file_is_uploaded_and_compiled(client: RulesClient, tmp_path: Path) -> None:
    file = tmp_path / "standards.md"
    file.write_text("- Never log secrets.\n")
    upload = await client._upload_temp_file(str(file))
    sources = [{"temp_file_id": upload, "source_name": "standards.md"}]
    done = await client.finished(await client.call("/api/v1/rules/compile", {"sources": sources}))
    assert [operation["operation"] for operation in done["result"]["operations"]] == ["NEW"]


async def test_errors_are_the_sdks_own_types(client: RulesClient) -> None:
    assert await client.get_task("none") is None
    with pytest.raises(InvalidArgumentError):
        await client.call("/api/v1/rules/compile", {"instruction": " "})
    task = await client.call("/api/v1/rules/compile", {"instruction": "Never print."})
    await client.finished(task)
    with pytest.raises(FailedPreconditionError):
        await client.cancel_task(task["task_id"])
