"""A coding agent as a proxy sees it: it asks, runs tools, and sends everything back with the next request."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import aiohttp

from coding_agent.stream import Answer, StreamReader, read_message

Json = Any

TOOLS: list[dict[str, Any]] = [
    {
        "name": name,
        "description": name,
        "input_schema": {"type": "object", "properties": {field: {"type": "string"} for field in fields}},
    }
    for name, fields in {
        "Write": ("file_path", "content"),
        "Edit": ("file_path", "old_string", "new_string", "replace_all"),
        "Bash": ("command", "description"),
        "Read": ("file_path",),
    }.items()
]

_TOOL_DEFAULTS = {"Edit": {"replace_all": False}}


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoStyle:
    """How an agent sends back what it was given."""

    drop_unsigned: bool = False
    """Leave out thinking without a signature."""
    text_first: bool = True
    """Move text before tool calls, as all agents do."""
    add_defaults: bool = False
    """Write default values into tool input."""
    string_content: bool = False
    """A message that is one text block goes back as a string."""
    cache_last: bool = True
    """A cache breakpoint on the last block of the last message, moved every turn."""
    reserialise: bool = False
    """Tool input comes back with its keys in another order."""


class Reader(Protocol):
    """Assembles an answer from the bytes of its stream."""

    def feed(self, data: bytes) -> None:
        """More bytes; raises IllegalStream at the first illegal event."""

    def close(self) -> Answer:
        """The stream is over."""


class Agent:
    """One conversation. `messages` is the history that it believes in."""

    path = "/v1/messages"

    def __init__(
        self,
        base_url: str,
        *,
        model: str = "claude-opus-5-5",
        system: Json = "You write code.",
        tools: list[dict[str, Any]] | None = None,
        thinking: Mapping[str, Any] | None = None,
        style: EchoStyle | None = None,
        headers: Mapping[str, str] | None = None,
        stream: bool = True,
        max_tokens: int = 8000,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.base_url = base_url
        self.model = model
        self.system = system
        self.tools = TOOLS if tools is None else tools
        self.thinking = thinking
        self.style = style or EchoStyle()
        self.headers = dict(headers or {})
        self.stream = stream
        self.max_tokens = max_tokens
        self.extra = dict(extra or {})
        """Further fields of the request body."""
        self.messages: list[dict[str, Any]] = []
        self.trailing_system: str | None = None
        """Sent as the last message of every request from now on, and kept in the history."""
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def fork(self) -> Agent:
        """Another agent with the same history, sharing the connection pool."""
        other = copy.copy(self)
        other.messages = copy.deepcopy(self.messages)
        return other

    async def say(self, text: str) -> Answer:
        """A user message and the answer to it, both kept in the history."""
        self.add_user({"type": "text", "text": text})
        return await self.ask()

    async def results(self, **by_name: str) -> Answer:
        """The results of all calls of the last answer (by tool name, else "ok") and the next answer."""
        self.add_results(**by_name)
        return await self.ask()

    def add_results(self, **by_name: str) -> None:
        calls = [block for block in self.messages[-1]["content"] if block["type"] == "tool_use"]
        self.add_user(
            *(
                {"type": "tool_result", "tool_use_id": c["id"], "content": by_name.get(c["name"], "ok")}
                for c in calls
            )
        )

    def add_user(self, *blocks: dict[str, Any]) -> None:
        self.messages.append({"role": "user", "content": list(blocks)})
        if self.trailing_system is not None:
            self.messages.append({"role": "system", "content": self.trailing_system})

    def add_answer(self, answer: Answer) -> None:
        """Take an answer into the history, in this agent's style."""
        content = self._echo(answer.blocks)
        if content:
            self.messages.append({"role": "assistant", "content": content})

    async def ask(self) -> Answer:
        """Send the history as it is; a complete answer is taken into it."""
        async with self.request() as response:
            answer = Answer(response.status, {k.lower(): v for k, v in response.headers.items()}, b"")
            if response.content_type == "text/event-stream":
                reader = self._reader(answer)
                async for data in response.content.iter_any():
                    reader.feed(data)
                reader.close()
            else:
                answer.raw = await response.read()
                self._read_whole(answer)
        if answer.complete:
            self.add_answer(answer)
        return answer

    @asynccontextmanager
    async def request(self) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to the history as it is, unread."""
        async with self._http().post(
            f"{self.base_url}{self.path}", data=json.dumps(self.body()), headers=self._headers()
        ) as response:
            yield response

    async def count_tokens(self) -> int:
        body = self.body()
        body.pop("stream")
        body.pop("max_tokens")
        async with self._http().post(
            f"{self.base_url}/v1/messages/count_tokens", data=json.dumps(body), headers=self._headers()
        ) as response:
            document = await response.json()
        return int(document["input_tokens"])

    def body(self) -> dict[str, Any]:
        """The next request's body."""
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "system": self.system,
            "messages": self._written(),
            "stream": self.stream,
            **self.extra,
        }
        if self.tools:
            body["tools"] = self.tools
        if self.thinking:
            body["thinking"] = dict(self.thinking)
        return body

    def _reader(self, answer: Answer) -> Reader:
        return StreamReader(answer)

    def _read_whole(self, answer: Answer) -> None:
        read_message(answer)

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("use `async with Agent(...)`")
        return self._session

    def _headers(self) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "anthropic-version": "2023-06-01",
            "x-api-key": "sk-ant-test",
            **self.headers,
        }

    def _written(self) -> list[dict[str, Any]]:
        messages = copy.deepcopy(self.messages)
        if self.style.cache_last and isinstance(messages[-1]["content"], list):
            messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        if self.style.string_content:
            for message in messages[:-1]:
                match message["content"]:
                    case [{"type": "text", "text": text, **rest}] if not rest:
                        message["content"] = text
        return messages

    def _echo(self, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        style = self.style
        echoed = [copy.deepcopy(block) for block in blocks]
        if style.drop_unsigned:
            echoed = [b for b in echoed if b["type"] != "thinking" or b["signature"]]
        for block in echoed:
            if block["type"] != "tool_use":
                continue
            if style.add_defaults:
                block["input"] = {**block["input"], **_TOOL_DEFAULTS.get(block["name"], {})}
            if style.reserialise:
                block["input"] = dict(reversed(block["input"].items()))
        if style.text_first:
            calls = [i for i, b in enumerate(echoed) if b["type"] == "tool_use"]
            if calls:
                head, tail = echoed[: calls[0]], echoed[calls[0] :]
                moved = [b for b in tail if b["type"] == "text"]
                echoed = head + moved + [b for b in tail if b["type"] != "text"]
        return echoed
