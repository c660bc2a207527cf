"""A real agent, the proxy, and a scripted model behind it."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from proxy_under_test import Proxy, Workspace, running_proxy
from scripted_model import Model, as_turn, openai_upstream
from strict_anthropic import strict_upstream

from real_agents.agents import AGENTS, Agent, Task
from real_agents.process import Run, run_agent

_TROUBLE = re.compile(r'\bERROR\b|"type":\s*"error"|"is_error":\s*true|Reconnecting|Retrying|stream error')


def available(wanted: Callable[[Agent], bool]) -> list[Any]:
    """Parameters `agent, binary`: each wanted agent with each of its executables, or skipped without one."""
    made = []
    for agent in filter(wanted, AGENTS):
        binaries = [path for path in os.environ.get(agent.variable, "").split(os.pathsep) if path]
        left_out = pytest.mark.skip(reason=f"{agent.variable} names no executable")
        for number, binary in enumerate(binaries or [""], 1):
            name = f"{agent.name}-{agent.protocol}-{number}"
            made.append(pytest.param(agent, binary, id=name, marks=() if binary else left_out))
    return made


@dataclass(slots=True)
class Scene:
    """One conversation's surroundings."""

    workspace: Workspace
    agent: Agent
    binary: str
    model: Model
    upstream: Any
    proxy: Proxy
    _stack: AsyncExitStack

    def trouble(self, run: Run) -> list[str]:
        """The lines that tell of something that went wrong, mended or not."""
        noise = self.agent.noise
        return [
            line
            for line in run.output.splitlines()
            if _TROUBLE.search(line) and not (noise is not None and noise in line)
        ]

    async def run(self, prompt: str, *, resume: bool = False) -> Run:
        """Run the agent, or continue its last session."""
        task = Task(self.binary, self.proxy.url, self.workspace.home, self.agent.model, prompt, resume)
        command, environment = self.agent.prepare(task)
        return await run_agent(
            command, project=self.workspace.project, home=self.workspace.home, environment=environment
        )

    async def restart_proxy(self) -> None:
        """Stop the proxy and start another one with the same state, on another port."""
        await self._stack.aclose()
        self.proxy = await self._stack.enter_async_context(running_proxy(self.workspace, self.upstream.url))


@asynccontextmanager
async def played(workspace: Workspace, agent: Agent, binary: str) -> AsyncIterator[Scene]:
    """The scene of an agent; its model has no plan yet."""
    model = Model(workspace.project, prose=agent.prose)
    async with AsyncExitStack() as upstreams, AsyncExitStack() as proxies:
        upstream: Any
        if agent.protocol == "anthropic":
            upstream = await upstreams.enter_async_context(strict_upstream())
            upstream.otherwise(as_turn(model))
        else:
            upstream = await upstreams.enter_async_context(openai_upstream(model))
        proxy = await proxies.enter_async_context(running_proxy(workspace, upstream.url))
        yield Scene(workspace, agent, binary, model, upstream, proxy, proxies)
