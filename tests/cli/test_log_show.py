"""`ttsr-proxy log show`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ttsr_proxy.cli import main
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore

RECORD = InterruptRecord(
    id="0199aaaa1111ffff",
    time=1_700_000_000.25,
    project="shop",
    conversation="c1",
    request="q1",
    turn=3,
    attempt=1,
    client="claude-code",
    agent="explore",
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
    after="x)",
    violation='{"content": "return eval(x)"}',
    correction='{"content": "return parse(x)"}',
    action="interrupted",
    outcome="clean",
    detail="as the rule says",
    held_chars=1_200,
    seconds_added=1.25,
    tokens_wasted=340,
    injected="<system-interrupt>Never call eval.</system-interrupt>",
    upstream_requests=("req_1", "req_2"),
)

Run = Callable[..., Result]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["log", *arguments])

    return invoke


@pytest.fixture
def show(file: Path, run: Run) -> Callable[..., Result]:
    """Shows the first of some records, which are then the whole log."""

    def shown(*records: InterruptRecord, arguments: tuple[str, ...] = ()) -> Result:
        store(file, *records)
        return run("show", records[0].id, "--state", str(file), *arguments)

    return shown


def store(file: Path, *records: InterruptRecord) -> None:
    async def add() -> None:
        log = SqliteInterruptStore(file)
        await log.add(records)
        await log.close()

    asyncio.run(add())


def test_everything_that_is_known_of_a_record_is_shown(show: Callable[..., Result]) -> None:
    text = show(RECORD).stdout
    for part in (
        "no-eval", "interrupted", "clean", "as the rule says", "Write", "src/app.py", r"\beval\(",
        ".omp/rules/no-eval.md", "claude-a", "anthropic", "claude-code / explore", "shop", "c1",
        "3, attempt 1", "1,200 characters", "1.25 s", "340 tokens (estimated)", "req_1, req_2", "q1",
        RECORD.id, RECORD.injected, RECORD.correction,
    ):  # fmt: skip
        assert part in text


def test_the_match_is_marked_in_its_context_and_in_the_violating_output(show: Callable[..., Result]) -> None:
    lines = show(RECORD).stdout.splitlines()
    assert "return ⟦eval(⟧x)" in lines
    assert '{"content": "return ⟦eval(⟧x)"}' in lines


def test_what_a_record_does_not_have_is_said(show: Callable[..., Result]) -> None:
    text = show(replace(RECORD, injected="", correction="", outcome="pending")).stdout
    assert "The model was not given one." in text
    assert "Not known yet." in text


def test_several_lines_stay_several_lines(show: Callable[..., Result]) -> None:
    lines = show(replace(RECORD, correction="def f():\r\n\treturn 1\n")).stdout.splitlines()
    assert any(line.startswith("def f():") for line in lines)
    assert any(line.endswith("return 1") for line in lines)


def test_text_that_a_model_wrote_cannot_steer_the_terminal(show: Callable[..., Result]) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202e[bold]\r"
    result = show(
        replace(
            RECORD,
            rule=f"a{evil}", paths=(evil,), pattern=evil, model=evil, conversation=evil, detail=evil,
            before=evil, matched=f"m{evil}", after=evil, violation=f"v{evil}", injected=evil, correction=evil,
            upstream_requests=(evil,), project=evil, client=evil, request=evil, rule_path=evil,
        )
    )  # fmt: skip
    assert result.exit_code == 0
    assert not set("\x1b\x07\x9b\u202e\r") & set(result.stdout)
    assert r"\x1b]0;owned\x07\x1b[2J\x9b1m\u202e[bold]" in result.stdout


def test_json_is_the_record_as_the_api_gives_it(show: Callable[..., Result]) -> None:
    item = json.loads(show(RECORD, arguments=("--json",)).stdout)
    assert (item["id"], item["violation"]) == (RECORD.id, RECORD.violation)


def test_the_beginning_of_an_id_is_enough_where_one_entry_begins_so(file: Path, run: Run) -> None:
    store(file, RECORD, replace(RECORD, id="0199bbbb", rule="other"))
    result = run("show", "0199b", "--state", str(file))
    assert (result.exit_code, result.stdout.split()[0]) == (0, "other")


def test_a_whole_id_is_no_beginning_of_another(file: Path, run: Run) -> None:
    store(file, replace(RECORD, id="0199"), replace(RECORD, id="01990", rule="other"))
    assert run("show", "0199", "--state", str(file)).stdout.split()[0] == "no-eval"


def test_where_several_entries_begin_so_they_are_named(file: Path, run: Run) -> None:
    store(file, RECORD, replace(RECORD, id="0199bbbb"))
    result = run("show", "0199", "--state", str(file))
    assert result.exit_code == 2
    assert "0199aaaa1111ffff, 0199bbbb" in result.stderr


@pytest.mark.parametrize("beginning", ["ff", "*", "\x1b[2J"])
def test_an_id_that_is_not_there_is_an_error(file: Path, run: Run, beginning: str) -> None:
    store(file, RECORD)
    result = run("show", beginning, "--state", str(file))
    assert result.exit_code == 2
    assert "has no entry whose id begins with" in result.stderr
    assert "\x1b" not in result.stderr


def test_a_store_that_is_not_there_is_not_created(file: Path, run: Run) -> None:
    result = run("show", "01", "--state", str(file))
    assert result.exit_code == 2
    assert str(file) in result.stderr
    assert not file.exists()


def test_the_file_may_be_named_before_the_subcommand(file: Path, run: Run) -> None:
    store(file, RECORD)
    assert run("--state", str(file), "show", RECORD.id).exit_code == 0


def test_a_filter_does_not_go_with_one_record(file: Path, run: Run) -> None:
    store(file, RECORD)
    result = run("--rule", "x", "show", RECORD.id, "--state", str(file))
    assert result.exit_code == 2
    assert "--rule does not go with show" in result.stderr
