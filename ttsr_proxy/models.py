"""Asks a model for JSON: OpenAI-compatible Chat Completions, and Anthropic Messages.

The calls go to the model's API and not through the proxy's own matching: what is asked about and answered
are the very violations that rules look for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import aiohttp

from ttsr_proxy.config import join_upstream
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.jsontext import JsonObject, decode_object, encode

MAX_ANSWER = 8 * 1024 * 1024
"""Bytes of a model's answer."""

_ANTHROPIC_VERSION = "2023-06-01"
_TOOL = "emit_answer"


class ModelFailed(TtsrError):
    """A model gave no answer, and why. The message holds no credentials."""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """One model behind an API."""

    base_url: str
    model: str
    api_key_env: str
    """The environment variable that holds the key; empty for none."""
    key_setting: str
    """The configuration key that names the variable, for errors."""
    timeout: float
    """Seconds for one call."""
    max_output_tokens: int
    schema_name: str
    """What the answer is called, for APIs that want a name."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation with the model."""

    role: Literal["user", "assistant"]
    content: str


class JsonModel(Protocol):
    """A model that answers with JSON of a schema. Raises ModelFailed when it gives no answer.

    `credential` is the value of an `Authorization` header, for one call in place of the configured key.
    """

    name: str

    async def ask(
        self,
        system: str,
        messages: Sequence[Message],
        schema: JsonObject,
        credential: str | None = None,
    ) -> str: ...

    async def close(self) -> None: ...


class _Refused400(Exception):
    """Status 400, with what the API said."""


class _Http:
    """Posts JSON, with one limit on time and one on size."""

    def __init__(self, endpoint: ModelEndpoint, url: str) -> None:
        self._endpoint = endpoint
        self._url = url
        self._session: aiohttp.ClientSession | None = None

    def key(self) -> str:
        """The API key from the environment. Raises ModelFailed when the variable is not set."""
        name = self._endpoint.api_key_env
        key = os.environ.get(name, "") if name else ""
        if name and not key:
            raise ModelFailed(f"the environment variable {name} ({self._endpoint.key_setting}) is not set")
        return key

    async def post(self, headers: dict[str, str], body: JsonObject) -> JsonObject:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self._endpoint.timeout)
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=False)
        headers = {"Content-Type": "application/json", **headers}
        try:
            async with self._session.post(self._url, data=encode(body), headers=headers) as answer:
                data = await answer.content.read(MAX_ANSWER) if answer.status != 200 else await _all(answer)
        except TimeoutError as error:
            raise ModelFailed(
                f"the model did not answer within {self._endpoint.timeout:g} seconds"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelFailed(f"the model cannot be reached: {error}") from error
        said = data[:2_000].decode("utf-8", "replace")
        if answer.status == 400:
            raise _Refused400(said)
        if answer.status != 200:
            raise ModelFailed(f"the model's API answered with status {answer.status}: {said[:200]}")
        document = decode_object(data)
        if document is None:
            raise ModelFailed("the model's API answered with something that is no JSON object")
        return document

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


Form: TypeAlias = Literal["json_schema", "json_object", "text"]


class OpenAiModel:
    """Chat Completions. What a server does not know of structured output is left out, step by step."""

    _FORMS: tuple[Form, ...] = ("json_schema", "json_object", "text")

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.name = endpoint.model
        self._endpoint = endpoint
        self._http = _Http(endpoint, join_upstream(endpoint.base_url, "/v1/chat/completions"))
        self._form: Form = "json_schema"
        self._limit = "max_completion_tokens"

    async def ask(
        self,
        system: str,
        messages: Sequence[Message],
        schema: JsonObject,
        credential: str | None = None,
    ) -> str:
        if credential is None and (key := self._http.key()):
            credential = f"Bearer {key}"
        headers = {} if credential is None else {"Authorization": credential}
        while True:
            try:
                return _chat_text(await self._http.post(headers, self._body(system, messages, schema)))
            except _Refused400 as refused:
                if not self._step_back(str(refused)):
                    raise ModelFailed(f"the model's API refused the request: {str(refused)[:200]}") from None

    async def close(self) -> None:
        await self._http.close()

    def _body(self, system: str, messages: Sequence[Message], schema: JsonObject) -> JsonObject:
        body: JsonObject = {
            "model": self.name,
            "stream": False,
            self._limit: self._endpoint.max_output_tokens,
            "messages": [{"role": "system", "content": system}, *map(_as_json, messages)],
        }
        if self._form == "json_schema":
            form = {"name": self._endpoint.schema_name, "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif self._form == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def _step_back(self, said: str) -> bool:
        """Leave out what the API did not understand; False if it was something else."""
        if "max_completion_tokens" in said and self._limit == "max_completion_tokens":
            self._limit = "max_tokens"
            return True
        if self._form != "text" and any(
            word in said for word in ("response_format", "json_schema", "json_object")
        ):
            self._form = self._FORMS[self._FORMS.index(self._form) + 1]
            return True
        return False


class AnthropicModel:
    """Messages, with structured output, or a tool where the API does not know that."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.name = endpoint.model
        self._endpoint = endpoint
        self._http = _Http(endpoint, join_upstream(endpoint.base_url, "/v1/messages"))
        self._by_tool = False

    async def ask(
        self,
        system: str,
        messages: Sequence[Message],
        schema: JsonObject,
        credential: str | None = None,
    ) -> str:
        own = {"x-api-key": self._http.key()} if credential is None else _anthropic_headers(credential)
        headers = {"anthropic-version": _ANTHROPIC_VERSION, **own}
        while True:
            try:
                return _message_text(await self._http.post(headers, self._body(system, messages, schema)))
            except _Refused400 as refused:
                if self._by_tool or "output_config" not in str(refused):
                    raise ModelFailed(f"the model's API refused the request: {str(refused)[:200]}") from None
                self._by_tool = True

    async def close(self) -> None:
        await self._http.close()

    def _body(self, system: str, messages: Sequence[Message], schema: JsonObject) -> JsonObject:
        # Neither a temperature nor a forced tool: recent models refuse both.
        body: JsonObject = {
            "model": self.name,
            "max_tokens": self._endpoint.max_output_tokens,
            "system": system,
            "messages": [_as_json(message) for message in messages],
        }
        if self._by_tool:
            tool = {"name": _TOOL, "description": "Hand in the answer.", "input_schema": schema}
            return {**body, "tools": [tool], "tool_choice": {"type": "auto"}}
        return {**body, "output_config": {"format": {"type": "json_schema", "schema": schema}}}


def _anthropic_headers(credential: str) -> dict[str, str]:
    """The API takes its keys in a header of their own, and only tokens of its sign-in as `Authorization`."""
    key = credential.removeprefix("Bearer ").strip()
    return {"x-api-key": key} if key.startswith("sk-ant-api") else {"Authorization": credential}


async def _all(answer: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    async for chunk in answer.content.iter_chunked(64 * 1024):
        data += chunk
        if len(data) > MAX_ANSWER:
            raise ModelFailed(f"the model's answer is larger than {MAX_ANSWER:,} bytes")
    return bytes(data)


def _as_json(message: Message) -> JsonObject:
    return {"role": message.role, "content": message.content}


def _chat_text(document: JsonObject) -> str:
    choice = _first(document.get("choices"))
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    if message.get("refusal"):
        raise ModelFailed(f"the model refused: {str(message['refusal'])[:200]}")
    finish = choice.get("finish_reason")
    if finish != "stop":
        raise ModelFailed(f"the model's answer is not complete (finish_reason {finish!r})")
    content = message.get("content")
    if not isinstance(content, str):
        raise ModelFailed("the model's answer holds no text")
    return content


def _message_text(document: JsonObject) -> str:
    stop = document.get("stop_reason")
    if stop == "refusal":
        raise ModelFailed("the model refused")
    if stop not in ("end_turn", "tool_use", "stop_sequence"):
        raise ModelFailed(f"the model's answer is not complete (stop_reason {stop!r})")
    content = document.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    for block in blocks:
        if block.get("type") == "tool_use" and block.get("name") == _TOOL:
            return encode(block.get("input")).decode()
    return "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


def _first(items: Any) -> JsonObject:
    first = items[0] if isinstance(items, list) and items else None
    return first if isinstance(first, dict) else {}
