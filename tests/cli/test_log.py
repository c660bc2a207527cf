"""`ttsr-proxy log`."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from many_interrupts import many_interrupts

from ttsr_proxy.cli import main
from ttsr_proxy.interrupts import as_csv
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.redis import RedisInterruptStore
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.redis import RedisUrl

RECORD = InterruptRecord(
    id="r0",
    time=1_700_000_000.0,
    project="default",
    conversation="c1",
    request="q1",
    turn=0,
    attempt=1,
    client="claude-code",
    agent="main",
    model="claude-a",
    protocol="anthropic",
    rule="no-eval",
    rule_path=".omp/rules/no-eval.md",
    trigger="regex",
    pattern=r"\beval\(",
    source="tool",
    tool="Write",
    paths=("src/app.py",),
    matched="eval(",
    before="return ",
    after="",
    action="interrupted",
    outcome="clean",
)


def store(file: Path, *records: InterruptRecord) -> None:
    async def add() -> None:
        log = SqliteInterruptStore(file)
        await log.add(records)
        await log.close()

    asyncio.run(add())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def run(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["log", "--state", str(file), *arguments])

    return invoke


def test_an_entry_is_shown_as_a_row_of_the_table(file: Path, run: Callable[..., Result]) -> None:
    store(file, replace(RECORD, late=True))
    result = run()
    assert result.exit_code == 0
    (row,) = [line for line in result.stdout.splitlines() if "no-eval" in line]
    for part in ("interrupted (late)", "clean", "Write src/app.py", "eval(", "claude-a"):
        assert part in row


def test_json_is_the_page_of_the_api_newest_first(file: Path, run: Callable[..., Result]) -> None:
    store(file, RECORD, replace(RECORD, id="r1", time=RECORD.time + 1))
    page = json.loads(run("--json").stdout)
    assert [item["id"] for item in page["items"]] == ["r1", "r0"]
    assert page["next"] is None
    assert page["items"][1]["time"] == "2023-11-14T22:13:20.000Z"


def test_limit_leaves_the_older_entries_out(file: Path, run: Callable[..., Result]) -> None:
    store(file, RECORD, replace(RECORD, id="r1", time=RECORD.time + 1))
    page = json.loads(run("--json", "--limit", "1").stdout)
    assert [item["id"] for item in page["items"]] == ["r1"]
    assert page["next"]


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        (["--rule", "other"], {"rule": "other"}),
        (["--file", "docs/"], {"paths": ("docs/a.md",)}),
        (["--model", "claude-b"], {"model": "claude-b"}),
        (["--conversation", "c2"], {"conversation": "c2"}),
        (["--action", "reminded"], {"action": "reminded"}),
        (["--outcome", "violated again"], {"outcome": "violated again"}),
        (["--client", "codex"], {"client": "codex"}),
        (["--source", "text"], {"source": "text", "tool": None}),
        (["--of-project", "shop"], {"project": "shop"}),
        (["--since", "2h"], {"time": time.time() - 60}),
        (["--since", "2024-01-01"], {"time": 1_710_000_000.0}),
        (["--until", "2023-01-01"], {"time": 1_600_000_000.0}),
    ],
)
def test_a_filter_leaves_only_what_it_names(
    file: Path, run: Callable[..., Result], arguments: list[str], changes: dict[str, object]
) -> None:
    store(file, RECORD, replace(RECORD, id="wanted", **changes))  # type: ignore[arg-type]
    page = json.loads(run("--json", *arguments).stdout)
    assert [item["id"] for item in page["items"]] == ["wanted"]


def test_totals_count_by_rule(file: Path, run: Callable[..., Result]) -> None:
    store(file, RECORD, replace(RECORD, id="r1", outcome="failed"), replace(RECORD, id="r2", rule="other"))
    rows = run("--totals").stdout.splitlines()
    assert [row.split()[:2] for row in rows[1:]] == [["no-eval", "2"], ["other", "1"]]
    assert "1 failed, 1 clean" in rows[1]
    assert json.loads(run("--totals", "--json", "--rule", "other").stdout)["count"] == 1


def test_text_that_a_model_wrote_cannot_steer_the_terminal(file: Path, run: Callable[..., Result]) -> None:
    store(file, replace(RECORD, matched="a\x1b]0;owned\x07\n[red]b\u202e", paths=("x\x1b[2J",)))
    result = run()
    assert "\x1b" not in result.stdout
    assert r"a\x1b]0;owned\x07\n[red]b\u202e" in result.stdout


def test_a_store_that_is_not_there_is_not_created(file: Path, run: Callable[..., Result]) -> None:
    result = run()
    assert (result.exit_code, result.stdout) == (0, "")
    assert str(file) in result.stderr
    assert json.loads(run("--json").stdout) == {"items": [], "next": None}
    assert not file.exists()


def test_a_file_that_is_no_store_is_an_error_without_a_traceback(
    file: Path, run: Callable[..., Result]
) -> None:
    file.write_text("not a database, but long enough to be read as one" * 100)
    result = run()
    assert result.exit_code == 2
    assert str(file) in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("arguments", [["--since", "yesterday"], ["--action", "stopped"], ["--limit", "0"]])
def test_a_wrong_option_is_a_usage_error(run: Callable[..., Result], arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert arguments[0] in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--follow", "--totals"], ["--totals", "--csv"], ["--json", "--csv"], ["--follow", "--all"]],
)
def test_options_that_contradict_each_other_are_a_usage_error(
    run: Callable[..., Result], arguments: list[str]
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert f"{arguments[0]} and {arguments[1]} do not go together" in result.stderr


def test_csv_has_a_header_and_a_line_for_each_entry(file: Path, run: Callable[..., Result]) -> None:
    store(file, replace(RECORD, matched='=a,"\ud800'), replace(RECORD, id="r1", time=RECORD.time + 1))
    rows = list(csv.DictReader(io.StringIO(run("--csv").stdout, newline="")))
    assert [row["id"] for row in rows] == ["r1", "r0"]
    assert rows[1]["matched"] == "'=a,\"\\ud800"


def test_csv_lines_end_with_crlf_on_every_system(file: Path, run: Callable[..., Result]) -> None:
    store(file, RECORD)
    assert run("--csv").stdout_bytes.count(b"\r\n") == 2


def test_csv_of_no_log_is_the_header_alone(file: Path, run: Callable[..., Result]) -> None:
    assert run("--csv").stdout.splitlines() == [",".join(as_csv.COLUMNS)]
    assert not file.exists()


@pytest.mark.parametrize("form", ["--json", "--csv"])
def test_all_goes_beyond_a_page(file: Path, run: Callable[..., Result], form: str) -> None:
    store(file, *many_interrupts(2_100, RECORD.time, 1.0))
    text = run(form, "--all").stdout
    ids = (
        [item["id"] for item in json.loads(text)["items"]]
        if form == "--json"
        else [row["id"] for row in csv.DictReader(io.StringIO(text, newline=""))]
    )
    assert len(set(ids)) == len(ids) == 2_100


async def test_follow_prints_what_is_there_and_then_what_arrives(file: Path) -> None:
    log = SqliteInterruptStore(file)
    await log.add([replace(RECORD, id="r1", time=RECORD.time + 1), RECORD])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ttsr_proxy", "log", "--follow", "--json", "--state", str(file)),
        cwd=file.parent,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        first = [json.loads(await process.stdout.readline())["id"] for _ in range(2)]
        await log.add([replace(RECORD, id="r2")])
        arrived = json.loads(await process.stdout.readline())["id"]
    finally:
        process.terminate()
        await process.wait()
        await log.close()
    assert (first, arrived) == (["r0", "r1"], "r2")


@pytest.mark.redis
async def test_the_log_on_redis_is_shown_and_followed(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"TTSR_STATE": redis_url, "TTSR_LIBRARY_ROOT": str(tmp_path / "library")}
    replica = RedisInterruptStore(RedisUrl(redis_url))
    await replica.add([RECORD])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ttsr_proxy", "log", "--follow", "--json"),
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path), **environ},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        first = json.loads(await process.stdout.readline())["id"]
        await replica.add([replace(RECORD, id="r1", rule="no-any")])
        assert (first, json.loads(await process.stdout.readline())["id"]) == ("r0", "r1")
    finally:
        process.terminate()
        await process.wait()
        await replica.close()
    monkeypatch.chdir(tmp_path)
    listed = await asyncio.to_thread(
        CliRunner(env=environ).invoke, main, ["log", "--rule", "no-any", "--json"]
    )
    assert [item["id"] for item in json.loads(listed.stdout)["items"]] == ["r1"]
    totals = await asyncio.to_thread(CliRunner(env=environ).invoke, main, ["log", "--totals", "--json"])
    assert json.loads(totals.stdout)["count"] == 2


def test_a_log_on_a_server_that_is_away_is_an_error_without_its_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"TTSR_STATE": "redis://me:s3cret@127.0.0.1:1/0", "TTSR_LIBRARY_ROOT": "library"}
    result = CliRunner(env=environ).invoke(main, ["log"])
    assert result.exit_code == 2
    assert "redis://127.0.0.1:1/0 failed: it cannot be reached" in result.stderr
    assert "s3cret" not in result.output
