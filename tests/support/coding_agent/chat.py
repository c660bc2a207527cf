"""The coding agent over Chat Completions."""

from __future__ import annotations

import copy
import json
from typing import Any

from coding_agent.agent import TOOLS, Agent, Reader
from coding_agent.chat_stream import ChatStreamReader, read_completion
from coding_agent.stream import Answer

CHAT_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["input_schema"],
        },
    }
    for tool in TOOLS
]

_STYLE_KEEPS = ("reasoning_content", "reasoning")


class ChatAgent(Agent):
    """One conversation; `messages` are those of the API.

    `echo_reasoning`: it sends reasoning back. `parts`: it writes content as a list of parts.
    """

    path = "/v1/chat/completions"

    def __init__(
        self, base_url: str, *, echo_reasoning: bool = False, parts: bool = False, **options: Any
    ) -> None:
        super().__init__(base_url, **{"model": "gpt-x", "tools": CHAT_TOOLS, **options})
        self.echo_reasoning = echo_reasoning
        self.parts = parts

    def body(self) -> dict[str, Any]:
        """The next request's body."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        trailing = [{"role": "system", "content": self.trailing_system}] if self.trailing_system else []
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*system, *copy.deepcopy(self.messages), *trailing],
            "max_completion_tokens": self.max_tokens,
            **self.extra,
        }
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if self.tools:
            body["tools"] = self.tools
        return body

    def add_results(self, **by_name: str) -> None:
        for call in self.messages[-1].get("tool_calls", ()):
            said = by_name.get(call["function"]["name"], "ok")
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": self._content(said)})
        older = self.messages[-1].get("function_call")
        if older:
            self.messages.append({"role": "function", "name": older["name"], "content": "ok"})

    def add_user(self, *blocks: dict[str, Any]) -> None:
        self.messages.append({"role": "user", "content": self._content(blocks[0]["text"])})

    def add_answer(self, answer: Answer) -> None:
        """Take an answer into the history, in this agent's style."""
        given = answer.message
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if given.get("content"):
            message["content"] = self._content(given["content"])
        for name in ("refusal", "function_call"):
            if given.get(name):
                message[name] = copy.deepcopy(given[name])
        calls = copy.deepcopy(given.get("tool_calls"))
        if calls:
            for call in calls:
                self._respell(call["function"])
            message["tool_calls"] = calls
        if self.echo_reasoning:
            message |= {name: given[name] for name in _STYLE_KEEPS if given.get(name)}
        self.messages.append(message)

    def _respell(self, function: dict[str, Any]) -> None:
        arguments = json.loads(function["arguments"] or "{}")
        if self.style.reserialise:
            arguments = dict(reversed(arguments.items()))
        if self.style.add_defaults and function["name"] == "Edit":
            arguments = {**arguments, "replace_all": False}
        function["arguments"] = json.dumps(arguments)

    def _content(self, text: str) -> Any:
        return [{"type": "text", "text": text}] if self.parts else text

    def _headers(self) -> dict[str, str]:
        return {"content-type": "application/json", "authorization": "Bearer secret-key", **self.headers}

    def _reader(self, answer: Answer) -> Reader:
        return ChatStreamReader(answer)

    def _read_whole(self, answer: Answer) -> None:
        read_completion(answer)
