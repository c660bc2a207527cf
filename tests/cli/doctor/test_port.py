"""What `doctor` says of the port."""

from __future__ import annotations

import errno
import json
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from aiohttp import web
from proxy_under_test import Workspace, running_proxy
from yarl import URL

from ttsr_proxy.cli.doctor import port
from ttsr_proxy.cli.doctor.port import of_port
from ttsr_proxy.config import Settings

MakeSettings = Callable[..., Settings]
Answering = Callable[..., AbstractAsyncContextManager[str]]


def port_of(url: str) -> int:
    found = URL(url).port
    assert found is not None
    return found


async def test_a_free_port_is_fine(settings: MakeSettings) -> None:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        number = tried.getsockname()[1]
    finding = await of_port(settings(port=number))
    assert (finding.level, "is free" in finding.what) == ("ok", True)


async def test_any_port_is_fine(settings: MakeSettings) -> None:
    assert (await of_port(settings(port=0))).level == "ok"


async def test_a_port_that_a_proxy_of_ours_serves_is_fine(
    settings: MakeSettings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    async with running_proxy(workspace, "http://127.0.0.1:9") as proxy:
        finding = await of_port(settings(port=port_of(proxy.url)))
    assert (finding.level, "a ttsr-proxy serves" in finding.what) == ("ok", True)


async def test_a_proxy_of_ours_that_cannot_use_its_state_is_a_warning(
    settings: MakeSettings, answering: Answering
) -> None:
    async def answer(request: web.Request) -> web.Response:
        body = {"status": "degraded", "reason": "the state store cannot be used", "inspected": 0}
        return web.json_response(body, status=503)

    async with answering(answer) as url:
        finding = await of_port(settings(port=port_of(url)))
    assert (finding.level, "the state store cannot be used" in finding.what) == ("warn", True)


@pytest.mark.parametrize("body", [json.dumps({"status": "ready"}), "[]", "hello"])
async def test_a_port_that_another_program_holds_is_a_failure(
    settings: MakeSettings, answering: Answering, body: str
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=body, content_type="application/json")

    async with answering(answer) as url:
        finding = await of_port(settings(port=port_of(url)))
    assert (finding.level, "held by another program" in finding.what) == ("fail", True)


async def test_a_port_whose_holder_says_nothing_is_a_failure(
    settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as held:
        finding = await of_port(settings(port=held.getsockname()[1]))
    assert (finding.level, "held by another program" in finding.what) == ("fail", True)


async def test_an_address_of_another_machine_is_a_failure(settings: MakeSettings) -> None:
    finding = await of_port(settings(host="192.0.2.1", port=8787))
    assert (finding.level, "no address of this machine" in finding.what) == ("fail", True)


async def test_a_port_for_which_rights_are_missing_is_a_failure(
    settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "_listen", lambda host, number: errno.EACCES)
    finding = await of_port(settings(port=80))
    assert (finding.level, "more rights" in finding.what) == ("fail", True)
