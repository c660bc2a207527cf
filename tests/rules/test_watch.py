from __future__ import annotations

import os
from dataclasses import replace

from ttsr_proxy.rules import watch
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.watch import RuleSource, fingerprint_of


def names(source):
    return [found.rule.name for found in source.current().found]


def test_rules_in_directories_that_did_not_exist_at_the_start_are_noticed(directories, project, write):
    source = RuleSource(directories)
    assert names(source) == []
    write(project / ".omp/rules/x.md")
    assert names(source) == ["x"]


def test_a_file_replaced_by_its_editor_is_noticed(directories, project, write):
    path = write(project / ".omp/rules/x.md", "one")
    source = RuleSource(directories)
    source.current()
    os.replace(write(project / "draft", "two"), path)
    assert source.current().found[0].rule.content == "two"


def test_an_edit_of_the_same_size_within_one_clock_tick_is_noticed(directories, project, write):
    path = write(project / ".omp/rules/x.md", "one")
    source = RuleSource(directories)
    source.current()
    times = path.stat()
    path.write_text("two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert source.current().found[0].rule.content == "two"


def test_deleted_files_and_a_repository_made_later_are_noticed(directories, project, home, write):
    write(project / ".omp/rules/x.md").unlink()
    source = RuleSource(directories)
    assert names(source) == []
    write(home / "repo/.agents/rules/outer.md")
    assert names(source) == ["outer"]
    (project / ".git").mkdir()
    assert names(source) == []


def test_a_new_file_deep_in_a_mounted_directory_is_noticed(directories, tmp_path, write):
    (tmp_path / "rules/deep").mkdir(parents=True)
    source = RuleSource(replace(directories, mounted=(tmp_path / "rules",)))
    assert names(source) == []
    write(tmp_path / "rules/deep/x.md")
    assert names(source) == ["x"]


def test_a_link_that_points_elsewhere_is_noticed(directories, project, tmp_path, write):
    write(tmp_path / "one/x.md")
    write(tmp_path / "two/y.md")
    link = project / ".omp/rules"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "one")
    source = RuleSource(directories)
    assert names(source) == ["x"]
    link.unlink()
    link.symlink_to(tmp_path / "two")
    assert names(source) == ["y"]


def test_a_renamed_file_is_noticed(directories, project, write):
    path = write(project / ".omp/rules/x.md")
    source = RuleSource(directories)
    assert names(source) == ["x"]
    path.rename(path.with_name("y.md"))
    assert names(source) == ["y"]


def test_nothing_is_read_again_while_nothing_changes(directories, project, write, monkeypatch):
    path = write(project / ".omp/rules/x.md")
    monkeypatch.setattr(watch.time, "time_ns", lambda: path.stat().st_ctime_ns + 10**9)
    source = RuleSource(directories)
    first = source.current()
    monkeypatch.setattr(watch, "discover", None)
    assert source.current() is first


def test_a_change_that_changes_no_rule_keeps_the_same_discovery(directories, project, write):
    path = write(project / ".omp/rules/x.md")
    source = RuleSource(directories)
    first = source.current()
    path.touch()
    assert source.current() is first


def test_rules_that_are_no_files_count_too(directories):
    source = RuleSource(directories)
    assert source.current().found == ()
    assert [found.rule.name for found in source.current([("library", Rule("a"))]).found] == ["a"]
    assert source.current().found == ()


def test_places_that_do_not_exist_yet_are_watched(directories, project):
    assert fingerprint_of(directories).states[str(project / ".omp/rules")] is None


def test_a_nearer_place_that_appears_is_noticed(directories, project, home, write):
    """Which of several places counts depends on which of them exist."""
    (home / "repo/.git").mkdir(parents=True, exist_ok=True)
    write(home / "repo/.clinerules/far.md")
    source = RuleSource(directories)
    assert names(source) == ["far"]
    write(project / ".clinerules", "near")
    assert names(source) == ["clinerules"]
    (project / ".clinerules").unlink()
    write(project / ".clinerules/near.md")
    assert names(source) == ["near"]


def test_what_happens_inside_the_repository_is_no_change(directories, project, write):
    write(project / ".omp/rules/x.md")
    (project / ".git").mkdir(exist_ok=True)
    before = fingerprint_of(directories)
    write(project / ".git/index")
    assert before.holds()


def test_of_the_rules_that_come_with_the_program_only_their_folder_is_looked_at(directories, tmp_path, write):
    path = write(tmp_path / "shipped/x.md")
    shipped = replace(directories, shipped=tmp_path / "shipped")
    assert str(path) not in fingerprint_of(shipped).states
    source = RuleSource(shipped)
    assert names(source) == ["x"]
    write(tmp_path / "shipped/y.md")
    assert names(source) == ["x", "y"]
