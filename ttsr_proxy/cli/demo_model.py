"""The demo's model: an Anthropic Messages endpoint with two prepared answers.

It writes code that breaks the demo's rule, unless the request carries a reminder; then it writes code that
does not. Whoever calls it with the same history gets the same answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from ttsr_proxy import jsontext
from ttsr_proxy.jsontext import JsonObject

MODEL: Final = "demo-model"
FILE: Final = "ttsr_demo_calculator.py"
REMINDER_MARK: Final = "<system-interrupt"

VIOLATING: Final = """\
def calculate(expression: str) -> float:
    return eval(expression)
"""
CLEAN: Final = """\
import ast
import operator

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def calculate(expression: str) -> float:
    return value_of(ast.parse(expression, mode="eval").body)


def value_of(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](value_of(left), value_of(right))
    raise ValueError("only numbers and + - * / are allowed")
"""

_WRITE_TOOLS: Final = {"write": "file_path", "_write": "path"}
_PIECE: Final = 12


@dataclass(slots=True)
class DemoModel:
    """The endpoint, and what it has answered so far. `pace` is the time between two deltas, in seconds."""

    pace: float = 0.0
    attempts: list[str] = field(default_factory=list)
    """The code of each answer, as far as it was sent, in order."""

    def application(self) -> web.Application:
        """The aiohttp application to run."""
        app = web.Application()
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        return app

    async def _count_tokens(self, request: web.Request) -> web.Response:
        return web.json_response({"input_tokens": max(1, len(await request.read()) // 4)})

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body = jsontext.decode_object(await request.read()) or {}
        blocks, stop_reason = _answer(body)
        if body.get("stream") is not True:
            self.attempts.extend(map(_written, blocks))
            return web.json_response(_message(blocks, stop_reason))
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream", "cache-control": "no-cache"}
        )
        await response.prepare(request)
        place = len(self.attempts)
        self.attempts.append("")
        for event, sent in _events(blocks, stop_reason):
            data = jsontext.encode(event).decode()
            await response.write(f"event: {event['type']}\ndata: {data}\n\n".encode())
            self.attempts[place] += sent
            await asyncio.sleep(self.pace)
        return response


def _answer(body: JsonObject) -> tuple[list[JsonObject], str]:
    """The content blocks and the stop reason for a request."""
    messages = body.get("messages") or []
    if "tool_result" in jsontext.canonical(messages[-1:]):
        return [{"type": "text", "text": "Done: the calculator is written."}], "end_turn"
    reminded = REMINDER_MARK in jsontext.canonical(messages)
    code = CLEAN if reminded else VIOLATING
    announced = "It will parse the expression instead." if reminded else "I will write the calculator."
    for tool in body.get("tools") or []:
        argument = _WRITE_TOOLS.get(str(tool.get("name")).lower())
        if argument:
            call = {"type": "tool_use", "id": f"toolu_demo{len(messages)}", "name": tool["name"]}
            return [
                {"type": "text", "text": announced},
                {**call, "input": {_path_argument(tool, argument): FILE, "content": code}},
            ], "tool_use"
    return [{"type": "text", "text": f"{FILE}:\n\n```python\n{code}```\n"}], "end_turn"


def _path_argument(tool: JsonObject, usual: str) -> str:
    """The tool's own name for the path, from its schema."""
    properties = (tool.get("input_schema") or {}).get("properties") or {}
    return next((name for name in ("file_path", "filePath", "path") if name in properties), usual)


def _events(blocks: list[JsonObject], stop_reason: str) -> Iterator[tuple[JsonObject, str]]:
    """The events of a streamed answer, each with the part of the content that it carries."""
    opening = {**_message([], None), "usage": {"input_tokens": 64, "output_tokens": 1}}
    yield {"type": "message_start", "message": opening}, ""
    for index, block in enumerate(blocks):
        at = {"index": index}
        if block["type"] == "text":
            start, text = {**block, "text": ""}, block["text"]
            kind, key = "text_delta", "text"
        else:
            start, text = {**block, "input": {}}, jsontext.encode(block["input"]).decode()
            kind, key = "input_json_delta", "partial_json"
        yield {"type": "content_block_start", **at, "content_block": start}, ""
        for offset in range(0, len(text), _PIECE):
            piece = text[offset : offset + _PIECE]
            yield {"type": "content_block_delta", **at, "delta": {"type": kind, key: piece}}, piece
        yield {"type": "content_block_stop", **at}, "\n"
    usage = {"output_tokens": sum(map(len, map(_written, blocks))) // 4}
    yield (
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": usage,
        },
        "",
    )
    yield {"type": "message_stop"}, ""


def _message(blocks: list[JsonObject], stop_reason: str | None) -> JsonObject:
    return {
        "id": "msg_demo",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": blocks,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 64, "output_tokens": 64},
    }


def _written(block: JsonObject) -> str:
    return block["text"] if block["type"] == "text" else jsontext.encode(block["input"]).decode()
