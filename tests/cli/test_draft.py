"""`ttsr-proxy rules draft`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from planning_model import new_rule, plan, scripted_model

from ttsr_proxy.cli import main
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.redis import RedisInterruptStore
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.redis import RedisUrl
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.compiled import compile_rule

RECORD = InterruptRecord(
    id="r0", time=1_700_000_000.0, project="default", conversation="c1", request="q1", turn=0, attempt=1,
    client="claude-code", agent="main", model="m", protocol="anthropic", rule="other", rule_path="other.md",
    trigger="regex", pattern="x", source="tool", tool="Write", paths=("src/app.py",),
    matched="os.system(command)", before="    ", after="\n", violation="import os\nos.system(command)\n",
    action="reminded", outcome="clean",
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose log has one entry."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    async def fill() -> None:
        store = SqliteInterruptStore(tmp_path / "s.db")
        await store.add([RECORD])
        await store.close()

    asyncio.run(fill())
    return tmp_path


def draft(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(main, ["rules", "draft", *arguments, "--state", "s.db"], **options)


def test_a_log_entry_becomes_a_rule_that_finds_it(place: Path) -> None:
    done = draft("Use subprocess.run instead.", "--from-log", "r0")
    assert done.exit_code == 0, done.stderr
    assert "it matches the recorded output" in done.stderr
    rule = Rule.from_markdown("x.md", done.stdout)
    assert rule.warnings == ()
    assert rule.condition == (r"os\.system\(command\)",)
    assert rule.scope == ("tool:edit(*.py)", "tool:write(*.py)")
    assert rule.content == "Use subprocess.run instead."
    compile_rule(rule)


@pytest.mark.redis
def test_a_log_entry_on_redis_becomes_a_rule(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def fill() -> None:
        store = RedisInterruptStore(RedisUrl(redis_url))
        await store.add([RECORD])
        await store.close()

    asyncio.run(fill())
    environ = {"TTSR_STATE": redis_url, "TTSR_LIBRARY_ROOT": str(tmp_path / "library")}
    arguments = ["rules", "draft", "Use subprocess.run instead.", "--from-log", "r0"]
    done = CliRunner(env=environ).invoke(main, arguments)
    assert "it matches the recorded output" in done.stderr


def test_a_complaint_with_something_literal_becomes_a_rule(place: Path) -> None:
    done = draft("Stop writing `console.log(` everywhere")
    assert Rule.from_markdown("x.md", done.stdout).condition == (r"console\.log\(",)


def test_a_complaint_without_anything_literal_needs_a_model(place: Path) -> None:
    done = draft("The tone is wrong")
    assert done.exit_code == 2
    assert "put it in backticks" in done.stderr


def test_a_pattern_that_is_too_broad_is_left_out_and_told(place: Path) -> None:
    done = draft("Do not write `return `, ever")
    assert "condition" not in done.stdout
    assert "too broad" in done.stderr


def test_the_draft_is_saved_only_after_asking_and_never_over_a_file(place: Path) -> None:
    arguments = ("--from-log", "r0", "--save", "rules")
    assert draft(*arguments, input="n\n").exit_code == 0
    assert not (place / "rules").exists()
    assert draft(*arguments, "--yes").exit_code == 0
    (path,) = (place / "rules").iterdir()
    assert Rule.from_markdown(path.name, path.read_text()).condition
    done = draft(*arguments, "--yes")
    assert done.exit_code == 2
    assert "exists already" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "part"), [((), "give a COMPLAINT"), (("--from-log", "none"), "has no entry 'none'")]
)
def test_what_cannot_be_drafted_is_told(place: Path, arguments: tuple[str, ...], part: str) -> None:
    done = draft(*arguments)
    assert done.exit_code == 2
    assert part in done.stderr


async def test_a_model_writes_the_rule_from_the_recorded_output(tmp_path: Path) -> None:
    trigger = {
        "kind": "condition",
        "pattern": r"\bos\.system\(",
        "scope": ["tool:write(*.py)"],
        "positive_examples": ["os.system(x)"],
        "negative_examples": ["subprocess.run(x)"],
    }
    async with scripted_model() as server:
        server.script(plan(new_rule("Never start shells this way.", triggers=[trigger])))
        (tmp_path / "ttsr-proxy.yaml").write_text(
            f"library:\n  compiler: {{kind: openai, model: m, baseUrl: '{server.url}'}}\n"
        )

        def run() -> Result:
            arguments = ["rules", "draft", "Never start shells this way.", "--project", str(tmp_path)]
            return CliRunner().invoke(main, [*arguments, "--state", str(tmp_path / "s.db")])

        done = await asyncio.to_thread(run)
    assert done.exit_code == 0, done.stderr
    assert Rule.from_markdown("x.md", done.stdout).condition == (r"\bos\.system\(",)
