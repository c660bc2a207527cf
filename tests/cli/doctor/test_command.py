"""`ttsr-proxy doctor` as a user runs it."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ttsr_proxy.cli import main


@pytest.fixture
def upstream() -> Iterator[str]:
    """A model API that answers nothing but 401."""

    class Refuse(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refuse)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a rule, and an environment in which nothing else is set."""
    for name in list(os.environ):
        if name != "PATH":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    rules = project / ".omp/rules"
    rules.mkdir(parents=True)
    (rules / "no-eval.md").write_text("---\ncondition: eval\n---\nDo not.\n")
    monkeypatch.chdir(project)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", "--port", "0", *arguments], catch_exceptions=False)


def test_where_nothing_failed_the_exit_status_is_0(place: Path, upstream: str) -> None:
    result = run("--upstream", upstream)
    assert result.exit_code == 0, result.stdout
    assert "0 failures" in result.stdout
    for section in ("configuration", "rules", "upstreams", "state", "port", "agents", "installation"):
        assert section in result.stdout.splitlines()


def test_a_failure_is_told_with_how_to_mend_it_and_exit_status_1(place: Path) -> None:
    result = run("--upstream", "http://127.0.0.1:9")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.lstrip().startswith("fail")]
    assert "cannot connect" in lines[at]
    assert lines[at + 1].lstrip().startswith("mend: start the server there")


def test_json_has_every_finding(place: Path, upstream: str) -> None:
    report = json.loads(run("--json", "--upstream", upstream).stdout)
    assert report["ok"] is True
    assert {finding["level"] for finding in report["findings"]} == {"ok", "warn"}
    assert all(set(finding) == {"section", "level", "what", "mend"} for finding in report["findings"])
    assert all(finding["mend"] for finding in report["findings"] if finding["level"] != "ok")


def test_a_configuration_that_is_wrong_is_told_key_by_key(place: Path) -> None:
    (place / "project/ttsr-proxy.yaml").write_text("prot: 1\nttsr: {repeatMode: twice}\n")
    result = run()
    assert result.exit_code == 1
    assert "prot: unknown key; did you mean port?" in result.stdout
    assert "ttsr.repeatMode: 'twice' is not allowed" in result.stdout
    assert "2 failures" in result.stdout


def test_nothing_is_written(place: Path, upstream: str) -> None:
    def everything() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in place.rglob("*")}

    before = everything()
    run("--upstream", upstream)
    assert everything() == before


def test_a_file_name_cannot_steer_the_terminal(place: Path, upstream: str) -> None:
    (place / "project/.omp/rules/a\x1b[2J.md").write_text("---\ncondition: (\n---\nDo not.\n")
    assert "\x1b" not in run("--upstream", upstream).stdout


def test_it_can_be_run_where_a_loop_is_running_elsewhere(place: Path, upstream: str) -> None:
    async def within() -> Result:
        return await asyncio.to_thread(run, "--upstream", upstream)

    assert asyncio.run(within()).exit_code == 0
