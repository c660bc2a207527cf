"""What the proxy counts and measures, and how it tells it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from proxy_under_test import Workspace, listening
from raw_http import RawAnswer, RawRequest, RawUpstream, ask, response, send
from raw_http.dialects import DIALECTS, Dialect
from scraped import figures_once, scrape

from ttsr_proxy.errors import StoreError
from ttsr_proxy.interception.exchange import Exchange
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.web import ast_worker, metrics
from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.metrics import FAMILIES, Metrics
from ttsr_proxy.web.server import make_runner

BROKEN = (asyncio.IncompleteReadError, ValueError)
"""How the test's client sees a connection that ends within a body."""

STREAM = "text/event-stream"
PROTOCOLS = {"anthropic": "anthropic", "chat": "openai-chat", "responses": "openai-responses"}
ANTHROPIC = DIALECTS["anthropic"]


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", "BADWORD", scope="text")


async def post(url: str, dialect: Dialect = ANTHROPIC, *headers: tuple[str, str], **more: Any) -> RawAnswer:
    return await ask(url, "POST", dialect.path, *dialect.headers, *headers, body=dialect.body(**more))


def says(dialect: Dialect, *texts: str) -> list[bytes]:
    return [response(b"".join(dialect.events(text)), kind=STREAM) for text in texts]


@pytest.mark.parametrize("name", DIALECTS)
async def test_an_interrupt_is_counted_with_its_cost(
    upstream: RawUpstream, start_proxy: Any, name: str
) -> None:
    protocol, proxy = PROTOCOLS[name], await start_proxy()
    upstream.script.extend(says(DIALECTS[name], "BADWORD here", "fine"))
    await post(proxy.url, DIALECTS[name])
    await proxy.log(("interrupted", "clean"))
    told = await figures_once(proxy.url, lambda now: bool(now.all("ttsr_requests_total")))
    assert told.value("ttsr_requests_total", protocol=protocol, outcome="completed") == 1
    assert told.value("ttsr_inspected_requests_total", protocol=protocol) == 1
    assert told.value("ttsr_interrupts_total", protocol=protocol, action="interrupted") == 1
    assert told.value("ttsr_retries_total", protocol=protocol) == 1
    assert told.value("ttsr_upstream_calls_total", protocol=protocol, result="answered") == 2
    assert told.value("ttsr_matches_total", rule="no-bad-word", action="interrupted") == 1
    (item,) = await proxy.interrupts()
    assert told.value("ttsr_wasted_tokens_total") == item["tokens_wasted"] > 0
    assert told.value("ttsr_added_seconds_total") > 0
    assert told.value("ttsr_upstream_first_event_seconds_count", protocol=protocol) == 2
    assert told.value("ttsr_first_event_seconds_count", protocol=protocol) == 1
    assert told.value("ttsr_request_duration_seconds_count", protocol=protocol) == 1
    assert told.all("ttsr_open_requests") == told.all("ttsr_held_bytes") == {}


async def test_what_matters_most_is_there_at_zero_from_the_start(start_proxy: Any) -> None:
    names = (await scrape((await start_proxy()).url)).names()
    assert {"ttsr_interrupts_total", "ttsr_retries_total", "ttsr_open_requests", "ttsr_held_bytes"} <= names


async def test_every_request_ends_in_one_outcome(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.rule("never", "FORBIDDEN", scope="text", onExhausted="block", maxInterrupts=0)
    proxy = await start_proxy()
    broken = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n"
    half = b"".join(ANTHROPIC.events("some words")[:3])
    upstream.script.extend(says(ANTHROPIC, "fine"))
    await post(proxy.url)
    upstream.script.append(response(b'{"error": {}}', status=529))
    await post(proxy.url, system="2")
    upstream.script.append(broken + half)
    with pytest.raises(BROKEN):
        await post(proxy.url, system="3")
    upstream.script.extend(says(ANTHROPIC, "FORBIDDEN"))
    await post(proxy.url, system="4")
    upstream.script.extend([*says(ANTHROPIC, "BADWORD"), response(b'{"error": {}}', status=500)])
    await post(proxy.url, system="5")
    await ask(proxy.url, "GET", "/v1/models")
    upstream.script.append(response(b"{}", status=404))
    await ask(proxy.url, "GET", "/v1/nothing")
    await ask(proxy.url, "GET", "/p/none/v1/models")
    await ask(proxy.url, "GET", "/v1/responses", ("Upgrade", "websocket"))
    with monkeypatch.context() as patch:
        patch.setattr(Exchange, "attempt_ended", lambda self, now: 1 / 0)
        upstream.script.append(broken.replace(b"Content-Length: 9999\r\n", b"") + half)
        with pytest.raises(BROKEN):
            await post(proxy.url, system="6")
    told = await figures_once(proxy.url, lambda now: sum(now.all("ttsr_requests_total").values()) == 10)
    outcomes = {
        (dict(labels)["protocol"], dict(labels)["outcome"]): value
        for labels, value in told.all("ttsr_requests_total").items()
    }
    assert outcomes == {
        ("anthropic", "completed"): 1,
        ("anthropic", "upstream_failed"): 1,
        ("anthropic", "broken_off"): 1,
        ("anthropic", "blocked"): 1,
        ("anthropic", "failed"): 1,
        ("anthropic", "fault"): 1,
        ("other", "completed"): 1,
        ("other", "upstream_failed"): 1,
        ("other", "refused"): 2,
    }
    assert told.value("ttsr_matching_faults_total") == 1
    assert told.value("ttsr_not_inspected_requests_total", reason="other endpoint") == 2


async def test_what_is_open_and_what_is_held_is_told_while_it_lasts(
    upstream: RawUpstream, start_proxy: Any
) -> None:
    proxy = await start_proxy()
    events = ANTHROPIC.events("Only words and then a BADWOR")
    go_on = asyncio.Event()

    async def play(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        writer.write(head + b"".join(events[:3]))
        await writer.drain()
        await go_on.wait()
        writer.write(b"".join(events[3:]))

    upstream.script.append(play)
    asking = asyncio.create_task(post(proxy.url))
    told = await figures_once(proxy.url, lambda now: bool(now.all("ttsr_held_bytes")))
    assert told.value("ttsr_open_requests", protocol="anthropic") == 1
    assert told.value("ttsr_held_bytes") == len(events[2])
    go_on.set()
    await asking
    await figures_once(
        proxy.url, lambda now: not now.all("ttsr_open_requests") and not now.all("ttsr_held_bytes")
    )


async def test_a_client_that_leaves_is_told_apart(upstream: RawUpstream, start_proxy: Any) -> None:
    proxy = await start_proxy()
    asked = asyncio.Event()

    async def stall(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await request.gone.wait()

    upstream.script.append(stall)
    body = ANTHROPIC.body()
    lines = ["POST /v1/messages HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", "", ""]
    async with send(proxy.url, "\r\n".join(lines).encode() + body):
        await asked.wait()
        assert (await scrape(proxy.url)).value("ttsr_open_requests", protocol="anthropic") == 1
    told = await figures_once(proxy.url, lambda now: bool(now.all("ttsr_requests_total")))
    assert told.value("ttsr_requests_total", protocol="anthropic", outcome="client_left") == 1
    assert told.value("ttsr_upstream_calls_total", protocol="anthropic", result="abandoned") == 1


async def test_bypasses_are_counted_whether_they_may_or_not(upstream: RawUpstream, start_proxy: Any) -> None:
    for allowed in (True, False):
        proxy = await start_proxy(allow_bypass=allowed)
        upstream.script.extend(says(ANTHROPIC, "fine"))
        await post(proxy.url, ANTHROPIC, ("x-ttsr-bypass", "1"))
        told = await scrape(proxy.url)
        assert told.value("ttsr_bypass_requests_total", allowed=str(allowed).lower()) == 1


async def test_rules_are_told_by_project_and_state_as_they_are_now(
    workspace: Workspace, start_proxy: Any
) -> None:
    proxy = await start_proxy()
    before = await scrape(proxy.url)
    assert before.value("ttsr_rules", project="default", state="active") == 1
    workspace.rule("broken", "(")
    workspace.rule("no-bad-word", "BADWORD", scope="text", enabled=False)
    told = await scrape(proxy.url)
    assert told.value("ttsr_rules", project="default", state="active") == 0
    inactive = {"project": "default", "state": "inactive"}
    assert told.value("ttsr_rules", **inactive) == before.value("ttsr_rules", **inactive) + 2


async def test_a_store_that_fails_and_a_worker_that_is_replaced_are_told(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(self: object, records: object) -> None:
        raise StoreError("the disk is full")

    workspace.rule("no-eval", [], astCondition=["eval($X)"], scope="tool:Write(*.py)")
    monkeypatch.setattr(SqliteInterruptStore, "add", full)
    proxy = await start_proxy()
    assert (await scrape(proxy.url)).value("ttsr_store_up") == 1
    upstream.script.extend(says(ANTHROPIC, "BADWORD", "fine"))
    await post(proxy.url)
    told = await figures_once(proxy.url, lambda now: bool(now.all("ttsr_store_errors_total")))
    assert told.value("ttsr_store_errors_total", operation="log") == 1
    monkeypatch.setattr(ast_worker, "DEADLINE_SECONDS", 0)
    input = {"file_path": "a.py", "content": "eval(x)"}
    whole = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "Write", "input": input}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    upstream.script.append(response(json.dumps(whole).encode()))
    await post(proxy.url, stream=False)
    told = await scrape(proxy.url)
    assert told.value("ttsr_ast_worker_replacements_total", reason="slow") == 1
    assert told.value("ttsr_exchange_events_total", event="not_inspected") == 1


async def test_the_library_is_told_too(start_proxy: Any) -> None:
    proxy = await start_proxy()
    compile = json.dumps({"instruction": "- Never force-push to main.", "sources": []}).encode()
    json_body = ("Content-Type", "application/json")
    assert (await ask(proxy.url, "POST", "/api/v1/rules/compile", json_body, body=compile)).status == 202
    await figures_once(proxy.url, lambda now: now.value("ttsr_library_tasks_total", status="completed") == 1)
    search = json.dumps({"task_context": "push a fix"}).encode()
    assert (await ask(proxy.url, "POST", "/api/v1/rules/search", json_body, body=search)).status == 200
    assert (await scrape(proxy.url)).value("ttsr_library_searches_total", judge="pass") == 1


async def test_the_names_and_types_are_those_of_the_list(upstream: RawUpstream, start_proxy: Any) -> None:
    proxy = await start_proxy()
    text = (await scrape(proxy.url)).text
    kinds = {family.name: family.type for family in text_string_to_metric_families(text)}
    for family in FAMILIES:
        name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
        assert kinds.pop(name) == family.kind
    assert {name for name in kinds if not name.startswith(("process_", "python_"))} == set()


def test_names_keep_the_conventions_of_prometheus() -> None:
    for family in FAMILIES:
        assert re.fullmatch("ttsr_[a-z]+(_[a-z]+)*", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        assert family.kind != "histogram" or family.name.endswith("_seconds")
        assert family.text.endswith(".")


async def test_openmetrics_is_spoken_to_who_asks_for_it(start_proxy: Any) -> None:
    proxy = await start_proxy()
    answer = await ask(
        proxy.url, "GET", "/metrics", ("Accept", "application/openmetrics-text; version=1.0.0")
    )
    assert answer.all("content-type")[0].startswith("application/openmetrics-text; version=1.0.0")
    assert "ttsr_build_info" in {
        sample.name for family in openmetrics(answer.body.decode()) for sample in family.samples
    }


@pytest.mark.parametrize(
    ("token", "host", "status"), [("a-token-of-20-characters", "127.0.0.1", 401), (None, "0.0.0.0", 403)]
)
async def test_metrics_are_as_private_as_the_log(
    workspace: Workspace, token: str | None, host: str, status: int
) -> None:
    settings = dataclasses.replace(workspace.settings("http://127.0.0.1:1"), token=token, host=host)
    async with listening(make_runner(create_app(settings), drain_seconds=0.1)) as url:
        assert (await ask(url, "GET", "/metrics")).status == status
        if token:
            bearer = ("Authorization", f"Bearer {token}")
            assert (await ask(url, "GET", "/metrics", bearer)).status == 200


def test_values_of_labels_beyond_a_limit_are_counted_together() -> None:
    counted = Metrics()
    for number in range(metrics.MOST_VALUES + 3):
        counted.count(metrics.MATCHES, f"rule-{number}", "interrupted")
    counted.count(metrics.MATCHES, "rule-1", "interrupted")
    text = counted.text("")[0].decode()
    assert text.count("\nttsr_matches_total{") == metrics.MOST_VALUES + 1
    assert '\nttsr_matches_total{action="interrupted",rule="other"} 3.0\n' in text
    assert '\nttsr_matches_total{action="interrupted",rule="rule-1"} 2.0\n' in text


def test_counts_that_are_kept_elsewhere_are_taken_over_once() -> None:
    counted = Metrics()
    for total in (2, 2, 5):
        counted.copy(metrics.STORE_ERRORS, {("log",): total})
    assert 'ttsr_store_errors_total{operation="log"} 5.0' in counted.text("")[0].decode()


async def test_figures_that_cannot_be_kept_cost_no_request(
    upstream: RawUpstream, start_proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, *values: str) -> None:
        raise OSError("no space left on device")

    proxy = await start_proxy()
    monkeypatch.setattr(metrics.Counter, "labels", full)
    monkeypatch.setattr(metrics.Histogram, "labels", full)
    upstream.script.extend(says(ANTHROPIC, "BADWORD", "fine"))
    answer = await post(proxy.url)
    assert b"message_stop" in answer.body
    assert b"BADWORD" not in answer.body


def test_a_worker_whose_directory_is_gone_tells_its_own_figures(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", OWN_FIGURES],
        env={"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.count('ttsr_retries_total{protocol="anthropic"} 1.0') == 2


OWN_FIGURES = """
import os, shutil
from ttsr_proxy.web.metrics import RETRIES, Metrics
counted = Metrics()
counted.count(RETRIES, "anthropic")
print(counted.text("")[0].decode())
shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"])
print(counted.text("")[0].decode())
"""


async def test_seconds_that_two_entries_share_are_added_once(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any
) -> None:
    workspace.rule("no-bad-word-either", "BADWORD", scope="text")
    proxy = await start_proxy()
    upstream.script.extend(says(ANTHROPIC, "BADWORD", "fine"))
    await post(proxy.url)
    first, second = await proxy.log(("interrupted", "clean"), ("interrupted", "clean"))
    told = await scrape(proxy.url)
    assert told.value("ttsr_interrupts_total", protocol="anthropic", action="interrupted") == 1
    assert told.value("ttsr_added_seconds_total") < first["seconds_added"] + second["seconds_added"]


GRAFANA = Path(__file__).parents[2] / "deploy/grafana/ttsr-proxy.json"
SUFFIXES = ("_bucket", "_sum", "_count")


def test_the_grafana_dashboard_asks_only_for_metrics_and_labels_that_exist() -> None:
    dashboard = json.loads(GRAFANA.read_text())
    names = {family.name: family for family in FAMILIES}
    used = set()
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"]
            for name in re.findall(r"\bttsr_\w+", query):
                family = names.get(name) or names[re.sub(r"_(bucket|sum|count)$", "", name)]
                used.add(family.name)
            allowed = {"le", "job", "instance", *(label for name in names.values() for label in name.labels)}
            grouped = re.findall(r"by \(([^)]*)\)", query)
            assert {label.strip() for labels in grouped for label in labels.split(",")} <= allowed
            assert set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))) <= allowed
    assert len(used) > 15


def test_the_grafana_dashboard_has_panels_that_do_not_overlap() -> None:
    dashboard = json.loads(GRAFANA.read_text())
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
