"""The coding agent over the Responses API."""

from __future__ import annotations

import copy
import json
from typing import Any

from coding_agent.agent import TOOLS, Agent, Reader
from coding_agent.responses_stream import ResponsesStreamReader, read_response
from coding_agent.stream import Answer

RESPONSES_TOOLS: list[dict[str, Any]] = [
    *(
        {
            "type": "function",
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["input_schema"],
        }
        for tool in TOOLS
    ),
    {"type": "custom", "name": "apply_patch"},
    {"type": "shell"},
]

_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "shell_call": "shell_call_output",
}


class ResponsesAgent(Agent):
    """One conversation; `messages` are the input items of the API.

    `chains`: it continues the last response by its id and sends only what is new; else upstream keeps
    nothing, unless `store` says so, and reasoning comes encrypted. `ids`: it sends items back with their ids.
    `interleaves`: each result stands behind its call.
    """

    path = "/v1/responses"

    def __init__(
        self,
        base_url: str,
        *,
        chains: bool = False,
        store: bool | None = None,
        ids: bool = True,
        interleaves: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(base_url, **{"model": "gpt-x", "tools": RESPONSES_TOOLS, **options})
        self.chains = chains
        self.store = chains if store is None else store
        self.ids = ids
        self.interleaves = interleaves
        self.last_id: str | None = None
        self.sent = 0
        """How many of the items upstream has, where the agent chains."""

    def body(self) -> dict[str, Any]:
        """The next request's body."""
        body: dict[str, Any] = {
            "model": self.model,
            "instructions": self.system,
            "input": copy.deepcopy(self.messages[self.sent :] if self.chains else self.messages),
            "stream": self.stream,
            "max_output_tokens": self.max_tokens,
            **self.extra,
        }
        if not self.store:
            body |= {"store": False, "include": ["reasoning.encrypted_content"]}
        if self.chains and self.last_id is not None:
            body["previous_response_id"] = self.last_id
        if self.tools:
            body["tools"] = self.tools
        return body

    @property
    def open_calls(self) -> list[dict[str, Any]]:
        answered = {item["call_id"] for item in self.messages if item.get("type") in _OUTPUTS.values()}
        calls = [item for item in self.messages if item.get("type") in _OUTPUTS]
        return [call for call in calls if call["call_id"] not in answered]

    def add_results(self, **by_name: str) -> None:
        for call in self.open_calls:
            said: Any = by_name.get(call.get("name", "shell"), "ok")
            if call["type"] == "shell_call":
                said = [{"stdout": said, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
            result = {"type": _OUTPUTS[call["type"]], "call_id": call["call_id"], "output": said}
            at = self.messages.index(call) + 1 if self.interleaves else len(self.messages)
            self.messages.insert(at, result)

    def add_user(self, *blocks: dict[str, Any]) -> None:
        content = [{"type": "input_text", "text": block["text"]} for block in blocks]
        self.messages.append({"type": "message", "role": "user", "content": content})

    def add_answer(self, answer: Answer) -> None:
        """Take an answer into the history, in this agent's style. Reasoning that never ended is dropped."""
        for item in answer.message["output"]:
            if item["type"] == "reasoning" and item.get("status") == "incomplete":
                continue
            echoed = copy.deepcopy(item)
            if not self.ids and item["type"] in ("message", "reasoning", *_OUTPUTS):
                del echoed["id"]
            self.messages.append(echoed)
        self.last_id = answer.message["id"]
        self.sent = len(self.messages)

    def _headers(self) -> dict[str, str]:
        return {"content-type": "application/json", "authorization": "Bearer secret-key", **self.headers}

    def _reader(self, answer: Answer) -> Reader:
        return ResponsesStreamReader(answer)

    def _read_whole(self, answer: Answer) -> None:
        read_response(answer)


def arguments(call: dict[str, Any]) -> Any:
    """What a function call says."""
    return json.loads(call["arguments"])
