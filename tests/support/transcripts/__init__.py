"""Transcripts as Claude Code and Codex write them, line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class ClaudeCode:
    """A session of Claude Code 2. Every line follows the one before unless `after` names another."""

    def __init__(self, session: str = "session-1", cwd: str = "/work/app", agent: str | None = None) -> None:
        self.lines: list[Line] = [{"type": "queue-operation", "operation": "enqueue", "sessionId": session}]
        self._session = session
        self._cwd = cwd
        self._agent = agent
        self.last: str | None = None

    def user(self, content: Any = "Go on", *, after: str | None = None, anew: bool = False) -> str:
        """What the user says, or the result of a call. `anew`: a line without a parent."""
        return self._line("user", {"role": "user", "content": content}, after, anew=anew)

    def assistant(
        self,
        message_id: str,
        *blocks: Line,
        after: str | None = None,
        model: str = "claude-opus-5-5",
        **more: Any,
    ) -> str:
        """An answer: a line for each of its blocks."""
        key = ""
        for block in blocks:
            message = {"id": message_id, "type": "message", "role": "assistant", "model": model}
            message |= {
                "content": [block],
                "stop_reason": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
            key = self._line("assistant", message, after, **more)
            after = None
        return key

    def _line(self, kind: str, message: Line, after: str | None, *, anew: bool = False, **more: Any) -> str:
        key = f"{self._session}-{self._agent or 'main'}-{len(self.lines)}"
        agent = {} if self._agent is None else {"agentId": self._agent}
        self.lines.append(
            {
                "parentUuid": None if anew else after or self.last,
                "isSidechain": self._agent is not None,
                **agent,
                "type": kind,
                "message": message,
                "uuid": key,
                "timestamp": f"2026-03-01T12:00:{len(self.lines):02}.000Z",
                "cwd": self._cwd,
                "sessionId": self._session,
                "version": "2.1.332",
                **more,
            }
        )
        self.last = key
        return key


def says(text: str) -> Line:
    return {"type": "text", "text": text}


def thinks(text: str) -> Line:
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


def calls(tool: str, **arguments: Any) -> Line:
    return {
        "type": "tool_use",
        "id": f"toolu_{abs(hash(str(arguments))) % 10**8}",
        "name": tool,
        "input": arguments,
    }


def writes(path: str, content: str) -> Line:
    return calls("Write", file_path=path, content=content)


def result() -> list[Line]:
    return [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}]


class Codex:
    """A rollout of Codex."""

    def __init__(self, session: str = "session-1", cwd: str = "/work/app", source: Any = "exec") -> None:
        self.lines: list[Line] = []
        self.line("session_meta", id=session, cwd=cwd, originator="codex_exec", source=source)
        self.line("event_msg", type="task_started", turn_id="1")
        self.item(type="message", role="developer", content=[{"type": "input_text", "text": "Be BAD"}])
        self.line("turn_context", cwd=cwd, model="gpt-5.5")

    def line(self, kind: str, **payload: Any) -> None:
        time = f"2026-03-01T12:00:{len(self.lines):02}.000Z"
        self.lines.append({"timestamp": time, "type": kind, "payload": payload})

    def item(self, **item: Any) -> None:
        self.line("response_item", **item)

    def user(self, text: str = "Go on") -> None:
        self.item(type="message", role="user", content=[{"type": "input_text", "text": text}])

    def output(self, call: str = "call_1") -> None:
        self.item(type="function_call_output", call_id=call, output="done")

    def says(self, text: str) -> None:
        self.line("event_msg", type="agent_message", message=text)
        self.item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])

    def thinks(self, text: str) -> None:
        summary = [{"type": "summary_text", "text": text}]
        self.item(type="reasoning", summary=summary, content=None, encrypted_content="gAAA")

    def calls(self, tool: str, arguments: Line, call: str = "call_1") -> None:
        self.item(type="function_call", name=tool, arguments=json.dumps(arguments), call_id=call)

    def patches(self, path: str, line: str, call: str = "call_1") -> None:
        patch = f"*** Begin Patch\n*** Add File: {path}\n+{line}\n*** End Patch\n"
        self.item(type="custom_tool_call", name="apply_patch", input=patch, call_id=call, status="completed")


def as_bytes(lines: Iterable[Line]) -> list[bytes]:
    return [json.dumps(line).encode() + b"\n" for line in lines]


def write_transcript(path: Path, lines: Iterable[Line]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(as_bytes(lines)))
    return path
