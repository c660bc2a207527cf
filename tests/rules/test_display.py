from __future__ import annotations

from pathlib import Path

import pytest

from ttsr_proxy.rules.display import display_path


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/me/app/.omp/rules/a.md", ".omp/rules/a.md"),
        ("/home/me/.cursor/rules/b.mdc", "~/.cursor/rules/b.mdc"),
        ("/opt/rules/c.md", "c.md"),
        ("/home/mex/c.md", "c.md"),
        ("rules/d.md", "rules/d.md"),
        ("../../etc/e.md", "e.md"),
    ],
)
def test_paths_are_shown_relative_to_project_or_home_never_absolute(path, shown):
    assert display_path(path, Path("/home/me/app"), Path("/home/me")) == shown


def test_a_uri_is_shown_as_it_is() -> None:
    uri = "viking://user/alice/memories/rules/http/timeout.md"
    assert display_path(uri, Path("/work"), Path("/home/me")) == uri
