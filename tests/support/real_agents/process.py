"""An agent as a process: nothing of the caller's environment but the search path reaches it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT = 150.0


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has ended."""

    status: int | None
    output: str
    """What it printed, errors included."""


async def run_agent(
    command: Sequence[str], *, project: Path, home: Path, environment: Mapping[str, str]
) -> Run:
    """Run the command in the project with its own home; a run over the time limit is killed and fails."""
    scratch = home / "tmp"
    scratch.mkdir(exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=project,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local/share"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "TMPDIR": str(scratch),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "CI": "1",
            "NO_PROXY": "*",
            **environment,
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _TIMEOUT)
    finally:
        if process.returncode is None:
            # agents have children of their own
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return Run(process.returncode, output.decode(errors="replace"))
