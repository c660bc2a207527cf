"""Reads a Chat Completions stream as strictly as the strictest client does."""

from __future__ import annotations

import json
from typing import Any

from coding_agent.stream import Answer, IllegalStream

_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
_IDENTITY = ("id", "created", "model", "system_fingerprint")
_USAGE = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


class ChatStreamReader:
    """Assembles an `Answer`: its `message` is that of the API, its `blocks` are in the words of all tests."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self._rest = b""
        self._identity: dict[str, Any] | None = None
        self._done = False

    def feed(self, data: bytes) -> None:
        self.answer.raw += data
        self._rest += data.replace(b"\r\n", b"\n")
        while b"\n\n" in self._rest:
            event, self._rest = self._rest.split(b"\n\n", 1)
            self._event(event.decode())

    def close(self) -> Answer:
        """The answer; without a reason to stop `complete` is false."""
        if self._rest.strip():
            raise IllegalStream(f"bytes after the last event: {self._rest!r}")
        answer = self.answer
        answer.complete = answer.stop_reason is not None and answer.error is None
        answer.blocks = _blocks(answer.message)
        if answer.complete:
            self._check_whole()
        return answer

    def _check_whole(self) -> None:
        message = self.answer.message
        calls = message.get("tool_calls", [])
        for call in calls:
            json.loads(call["function"]["arguments"] or "{}")
        wanted = (
            {"tool_calls"}
            if calls
            else {"function_call"}
            if "function_call" in message
            else {"stop", "length"}
        )
        if self.answer.stop_reason not in wanted:
            raise IllegalStream(f"stop reason {self.answer.stop_reason!r} with {message}")

    def _event(self, source: str) -> None:
        lines = [line for line in source.split("\n") if not line.startswith(":")]
        if not lines:
            return
        if len(lines) != 1 or not lines[0].startswith("data: "):
            raise IllegalStream(f"not one line of data: {source!r}")
        if self._done:
            raise IllegalStream(f"an event after [DONE]: {source!r}")
        if lines[0] == "data: [DONE]":
            self._done = True
            return
        payload = json.loads(lines[0].removeprefix("data: "))
        self.answer.events.append(payload)
        if "error" in payload:
            self.answer.error = payload["error"]
            return
        self._chunk(payload)

    def _chunk(self, payload: dict[str, Any]) -> None:
        if payload["object"] not in ("chat.completion.chunk", ""):
            raise IllegalStream(f"object {payload['object']!r}")
        if payload["choices"] or payload.get("usage"):
            identity = {name: payload.get(name) for name in _IDENTITY}
            if self._identity not in (None, identity):
                raise IllegalStream(f"identity changes from {self._identity} to {identity}")
            self._identity = identity
        if payload.get("usage"):
            if self.answer.usage:
                raise IllegalStream("two usages")
            usage = payload["usage"]
            if usage["total_tokens"] != usage["prompt_tokens"] + usage["completion_tokens"]:
                raise IllegalStream(f"usage does not add up: {usage}")
            self.answer.usage = {ours: usage[theirs] for theirs, ours in _USAGE.items()}
        for choice in payload["choices"]:
            if choice["index"] != 0:
                raise IllegalStream(f"choice {choice['index']}")
            self._delta(choice["delta"])
            if choice["finish_reason"] is not None:
                if self.answer.stop_reason is not None:
                    raise IllegalStream("two reasons to stop")
                self.answer.stop_reason = choice["finish_reason"]

    def _delta(self, delta: dict[str, Any]) -> None:
        message = self.answer.message
        says = any(value for name, value in delta.items() if name != "role")
        if says and self.answer.stop_reason is not None:
            raise IllegalStream("content after the reason to stop")
        if not message and delta.get("role") != "assistant":
            raise IllegalStream("the first delta has no role")
        message.setdefault("role", "assistant")
        for name in _TEXTS:
            if delta.get(name):
                message[name] = message.get(name, "") + delta[name]
        for piece in delta.get("tool_calls", ()):
            _add_call(message.setdefault("tool_calls", []), piece)
        older = delta.get("function_call")
        if older:
            call = message.setdefault("function_call", {"name": "", "arguments": ""})
            call["name"] += older.get("name", "")
            call["arguments"] += older.get("arguments", "")


def _add_call(calls: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Clients such as openai-python go by the index alone."""
    index, function = piece["index"], piece["function"]
    if index == len(calls):
        if not function.get("name"):
            raise IllegalStream(f"a call begins without a name: {piece}")
        if piece.get("id") and piece["id"] in {call["id"] for call in calls}:
            raise IllegalStream(f"a call id twice: {piece}")
        calls.append(
            {
                "id": piece.get("id"),
                "type": "function",
                "function": {"name": function["name"], "arguments": ""},
            }
        )
    elif index != len(calls) - 1:
        raise IllegalStream(f"call index {index} with {len(calls)} calls")
    elif piece.get("id") not in (None, calls[index]["id"]):
        raise IllegalStream(f"another call at index {index}")
    calls[index]["function"]["arguments"] += function.get("arguments") or ""


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": reasoning}] if reasoning else []
    blocks += [
        {"type": "text", "text": message[name]} for name in ("content", "refusal") if message.get(name)
    ]
    calls = [{"id": None, "function": message["function_call"]}] if "function_call" in message else []
    for call in message.get("tool_calls") or calls:
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"] or "{}")
        blocks.append({"type": "tool_use", "id": call["id"], "name": name, "input": arguments})
    return blocks


def read_completion(answer: Answer) -> Answer:
    """Fill in an answer that is one JSON document: a completion or an error."""
    document = json.loads(answer.raw) if answer.raw else {}
    if document.get("object") == "chat.completion":
        choice = document["choices"][0]
        answer.message = {name: value for name, value in choice["message"].items() if value is not None}
        answer.blocks = _blocks(answer.message)
        answer.stop_reason = choice["finish_reason"]
        answer.usage = {ours: document["usage"][theirs] for theirs, ours in _USAGE.items()}
        answer.complete = True
    else:
        answer.error = document.get("error")
    return answer
