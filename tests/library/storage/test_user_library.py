"""A user's library on disk: commits, crashes, hand edits, several writers."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock
from rule_library import HTTP, NOW, TIMEOUT, add, new_library, text_of

from ttsr_proxy.library.drafting import Draft
from ttsr_proxy.library.errors import InvalidArgument, LibraryBusy, NotFound, UnreadableFile
from ttsr_proxy.library.model import Scenario
from ttsr_proxy.library.storage import durable, user_library
from ttsr_proxy.library.storage.libraries import Libraries
from ttsr_proxy.library.storage.user_library import LibraryChanged, UserLibrary
from ttsr_proxy.library.uris import RulesPlace


class Crash(BaseException):
    """Not an Exception, so that nothing tidies up after it."""


def files(folder: Path) -> dict[str, str]:
    """What the library holds, the journal and the lock left out."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*.*"))
        if path.is_file() and "txn" not in path.parts
    }


def change_everything(library: UserLibrary) -> None:
    base = library.snapshot(fresh=True)
    draft = Draft(base, NOW, "test")
    draft.update("one", text_of("One must be changed."))
    draft.replace("two", "two-new", text_of("Two must be replaced."))
    draft.set_status("PAUSE", "three")
    draft.archive("four", "not wanted")
    draft.new("five", text_of("Five must be new."), Scenario("fresh", "Fresh"))
    library.commit(draft.changes(), base)


STEPS = ("open", "fsync", "replace", "mkdir", "unlink", "rmdir")


def crash_at(
    monkeypatch: pytest.MonkeyPatch, step: int, *, after: bool, names: tuple[str, ...] = STEPS
) -> Callable[[], int]:
    """Crash before or after the numbered call to the system; the result tells how many there were."""
    count = 0

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == step and not after:
                raise Crash
            result = original(*args, **kwargs)
            if count == step:
                raise Crash
            return result

        return call

    steps = {name: wrapped(getattr(os, name)) for name in names}
    monkeypatch.setattr(durable, "os", SimpleNamespace(**{**vars(os), **steps}))
    return lambda: count


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_step_of_a_commit_leaves_all_old_or_all_new(tmp_path: Path, *, after: bool) -> None:
    start = tmp_path / "start"
    library = new_library(start)
    for name in ("one", "two", "three", "four"):
        scenario = Scenario("lone", "Lone") if name == "four" else HTTP
        add(library, name, text_of(f"Rule {name} must hold."), scenario)
    old = files(start)
    changed = tmp_path / "changed"
    shutil.copytree(start, changed)
    change_everything(new_library(changed))
    new = files(changed)
    assert new != old
    outcomes = []
    for step in range(1, 1000):
        folder = tmp_path / str(step)
        shutil.copytree(start, folder)
        with pytest.MonkeyPatch.context() as patch:
            calls = crash_at(patch, step, after=after)
            with contextlib.suppress(Crash):
                change_everything(new_library(folder))
            if calls() < step:
                break
        recovered = new_library(folder).snapshot()
        found = files(folder)
        assert found in (old, new), f"step {step}"
        assert ("five" in recovered.rules) == (found == new)
        assert not any((folder / ".state/txn").glob("*.json"))
        outcomes.append(found == new)
        shutil.rmtree(folder)
    assert len(outcomes) > 20
    assert {*outcomes} == {False, True}


def test_what_a_crash_left_behind_is_gone_after_the_next_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "rules"
    add(new_library(folder), "one", TIMEOUT)
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, 1, after=False, names=("replace",))
        with pytest.raises(Crash):
            add(new_library(folder), "two", TIMEOUT)
    assert any((folder / ".state/txn").iterdir())
    after = add(new_library(folder), "three", TIMEOUT)
    assert list(after.rules) == ["one", "three"]
    assert not any((folder / ".state/txn").iterdir())


def test_a_snapshot_is_the_same_object_until_something_changes(tmp_path: Path) -> None:
    library = new_library(tmp_path / "rules")
    first = add(library, "one", TIMEOUT)
    assert library.snapshot(fresh=True) is first
    second = add(library, "two", TIMEOUT)
    assert second is not first
    assert (first.generation, second.generation) == (1, 2)
    assert list(first.rules) == ["one"]


def test_hand_edits_are_picked_up(tmp_path: Path) -> None:
    library = new_library(tmp_path / "rules")
    add(library, "one", TIMEOUT)
    path = library.folder / "outbound-http/one.md"
    path.write_text(path.read_text().replace("must set", "has to set"))
    assert "has to set" in library.snapshot(fresh=True).rules["one"].constraint
    (library.folder / "habits").mkdir()
    (library.folder / "habits/by-hand.md").write_text("Never do that.\n")
    snapshot = library.snapshot(fresh=True)
    assert snapshot.rules["by-hand"].constraint == "Never do that."
    assert snapshot.scenarios["habits"].title == "Habits"
    path.unlink()
    assert list(library.snapshot(fresh=True).rules) == ["by-hand"]


def test_a_second_edit_within_a_clock_tick_is_seen_too(tmp_path: Path) -> None:
    library = new_library(tmp_path / "rules")
    add(library, "one", TIMEOUT)
    path = library.folder / "outbound-http/one.md"
    stamp = path.stat()
    for word in ("aaaa", "bbbb", "cccc"):
        path.write_text(f"---\natomic_id: one\n---\n{word}\n")
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        assert library.snapshot(fresh=True).rules["one"].constraint == word


def test_the_folder_is_looked_at_again_after_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(user_library.time, "monotonic", lambda: now)
    library = new_library(tmp_path / "rules")
    first = add(library, "one", TIMEOUT)
    library.snapshot(fresh=True)
    add(new_library(library.folder), "two", TIMEOUT)
    assert library.snapshot() is first
    now += user_library.CHECK_SECONDS
    assert list(library.snapshot().rules) == ["one", "two"]


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"\xff\xfe", "is not UTF-8"), (b"---\nstatus: x\n---\nDo.\n", "`status` must be")],
)
def test_a_file_that_is_no_rule_fails_the_whole_snapshot(tmp_path: Path, content: bytes, part: str) -> None:
    library = new_library(tmp_path / "rules")
    add(library, "one", TIMEOUT)
    (library.folder / "outbound-http/bad.md").write_bytes(content)
    with pytest.raises(UnreadableFile, match=part) as caught:
        library.snapshot(fresh=True)
    uri = "viking://user/alice/memories/rules/outbound-http/bad.md"
    assert caught.value.details == {"uri": uri}
    (library.folder / "outbound-http/bad.md").unlink()
    assert list(library.snapshot(fresh=True).rules) == ["one"]


def test_an_id_that_stands_in_two_scenarios_is_an_error(tmp_path: Path) -> None:
    library = new_library(tmp_path / "rules")
    for name in ("a", "b"):
        (library.folder / name).mkdir(parents=True)
        (library.folder / name / "same.md").write_text("Do not.\n")
    with pytest.raises(UnreadableFile, match="ids are unique"):
        library.snapshot()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_links_are_not_followed(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "secret.md").write_text("A secret.\n")
    library = new_library(tmp_path / "rules")
    add(library, "one", TIMEOUT)
    if kind == "file":
        (library.folder / "outbound-http/secret.md").symlink_to(secret / "secret.md")
        place = RulesPlace("outbound-http", "secret.md")
    else:
        (library.folder / "linked").symlink_to(secret)
        place = RulesPlace("linked", "secret.md")
    with pytest.raises(UnreadableFile):
        library.snapshot(fresh=True)
    with pytest.raises(UnreadableFile):
        library.text(place)


def test_files_and_folders_are_private_to_their_owner(tmp_path: Path) -> None:
    library = Libraries(tmp_path / "library").of("alice")
    add(library, "one", TIMEOUT)
    change_mode = 0o077
    for path in (tmp_path / "library").rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & change_mode, path


def test_a_change_planned_on_an_older_library_is_refused(tmp_path: Path) -> None:
    library = new_library(tmp_path / "rules")
    base = library.snapshot()
    draft = Draft(base, NOW, "test")
    draft.new("one", TIMEOUT, HTTP)
    add(new_library(library.folder), "other", TIMEOUT)
    with pytest.raises(LibraryChanged):
        library.commit(draft.changes(), base)
    assert list(library.snapshot(fresh=True).rules) == ["other"]


def test_a_library_that_stays_locked_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_library, "LOCK_SECONDS", 0.0)
    library = new_library(tmp_path / "rules")
    add(library, "one", TIMEOUT)
    with FileLock(library.folder / ".state/lock"), pytest.raises(LibraryBusy, match="locked"):
        add(library, "two", TIMEOUT)


def _add_many(folder: Path, name: str) -> None:
    library = UserLibrary(folder, "alice")
    done = 0
    while done < 5:
        base = library.snapshot(fresh=True)
        draft = Draft(base, NOW, "test")
        draft.new(f"{name}-{done}", TIMEOUT, HTTP)
        try:
            library.commit(draft.changes(), base)
        except LibraryChanged:
            continue
        done += 1


def test_two_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_add_many, args=(folder, name)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    snapshot = new_library(folder).snapshot()
    assert sorted(snapshot.rules) == sorted(f"{name}-{number}" for name in "ab" for number in range(5))
    assert snapshot.generation == 10


def test_text_is_the_file_verbatim(tmp_path: Path) -> None:
    library = new_library(tmp_path / "rules")
    rule = add(library, "one", TIMEOUT).rules["one"]
    assert library.text(RulesPlace("outbound-http", "one.md")) == rule.content
    with pytest.raises(NotFound):
        library.text(RulesPlace("outbound-http", "two.md"))
    with pytest.raises(NotFound):
        library.text(RulesPlace("outbound-http"))


def test_users_have_libraries_of_their_own(tmp_path: Path) -> None:
    libraries = Libraries(tmp_path)
    add(libraries.of("alice"), "same", text_of("Alice must do this."))
    add(libraries.of("bob"), "same", text_of("Bob must do that."))
    assert libraries.of("alice").snapshot().rules["same"].constraint == "Alice must do this."
    assert libraries.of("bob").snapshot().rules["same"].constraint == "Bob must do that."


@pytest.mark.parametrize("user", ["", "..", "a/b", "a@b@c", "x" * 256, "ALICE"])
def test_names_that_cannot_be_users_are_refused(tmp_path: Path, user: str) -> None:
    libraries = Libraries(tmp_path)
    add(libraries.of("alice"), "one", TIMEOUT)
    with pytest.raises(InvalidArgument):
        Libraries(tmp_path).of(user)
