"""How each agent is pointed at the proxy, run without a person, and continued.

An agent is left out unless its variable lists its executables, for the AI SDK directories with its packages
(separated by `:`). `prepare` writes its
settings into the home and returns the command and the variables that it needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Prepared: TypeAlias = "tuple[list[str], dict[str, str]]"


@dataclass(frozen=True, slots=True)
class Task:
    """One run of an agent."""

    binary: str
    url: str
    """The proxy."""
    home: Path
    model: str
    prompt: str
    resume: bool = False
    """Continue the last session."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent with one API and one model."""

    name: str
    variable: str
    protocol: str
    """`anthropic`, `chat` or `responses`."""
    model: str
    prepare: Callable[[Task], Prepared]
    prose: str | None = None
    """Edits are text, in this format."""
    noise: str | None = None
    """What lines say that the agent prints as errors with or without a proxy."""


def _claude_code(task: Task) -> Prepared:
    command = [task.binary, "-p", task.prompt, "--output-format", "stream-json", "--verbose"]
    command += ["--permission-mode", "bypassPermissions", "--model", task.model]
    return command + (["--continue"] if task.resume else []), {
        "ANTHROPIC_BASE_URL": task.url,
        "ANTHROPIC_API_KEY": "sk-ant-dummy",
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


_CODEX = """\
model = "{model}"
{provider}approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false
"""
_CODEX_PROVIDER = """
[model_providers.ttsr]
name = "ttsr"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""


def _codex(task: Task, provider: str, more: str = "") -> Prepared:
    directory = task.home / ".codex"
    directory.mkdir(exist_ok=True)
    settings = _CODEX.format(model=task.model, provider=provider) + more
    (directory / "config.toml").write_text(settings, encoding="utf-8")
    command = [task.binary, "exec", *(["resume", "--last"] if task.resume else [])]
    command += ["--json", "--skip-git-repo-check", task.prompt]
    return command, {"CODEX_HOME": str(directory), "OPENAI_API_KEY": "dummy", "CODEX_API_KEY": "dummy"}


def _codex_provider(task: Task) -> Prepared:
    return _codex(task, 'model_provider = "ttsr"\n', _CODEX_PROVIDER.format(url=task.url))


def _codex_built_in(task: Task) -> Prepared:
    return _codex(task, f'openai_base_url = "{task.url}/v1"\n')


def _opencode(provider: str, npm: str | None = None) -> Callable[[Task], Prepared]:
    def prepare(task: Task) -> Prepared:
        directory = task.home / ".config" / "opencode"
        directory.mkdir(parents=True, exist_ok=True)
        model = {"name": task.model, "tool_call": True, "limit": {"context": 200_000, "output": 8192}}
        served = {
            **({"npm": npm} if npm else {}),
            "options": {"baseURL": f"{task.url}/v1", "apiKey": "dummy"},
            "models": {task.model: model},
        }
        settings = {
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": False,
            "share": "disabled",
            "provider": {provider: served},
            "permission": {"*": "allow"},
        }
        (directory / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
        command = [
            task.binary,
            "run",
            "-m",
            f"{provider}/{task.model}",
            "--print-logs",
            "--log-level",
            "ERROR",
        ]
        return [*command, *(["--continue"] if task.resume else []), task.prompt], {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }

    return prepare


def _aider(style: str, provider: str = "openai") -> Callable[[Task], Prepared]:
    def prepare(task: Task) -> Prepared:
        caches = task.home / ".aider" / "caches"
        caches.mkdir(parents=True, exist_ok=True)
        # without it aider downloads a list of prices
        (caches / "model_prices_and_context_window.json").write_text('{"x": {}}', encoding="utf-8")
        command = [task.binary, "--model", f"{provider}/{task.model}", "--edit-format", style]
        command += [
            "--yes-always",
            "--no-auto-commits",
            "--no-pretty",
            "--no-detect-urls",
            "--map-tokens",
            "0",
        ]
        command += ["--no-check-update", "--no-show-model-warnings", "--no-show-release-notes"]
        command += ["--analytics-disable", "--message", task.prompt, "hello.py"]
        return command, {
            "OPENAI_API_BASE": f"{task.url}/v1",
            "OPENAI_API_KEY": "dummy",
            "ANTHROPIC_API_BASE": task.url,
            "ANTHROPIC_API_KEY": "dummy",
            "AIDER_ANALYTICS": "false",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    return prepare


_OMP = """\
providers:
  ttsr:
    baseUrl: {url}
    apiKey: dummy
    api: {api}
    models:
      - id: {model}
        name: {model}
        reasoning: true
        input: [text]
        contextWindow: 200000
        maxTokens: 8192
"""


def _omp(api: str, path: str = "") -> Callable[[Task], Prepared]:
    def prepare(task: Task) -> Prepared:
        directory = task.home / ".omp" / "agent"
        directory.mkdir(parents=True, exist_ok=True)
        settings = _OMP.format(url=task.url + path, api=api, model=task.model)
        (directory / "models.yml").write_text(settings, encoding="utf-8")
        command = [
            task.binary,
            "-p",
            "--model",
            f"ttsr/{task.model}",
            *(["--continue"] if task.resume else []),
        ]
        return [*command, task.prompt], {}

    return prepare


_AI_SDK = Path(__file__).with_name("ai_sdk.mjs")


def _ai_sdk(protocol: str) -> Callable[[Task], Prepared]:
    def prepare(task: Task) -> Prepared:
        command = ["node", str(_AI_SDK), protocol, task.url, task.model, task.prompt]
        return command + (["--continue"] if task.resume else []), {"AI_SDK": task.binary}

    return prepare


_COMPATIBLE = _opencode("ttsr", "@ai-sdk/openai-compatible")

_UNKNOWN = "Model metadata for `gpt-5.1-codex` not found"
_SOCKET = "failed to connect to Responses WebSocket"

AGENTS = (
    Agent("claude-code", "TTSR_CLIENT_CLAUDE_CODE", "anthropic", "claude-opus-5-5", _claude_code),
    Agent("claude-code-4.5", "TTSR_CLIENT_CLAUDE_CODE", "anthropic", "claude-sonnet-4-5", _claude_code),
    Agent("opencode", "TTSR_CLIENT_OPENCODE", "anthropic", "claude-opus-5-5", _opencode("anthropic")),
    Agent("opencode-4.5", "TTSR_CLIENT_OPENCODE", "anthropic", "claude-sonnet-4-5", _opencode("anthropic")),
    Agent("opencode", "TTSR_CLIENT_OPENCODE", "chat", "a-model", _COMPATIBLE),
    Agent("opencode", "TTSR_CLIENT_OPENCODE", "responses", "gpt-5.1", _opencode("openai")),
    Agent("omp", "TTSR_CLIENT_OMP", "anthropic", "claude-sonnet-4-5", _omp("anthropic-messages")),
    Agent("omp", "TTSR_CLIENT_OMP", "chat", "a-model", _omp("openai-completions", "/v1")),
    Agent("omp", "TTSR_CLIENT_OMP", "responses", "a-model", _omp("openai-responses", "/v1")),
    Agent("codex", "TTSR_CLIENT_CODEX", "responses", "gpt-5.5", _codex_provider),
    Agent("codex-exec", "TTSR_CLIENT_CODEX", "responses", "gpt-5.6-sol", _codex_provider),
    Agent("codex-shell", "TTSR_CLIENT_CODEX", "responses", "gpt-5.1-codex", _codex_provider, noise=_UNKNOWN),
    Agent("codex-built-in", "TTSR_CLIENT_CODEX", "responses", "gpt-5.5", _codex_built_in, noise=_SOCKET),
    Agent("ai-sdk", "TTSR_CLIENT_AI_SDK", "anthropic", "claude-opus-5-5", _ai_sdk("anthropic")),
    Agent("ai-sdk", "TTSR_CLIENT_AI_SDK", "chat", "a-model", _ai_sdk("chat")),
    Agent("ai-sdk", "TTSR_CLIENT_AI_SDK", "responses", "gpt-5.1", _ai_sdk("responses")),
    Agent("aider", "TTSR_CLIENT_AIDER", "anthropic", "a-model", _aider("diff", "anthropic"), "diff"),
    Agent("aider", "TTSR_CLIENT_AIDER", "chat", "a-model", _aider("diff"), "diff"),
    Agent("aider-whole", "TTSR_CLIENT_AIDER", "chat", "a-model", _aider("whole"), "whole"),
)
