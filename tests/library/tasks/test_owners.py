"""An owner of tasks runs as long as its process does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ttsr_proxy.library.tasks.owners import Owner

ANOTHER = """
import sys
from pathlib import Path
from ttsr_proxy.library.tasks.owners import Owner
owner = Owner(Path(sys.argv[1]))
owner.appear()
print(owner.name, flush=True)
sys.stdin.read()
"""


def test_an_owner_runs_from_its_appearance_until_it_leaves(tmp_path: Path) -> None:
    mine, other = Owner(tmp_path / "owners"), Owner(tmp_path / "owners")
    assert not mine.runs(other.name)
    other.appear()
    assert mine.runs(other.name)
    assert other.runs(other.name)
    other.leave()
    assert not mine.runs(other.name)
    assert list((tmp_path / "owners").iterdir()) == []


def test_a_killed_process_does_not_run_and_leaves_no_file(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ANOTHER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        mine = Owner(tmp_path)
        assert mine.runs(name)
        process.kill()
        process.wait()
        assert not mine.runs(name)
    assert list(tmp_path.iterdir()) == []
