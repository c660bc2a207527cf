"""The real proxy on a real socket, with a project directory of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from strict_anthropic import listening

from ttsr_proxy.config import (
    CaptureSettings,
    JudgeSettings,
    LibrarySettings,
    ProjectSettings,
    RulebookSettings,
    Settings,
    TtsrSettings,
    Upstreams,
)
from ttsr_proxy.redis import RedisUrl
from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.server import make_runner

__all__ = ["Proxy", "Workspace", "listening", "running_proxy"]

_LOG_TIMEOUT = 5.0


class Workspace:
    """A project, a home, a directory of rules and a state file below one directory.

    With `redis` the proxies keep their state there, so that several are replicas.
    """

    def __init__(self, root: Path) -> None:
        self.redis: RedisUrl | None = None
        self.project = root / "project"
        self.home = root / "home"
        self.rules = root / "rules"
        self.state = root / "state" / "state.db"
        self.judge = JudgeSettings()
        self.capture = CaptureSettings()
        for directory in (self.project / ".git", self.home, self.rules, self.state.parent):
            directory.mkdir(parents=True)

    def rule(
        self, name: str, condition: str, *, body: str = "Use the allowed word instead.", **front: Any
    ) -> Path:
        """Write the file of a stream rule; `front` are further frontmatter keys."""
        return self.rule_file(name, body, condition=condition, **front)

    def judged(self, name: str, question: str = "Is it rude?", **front: Any) -> Path:
        """Write a rule that a judge is asked about; `front` are further frontmatter keys."""
        return self.rule_file(name, "Be polite.", question=question, **front)

    def rule_file(self, name: str, body: str, **front: Any) -> Path:
        """Write a rule file with these frontmatter keys."""
        lines = [f"{key}: {json.dumps(value)}" for key, value in front.items()]
        path = self.rules / f"{name}.md"
        path.write_text("---\n" + "\n".join(lines) + f"\n---\n{body}\n", encoding="utf-8")
        return path

    def rulebook(self) -> None:
        """Write a rule of each bucket, and one of none."""
        self.rule_file("brief", "Be brief.", alwaysApply=True)
        self.rule_file("db", "Never drop a column.", description="How we write migrations.", globs="*.sql")
        self.rule_file("nothing", "Nobody can read this.", globs="*.py")
        self.rule("no-bad-word", "BADWORD", scope=["text", "tool"], repeatMode="always")

    def forget_state(self) -> None:
        """Delete the state file, as a lost disk would."""
        for path in self.state.parent.iterdir():
            path.unlink()

    def settings(self, upstream: str, *, rulebook: RulebookSettings | None = None, **ttsr: Any) -> Settings:
        """Settings for one project with this directory's rules; `ttsr` are fields of `TtsrSettings`."""
        project = ProjectSettings(
            "default",
            self.project,
            self.home,
            rules=(self.rules,),
            ttsr=TtsrSettings(**{"builtin_rules": False, **ttsr}),
            rulebook=rulebook or RulebookSettings(),
            capture=self.capture,
        )
        return Settings(
            state=self.redis or self.state,
            library=LibrarySettings(root=self.state.parent / "library", judge=self.judge),
            projects=(project,),
            port=0,
            upstreams=Upstreams(anthropic=upstream, openai=upstream),
        )


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running proxy."""

    url: str

    async def interrupts(self) -> list[dict[str, Any]]:
        """The interrupt log, oldest first."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.url}/ttsr/api/interrupts", params={"limit": "1000"}) as response,
        ):
            document = await response.json()
        return list(reversed(document["items"]))

    async def judged(self) -> dict[str, int]:
        """How many questions a judge was asked, and what came of them."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/readyz") as response:
            document = await response.json()
        counts: dict[str, int] = document.get("judged", {})
        return counts

    async def log(self, *expected: tuple[str, str]) -> list[dict[str, Any]]:
        """The log once it holds exactly these (action, outcome) pairs, oldest first.

        The log may be written after the client has its answer, so it is asked until it fits.
        """
        items: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(_LOG_TIMEOUT):
                while True:
                    items = await self.interrupts()
                    if [(item["action"], item["outcome"]) for item in items] == list(expected):
                        return items
        except TimeoutError:
            found = [(item["action"], item["outcome"], item.get("detail")) for item in items]
            raise AssertionError(f"the log has {found}, expected {list(expected)}") from None


@asynccontextmanager
async def running_proxy(workspace: Workspace, upstream: str, **ttsr: Any) -> AsyncIterator[Proxy]:
    """Serve the proxy for a workspace on a free port; `ttsr` are fields of `TtsrSettings`."""
    runner = make_runner(create_app(workspace.settings(upstream, **ttsr)), drain_seconds=0.1)
    async with listening(runner) as url:
        yield Proxy(url)
