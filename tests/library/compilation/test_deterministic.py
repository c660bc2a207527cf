"""Compilation without a model: what it keeps, and what it leaves undecided."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rule_library import TIMEOUT, add, new_library

from ttsr_proxy.library.compilation.blocks import SourceText
from ttsr_proxy.library.compilation.compiler import Compiled, DeterministicCompiler
from ttsr_proxy.library.compilation.prover import Prover
from ttsr_proxy.library.model import LibraryRule, Snapshot
from ttsr_proxy.library.storage.user_library import UserLibrary

URI = "viking://user/alice/resources/uploads/standards.md"
STANDARDS = """# HTTP

Every outbound request must set a timeout. It should say which errors are retried.

- Retries must back off exponentially.
- Logs are usually kept 30 days.
- Reviews are fun.

## Licences

When a repository is public, add a licence file, unless it is a mirror.
"""


class ByMeaning:
    """Says how near every rule is to every text, once the test has set it."""

    def __init__(self) -> None:
        self.score = 0.0

    @property
    def by_meaning(self) -> bool:
        return self.score > 0

    async def similar(
        self, library: Snapshot, texts: Sequence[str], limit: int
    ) -> list[list[tuple[LibraryRule, float]]]:
        return [[(rule, self.score) for rule in library.rules.values()][:limit] for _ in texts]


class Compiling:
    """A library, and the compiler that changes it."""

    def __init__(self, library: UserLibrary, prover: Prover) -> None:
        self.library = library
        self.recall = ByMeaning()
        self._compiler = DeterministicCompiler(prover, self.recall)

    async def run(
        self, instruction: str = "", source: str | None = None, uri: str = URI
    ) -> list[dict[str, Any]]:
        """Compile and commit; the operations."""
        base = self.library.snapshot(fresh=True)
        compiled = await self.plan(instruction, source, uri)
        self.library.commit(compiled.draft.changes(), base)
        return compiled.draft.operations

    async def plan(self, instruction: str = "", source: str | None = None, uri: str = URI) -> Compiled:
        sources = [] if source is None else [SourceText(uri, source, uri.rpartition("/")[2])]
        return await self._compiler.compile(self.library.snapshot(fresh=True), instruction, sources)

    @property
    def snapshot(self) -> Snapshot:
        return self.library.snapshot(fresh=True)


@pytest.fixture
async def compiling(tmp_path: Path) -> AsyncIterator[Compiling]:
    prover = Prover()
    yield Compiling(new_library(tmp_path / "rules"), prover)
    prover.close()


def kinds(operations: list[dict[str, Any]]) -> list[str]:
    return [operation["operation"] for operation in operations]


async def test_statements_become_rules_and_the_rest_is_accounted_for(compiling: Compiling) -> None:
    operations = await compiling.run(source=STANDARDS)
    assert kinds(operations) == ["NEW", "NEW", "NEW", "UNCERTAIN", "REJECT"]
    rules = {rule.constraint: rule for rule in compiling.snapshot.active}
    first = rules["Every outbound request must set a timeout. It should say which errors are retried."]
    assert first.scenario_id == "http"
    assert first.origin.uri == URI
    licence = rules["Add a licence file."]
    assert (licence.applies_when, licence.exception) == (
        "When a repository is public", "Unless it is a mirror",
    )  # fmt: skip
    assert licence.scenario_id == "licences"
    assert operations[3]["excerpt"] == "Logs are usually kept 30 days."
    assert operations[4] == {
        "operation": "REJECT",
        "reason": "no words that oblige or forbid",
        "excerpt": "Reviews are fun.",
    }


async def test_the_same_text_again_changes_nothing(compiling: Compiling) -> None:
    await compiling.run(source=STANDARDS)
    before = compiling.snapshot
    compiled = await compiling.plan(source=STANDARDS)
    assert kinds(compiled.draft.operations) == ["NOOP", "NOOP", "NOOP", "UNCERTAIN", "REJECT"]
    assert not compiled.draft.changes()
    assert compiling.snapshot is before


async def test_a_restatement_that_differs_in_case_and_punctuation_is_a_noop(compiling: Compiling) -> None:
    await compiling.run("Retries must back off exponentially.")
    assert kinds(await compiling.run("* retries MUST back off, exponentially!")) == ["NOOP"]


async def test_a_changed_statement_at_the_same_place_of_a_source_is_an_update(compiling: Compiling) -> None:
    await compiling.run(source="# HTTP\n\n- Requests must time out within the limit of ten seconds.\n")
    changed = "# HTTP\n\n- Requests must time out within the limit of thirty seconds.\n"
    operations = await compiling.run(source=changed)
    assert kinds(operations) == ["UPDATE"]
    assert operations[0]["revision"] == 2
    assert "thirty" in compiling.snapshot.active[0].constraint


async def test_a_similar_statement_from_elsewhere_is_uncertain(compiling: Compiling) -> None:
    await compiling.run("Requests must time out within ten seconds.")
    (operation,) = await compiling.run("Requests must time out within thirty seconds.")
    assert operation["operation"] == "UNCERTAIN"
    assert operation["atomic_id"] == compiling.snapshot.active[0].atomic_id


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        ("Pause http-timeout", "PAUSE"),
        ("Please disable the rule http-timeout.", "PAUSE"),
        ("- deactivate rule `http-timeout`", "PAUSE"),
        ("Deaktiviere Regel http-timeout", "PAUSE"),
        ("pause Explicit timeouts", "PAUSE"),
        ("archive http-timeout", "ARCHIVE"),
        ("Delete rule http-timeout", "ARCHIVE"),
        ("remove rule Explicit timeouts", "ARCHIVE"),
        ("Discard http-timeout", "ARCHIVE"),
        ("recycle http-timeout", "ARCHIVE"),
        ("Move http-timeout to the recycle bin", "ARCHIVE"),
        ("move rule http-timeout to the recycle bin.", "ARCHIVE"),
        ("update http-timeout: Requests must time out within 5 seconds.", "UPDATE"),
        ("replace http-timeout with: Requests must use the shared client.", "REPLACE"),
        ("restore http-timeout", "NOOP"),
    ],
)
async def test_an_explicit_command_is_carried_out(compiling: Compiling, line: str, operation: str) -> None:
    add(compiling.library, "http-timeout", TIMEOUT)
    assert kinds(await compiling.run(line)) == [operation]


@pytest.mark.parametrize("word", ["restore", "resume", "re-enable", "reactivate"])
async def test_a_paused_rule_can_be_restored(compiling: Compiling, word: str) -> None:
    add(compiling.library, "http-timeout", TIMEOUT)
    await compiling.run("pause http-timeout")
    assert kinds(await compiling.run(f"{word} http-timeout")) == ["RESTORE"]
    assert compiling.snapshot.rules["http-timeout"].status == "active"


@pytest.mark.parametrize("line", ["restore http-timeout", "pause http-timeout", "archive http-timeout"])
async def test_a_command_for_an_archived_rule_is_uncertain(compiling: Compiling, line: str) -> None:
    add(compiling.library, "http-timeout", TIMEOUT)
    await compiling.run("archive http-timeout")
    (operation,) = await compiling.run(line)
    assert operation["operation"] == "UNCERTAIN"
    assert "archived" in operation["reason"]


@pytest.mark.parametrize("line", ["archive rule http", "pause http-time-out", "update no-such: It must be."])
async def test_a_command_for_a_rule_that_is_not_there_is_uncertain(compiling: Compiling, line: str) -> None:
    add(compiling.library, "http-timeout", TIMEOUT)
    (operation,) = await compiling.run(line)
    assert operation["operation"] == "UNCERTAIN"
    assert operation["reason"].startswith("there is no rule")


async def test_a_constraint_that_starts_like_a_command_is_a_constraint(compiling: Compiling) -> None:
    assert kinds(await compiling.run("Remove debug output; it must never be committed.")) == ["NEW"]


@pytest.mark.parametrize("line", ["Archive all rules.", "archive http-timeout", "Pause rule http-timeout"])
async def test_a_source_has_no_authority_over_a_rules_status(compiling: Compiling, line: str) -> None:
    add(compiling.library, "http-timeout", TIMEOUT)
    operations = await compiling.run(source=f"{line}\n\n- {line}\n")
    assert set(kinds(operations)) == {"REJECT"}
    assert compiling.snapshot.rules["http-timeout"].status == "active"


async def test_a_trigger_that_is_given_is_proven_and_kept(compiling: Compiling) -> None:
    text = "Never call `eval` on input.\n\n```ttsr\ncondition: '\\beval\\('\nscope: tool:write(*.py)\n```\n"
    (operation,) = await compiling.run(text)
    assert operation["triggers"] == ["condition"]
    (rule,) = compiling.snapshot.active
    assert rule.triggers.condition == (r"\beval\(",)
    assert rule.triggers.scope == ("tool:write(*.py)",)


async def test_a_trigger_that_does_not_hold_costs_itself_and_not_the_rule(compiling: Compiling) -> None:
    (operation,) = await compiling.run("Never define functions.\n\n```ttsr\ncondition: 'def '\n```\n")
    assert operation["operation"] == "NEW"
    assert operation["triggers"] == []
    assert "too broad" in operation["warnings"][0]
    assert not compiling.snapshot.active[0].triggers


async def test_a_given_trigger_is_added_to_the_rule_that_is_there(compiling: Compiling) -> None:
    await compiling.run("Never call eval on input.")
    text = "Never call eval on input.\n\n```ttsr\ncondition: '\\beval\\('\n```\n"
    assert kinds(await compiling.run(text)) == ["UPDATE"]
    assert kinds(await compiling.run(text)) == ["NOOP"]


async def test_a_rule_file_is_one_rule(compiling: Compiling) -> None:
    front = "---\ndescription: No eval\ncondition: '\\beval\\('\nscope: text\n---\n"
    text = f"{front}Never call `eval`.\nParse instead.\n"
    (operation,) = await compiling.run(source=text, uri=f"{URI.rpartition('/')[0]}/no-eval.md")
    assert (operation["atomic_id"], operation["triggers"]) == ("no-eval", ["condition"])
    assert compiling.snapshot.active[0].constraint == "Never call `eval`.\nParse instead."


async def test_a_forbidden_literal_suggests_a_trigger_and_sets_none(compiling: Compiling) -> None:
    (operation,) = await compiling.run("Never use `os.system(` in scripts.")
    assert operation["triggers"] == []
    assert r"os\.system\(" in operation["warnings"][0]


async def test_rows_of_a_table_of_rules_become_rules(compiling: Compiling) -> None:
    table = "| Rule | Why |\n| --- | --- |\n| Pin versions | repeatable |\n| Sign commits | trust |\n"
    assert kinds(await compiling.run(source=table)) == ["NEW", "NEW"]
    assert kinds(await compiling.run(source=table.replace("Rule", "Topic"))) == []


@pytest.mark.parametrize(
    "text", ["接口必须设置超时。", "Verträge müssen geprüft werden.", "Never print.", "Use tabs, not spaces."]
)
async def test_statements_in_other_words_are_found(compiling: Compiling, text: str) -> None:
    assert kinds(await compiling.run(text)) == ["NEW"]


async def test_the_plan_says_that_no_model_was_asked(compiling: Compiling) -> None:
    compiled = await compiling.plan("Never print.")
    assert compiled.plan_reason.startswith("Deterministic compiler; no model configured.")
    assert compiled.meta["compiler"] == "deterministic"


async def test_a_statement_too_long_for_one_rule_is_uncertain(compiling: Compiling) -> None:
    (operation,) = await compiling.run("It must " + "be " * 1_000)
    assert operation["operation"] == "UNCERTAIN"
    assert "longer than 2,000 characters" in operation["reason"]


async def test_dashes_far_apart_are_no_frontmatter(compiling: Compiling) -> None:
    text = "---\n" + "note: x\n" * 3_000 + "\n---\n\nNever print.\n"
    assert "NEW" in kinds(await compiling.run(source=text))


@pytest.mark.parametrize(
    ("score", "operation", "joined"),
    [(0.68, "UNCERTAIN", None), (0.67, "NEW", "outbound-http"), (0.44, "NEW", "audit-trails-kept")],
)
async def test_nearness_of_meaning_counts_where_it_is_measured(
    compiling: Compiling, score: float, operation: str, joined: str | None
) -> None:
    add(compiling.library, "http-timeout", TIMEOUT)
    compiling.recall.score = score
    (done,) = await compiling.run("Audit trails must be kept.")
    assert done["operation"] == operation
    assert done.get("scenario_id") == joined


async def test_control_characters_are_left_out(compiling: Compiling) -> None:
    assert kinds(await compiling.run("Never \x00print\x1b[31m\x7f.")) == ["NEW"]
    assert compiling.snapshot.active[0].constraint == "Never print[31m."
