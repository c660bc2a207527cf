"""What the Responses API refuses, as a function of the request body and of what the server keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from strict_openai_responses.wire import ENCRYPTED, encrypted

Item = dict[str, Any]

_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "shell_call": "shell_call_output",
}
_TYPES = {
    "message",
    "reasoning",
    "item_reference",
    "web_search_call",
    "additional_tools",
    "compaction_trigger",
    *_OUTPUTS,
    *_OUTPUTS.values(),
}
_PARTS = {"assistant": {"output_text", "refusal"}}
_NAMED = {"message", *_OUTPUTS}
_MADE = {"reasoning", "web_search_call", *_NAMED}


@dataclass(slots=True)
class Kept:
    """What the server remembers: responses with their whole conversation, and the items of these by id."""

    responses: dict[str, list[Item]] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    followed: dict[str, str] = field(default_factory=dict)
    """Reasoning to the item that followed it, stored or not."""

    def keep(self, response_id: str, conversation: list[Item], output: list[Item], *, store: bool) -> None:
        """A response is finished."""
        for item, after in pairwise(output):
            if item["type"] == "reasoning":
                self.followed[item["id"]] = after["id"]
        if store:
            self.responses[response_id] = [*conversation, *output]
            self.items.update({item["id"]: item for item in output})

    def conversation(self, body: dict[str, Any]) -> list[Item]:
        """The whole conversation of an accepted request."""
        return [*self.responses.get(body.get("previous_response_id") or "", []), *_resolved(body, self)]


class Refused(Exception):
    """The request breaks a rule; the message is the API's."""


def validate(body: Any, kept: Kept) -> dict[str, str] | None:
    """The API's `error` object for a request body, or None when it is accepted."""
    try:
        _check_shape(body)
        previous = body.get("previous_response_id")
        if previous is not None and previous not in kept.responses:
            raise Refused(f"Previous response with id '{previous}' not found.")
        for item in _input(body):
            _check_item(item)
            _check_known(item, body, kept)
        conversation = kept.conversation(body)
        _check_calls(conversation)
        _check_reasoning(conversation, kept)
    except Refused as refused:
        return {"type": "invalid_request_error", "message": str(refused)}
    return None


def _input(body: dict[str, Any]) -> list[Item]:
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return list(given or [])


def _resolved(body: dict[str, Any], kept: Kept) -> list[Item]:
    return [kept.items[item["id"]] if _type(item) == "item_reference" else item for item in _input(body)]


def _type(item: Item) -> str:
    return str(item.get("type", "message" if "role" in item else ""))


def _check_shape(body: Any) -> None:
    if not isinstance(body, dict):
        raise Refused("Invalid body: expected an object")
    if not isinstance(body.get("model"), str):
        raise Refused("Missing required parameter: 'model'.")
    if not isinstance(body.get("input", []), str | list):
        raise Refused("Invalid type for 'input'.")
    cap = body.get("max_output_tokens")
    if cap is not None and cap < 16:
        raise Refused("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.")
    if body.get("previous_response_id") is not None and body.get("conversation") is not None:
        raise Refused("Mutually exclusive parameters: 'previous_response_id' and 'conversation'.")


def _check_item(item: Item) -> None:
    kind = _type(item)
    if kind not in _TYPES:
        raise Refused(f"Invalid value: '{kind}'. Supported values are: {sorted(_TYPES)}")
    if kind != "message":
        return
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system", "developer"):
        raise Refused(f"Invalid value for role: '{role}'.")
    if isinstance(content, str):
        return
    if not content:
        raise Refused("Invalid 'content': empty array.")
    allowed = _PARTS.get(role, {"input_text", "input_image", "input_file"})
    for part in content:
        if part.get("type") not in allowed:
            raise Refused(f"Invalid value: '{part.get('type')}'. Supported values are: {sorted(allowed)}")


def _check_known(item: Item, body: dict[str, Any], kept: Kept) -> None:
    kind, item_id = _type(item), item.get("id")
    if kind == "item_reference" and item_id not in kept.items:
        raise Refused(f"Item with id '{item_id}' not found.")
    if kind == "reasoning":
        content = item.get("encrypted_content")
        if content is None and item_id not in kept.items:
            raise Refused(
                f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to false."
            )
        own = encrypted(str(item_id)) if item_id else content
        if content is not None and (not str(content).startswith(ENCRYPTED) or content != own):
            raise Refused(f"The encrypted content for item {item_id} could not be verified.")
    elif kind in _NAMED and item_id and body.get("store", True) and item_id not in kept.items:
        raise Refused(f"Item with id '{item_id}' not found.")


def _check_calls(conversation: list[Item]) -> None:
    calls = {item["call_id"]: _type(item) for item in conversation if _type(item) in _OUTPUTS}
    answered: set[str] = set()
    open_calls: set[str] = set()
    for item in conversation:
        kind = _type(item)
        if kind in _OUTPUTS:
            open_calls.add(item["call_id"])
        elif kind in _OUTPUTS.values():
            call_id = item["call_id"]
            if call_id not in open_calls or _OUTPUTS[calls[call_id]] != kind:
                raise Refused(f"No tool call found for {kind.replace('_', ' ')} with call_id {call_id}.")
            answered.add(call_id)
    for call_id in calls:
        if call_id not in answered:
            raise Refused(f"No tool output found for {calls[call_id].replace('_', ' ')} {call_id}.")


def _check_reasoning(conversation: list[Item], kept: Kept) -> None:
    before = {after: reasoning for reasoning, after in kept.followed.items()}
    for at, item in enumerate(conversation):
        if _type(item) == "reasoning":
            after = conversation[at + 1] if at + 1 < len(conversation) else {}
            made = _type(after) in _MADE and after.get("role", "assistant") == "assistant"
            expected = kept.followed.get(str(item.get("id")))
            if not made or (after.get("id") and expected and after["id"] != expected):
                raise Refused(
                    f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
                    "following item."
                )
        needed = before.get(str(item.get("id")))
        if needed and (at == 0 or conversation[at - 1].get("id") != needed):
            raise Refused(
                f"Item '{item.get('id')}' of type '{_type(item)}' was provided without its required "
                f"'reasoning' item: '{needed}'."
            )
