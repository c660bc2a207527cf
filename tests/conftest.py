"""Test groups that need a program, and the hypothesis profiles.

A test marked with a group of `PROGRAMS` is skipped when none of the group's programs is installed; with
`TTSR_REQUIRE_MARKED=1`, as in CI, it fails instead. The run's summary names the reason of every skip.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator

import hypothesis
import pytest

PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "redis": ("redis-server",),
}

hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("dev")


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The URL of a Redis server of this run."""
    from redis_server import running_redis

    with running_redis() as server:
        yield server.url


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """The same, emptied."""
    from redis_server import emptied

    return emptied(redis_server)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for group, programs in PROGRAMS.items():
        if item.get_closest_marker(group) and not any(map(shutil.which, programs)):
            reason = f"{group} (none of these is installed: {', '.join(programs)})"
            if os.environ.get("TTSR_REQUIRE_MARKED") == "1":
                pytest.fail(f"must not be left out: {reason}", pytrace=False)
            pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        _, _, reason = report.longrepr
        counts[reason.removeprefix("Skipped: ")] += 1
    if counts:
        terminalreporter.section("left out")
        for reason, count in sorted(counts.items()):
            terminalreporter.line(f"{count} test{'s' if count > 1 else ''}: {reason}")
