from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ttsr_proxy.rules.providers import RuleDirectories


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def project(home: Path) -> Path:
    """A project two levels inside a repository inside home."""
    path = home / "repo" / "sub" / "app"
    path.mkdir(parents=True)
    (home / "repo" / ".git").mkdir()
    return path


@pytest.fixture
def directories(project: Path, home: Path) -> RuleDirectories:
    return RuleDirectories(project, home, shipped=None)


@pytest.fixture
def write() -> Callable[..., Path]:
    def write(path: Path, text: str | bytes = "---\ndescription: d\n---\nBody") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write
