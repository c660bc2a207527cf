"""Transcripts of Claude Code: `~/.claude/projects/<project>/<session>.jsonl`, and those of its sub-agents.

Every line has a `uuid` and a `parentUuid`, so that a file is a tree: a rewind makes a fork, a sub-agent and a
compacted history begin at a line without a parent. A response stands on several lines, one for each of its
blocks, with the same `message.id`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ttsr_proxy.jsontext import JsonObject, encode
from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.replay.steps import Output, Speaker, Step, UnreadableLine, object_of, text_of

_NOT_A_MODEL = "<synthetic>"
"""Claude Code's own words in the place of an answer, about an API error for instance."""


class ClaudeCodeTranscript:
    """A `TranscriptReader`."""

    def __init__(self) -> None:
        self._root = ""

    @staticmethod
    def recognises(value: JsonObject) -> bool:
        """Whether a line is of such a transcript."""
        return "sessionId" in value or ("parentUuid" in value and "uuid" in value)

    def read(self, line: int, value: JsonObject) -> Iterator[Step]:
        self._root = self._root or text_of(value, "cwd")
        key = text_of(value, "uuid")
        if not key:
            # Notes of the agent to itself: titles, costs, prompts.
            return
        parent = value.get("parentUuid")
        if parent is not None and not isinstance(parent, str):
            raise UnreadableLine("`parentUuid` is no text")
        outputs = (self._output(value),) if value.get("type") == "assistant" else ()
        yield Step(line, key, parent, tuple(output for output in outputs if output is not None))

    def _output(self, value: JsonObject) -> Output | None:
        message = object_of(value, "message")
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        events = ANTHROPIC.read_message(encode({**message, "role": "assistant", "content": content}))
        if events is None:
            raise UnreadableLine("`message` is no answer of a model")
        model = text_of(message, "model")
        if model == _NOT_A_MODEL or value.get("isApiErrorMessage") is True:
            return None
        agent = text_of(value, "agentId") or ("sub-agent" if value.get("isSidechain") is True else "main")
        response = text_of(message, "id") or text_of(value, "requestId") or text_of(value, "uuid")
        return Output(
            ANTHROPIC,
            events,
            response,
            Speaker("claude-code", agent, text_of(value, "sessionId"), model),
            self._root,
            text_of(value, "timestamp"),
            identity=response,
        )
