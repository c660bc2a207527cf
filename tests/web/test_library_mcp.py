"""The MCP endpoint, with the official client."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from proxy_under_test import Workspace
from rule_library import TIMEOUT, add
from strict_anthropic import listening

from ttsr_proxy.config import AuthSettings, LibrarySettings, RecallSettings
from ttsr_proxy.library.storage.libraries import Libraries
from ttsr_proxy.web import library_mcp
from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.server import make_runner


@asynccontextmanager
async def serving(tmp_path: Path, **library: Any) -> AsyncIterator[str]:
    """A proxy whose users alice and default have one rule; yields the endpoint's URL."""
    workspace = Workspace(tmp_path)
    for user in ("alice", "default"):
        add(Libraries(workspace.state.parent / "library").of(user), f"timeout-of-{user}", TIMEOUT)
    chosen = LibrarySettings(recall=RecallSettings(backend="bm25"), **library)
    settings = replace(workspace.settings("http://127.0.0.1:9"), library=chosen)
    async with listening(make_runner(create_app(settings), drain_seconds=0.1)) as url:
        yield f"{url}/mcp"


@asynccontextmanager
async def connected(url: str, **headers: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Whether a call failed, and its text."""
    result = await client.call_tool(tool, arguments)
    return bool(result.is_error), "".join(block.text for block in result.content if block.type == "text")


async def test_an_agent_finds_rules_and_reads_one(tmp_path: Path) -> None:
    async with serving(tmp_path) as url, connected(url) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"rule_search", "read_rule"}
        failed, found = await called(client, "rule_search", task_context="Calling an HTTP service.")
        assert not failed
        assert found.startswith("# Applicable OpenViking Rules\n")
        assert "Matched 1 active Rule(s)." in found
        uri = "viking://user/default/memories/rules/outbound-http/timeout-of-default.md"
        assert uri in found
        failed, text = await called(client, "read_rule", uri=uri)
        assert not failed
        assert text.startswith("---\natomic_id: timeout-of-default\n")


@pytest.mark.parametrize(
    ("tool", "arguments", "part"),
    [
        ("rule_search", {"task_context": "  "}, "task_context must have"),
        ("rule_search", {"task_context": "x", "rule_probability_threshold": 2}, "from 0 to 1"),
        ("read_rule", {"uri": "viking://user/alice/memories/rules/outbound-http/x.md"}, "there is no"),
        ("read_rule", {"uri": "file:///etc/passwd"}, "expected a viking:// URI"),
    ],
)
async def test_a_wrong_call_is_a_failed_call_with_its_reason(
    tmp_path: Path, tool: str, arguments: dict[str, Any], part: str
) -> None:
    async with serving(tmp_path) as url, connected(url) as client:
        failed, text = await called(client, tool, **arguments)
        assert failed
        assert part in text


async def test_the_key_decides_whose_rules_are_found(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(
        "".join(f"{user} {hashlib.sha256(user.encode()).hexdigest()}\n" for user in ("alice", "bob"))
    )
    async with serving(tmp_path, auth=AuthSettings(mode="api_key", keys_file=keys)) as url:
        async with connected(url, **{"X-API-Key": "alice"}) as client:
            _, found = await called(client, "rule_search", task_context="Calling an HTTP service.")
            assert "timeout-of-alice" in found
        async with connected(url, **{"X-API-Key": "bob"}) as client:
            _, found = await called(client, "rule_search", task_context="Calling an HTTP service.")
            assert "Matched 0 active Rule(s)." in found
        async with aiohttp.ClientSession() as session, session.post(url, json={}) as refused:
            assert refused.status == 401
            assert (await refused.json())["error"]["code"] == "UNAUTHENTICATED"


async def test_without_the_extra_the_endpoint_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_mcp.importlib.util, "find_spec", lambda name: None)
    async with (
        serving(tmp_path) as url,
        aiohttp.ClientSession() as session,
        session.post(url, json={}) as refused,
    ):
        assert refused.status == 501
        assert "ttsr-proxy[mcp]" in (await refused.json())["error"]["message"]
