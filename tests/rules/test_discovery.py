from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ttsr_proxy.rules.discovery import LARGEST_FILE, discover
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import PROVIDERS, RuleDirectories, to_repository_root
from ttsr_proxy.rules.shipped import shipped_rules_directory


def names(directories, provider=None, **options):
    found = discover(directories, **options).found
    return [each.rule.name for each in found if provider in (None, each.provider)]


def test_providers_are_listed_by_descending_priority():
    assert [(provider.name, provider.priority) for provider in PROVIDERS] == [
        ("native", 100),
        ("mounted", 95),
        ("omp-plugins", 90),
        ("agents", 70),
        ("library", 60),
        ("cursor", 50),
        ("windsurf", 50),
        ("cline", 40),
        ("builtin-defaults", 1),
    ]


class TestNative:
    def test_project_then_user_then_the_two_sticky_files(self, directories, project, home, write):
        write(project / ".omp/rules/p.md")
        write(home / ".omp/agent/rules/u.mdc")
        write(home / ".omp/agent/RULES.md", "user")
        write(project / ".omp/RULES.md", "project")
        found = discover(directories).found
        assert [each.rule.name for each in found] == ["p", "u", "RULES", "RULES"]
        assert found[3].shadowed_by is found[2]

    def test_the_nearest_rules_file_up_to_the_repository_root_always_applies(self, directories, home, write):
        write(home / "repo/.omp/RULES.md", "---\nalwaysApply: false\n---\nroot")
        near = write(home / "repo/sub/.omp/RULES.md", "near")
        (rule,) = (each.rule for each in discover(directories).found)
        assert (rule.name, rule.always_apply, rule.path) == ("RULES", True, str(near))

    def test_rules_above_the_repository_root_are_not_read(self, directories, home, write):
        write(home / ".omp/RULES.md")
        write(home / "repo/.omp/rules/above-project.md")
        assert names(directories) == []


class TestWalks:
    def test_a_git_file_ends_the_walk_as_in_worktrees_and_submodules(self, directories, project, home, write):
        write(project.parent / ".git", "gitdir: elsewhere")
        assert to_repository_root(project) == (project, project.parent)
        write(home / "repo/.agents/rules/outer.md")
        write(project.parent / ".agents/rules/inner.md")
        assert names(directories) == ["inner"]

    def test_without_a_repository_only_the_project_itself_is_read(self, home, write):
        project = home / "plain" / "app"
        write(project / ".agents/rules/a.md")
        write(home / "plain/.agents/rules/b.md")
        assert names(RuleDirectories(project, home, shipped=None)) == ["a"]

    def test_agents_reads_each_ancestor_and_then_home_once(self, directories, project, home, write):
        for path in (project / ".agent", project / ".agents", home / "repo/.agents", home / ".agents"):
            write(path / "rules" / f"{path.parent.name}{path.name}.md")
        expected = ["app.agent", "app.agents", "repo.agents", "home.agents"]
        assert names(directories, "agents") == expected
        (home / "repo/.git").rmdir()
        (home / ".git").mkdir()
        assert names(directories, "agents") == expected


class TestOtherTools:
    def test_cursor_reads_user_then_project(self, directories, project, home, write):
        write(project / ".cursor/rules/p.mdc")
        write(home / ".cursor/rules/u.md")
        assert names(directories, "cursor") == ["u", "p"]

    def test_windsurf_reads_its_global_file_then_md_files_of_the_project(
        self, directories, project, home, write
    ):
        write(project / ".windsurf/rules/w.md")
        write(project / ".windsurf/rules/not.mdc")
        write(home / ".codeium/windsurf/memories/global_rules.md", "---\ntrigger: always_on\n---\nx")
        assert names(directories, "windsurf") == ["global_rules", "w"]

    def test_cline_reads_the_nearest_directory(self, directories, project, home, write):
        write(home / "repo/.clinerules/far.md")
        write(home / "repo/sub/.clinerules/near.md")
        write(home / "repo/sub/.clinerules/other.mdc")
        assert names(directories, "cline") == ["near"]

    def test_cline_reads_a_single_file_as_clinerules(self, directories, project, write):
        write(project / ".clinerules", "Be kind")
        (found,) = discover(directories).found
        assert (found.rule.name, found.rule.content) == ("clinerules", "Be kind")

    def test_cline_without_a_repository_walks_to_just_below_home(self, directories, home, write):
        (home / "repo/.git").rmdir()
        write(home / ".clinerules/home.md")
        assert names(directories, "cline") == []
        write(home / "repo/.clinerules/below.md")
        assert names(directories, "cline") == ["below"]

    def test_cline_outside_home_without_a_repository_reads_the_project_only(self, tmp_path, home, write):
        write(tmp_path / "other/.clinerules/a.md")
        assert names(RuleDirectories(tmp_path / "other/app", home, shipped=None)) == []


class TestFolders:
    def test_files_come_in_name_order_without_hidden_files_and_subfolders(self, directories, project, write):
        for name in ("b.md", "a.mdc", "C.md", ".hidden.md", "sub/x.md", "notes.txt", "folder.md/y.md"):
            write(project / ".cursor/rules" / name)
        assert names(directories) == ["C", "a", "b"]

    def test_mounted_directories_are_read_recursively_in_order(self, directories, tmp_path, write):
        for name in ("one/z.md", "two/b/x.md", "two/a.md", "two/.git/hidden.md"):
            write(tmp_path / name)
        mounted = replace(directories, mounted=(tmp_path / "one", tmp_path / "two"))
        assert names(mounted) == ["z", "a", "x"]

    def test_links_in_a_circle_and_links_out_of_the_directory_are_not_followed(
        self, directories, tmp_path, write
    ):
        write(tmp_path / "rules/a/b/x.md")
        write(tmp_path / "outside/secret.md")
        (tmp_path / "rules/a/loop").symlink_to(tmp_path / "rules", target_is_directory=True)
        (tmp_path / "rules/self").symlink_to("self")
        (tmp_path / "rules/out").symlink_to(tmp_path / "outside", target_is_directory=True)
        found = discover(replace(directories, mounted=(tmp_path / "rules",)))
        assert [each.rule.name for each in found.found] == ["x"]
        (problem,) = found.problems
        assert "out" in problem.path
        assert "not followed" in problem.message

    def test_a_link_to_a_file_is_read(self, directories, project, tmp_path, write):
        write(tmp_path / "shared/a.md")
        (project / ".cursor/rules").mkdir(parents=True)
        (project / ".cursor/rules/linked.md").symlink_to(tmp_path / "shared/a.md")
        assert names(directories) == ["linked"]

    def test_a_directory_somebody_asked_for_must_exist(self, directories, tmp_path):
        asked = replace(directories, mounted=(tmp_path / "no",), extensions=(tmp_path / "none",))
        assert [problem.path for problem in discover(asked).problems] == [
            str(tmp_path / "no"),
            str(tmp_path / "none/rules"),
        ]

    def test_extension_packages_are_read_in_the_order_given(self, directories, tmp_path, write):
        write(tmp_path / "b/rules/b.md")
        write(tmp_path / "a/rules/a.mdc")
        extended = replace(directories, extensions=(tmp_path / "b", tmp_path / "a"))
        assert names(extended, "omp-plugins") == ["b", "a"]


class TestUnreadable:
    def test_files_that_cannot_be_read_cost_only_themselves(self, directories, project, write):
        folder = project / ".cursor/rules"
        write(folder / "good.md")
        write(folder / "huge.md", b"x" * (LARGEST_FILE + 1))
        write(folder / "latin.md", b"---\ndescription: d\n---\ncaf\xe9")
        (folder / "broken.md").symlink_to("nowhere")
        (folder / "loop.md").symlink_to("loop.md")
        os.mkfifo(folder / "pipe.md")
        found = discover(directories)
        assert [each.rule.name for each in found.found] == ["good", "latin"]
        assert {Path(problem.path).name for problem in found.problems} == {
            "broken.md",
            "huge.md",
            "loop.md",
            "pipe.md",
        }

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_files_without_permission_are_reported(self, directories, project, write):
        write(project / ".cursor/rules/secret.md").chmod(0)
        (problem,) = discover(directories).problems
        assert "Permission denied" in problem.message

    def test_a_file_where_a_directory_should_be_is_no_problem(self, directories, project, write):
        write(project / ".cursor", "")
        assert discover(directories).problems == ()


class TestPrecedence:
    def test_the_first_rule_of_a_name_wins_and_the_others_stay_visible(self, directories, project, write):
        write(project / ".cursor/rules/style.mdc")
        write(project / ".clinerules/style.md")
        first, second = discover(directories).found
        assert (first.provider, first.shadowed_by) == ("cursor", None)
        assert (second.provider, second.shadowed_by) == ("cline", first)
        assert not second.is_same_file

    def test_a_file_found_twice_counts_once(self, home, write):
        write(home / ".cursor/rules/a.md")
        first, second = discover(RuleDirectories(home, home, shipped=None)).found
        assert second.shadowed_by is first
        assert second.is_same_file

    def test_a_second_name_for_the_same_file_does_not_make_a_second_rule(self, directories, project, write):
        target = write(project / ".cursor/rules/a.md")
        (project / ".agents/rules").mkdir(parents=True)
        (project / ".agents/rules/b.md").symlink_to(target)
        assert [(each.rule.name, each.is_same_file) for each in discover(directories).found] == [
            ("b", False),
            ("a", True),
        ]

    def test_rules_that_are_no_files_take_their_providers_place(self, directories, project, write):
        write(project / ".agents/rules/a.md")
        write(project / ".cursor/rules/c.md")
        assert names(directories, extra=[("library", Rule("b"))]) == ["a", "b", "c"]

    def test_an_unknown_provider_is_refused(self, directories):
        with pytest.raises(ValueError, match="nonsense"):
            discover(directories, [("nonsense", Rule("b"))])

    def test_shipped_rules_come_last(self, directories, project, write):
        write(project / ".clinerules/a.md")
        shipped = shipped_rules_directory()
        assert shipped is not None
        found = discover(replace(directories, shipped=shipped)).found
        assert [each.provider for each in found][:2] == ["cline", "builtin-defaults"]


def test_relative_directories_are_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert RuleDirectories(Path("a"), Path("b"), mounted=(Path("c"),)).mounted == (tmp_path / "c",)
