"""An agent's own tool for what the script wants done.

Each row is a tool name and how its arguments are written; the first one that the request offers is taken.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from scripted_model.asked import Asked, Tool
from scripted_model.steps import Call, Edit, Read, Shell, Spawn, Write

Arguments: TypeAlias = "dict[str, Any] | str"


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call of an agent's tool."""

    tool: Tool
    arguments: Arguments
    """Text for a custom tool."""

    @property
    def written(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


def invocation(call: Call, asked: Asked, project: Path) -> Invocation:
    """The call as this agent spells it; an agent without such a tool does it in its shell."""
    for names, arguments in _SPELLINGS[type(call)]:
        tool = asked.tool(*names)
        if tool is not None:
            return Invocation(tool, arguments(call, tool, asked, project))
    command = _in_shell(call)
    for names, arguments in _SPELLINGS[Shell]:
        tool = asked.tool(*names)
        if tool is not None:
            return Invocation(tool, arguments(Shell(command), tool, asked, project))
    raise LookupError(f"no tool for {call} among {[tool.name for tool in asked.tools]}")


def _in_shell(call: Call) -> str:
    match call:
        case Read(path):
            return f"cat {shlex.quote(path)}"
        case Write(path, content):
            return f"cat > {shlex.quote(path)} <<'EOF'\n{content}EOF\n"
        case Edit(path, old, new):
            return f"apply_patch <<'EOF'\n{_patch(Edit(path, old, new))}EOF\n"
        case Shell(command):
            return command
        case Spawn():
            raise LookupError("a sub-agent cannot be started from a shell")


def _patch(call: Write | Edit) -> str:
    if isinstance(call, Write):
        added = "".join(f"+{line}\n" for line in call.content.splitlines())
        body = f"*** Add File: {call.path}\n{added}"
    else:
        body = f"*** Update File: {call.path}\n@@\n-{call.old}\n+{call.new}\n"
    return f"*** Begin Patch\n{body}*** End Patch\n"


def _hashline(call: Edit, asked: Asked) -> str:
    """omp's patch: a replaced line below the file's tag, which its read tool has shown."""
    tags = re.findall(rf"\[([^\[\]\s]*{re.escape(call.path)})#([0-9A-Za-z]+)\]", asked.text)
    path, tag = tags[-1]
    numbered = re.findall(rf"(\d+):{re.escape(call.old)}", asked.text)
    line = numbered[-1]
    return f"*** Begin Patch\n[{path}#{tag}]\nPUT {line}.={line}:\n+{call.new}\n*** End Patch\n"


def _javascript(call: Call) -> str:
    """Codex's `exec`, whose input is a script that calls the tools."""
    if isinstance(call, Write | Edit):
        return f"text(await tools.apply_patch({json.dumps(_patch(call))}));\n"
    return f"text(await tools.exec_command({json.dumps({'cmd': _in_shell(call)})}));\n"


def _patch_arguments(call: Any, tool: Tool, asked: Asked, project: Path) -> Arguments:
    if tool.kind == "custom":
        return _patch(call)
    return {"patchText" if "patchText" in tool.declared else "input": _patch(call)}


def _file_arguments(call: Any, tool: Tool, asked: Asked, project: Path) -> Arguments:
    path = call.path if "://" in call.path else str(project / call.path)
    key = next(key for key in ("file_path", "filePath", "path") if f'"{key}"' in tool.declared)
    arguments = {key: path}
    if isinstance(call, Write):
        arguments["content"] = call.content
    return _with_intent(tool, arguments)


def _edit_arguments(call: Edit, tool: Tool, asked: Asked, project: Path) -> Arguments:
    if '"old_string"' in tool.declared:
        return {"file_path": str(project / call.path), "old_string": call.old, "new_string": call.new}
    if '"oldString"' in tool.declared:
        return {"filePath": str(project / call.path), "oldString": call.old, "newString": call.new}
    return _with_intent(tool, {"input": _hashline(call, asked)})


def _shell_arguments(call: Shell, tool: Tool, asked: Asked, project: Path) -> Arguments:
    if tool.name == "exec_command":
        return {"cmd": call.command}
    arguments = {"command": call.command}
    if '"description"' in tool.declared:
        arguments["description"] = "Run a command"
    return _with_intent(tool, arguments)


def _spawn_arguments(call: Spawn, tool: Tool, asked: Asked, project: Path) -> Arguments:
    if tool.name == "spawn_agent":
        return {"message": call.prompt, "task_name": "helper"}
    kind = "general-purpose" if tool.name == "Agent" else "general"
    return {"description": "A task", "prompt": call.prompt, "subagent_type": kind}


def _with_intent(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """omp's tools say in `i` what the call is for."""
    properties = json.loads(tool.declared)
    text = json.dumps(properties)
    return {"i": "As asked", **arguments} if '"i": {' in text else arguments


Spelling: TypeAlias = "tuple[tuple[str, ...], Callable[[Any, Tool, Asked, Path], Arguments]]"

_EXEC: Spelling = (("exec",), lambda call, tool, asked, project: _javascript(call))

_SPELLINGS: dict[type, tuple[Spelling, ...]] = {
    Read: (_EXEC, (("Read", "read", "_read"), _file_arguments)),
    Write: (_EXEC, (("Write", "write", "_write"), _file_arguments), (("apply_patch",), _patch_arguments)),
    Edit: (_EXEC, (("Edit", "edit", "_edit"), _edit_arguments), (("apply_patch",), _patch_arguments)),
    Shell: (_EXEC, (("Bash", "bash", "_bash", "exec_command"), _shell_arguments)),
    Spawn: ((("Agent", "task", "spawn_agent"), _spawn_arguments),),
}
