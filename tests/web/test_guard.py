"""Web pages cannot use the proxy's own endpoints; the agent's traffic is nobody's page."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import pytest
from proxy_under_test import Workspace, listening
from raw_http import RawUpstream, ask

from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.server import make_runner

OWN = [
    "/ttsr/api/interrupts",
    "/healthz",
    "/ttsr/api/interrupts/x",
    "/ttsr/api/rules",
    "/p/default/ttsr/api/rules/x",
]
RULES = ["/ttsr/api/rules", "/p/default/ttsr/api/rules", "/p/default/ttsr/api/rules/x"]


@pytest.mark.parametrize("path", OWN)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "[::2]:80", ""]
)
async def test_a_name_that_was_made_to_point_here_is_refused(
    start_proxy: Any, upstream: RawUpstream, path: str, host: str
) -> None:
    proxy = await start_proxy()
    answer = await ask(proxy.url, "GET", path, ("Host", host))
    assert answer.status == 421
    assert upstream.received == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8787", "localhost", "LocalHost:1", "[::1]:8787", "agent.localhost"]
)
async def test_local_names_are_answered(start_proxy: Any, host: str) -> None:
    proxy = await start_proxy()
    assert (await ask(proxy.url, "GET", "/healthz", ("Host", host))).status == 200


async def test_pages_of_other_origins_are_refused_and_its_own_are_not(start_proxy: Any) -> None:
    proxy = await start_proxy()
    for origin, status in (("https://evil.example", 403), ("null", 403), (proxy.url, 200)):
        answer = await ask(proxy.url, "GET", "/ttsr/api/interrupts", ("Origin", origin))
        assert answer.status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "ttsr.internal", "Origin": "https://ttsr.internal"}, 200),
        ({"Host": "ttsr.internal:8443", "Origin": "https://ttsr.internal:8443"}, 200),
        ({"Host": "TTSR.internal", "Origin": "https://ttsr.internal"}, 200),
        (
            {"Host": "ttsr.internal", "Origin": "https://ttsr.internal", "Sec-Fetch-Site": "same-origin"},
            200,
        ),
        ({"Host": "ttsr.internal", "Origin": "http://ttsr.internal", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "ttsr.internal", "Origin": "https://ttsr.internal:8443"}, 403),
        ({"Host": "ttsr.internal", "Origin": "https://evil.internal"}, 403),
        ({"Host": "ttsr.internal", "Origin": "https://ttsr.internal.evil.example"}, 403),
        ({"Host": "10.0.0.1:8787", "Origin": "https://ttsr.internal", "X-Forwarded-Proto": "https"}, 403),
    ],
)
async def test_behind_a_tls_proxy_its_own_pages_are_known_by_their_host(
    workspace: Workspace, headers: dict[str, str], status: int
) -> None:
    given = (("Authorization", f"Bearer {TOKEN}"), *headers.items())
    assert await _status(workspace, "/ttsr/api/interrupts", *given, host="0.0.0.0", token=TOKEN) == status


@pytest.mark.parametrize(
    ("header", "status"), [(("Host", "evil.example"), 421), (("Origin", "https://evil.example"), 403)]
)
async def test_the_library_refuses_in_the_form_of_its_answers(
    start_proxy: Any, header: tuple[str, str], status: int
) -> None:
    proxy = await start_proxy()
    answer = await ask(proxy.url, "GET", "/api/v1/tasks", header, ("X-Request-ID", "mine"))
    assert answer.status == status
    document = json.loads(answer.body)
    assert document["status"] == "error"
    assert document["error"]["code"] == "PERMISSION_DENIED"
    assert answer.all("x-request-id") == ["mine"]


async def test_the_agent_s_traffic_may_have_any_host_and_origin(
    start_proxy: Any, upstream: RawUpstream
) -> None:
    proxy = await start_proxy()
    answer = await ask(
        proxy.url, "GET", "/v1/models", ("Host", "proxy.internal"), ("Origin", "vscode-file://x")
    )
    assert answer.status == 200
    assert upstream.received[0].all("origin") == ["vscode-file://x"]


async def test_on_another_address_any_host_is_answered(workspace: Workspace, upstream: RawUpstream) -> None:
    settings = dataclasses.replace(workspace.settings(upstream.url), host="0.0.0.0")
    runner = make_runner(create_app(settings), drain_seconds=0.1)
    async with listening(runner) as url:
        assert (await ask(url, "GET", "/healthz", ("Host", "ttsr.internal"))).status == 200


TOKEN = "a-token-of-twenty-characters"


async def _status(workspace: Workspace, path: str, *headers: tuple[str, str], **settings: Any) -> int:
    runner = make_runner(
        create_app(dataclasses.replace(workspace.settings("http://127.0.0.1:1"), **settings)),
        drain_seconds=0.1,
    )
    async with listening(runner) as url:
        return (await ask(url, "GET", path, *headers)).status


def _basic(password: str) -> tuple[str, str]:
    return "Authorization", "Basic " + base64.b64encode(f"me:{password}".encode()).decode()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize(
    ("given", "status"),
    [
        (("Authorization", f"Bearer {TOKEN}"), 200),
        (_basic(TOKEN), 200),
        (("X-Other", TOKEN), 401),
        (("Authorization", "Bearer wrong"), 401),
        (("Authorization", "Bearer \xff"), 401),
        (("Authorization", "Bearer"), 401),
        (("Authorization", "Basic ***"), 401),
        (_basic(""), 401),
    ],
)
async def test_the_log_asks_for_the_token_wherever_it_is_served(
    workspace: Workspace, host: str, given: tuple[str, str], status: int
) -> None:
    assert await _status(workspace, "/ttsr/api/interrupts", given, host=host, token=TOKEN) == status


async def test_without_a_token_the_log_is_not_served_to_others(workspace: Workspace) -> None:
    assert await _status(workspace, "/ttsr/api/interrupts", host="0.0.0.0") == 403
    assert await _status(workspace, "/ttsr/api/interrupts/x", host="::") == 403
    assert await _status(workspace, "/ttsr/api/interrupts", host="127.0.0.1") == 200


@pytest.mark.parametrize("path", RULES)
async def test_rules_are_as_private_as_the_log_below_any_project(workspace: Workspace, path: str) -> None:
    known = 404 if path.endswith("/x") else 200
    given = ("Authorization", f"Bearer {TOKEN}")
    assert await _status(workspace, path, token=TOKEN) == 401
    assert await _status(workspace, path, given, token=TOKEN) == known
    assert await _status(workspace, path, host="0.0.0.0") == 403
    assert await _status(workspace, path) == known


async def test_the_agents_traffic_below_a_project_needs_no_token(workspace: Workspace) -> None:
    assert await _status(workspace, "/p/default/v1/models", host="0.0.0.0", token=TOKEN) == 502


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_health_needs_no_token(workspace: Workspace, path: str) -> None:
    assert await _status(workspace, path, host="0.0.0.0", token=TOKEN) == 200


async def test_no_endpoint_below_ttsr_is_forgotten(workspace: Workspace) -> None:
    settings = dataclasses.replace(workspace.settings("http://127.0.0.1:1"), host="0.0.0.0")
    app = create_app(settings)
    paths = {
        resource.canonical.replace("{", "").replace("}", "")
        for resource in app.router.resources()
        if resource.canonical.startswith(("/ttsr", "/p/"))
    }
    assert paths
    async with listening(make_runner(app, drain_seconds=0.1)) as url:
        for path in paths:
            assert (await ask(url, "GET", path)).status in (403, 405), path


async def test_the_token_is_not_shown_with_the_settings(workspace: Workspace) -> None:
    settings = dataclasses.replace(workspace.settings("http://127.0.0.1:1"), token=TOKEN)
    assert TOKEN not in repr(settings)
