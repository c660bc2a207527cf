"""`ttsr-proxy run`, as a process with an agent of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import textwrap
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from ttsr_proxy.cli.demo import REQUEST, RULE
from ttsr_proxy.cli.demo_model import DemoModel
from ttsr_proxy.cli.run import summary

Run = Callable[..., Awaitable[Process]]

AGENT = f"""
import json, os, urllib.request
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
    data={json.dumps({**REQUEST, "stream": False}).encode()!r},
    headers={{"content-type": "application/json", "x-api-key": "none"}},
)
print(urllib.request.urlopen(request).read().decode())
"""


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    """Starts `ttsr-proxy run` with a Python program as the agent, in a project with one rule."""
    processes: list[Process] = []
    rules = tmp_path / "project" / ".omp" / "rules"
    rules.mkdir(parents=True)
    (rules / "no-eval.md").write_text(RULE)

    async def begin(program: str, *options: str, **environ: str) -> Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ttsr_proxy", "run", *options),
            *("--", sys.executable, "-c", textwrap.dedent(program)),
            cwd=tmp_path / "project",
            env={"HOME": str(tmp_path), "PATH": "", "TMPDIR": str(tmp_path), **environ},
            stdout=PIPE,
            stderr=PIPE,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_the_agent_s_requests_are_watched_and_the_run_ends_with_what_happened(run: Run) -> None:
    async with TestServer(DemoModel(0).application()) as model:
        process = await run(AGENT, "--upstream", str(model.make_url("/")))
        shown, told = (output.decode() for output in await process.communicate())
    assert process.returncode == 0, told
    assert "eval(" not in shown
    assert "ast.parse(" in shown
    assert "1 request watched, 1 interrupt (no-eval 1); see ttsr-proxy log" in told


async def test_the_upstream_is_where_the_agent_was_pointed_before(run: Run) -> None:
    async with TestServer(DemoModel(0).application()) as model:
        process = await run(AGENT, ANTHROPIC_BASE_URL=str(model.make_url("/")))
        shown, told = (output.decode() for output in await process.communicate())
    assert process.returncode == 0, told
    assert "ast.parse(" in shown


async def test_the_exit_status_is_the_agent_s(run: Run) -> None:
    process = await run("raise SystemExit(7)")
    _, told = await process.communicate()
    assert process.returncode == 7
    assert b"no model request came through the proxy" in told


async def test_an_agent_that_a_signal_ended_gives_the_status_that_a_shell_would(run: Run) -> None:
    process = await run("import os; os.kill(os.getpid(), 9)")
    await process.communicate()
    assert process.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_reaches_the_agent_and_the_proxy_waits_for_it(run: Run, number: int) -> None:
    agent = f"""
        import signal, sys
        signal.signal({int(number)}, lambda *_: sys.exit(3))
        print("ready", flush=True)
        signal.pause()
        """
    process = await run(agent)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    await process.communicate()
    assert process.returncode == 3


async def test_requests_to_the_proxy_bypass_an_http_proxy_of_the_user_s(run: Run) -> None:
    process = await run("import os; print(os.environ['NO_PROXY'])", NO_PROXY="corp.example")
    shown, _ = await process.communicate()
    assert shown == b"corp.example,127.0.0.1\n"


async def test_the_proxy_s_own_log_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    process = await run("", "--log-file", str(tmp_path / "log"))
    await process.communicate()
    assert json.loads((tmp_path / "log").read_text().splitlines()[0])["event"] == "running"


@pytest.mark.parametrize(
    ("options", "environ", "status", "told"),
    [
        (["--log-file", "/nowhere/log"], {}, 2, "cannot write the log file /nowhere/log"),
        ([], {"ANTHROPIC_BASE_URL": "ftp://x"}, 2, "environment: ANTHROPIC_BASE_URL: 'ftp://x'"),
        (["--", "gemini"], {}, 2, "gemini cannot be run through ttsr-proxy"),
        (["--", "no-such-agent"], {}, 127, "no-such-agent: command not found"),
    ],
)
async def test_what_cannot_run_is_told_without_a_traceback(
    run: Run, options: list[str], environ: dict[str, str], status: int, told: str
) -> None:
    process = await run("", *options, **environ)
    shown = (await process.communicate())[1].decode()
    assert process.returncode == status
    assert told in shown
    assert "Traceback" not in shown


def test_the_summary_counts_interrupts_and_reminders_by_rule() -> None:
    counts = {("a", "interrupted"): 2, ("b", "truncated"): 1, ("a", "deferred"): 1, ("c", "observed"): 5}
    assert summary(counts, 4) == (
        "4 requests watched, 3 interrupts (a 2, b 1), 1 reminder (a 1); see ttsr-proxy log"
    )
    assert summary({}, 1) == "1 request watched, no rule broken"
