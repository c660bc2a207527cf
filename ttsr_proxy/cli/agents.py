"""How known agents are pointed at another base URL, and which cannot be.

One row an agent. Adding an agent is adding a row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttsr_proxy.errors import TtsrError


class AgentError(TtsrError):
    """An agent that cannot be run through the proxy, and why."""


@dataclass(frozen=True, slots=True)
class Pointed:
    """What makes an agent use the proxy."""

    variables: Mapping[str, str]
    arguments: tuple[str, ...] = ()
    """Arguments before the user's own."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A row: the names of its program, and how it takes the proxy's URL and the variables it has already."""

    name: str
    programs: tuple[str, ...]
    point: Callable[[str, Mapping[str, str]], Pointed]


def _variables(url: str, environ: Mapping[str, str]) -> Pointed:
    """What the official SDKs and most programs that use them read."""
    return Pointed(
        {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_BASE": url,
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_BASE": f"{url}/v1",
        }
    )


def _claude_code(url: str, environ: Mapping[str, str]) -> Pointed:
    for variable in ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"):
        if environ.get(variable, "").lower() not in ("", "0", "false", "no", "off"):
            raise AgentError(
                f"{variable} is set, so Claude Code would not use the Anthropic API and nothing would be "
                "watched: unset it, or start the agent without ttsr-proxy"
            )
    return Pointed({"ANTHROPIC_BASE_URL": url})


def _codex(url: str, environ: Mapping[str, str]) -> Pointed:
    # The built-in provider reads this key only, a [model_providers.openai] table changes nothing.
    return Pointed({}, ("-c", f"openai_base_url={json.dumps(url + '/v1')}"))


def _opencode(url: str, environ: Mapping[str, str]) -> Pointed:
    try:
        config: Any = json.loads(environ.get("OPENCODE_CONFIG_CONTENT") or "{}")
    except ValueError as error:
        raise AgentError(f"OPENCODE_CONFIG_CONTENT is not JSON ({error})") from error
    providers = {name: {"options": {"baseURL": f"{url}/v1"}} for name in ("anthropic", "openai")}
    return Pointed({"OPENCODE_CONFIG_CONTENT": json.dumps(_merged(config, {"provider": providers}))})


def _omp(url: str, environ: Mapping[str, str]) -> Pointed:
    # Its other providers take a base URL from its own models.yml only.
    return Pointed({"ANTHROPIC_BASE_URL": url})


GENERIC = Agent("a program that uses an official SDK", (), _variables)
"""What an unknown program is taken for."""

AGENTS = (
    Agent("Claude Code", ("claude",), _claude_code),
    Agent("Codex", ("codex",), _codex),
    Agent("opencode", ("opencode",), _opencode),
    Agent("aider", ("aider",), _variables),
    Agent("omp", ("omp",), _omp),
)

REFUSED: Mapping[str, str] = {
    "gemini": "Gemini CLI speaks the Gemini API, which is not inspected",
    "cursor-agent": "Cursor's agent speaks to Cursor's own servers only",
}
"""Programs that would run as if there were no rules, with the reason."""


def agent_of(command: Sequence[str]) -> Agent:
    """The row of a command line's program. Raises AgentError for a program that cannot be inspected."""
    program = Path(command[0]).stem if command[0].endswith((".exe", ".cmd")) else Path(command[0]).name
    if reason := REFUSED.get(program):
        raise AgentError(f"{program} cannot be run through ttsr-proxy: {reason}")
    return next((agent for agent in AGENTS if program in agent.programs), GENERIC)


def _merged(value: Any, over: dict[str, Any]) -> dict[str, Any]:
    result = dict(value) if isinstance(value, dict) else {}
    for key, item in over.items():
        result[key] = _merged(result.get(key), item) if isinstance(item, dict) else item
    return result
