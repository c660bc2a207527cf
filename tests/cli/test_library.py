"""`ttsr-proxy library`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from proxy_under_test import Workspace, running_proxy
from rule_library import TIMEOUT, add

from ttsr_proxy.cli import main
from ttsr_proxy.library.storage.libraries import Libraries
from ttsr_proxy.library.storage.user_library import UserLibrary


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project directory with nothing in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def library(place: Path) -> UserLibrary:
    library = Libraries(place / "state/library").of("default")
    add(library, "http-timeout", TIMEOUT)
    return library


def run(*arguments: str, state: bool = True, **options: Any) -> Result:
    place = ["--state", "state/s.db"] if state else []
    return CliRunner().invoke(main, ["library", *arguments, *place], **options)


def test_list_shows_every_rule_with_its_status(library: UserLibrary) -> None:
    shown = run("list").stdout
    assert "http-timeout" in shown
    assert "active" in shown
    (rule,) = json.loads(run("list", "--json").stdout)["rules"]
    assert (rule["atomic_id"], rule["status"], rule["triggers"]) == ("http-timeout", "active", ["condition"])
    assert rule["uri"] == "viking://user/default/memories/rules/outbound-http/http-timeout.md"


def test_an_empty_library_is_said_to_be_empty(place: Path) -> None:
    done = run("list")
    assert (done.stdout, done.exit_code) == ("", 0)
    assert "No rules in viking://user/default/memories/rules" in done.stderr
    assert not (place / "state").exists()


def test_show_prints_the_file(library: UserLibrary) -> None:
    assert run("show", "http-timeout").stdout == library.snapshot().rules["http-timeout"].content


def test_another_users_library_can_be_named(library: UserLibrary) -> None:
    assert run("list", "--user", "bob").stdout == ""


def test_a_rule_can_be_paused_restored_and_archived(library: UserLibrary) -> None:
    for command, status in (("pause", "paused"), ("restore", "active")):
        done = run(command, "http-timeout")
        assert done.exit_code == 0, done.stderr
        assert command.upper() in done.stdout
        assert library.snapshot(fresh=True).rules["http-timeout"].status == status
    assert run("archive", "http-timeout", input="n\n").exit_code == 1
    assert "http-timeout" in library.snapshot(fresh=True).rules
    assert run("archive", "http-timeout", "--yes").exit_code == 0
    assert library.snapshot(fresh=True).archived == {"http-timeout"}


@pytest.mark.parametrize("command", ["restore", "pause", "show"])
def test_an_archived_rule_is_out_of_reach(library: UserLibrary, command: str) -> None:
    run("archive", "http-timeout", "--yes")
    done = run(command, "http-timeout")
    assert done.exit_code == 2
    assert "rule http-timeout is archived" in done.stderr


def test_a_rule_that_is_not_there_is_told(library: UserLibrary) -> None:
    assert "there is no rule none" in run("pause", "none").stderr
    assert "rule none is not in the library" in run("show", "none").stderr


async def test_compile_asks_the_proxy_and_shows_what_was_done(place: Path) -> None:
    (place / "standards.md").write_text("Never log secrets.")
    async with running_proxy(Workspace(place / "proxy"), "http://127.0.0.1:9") as proxy:
        at = ("--url", proxy.url)

        def compile_rules(*arguments: str, **options: Any) -> Result:
            return run("compile", *arguments, *at, state=False, **options)

        done = await asyncio.to_thread(
            compile_rules, "Requests must set a timeout.", "--source", "standards.md"
        )
        assert done.exit_code == 0, done.stderr
        assert done.stdout.count("NEW") == 2
        assert "Deterministic compiler" in done.stderr
        done = await asyncio.to_thread(compile_rules, "-", "--json", input="Never print.")
        assert json.loads(done.stdout)["result"]["operations"][0]["operation"] == "NEW"
        done = await asyncio.to_thread(compile_rules, "--source", "viking://resources/none")
        assert done.exit_code == 2
        assert "RULE_COMPILE_FAILED: there is no resource" in done.stderr
        done = await asyncio.to_thread(compile_rules, "--source", "none.md")
        assert done.exit_code == 2
        assert "none.md cannot be read" in done.stderr


def test_compile_needs_something_to_compile(place: Path) -> None:
    done = run("compile", state=False)
    assert done.exit_code == 2
    assert "give an INSTRUCTION or a --source" in done.stderr


@pytest.mark.parametrize("command", ["compile", "search"])
def test_a_proxy_that_does_not_run_is_told(place: Path, command: str) -> None:
    done = run(command, "Something must be.", "--url", "http://127.0.0.1:9", state=False)
    assert done.exit_code == 2
    assert "UNAVAILABLE: http://127.0.0.1:9 cannot be reached" in done.stderr


def test_rules_with_triggers_are_listed_among_all_rules_while_active(library: UserLibrary) -> None:
    def listed() -> dict[str, dict[str, Any]]:
        environment = {"TTSR_LIBRARY_ROOT": "state/library"}
        done = CliRunner().invoke(main, ["rules", "list", "--json"], env=environment)
        assert done.exit_code == 0, done.stderr
        return {rule["name"]: rule for rule in json.loads(done.stdout)["rules"]}

    rule = listed()["http-timeout"]
    assert (rule["provider"], rule["bucket"]) == ("library", "ttsr")
    assert rule["path"] == "viking://user/default/memories/rules/outbound-http/http-timeout.md"
    run("pause", "http-timeout")
    assert "http-timeout" not in listed()
    (library.folder / "outbound-http/broken.md").write_bytes(b"\xff")
    assert "http-timeout" not in listed()
