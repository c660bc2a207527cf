"""What the Chat Completions API refuses, as one pure function over the request body.

Where servers differ, the strictest known one counts: arguments have to be JSON, a message has to say
something, unknown fields of a message are refused.
"""

from __future__ import annotations

import json
import re
from typing import Any

_FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "function_call", "refusal", "audio"},
    "tool": {"role", "content", "tool_call_id"},
    "function": {"role", "content", "name"},
}
_REASONING = {"reasoning_content", "reasoning", "reasoning_details"}
_PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
    "function": set[str](),
}
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


class Refused(Exception):
    """The request breaks a rule; the message is the API's."""


def validate(body: Any, *, reasoning: bool = False) -> dict[str, Any] | None:
    """The API's `error` object for a request body, or None when it is accepted.

    `reasoning`: the server takes reasoning back, as some compatible servers do.
    """
    try:
        _check(body, reasoning)
    except Refused as refused:
        return {"message": str(refused), "type": "invalid_request_error", "param": None, "code": None}
    return None


def _check(body: Any, reasoning: bool) -> None:
    if not isinstance(body, dict):
        raise Refused("We could not parse the JSON body of your request.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise Refused("you must provide a model parameter")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("[] is too short - 'messages'")
    _check_settings(body)
    for position, message in enumerate(messages):
        _check_message(message, f"messages[{position}]", reasoning)
    _check_calls(messages)


def _check_settings(body: dict[str, Any]) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        if name in body and (type(body[name]) is not int or body[name] < 1):
            raise Refused(f"Invalid '{name}': integer below minimum value.")
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise Refused("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    if "stream_options" in body and not body.get("stream"):
        raise Refused("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    if "tools" in body:
        if not body["tools"]:
            raise Refused("[] is too short - 'tools'")
        names = [tool[tool["type"]]["name"] for tool in body["tools"]]
        if len(set(names)) != len(names):
            raise Refused("Tool names must be unique.")
    elif "tool_choice" in body:
        raise Refused("'tool_choice' is only allowed when 'tools' are specified.")


def _check_message(message: Any, where: str, reasoning: bool) -> None:
    if not isinstance(message, dict) or message.get("role") not in _FIELDS:
        raise Refused(f"Invalid value for '{where}.role'.")
    role = message["role"]
    extra = set(message) - _FIELDS[role] - (_REASONING if reasoning and role == "assistant" else set())
    if extra:
        raise Refused(f"Unknown parameter: '{where}.{min(extra)}'.")
    _check_content(message, where)
    if role == "assistant":
        _check_entries(message, where)
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        raise Refused(f"Missing required parameter: '{where}.tool_call_id'.")


def _check_content(message: dict[str, Any], where: str) -> None:
    content, role = message.get("content"), message["role"]
    if content is None:
        says = any(message.get(name) for name in ("tool_calls", "function_call", "refusal"))
        if role != "assistant" or not says:
            raise Refused(f"Invalid value for '{where}.content': expected a string, got null.")
    elif isinstance(content, list):
        if not content:
            raise Refused(f"Invalid '{where}.content': empty array.")
        for part in content:
            if not isinstance(part, dict) or part.get("type") not in _PARTS[role]:
                raise Refused(f"Invalid value: '{where}.content' has a part that is not allowed here.")
            if part["type"] == "text" and not (isinstance(part.get("text"), str) and part["text"]):
                raise Refused(f"Invalid '{where}.content': a text part without text.")
    elif not isinstance(content, str):
        raise Refused(f"Invalid type for '{where}.content'.")
    elif not content and role == "assistant" and not message.get("tool_calls"):
        raise Refused(f"Invalid '{where}.content': the message says nothing.")


def _check_entries(message: dict[str, Any], where: str) -> None:
    if "tool_calls" not in message:
        return
    calls = message["tool_calls"]
    if not isinstance(calls, list) or not calls:
        raise Refused(f"[] is too short - '{where}.tool_calls'")
    for call in calls:
        if set(call) != {"id", "type", "function"} or call["type"] != "function":
            raise Refused(f"Unknown parameter in '{where}.tool_calls': {sorted(call)}")
        if not isinstance(call["id"], str) or not call["id"]:
            raise Refused(f"Invalid '{where}.tool_calls': empty id.")
        if set(call["function"]) != {"name", "arguments"} or not _NAME.match(call["function"]["name"]):
            raise Refused(f"Invalid '{where}.tool_calls': bad function.")
        try:
            arguments = json.loads(call["function"]["arguments"])
        except (TypeError, ValueError):
            arguments = None
        if not isinstance(arguments, dict):
            raise Refused(f"Invalid '{where}.tool_calls': arguments are no JSON object.")


def _check_calls(messages: list[dict[str, Any]]) -> None:
    """Results directly behind their calls, one for each."""
    waiting: list[str] = []
    function: str | None = None
    before: dict[str, Any] = {}
    for position, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if before.get("role") not in ("tool", "assistant") or not (
                waiting or before.get("role") == "tool"
            ):
                raise Refused(
                    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                )
            if message["tool_call_id"] not in waiting:
                raise Refused(
                    f"Invalid parameter: 'tool_call_id' of '{message['tool_call_id']}' not found in "
                    f"'tool_calls' of previous message (messages[{position}])."
                )
            waiting.remove(message["tool_call_id"])
        elif waiting:
            break
        elif function is not None and role != "function":
            raise Refused(f"messages[{position}]: the function call before it has no result.")
        elif role == "function" and message.get("name") != function:
            raise Refused(f"messages[{position}]: a function result without its call.")
        if role == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
            if len(set(waiting)) != len(waiting):
                raise Refused(f"messages[{position}]: tool call ids must be unique.")
        function = (message.get("function_call") or {}).get("name") if role == "assistant" else None
        before = message
    if waiting:
        raise Refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(waiting)
        )
