"""The nine operations."""

from __future__ import annotations

from pathlib import Path

import pytest
from rule_library import HTTP, NOW, TIMEOUT, add, new_library, text_of

from ttsr_proxy.library.drafting import Draft
from ttsr_proxy.library.errors import Exhausted
from ttsr_proxy.library.model import LibraryRule, Scenario, Snapshot
from ttsr_proxy.library.storage.user_library import UserLibrary

LATER = "2026-02-02T00:00:00Z"


@pytest.fixture
def library(tmp_path: Path) -> UserLibrary:
    library = new_library(tmp_path / "rules")
    add(library, "http-timeout", TIMEOUT)
    return library


def draft(library: UserLibrary) -> tuple[Draft, Snapshot]:
    base = library.snapshot(fresh=True)
    return Draft(base, LATER, "test"), base


def test_new_makes_an_active_rule_and_its_scenario(tmp_path: Path) -> None:
    library = new_library(tmp_path / "rules")
    snapshot = add(library, "http-timeout", TIMEOUT)
    rule = snapshot.rules["http-timeout"]
    assert (rule.status, rule.revision, rule.created_at, rule.scenario_id) == (
        "active",
        1,
        NOW,
        "outbound-http",
    )
    assert snapshot.scenarios == {"outbound-http": HTTP}
    card = (library.folder / "outbound-http/abstract.md").read_text()
    assert "# Outbound HTTP\n\nCalling remote services.\n\n- `http-timeout`: Explicit timeouts" in card


def test_new_reports_what_it_wrote(tmp_path: Path) -> None:
    made = Draft(Snapshot("alice"), NOW, "test")
    made.new("http-timeout", TIMEOUT, HTTP)
    root = "viking://user/alice/memories/rules/outbound-http"
    assert made.operations == [
        {
            "operation": "NEW",
            "atomic_id": "http-timeout",
            "scenario_id": "outbound-http",
            "revision": 1,
            "uri": f"{root}/http-timeout.md",
            "triggers": ["condition"],
            "warnings": [],
        }
    ]
    assert made.written_uris == [f"{root}/abstract.md", f"{root}/http-timeout.md"]
    assert made.counts() == {"created": 1, "updated": 0, "archived": 0}


@pytest.mark.parametrize("status", ["active", "paused"])
def test_update_keeps_identity_scenario_and_status(library: UserLibrary, status: str) -> None:
    if status == "paused":
        first, base = draft(library)
        first.set_status("PAUSE", "http-timeout")
        library.commit(first.changes(), base)
    change, base = draft(library)
    old = base.rules["http-timeout"]
    change.update("http-timeout", text_of("Every request must time out within 5 seconds."))
    rule = library.commit(change.changes(), base).rules["http-timeout"]
    assert (rule.atomic_id, rule.scenario_id, rule.status) == ("http-timeout", "outbound-http", status)
    assert (rule.revision, rule.created_at, rule.updated_at) == (2, NOW, LATER)
    assert rule.constraint == "Every request must time out within 5 seconds."
    assert change.operations[0]["previous_revision"] == 1
    history = library.folder / ".state/history/http-timeout/0001.md"
    assert history.read_text() == old.content


def test_an_update_without_a_trigger_keeps_the_one_that_is_there_and_says_so(library: UserLibrary) -> None:
    change, base = draft(library)
    change.update("http-timeout", text_of("Every request must time out within 5 seconds."))
    rule = library.commit(change.changes(), base).rules["http-timeout"]
    assert rule.triggers == TIMEOUT.triggers
    assert change.operations[0]["warnings"] == ["the trigger of revision 1 is kept; check that it still fits"]


def test_replace_gives_a_new_identity_and_archives_the_old(library: UserLibrary) -> None:
    change, base = draft(library)
    change.replace("http-timeout", "http-timeout", text_of("Requests must use the shared client."))
    after = library.commit(change.changes(), base)
    assert list(after.rules) == ["http-timeout-2"]
    assert after.archived == {"http-timeout"}
    assert after.rules["http-timeout-2"].scenario_id == "outbound-http"
    assert change.operations[0]["replaced"] == {
        "atomic_id": "http-timeout", "revision": 1, "status": "archived",
    }  # fmt: skip
    assert change.counts() == {"created": 1, "updated": 0, "archived": 1}
    kept = (library.folder / ".state/archive/http-timeout@0001.md").read_text()
    assert "status: archived" in kept
    assert "replaced by http-timeout-2" in kept


def test_pause_and_restore_change_the_status_and_nothing_else(library: UserLibrary) -> None:
    before = library.snapshot(fresh=True).rules["http-timeout"]
    change, base = draft(library)
    change.set_status("PAUSE", "http-timeout")
    after = library.commit(change.changes(), base)
    paused = after.rules["http-timeout"]
    assert (paused.status, paused.revision, paused.constraint) == ("paused", 1, before.constraint)
    assert after.active == ()
    assert "enabled: false" in paused.content
    change, base = draft(library)
    change.set_status("RESTORE", "http-timeout")
    restored = library.commit(change.changes(), base).rules["http-timeout"]
    assert restored.status == "active"
    assert "enabled" not in restored.content
    assert change.operations[0]["previous_status"] == "paused"


@pytest.mark.parametrize(("operation", "status"), [("PAUSE", "paused"), ("RESTORE", "active")])
def test_a_status_that_holds_already_is_a_noop(library: UserLibrary, operation: str, status: str) -> None:
    change, _ = draft(library)
    if status == "paused":
        change.set_status("PAUSE", "http-timeout")
    change.set_status(operation, "http-timeout")  # type: ignore[arg-type]
    assert change.operations[-1]["operation"] == "NOOP"
    assert change.operations[-1]["reason"] == f"the rule is {status} already"


def test_archive_takes_the_rule_out_and_keeps_its_file(library: UserLibrary) -> None:
    change, base = draft(library)
    change.archive("http-timeout", "no longer wanted")
    after = library.commit(change.changes(), base)
    assert (dict(after.rules), dict(after.scenarios), after.archived) == ({}, {}, {"http-timeout"})
    assert not (library.folder / "outbound-http").exists()
    assert (library.folder / ".state/archive/http-timeout@0001.md").exists()
    assert change.written_uris == []


@pytest.mark.parametrize("operation", ["PAUSE", "RESTORE", "ARCHIVE"])
def test_an_archived_rule_is_out_of_reach(library: UserLibrary, operation: str) -> None:
    change, base = draft(library)
    change.archive("http-timeout", "")
    library.commit(change.changes(), base)
    change, _ = draft(library)
    if operation == "ARCHIVE":
        change.archive("http-timeout", "")
    else:
        change.set_status(operation, "http-timeout")  # type: ignore[arg-type]
    assert change.operations == [
        {
            "operation": "UNCERTAIN",
            "reason": "rule http-timeout is archived; archived rules cannot be brought back",
            "atomic_id": "http-timeout",
        }
    ]
    assert not change.changes()


def test_the_id_of_an_archived_rule_is_never_given_again(library: UserLibrary) -> None:
    change, base = draft(library)
    change.archive("http-timeout", "")
    library.commit(change.changes(), base)
    assert "http-timeout-2" in add(library, "http-timeout", TIMEOUT).rules


def test_a_rule_cannot_take_the_name_of_the_card(tmp_path: Path) -> None:
    assert list(add(new_library(tmp_path / "rules"), "abstract", TIMEOUT).rules) == ["abstract-2"]


def test_noop_uncertain_and_reject_write_nothing(library: UserLibrary) -> None:
    change, _ = draft(library)
    change.noop("http-timeout", "covered by revision 1")
    change.uncertain("when does it bind?", excerpt="usually")
    change.reject("a wish", excerpt="be nice")
    assert [operation["operation"] for operation in change.operations] == ["NOOP", "UNCERTAIN", "REJECT"]
    assert not change.changes()
    assert change.written_uris == []


def test_operations_see_what_those_before_them_did(library: UserLibrary) -> None:
    change, base = draft(library)
    change.update("http-timeout", text_of("Requests must time out within 5 seconds."))
    change.set_status("PAUSE", "http-timeout")
    change.update("http-timeout", text_of("Requests must time out within 3 seconds."))
    rule = library.commit(change.changes(), base).rules["http-timeout"]
    assert (rule.revision, rule.status) == (3, "paused")
    history = library.folder / ".state/history/http-timeout"
    assert "within 5 seconds" in (history / "0002.md").read_text()


def test_keys_added_by_hand_survive_an_update(library: UserLibrary) -> None:
    path = library.folder / "outbound-http/http-timeout.md"
    path.write_text(path.read_text().replace("title:", "repeatGap: 3\nreminder: 'Set a timeout.'\ntitle:"))
    change, base = draft(library)
    change.update("http-timeout", text_of("Requests must time out."))
    rule = library.commit(change.changes(), base).rules["http-timeout"]
    assert rule.extra == {"repeatGap": 3, "reminder": "Set a timeout."}


def test_a_full_library_takes_no_rule_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttsr_proxy.library.drafting.MAX_RULES", 1)
    rule = LibraryRule("a", "s", "c", "t")
    full = Draft(Snapshot("alice", rules={"a": rule}, scenarios={"s": Scenario("s", "S")}), NOW, "test")
    with pytest.raises(Exhausted, match="full"):
        full.new("b", TIMEOUT, HTTP)
