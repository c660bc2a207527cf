"""Which files of a tree a scan reads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ttsr_proxy.cli.rules.tree import Unread, files_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    texts = {
        ".gitignore": "*.log\n/build/\n!keep.log\nnode_modules/\n# comment\n\\#odd\n",
        ".git/info/exclude": "private.txt\n",
        ".github/workflow.yml": "",
        "a.py": "",
        "b.log": "",
        "keep.log": "",
        "#odd": "",
        "private.txt": "",
        "build/out.js": "",
        "sub/build/in.js": "",
        "sub/.gitignore": "!b.log\nlocal/\n",
        "sub/b.log": "",
        "sub/local/x.py": "",
        "sub/node_modules/m.js": "",
    }
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def names(root: Path, *paths: Path, honour_gitignore: bool = True) -> list[str]:
    found = files_of(paths or (root,), honour_gitignore=honour_gitignore)
    return [str(item.relative_to(root)) for item in found if isinstance(item, Path)]


def test_ignored_files_are_left_out_as_git_does(tree: Path) -> None:
    assert names(tree) == [
        ".github/workflow.yml",
        ".gitignore",
        "a.py",
        "keep.log",
        "sub/.gitignore",
        "sub/b.log",
        "sub/build/in.js",
    ]


def test_git_itself_agrees(tree: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        cwd=tree, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert sorted(listed.stdout.splitlines()) == sorted(names(tree))


def test_the_ignore_files_above_a_directory_count(tree: Path) -> None:
    assert names(tree, tree / "sub") == ["sub/.gitignore", "sub/b.log", "sub/build/in.js"]


def test_a_file_that_is_given_is_in_even_if_it_is_ignored_and_only_once(tree: Path) -> None:
    assert names(tree, tree / "build" / "out.js", tree / "a.py", tree / "a.py") == ["build/out.js", "a.py"]


def test_a_directory_that_is_given_is_read_even_if_it_is_ignored(tree: Path) -> None:
    (tree / "build/deep").mkdir()
    (tree / "build/deep/x.js").write_text("")
    assert names(tree, tree / "build") == ["build/deep/x.js", "build/out.js"]
    assert names(tree, tree / "build/deep") == ["build/deep/x.js"]
    assert names(tree, tree / "sub/node_modules") == ["sub/node_modules/m.js"]


def test_ignored_files_can_be_asked_for(tree: Path) -> None:
    all_files = names(tree, honour_gitignore=False)
    assert "build/out.js" in all_files
    assert not any(name.startswith(".git/") for name in all_files)


def test_links_are_not_followed(tree: Path) -> None:
    (tree / "link.py").symlink_to(tree / "a.py")
    (tree / "loop").symlink_to(tree)
    assert "link.py" not in names(tree)
    assert not any(name.startswith("loop") for name in names(tree))


def test_what_is_no_file_is_left_out(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    assert "pipe" not in names(tree)


def test_a_directory_that_cannot_be_listed_is_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def scandir(path: Path) -> object:
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    unread = [item for item in files_of([tree]) if isinstance(item, Unread)]
    assert unread == [Unread(tree / "sub", "cannot be listed: Permission denied")]
