"""What the Messages API refuses, as one pure function over the request body.

`validate` answers None for a request that is accepted, else the API's `error` object. The checks are in
the order in which the API finds them: shape, placement, tools, thinking.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from strict_anthropic import signing
from strict_anthropic.canonical import THINKING_TYPES, Block, Message, blocks_of, merged
from strict_anthropic.models import allows_prefill, allows_system_messages, binds_thinking

BINDING_BETA = "thinking-binding-controls-2026-08-01"
BOUND_ELSEWHERE = "Invalid `signature` in `thinking` block. The block is bound to a different conversation"
MAX_BREAKPOINTS = 4
MIN_THINKING_BUDGET = 1024

_SERVER_RESULTS = {
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_result",
}
_SERVER_TYPES = {"server_tool_use", "mcp_tool_use"} | _SERVER_RESULTS
_ROLE_TYPES = {
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking", "container_upload"} | _SERVER_TYPES,
    "system": {"text"},
}
_MESSAGE_FIELDS = {"role", "content", "clear_at", "output_config"}
_BLOCK_FIELDS = {
    "text": {"type", "text", "citations", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input", "caller", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
}
_TOOL_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")


Check: TypeAlias = Callable[[dict[str, Any], list[Message]], None]


class Refused(Exception):
    """The request breaks a rule; the message is the API's."""


def validate(body: Any, *, betas: Sequence[str] = (), counting: bool = False) -> dict[str, str] | None:
    """The API's `error` object for a request body, or None when it is accepted.

    `betas` are the values of the `anthropic-beta` header. `counting` is for `count_tokens`, which makes the
    same checks but has no `max_tokens`.
    """
    try:
        _check_shape(body, counting)
        messages: list[Message] = body["messages"]
        for check in _MESSAGE_CHECKS:
            check(body, messages)
        joined = merged(messages)
        for check in _CONVERSATION_CHECKS:
            check(body, joined)
        _check_binding(body, joined, betas)
    except Refused as refused:
        return {"type": "invalid_request_error", "message": str(refused)}
    return None


def _check_shape(body: Any, counting: bool) -> None:
    if not isinstance(body, dict):
        raise Refused("Input should be a valid dictionary")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise Refused("model: Field required")
    if not counting:
        limit = body.get("max_tokens")
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise Refused("max_tokens: Input should be greater than or equal to 1")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("messages: at least one message is required")
    for position, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("content"), str | list):
            raise Refused(f"messages.{position}: Input should be a message with `role` and `content`")
        extra = set(message) - _MESSAGE_FIELDS
        if extra:
            raise Refused(f"messages.{position}.{min(extra)}: Extra inputs are not permitted")
    for block in blocks_of(body.get("system") or []):
        if block.get("type") != "text":
            raise Refused("system: only text blocks are allowed")
        _check_text(block.get("text"), "system")


def _check_roles(body: dict[str, Any], messages: list[Message]) -> None:
    for position, message in enumerate(messages):
        role = message.get("role")
        if role == "system" and not allows_system_messages(body["model"]):
            raise Refused(f'messages.{position}.role: "system" is not supported by this model')
        if role not in _ROLE_TYPES:
            raise Refused(f"messages.{position}.role: Input should be 'user' or 'assistant'")
    if messages[0]["role"] != "user":
        raise Refused('messages: first message must use the "user" role')


def _check_text(text: Any, where: str) -> None:
    if not isinstance(text, str):
        raise Refused(f"{where}.text: Input should be a valid string")
    if not text:
        raise Refused(f"{where}: text content blocks must be non-empty")
    if not text.strip():
        raise Refused(f"{where}: text content blocks must contain non-whitespace text")


def _check_contents(body: dict[str, Any], messages: list[Message]) -> None:
    for position, message in enumerate(messages):
        role, content = message["role"], message["content"]
        is_last_assistant = role == "assistant" and position == len(messages) - 1
        # a setting for the turn needs no words
        is_setting = role == "system" and "output_config" in message
        if not content and not is_last_assistant and not is_setting:
            raise Refused(
                f"messages.{position}: all messages must have non-empty content "
                "except for the optional final assistant message"
            )
        for index, block in enumerate(content if isinstance(content, list) else blocks_of(content)):
            _check_block(role, block, f"messages.{position}.content.{index}")


def _check_block(role: str, block: Any, where: str) -> None:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise Refused(f"{where}: Input should be a content block")
    kind = block["type"]
    if kind not in _ROLE_TYPES[role]:
        raise Refused(f"{where}: `{kind}` blocks are not permitted in `{role}` messages")
    extra = set(block) - _BLOCK_FIELDS.get(kind, set(block))
    if extra:
        raise Refused(f"{where}.{kind}.{min(extra)}: Extra inputs are not permitted")
    if kind == "text":
        _check_text(block.get("text"), "messages")
    if kind == "tool_use":
        if not isinstance(block.get("input"), dict):
            raise Refused(f"{where}.tool_use.input: Input should be a valid dictionary")
        if not _TOOL_ID.match(str(block.get("id", ""))):
            raise Refused(f"{where}.tool_use.id: String should match pattern '{_TOOL_ID.pattern}'")
        if not _TOOL_NAME.match(str(block.get("name", ""))):
            raise Refused(f"{where}.tool_use.name: String should match pattern '{_TOOL_NAME.pattern}'")
    if kind == "tool_result" and not _TOOL_ID.match(str(block.get("tool_use_id", ""))):
        raise Refused(f"{where}.tool_result.tool_use_id: String should match pattern '{_TOOL_ID.pattern}'")


def _check_system_messages(body: dict[str, Any], messages: list[Message]) -> None:
    for position, message in enumerate(messages):
        if message["role"] != "system":
            continue
        before = messages[position - 1]
        after = messages[position + 1] if position + 1 < len(messages) else None
        if after is not None and after["role"] == "system":
            raise Refused(f"messages.{position}: two system messages must not be adjacent")
        if before["role"] == "assistant" and not _ends_in_server_tool(before):
            raise Refused(f"messages.{position}: a system message must directly follow a user message")
        if after is not None and after["role"] != "assistant":
            raise Refused(
                f"messages.{position}: a system message must be last or be followed by an assistant message"
            )


def _ends_in_server_tool(message: Message) -> bool:
    blocks = blocks_of(message["content"])
    return bool(blocks) and blocks[-1].get("type") in _SERVER_TYPES


def _check_tool_pairs(body: dict[str, Any], messages: list[Message]) -> None:
    seen: set[str] = set()
    open_ids: list[str] = []
    for position, message in enumerate(messages):
        blocks = message["content"]
        if open_ids and message["role"] != "user":
            raise Refused(_unanswered(position - 1, open_ids))
        results = [b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"]
        leading = [b["tool_use_id"] for b in _leading_results(blocks)]
        if len(set(results)) != len(results):
            raise Refused(
                f"messages.{position}: each tool_use must have a single result. "
                "Found multiple `tool_result` blocks with the same id"
            )
        unknown = [id_ for id_ in results if id_ not in open_ids]
        if unknown:
            raise Refused(
                f"messages.{position}: unexpected `tool_use_id` found in `tool_result` blocks: {unknown[0]}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        missing = [id_ for id_ in open_ids if id_ not in leading]
        if missing and set(missing) <= set(results):
            raise Refused(
                f"messages.{position}: Did not find {len(open_ids)} `tool_result` block(s) at the beginning "
                "of this message. Messages following `tool_use` blocks must begin with as many results."
            )
        if missing:
            raise Refused(_unanswered(position - 1, missing))
        open_ids = [b["id"] for b in blocks if b.get("type") == "tool_use"]
        for id_ in open_ids:
            if id_ in seen:
                raise Refused(f"messages.{position}: `tool_use` ids must be unique")
            seen.add(id_)
    if open_ids:
        raise Refused(_unanswered(len(messages) - 1, open_ids))


def _leading_results(blocks: list[Block]) -> Iterator[Block]:
    for block in blocks:
        if block.get("type") != "tool_result":
            return
        yield block


def _unanswered(position: int, ids: list[str]) -> str:
    return (
        f"messages.{position}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def _check_tools_present(body: dict[str, Any], messages: list[Message]) -> None:
    used = any(b.get("type") in ("tool_use", "tool_result") for m in messages for b in m["content"])
    if used and not body.get("tools"):
        raise Refused("Requests which include `tool_use` or `tool_result` blocks must define tools")
    names = [tool.get("name") for tool in body.get("tools") or []]
    if len(set(names)) != len(names):
        raise Refused("tools: Tool names must be unique.")


def _check_cache_breakpoints(body: dict[str, Any], messages: list[Message]) -> None:
    marked = [*(body.get("tools") or []), *blocks_of(body.get("system") or [])]
    for message in messages:
        for block in message["content"]:
            marked.append(block)
            if block.get("type") == "tool_result":
                marked.extend(blocks_of(block.get("content") or []))
    count = sum(1 for item in marked if item.get("cache_control"))
    if count > MAX_BREAKPOINTS:
        raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {count}.")


def _check_final_assistant(body: dict[str, Any], messages: list[Message]) -> None:
    last = messages[-1]
    if last["role"] != "assistant" or _ends_in_server_tool(last):
        return
    if not allows_prefill(body["model"]):
        raise Refused(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    if _thinking_mode(body) != "disabled":
        raise Refused("messages: an assistant message must not be last when thinking is enabled")
    blocks = last["content"]
    if blocks and blocks[-1].get("type") == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
        raise Refused("messages: final assistant content cannot end with trailing whitespace")


def _thinking_mode(body: dict[str, Any]) -> str:
    thinking = body.get("thinking")
    return str(thinking.get("type", "disabled")) if isinstance(thinking, dict) else "disabled"


def _check_thinking_settings(body: dict[str, Any], messages: list[Message]) -> None:
    mode = _thinking_mode(body)
    if mode not in ("enabled", "adaptive", "disabled"):
        raise Refused("thinking.type: Input should be 'enabled', 'adaptive' or 'disabled'")
    if mode == "enabled":
        budget = body["thinking"].get("budget_tokens")
        if not isinstance(budget, int) or budget < MIN_THINKING_BUDGET:
            raise Refused("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if "max_tokens" in body and body["max_tokens"] <= budget:
            raise Refused("`max_tokens` must be greater than `thinking.budget_tokens`")
    if mode != "disabled" and (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        raise Refused("Thinking may not be enabled when tool_choice forces tool use.")


def _check_thinking_blocks(body: dict[str, Any], messages: list[Message]) -> None:
    for position, message in enumerate(messages):
        blocks = message["content"]
        for index, block in enumerate(blocks):
            if block.get("type") in THINKING_TYPES and not signing.is_genuine(block):
                kind = block["type"]
                field = "signature" if kind == "thinking" else "data"
                raise Refused(f"messages.{position}.content.{index}: Invalid `{field}` in `{kind}` block")
        if message["role"] == "assistant" and blocks and blocks[-1].get("type") in THINKING_TYPES:
            kind = blocks[-1]["type"]
            raise Refused(f"messages.{position}: The final block in an assistant message cannot be `{kind}`.")


def _check_tool_loop_starts_with_thinking(body: dict[str, Any], messages: list[Message]) -> None:
    """With manual thinking, the turn that the open tool loop belongs to starts with thinking."""
    if _thinking_mode(body) != "enabled":
        return
    start = len(messages)
    while start and _in_tool_loop(messages[start - 1]):
        start -= 1
    first = next((m for m in messages[start:] if m["role"] == "assistant"), None)
    has_results = any(b.get("type") == "tool_result" for m in messages[start:] for b in m["content"])
    if first is None or not has_results:
        return
    kind = first["content"][0].get("type")
    if kind not in THINKING_TYPES:
        position = messages.index(first)
        raise Refused(
            f"messages.{position}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{kind}`. When `thinking` is enabled, a final `assistant` message must start with a thinking "
            "block (preceding the lastmost set of `tool_use` and `tool_result` blocks)."
        )


def _in_tool_loop(message: Message) -> bool:
    return message["role"] != "user" or any(b.get("type") == "tool_result" for b in message["content"])


def _check_binding(body: dict[str, Any], messages: list[Message], betas: Sequence[str]) -> None:
    binding = (body.get("thinking") or {}).get("block_binding")
    if binding is not None and BINDING_BETA not in betas:
        raise Refused("thinking.block_binding: Extra inputs are not permitted")
    if not binds_thinking(body["model"]) or drops_unbound(body):
        return
    wrong = signing.misplaced(body)
    if wrong:
        position, index = wrong[0]
        raise Refused(f"messages.{position}.content.{index}: {BOUND_ELSEWHERE}")


def drops_unbound(body: dict[str, Any]) -> bool:
    """The caller chose that thinking bound to another conversation is dropped instead of refused."""
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    return bool(binding.get("prefix_mismatch_behavior") == "drop_block")


_MESSAGE_CHECKS: tuple[Check, ...] = (_check_roles, _check_contents, _check_system_messages)
_CONVERSATION_CHECKS: tuple[Check, ...] = (
    _check_tool_pairs,
    _check_tools_present,
    _check_cache_breakpoints,
    _check_final_assistant,
    _check_thinking_settings,
    _check_thinking_blocks,
    _check_tool_loop_starts_with_thinking,
)
