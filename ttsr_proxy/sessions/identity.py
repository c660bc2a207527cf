"""Who is asking: which agent, which of its sessions and sub-agents, and whether this is its side traffic.

All of it is the client's word. It names things in the log and decides which requests are only observed; which
conversation a request belongs to is decided by its content (`recall`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ttsr_proxy import jsontext
from ttsr_proxy.jsontext import JsonObject

MAX_NAME: Final = 200
"""Characters of a client's id that are kept."""


Activity: TypeAlias = Literal["bytes", "events", "content"]
"""What keeps a client from giving up on a stream: any bytes (comments, pings), only events of the answer,
even empty ones, or only new content, so that nothing keeps it alive while output is held."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a client tells about itself."""

    client: str
    """`claude-code`, `codex`, `opencode`, `aider`, `omp`, `anthropic-sdk`, ... or `unknown`."""
    session: str | None
    """The client's own session id. It groups conversations in the log and decides nothing."""
    agent: str
    """`main`, or the name or id of the sub-agent."""
    helper: str | None
    """Why this is side traffic of a recognised agent (`no tools`, `compaction`, ...), else None."""
    activity: Activity


@dataclass(frozen=True, slots=True)
class _Client:
    name: str
    marks: tuple[tuple[str, str], ...]
    """Any of these headers with a value that begins so, in lower case."""
    has_helpers: bool = False
    """Its main requests always carry tools; those without are titles, summaries and the like."""
    activity: Activity = "bytes"
    is_library: bool = False
    """The agent that uses it may be known by what it says."""


_CLAUDE_CODE: Final = _Client(
    "claude-code",
    (("x-claude-code-session-id", ""), ("user-agent", "claude-cli/")),
    has_helpers=True,
    activity="events",
)
_OMP: Final = _Client("omp", (("user-agent", "omp/"),), has_helpers=True, activity="events")
_AIDER: Final = _Client("aider", (("user-agent", "aider/"), ("x-title", "aider")))
_UNKNOWN: Final = _Client("unknown", ())

_CLIENTS: Final = (
    _Client(
        "codex",
        (
            ("x-codex-turn-metadata", ""),
            ("x-codex-window-id", ""),
            ("originator", "codex"),
            ("user-agent", "codex"),
        ),
        has_helpers=True,
        activity="events",
    ),
    _Client("opencode", (("user-agent", "opencode/"), ("x-session-affinity", "ses_")), has_helpers=True),
    _OMP,
    _CLAUDE_CODE,
    _AIDER,
    _Client("cline", (("user-agent", "cline/"), ("x-title", "cline"))),
    _Client("roo-code", (("user-agent", "roocode/"), ("x-title", "roo code"))),
    _Client("kilo-code", (("user-agent", "kilo-code/"), ("x-title", "kilo code"))),
    _Client("copilot", (("user-agent", "githubcopilot"), ("copilot-integration-id", ""))),
    _Client("zed", (("user-agent", "zed/"),)),
    *(
        _Client(name, tuple(("user-agent", begin) for begin in agents), is_library=True)
        for name, agents in (
            ("anthropic-sdk", ("anthropic/", "asyncanthropic/")),
            ("openai-sdk", ("openai/", "asyncopenai/")),
            ("ai-sdk", ("ai-sdk/", "ai/")),
            ("litellm", ("litellm/",)),
        )
    ),
)
"""Asked in order. An agent comes before the SDK that it is built on."""

_SESSION_HEADERS: Final = (
    "x-ttsr-session",
    "x-claude-code-session-id",
    "x-parent-session-id",
    "session-id",
    "session_id",
    "thread-id",
    "x-session-id",
    "x-session-affinity",
)
"""Where clients put their session's id, in order. An opencode sub-agent belongs to its parent's session."""

_AIDER_MARKS: Final = ("*SEARCH/REPLACE block*", "*file listing* format")

_CODEX_SUB_AGENTS: Final = {"compact": "compaction"}
"""Sub-agents of Codex that do side traffic, by `x-openai-subagent`."""

_COMPACTION: Final = re.compile(
    r"^\s*Your task is to create a detailed summary of "
    r"(?:the conversation|this conversation|the RECENT portion of the conversation)\b",
    re.MULTILINE,
)
"""How Claude Code's summarise prompts begin, behind a preamble about tools or not; no header marks them."""

_USER_ID_SESSION: Final = re.compile(r"_session_([0-9a-fA-F-]{36})\Z")
"""How Claude Code 1 wrote `metadata.user_id`; later versions write a JSON object."""


def identify(headers: Mapping[str, str], body: JsonObject, *, path: str = "") -> Identity:
    """Who sent this request. `headers` have lower-case names; `path` is the request's, without its query."""
    turn = _json_object(headers.get("x-codex-turn-metadata"))
    client = _client(headers, body)
    return Identity(
        client=client.name,
        session=_session(headers, body),
        agent=_agent(headers, turn),
        helper=_helper(client, headers, turn, body, path) if client.has_helpers else None,
        activity=_activity(client, path),
    )


def _client(headers: Mapping[str, str], body: JsonObject) -> _Client:
    for client in _CLIENTS:
        if any(name in headers and headers[name].lower().startswith(begin) for name, begin in client.marks):
            if client is _CLAUDE_CODE and _is_omp(body):
                return _OMP
            return _AIDER if client.is_library and _is_aider(body) else client
    return _UNKNOWN


def _activity(client: _Client, path: str) -> Activity:
    """Omp counts empty deltas over Anthropic's API, but not over those of OpenAI while a call is awaited."""
    if client is _OMP and path.rstrip("/").endswith(("/chat/completions", "/responses")):
        return "content"
    return client.activity


def _is_aider(body: JsonObject) -> bool:
    """Aider sends the headers of its library alone, but its prompt names its edit format in its own way."""
    told = body.get("system")
    if told is None:
        told = next((message.get("content") for message in _objects(body.get("messages"))), None)
    texts = [told] if isinstance(told, str) else [block.get("text") for block in _objects(told)]
    return any(mark in text for text in texts if isinstance(text, str) for mark in _AIDER_MARKS)


def _is_omp(body: JsonObject) -> bool:
    """Omp presents itself as Claude Code, but prefixes its tools and tells no device."""
    names = [tool.get("name") for tool in _tools(body)]
    if names:
        return any(isinstance(name, str) and name.startswith("_") for name in names)
    user = _json_object(_user_id(body))
    return "session_id" in user and "device_id" not in user


def _session(headers: Mapping[str, str], body: JsonObject) -> str | None:
    return next((name for name in map(_name, _session_sources(headers, body)) if name), None)


def _session_sources(headers: Mapping[str, str], body: JsonObject) -> Iterator[object]:
    yield from (headers.get(name) for name in _SESSION_HEADERS)
    yield body.get("prompt_cache_key")
    user_id = _user_id(body)
    yield _json_object(user_id).get("session_id")
    old_form = _USER_ID_SESSION.search(user_id) if isinstance(user_id, str) else None
    yield old_form and old_form[1]


def _agent(headers: Mapping[str, str], turn: JsonObject) -> str:
    told = _name(headers.get("x-ttsr-agent")) or _name(headers.get("x-claude-code-agent-id"))
    if told:
        return told
    if "x-parent-session-id" in headers:
        return _name(headers.get("x-session-id")) or "sub-agent"
    if "x-codex-parent-thread-id" in headers or turn.get("parent_thread_id"):
        # Codex names its agents as a tree below `/root`.
        own_name = _name(turn.get("agent_name")).removeprefix("/root").strip("/")
        return own_name or _name(headers.get("thread-id")) or "sub-agent"
    role = _name(headers.get("x-openai-subagent"))
    return role if role and role != "collab_spawn" else "main"


def _helper(
    client: _Client, headers: Mapping[str, str], turn: JsonObject, body: JsonObject, path: str
) -> str | None:
    if path.rstrip("/").endswith("/count_tokens"):
        return "count_tokens"
    kind = _name(turn.get("request_kind"))
    if kind and kind != "turn":
        return kind
    side_agent = _CODEX_SUB_AGENTS.get(_name(headers.get("x-openai-subagent")))
    if side_agent:
        return side_agent
    if _asks_for_compaction(body) or (client is _CLAUDE_CODE and _COMPACTION.search(_last_user_text(body))):
        return "compaction"
    return None if any(_tools(body)) else "no tools"


def _asks_for_compaction(body: JsonObject) -> bool:
    """Codex ends the input with a trigger item and expects one compaction item back."""
    items = _objects(body.get("input"))
    return bool(items) and items[-1].get("type") == "compaction_trigger"


def _tools(body: JsonObject) -> list[JsonObject]:
    """The tools on offer. Codex puts them into an input item for newer models; `functions` is an old form."""
    inside = [
        tool
        for item in _objects(body.get("input"))
        if item.get("type") == "additional_tools"
        for tool in _objects(item.get("tools"))
    ]
    return [*_objects(body.get("tools")), *_objects(body.get("functions")), *inside]


def _last_user_text(body: JsonObject) -> str:
    """The last text that the user's side wrote; what the agent added as a reminder is not it."""
    for message in reversed(_objects(body.get("messages"))):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        if isinstance(content, str):
            return content
        for block in reversed(_objects(content)):
            text = block.get("text")
            if isinstance(text, str) and not text.lstrip().startswith("<system-reminder>"):
                return text
        return ""
    return ""


def _user_id(body: JsonObject) -> object:
    metadata = body.get("metadata")
    return metadata.get("user_id") if isinstance(metadata, dict) else None


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _json_object(text: object) -> dict[str, Any]:
    return (jsontext.decode_object(text) or {}) if isinstance(text, str) else {}


def _name(value: object) -> str:
    """A client's word as one short printable line; empty when it said nothing usable."""
    if not isinstance(value, str):
        return ""
    return "".join(character for character in value if character.isprintable())[:MAX_NAME].strip()
