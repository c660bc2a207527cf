"""Transcripts of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`.

A line is `{"type": ..., "payload": ...}`. `response_item` lines are the items of the Responses API, those of
the model and those that answer it. Nothing but their order says which belong to one response: what follows a
tool's output or a user's message is the next one. Newer versions end a response with `token_usage_record`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ttsr_proxy.jsontext import JsonObject, encode
from ttsr_proxy.protocols.openai_responses import OPENAI_RESPONSES
from ttsr_proxy.replay.steps import Output, Speaker, Step, UnreadableLine, object_of, text_of

_LINES = frozenset(
    ("session_meta", "turn_context", "response_item", "event_msg", "compacted", "token_usage_record")
)


class CodexTranscript:
    """A `TranscriptReader`."""

    def __init__(self) -> None:
        self._root = ""
        self._conversation = ""
        self._agent = "main"
        self._model = ""
        self._responses = 0
        self._open = False
        """Further items of the model belong to the response of the last one."""
        self._last: str | None = None

    @staticmethod
    def recognises(value: JsonObject) -> bool:
        """Whether a line is of such a transcript."""
        return text_of(value, "type") in _LINES and isinstance(value.get("payload"), dict)

    def read(self, line: int, value: JsonObject) -> Iterator[Step]:
        payload = value.get("payload")
        if not isinstance(payload, dict):
            raise UnreadableLine("`payload` is no object")
        match value.get("type"):
            case "session_meta":
                self._begin(payload)
            case "turn_context":
                self._root = self._root or text_of(payload, "cwd")
                self._model = text_of(payload, "model") or self._model
            case "token_usage_record":
                self._open = False
            case "compacted":
                self._open, self._last = False, None
            case "response_item" if _is_output(payload):
                yield self._step(line, payload, text_of(value, "timestamp"))
            case "response_item":
                self._open = False

    def _begin(self, meta: JsonObject) -> None:
        if self._conversation:
            # A fork has the head of its origin too, behind its own.
            return
        self._conversation = text_of(meta, "id") or text_of(meta, "session_id")
        self._root = self._root or text_of(meta, "cwd")
        source = meta.get("source")
        if isinstance(source, dict) and "subagent" in source:
            self._agent = _agent_name(source["subagent"]) or "sub-agent"

    def _step(self, line: int, item: JsonObject, time: str) -> Step:
        events = OPENAI_RESPONSES.read_message(encode({"output": [item]}))
        if events is None:
            raise UnreadableLine("`payload` is no item of a response")
        if not self._open:
            self._responses += 1
            self._open = True
        output = Output(
            OPENAI_RESPONSES,
            events,
            str(self._responses),
            Speaker("codex", self._agent, self._conversation, self._model),
            self._root,
            time,
            identity=text_of(item, "call_id") or text_of(item, "id"),
        )
        parent, self._last = self._last, str(line)
        return Step(line, str(line), parent, (output,))


def _is_output(item: JsonObject) -> bool:
    kind = text_of(item, "type")
    if kind == "message":
        return item.get("role") == "assistant"
    return kind == "reasoning" or kind.endswith("_call")


def _agent_name(subagent: object) -> str:
    """`review`, or the name or role of one that was spawned."""
    if isinstance(subagent, str):
        return subagent
    if not isinstance(subagent, dict):
        return ""
    spawned = object_of(subagent, "thread_spawn")
    return (
        text_of(spawned, "agent_path").removeprefix("/root").strip("/")
        or text_of(spawned, "agent_nickname")
        or text_of(spawned, "agent_role")
        or text_of(subagent, "other")
    )
