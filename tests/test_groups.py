"""Groups of tests that need a program: what `tests/conftest.py` does where the program is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SUITE = """
import pytest

@pytest.mark.redis
def test_one(): pass

@pytest.mark.redis
def test_two(): pass

def test_three(): pass
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(params=[[], ["-n", "2"]], ids=["one process", "xdist"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    shutil.copy(Path(__file__).parent / "conftest.py", tmp_path)
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = redis: x\n")

    def start(path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "TTSR"))
        }
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *request.param],
            cwd=tmp_path,
            env={**inherited, "PATH": str(path), **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return start


def test_a_group_whose_program_is_missing_is_left_out_and_named(run: Run, tmp_path: Path) -> None:
    done = run(tmp_path / "nothing")
    assert done.returncode == 0
    assert "1 passed, 2 skipped" in done.stdout
    assert "left out" in done.stdout
    assert "2 tests: redis (none of these is installed: redis-server)" in done.stdout


def test_a_group_that_must_not_be_left_out_fails(run: Run, tmp_path: Path) -> None:
    done = run(tmp_path / "nothing", TTSR_REQUIRE_MARKED="1")
    assert done.returncode == 1
    assert "must not be left out: redis" in done.stdout
    assert "1 passed" in done.stdout


def test_a_group_whose_program_is_there_runs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/redis-server").write_text("#!/bin/sh\n")
    (tmp_path / "bin/redis-server").chmod(0o755)
    done = run(tmp_path / "bin", TTSR_REQUIRE_MARKED="1")
    assert done.returncode == 0
    assert "3 passed" in done.stdout
    assert "left out" not in done.stdout
