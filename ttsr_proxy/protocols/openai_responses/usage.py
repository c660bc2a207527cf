"""Token counts that the client is told."""

from __future__ import annotations

from ttsr_proxy.protocols.events import Usage


def usage_changes(started: Usage | None, ending: Usage | None, extra_output: int) -> dict[str, int]:
    """The last attempt's usage for the client: its input figures, its output and `extra_output` on top.

    An answer that was aborted has none: upstream tells its figures only at the end.
    """
    usage = ending if ending is not None and ending.input_tokens is not None else started
    changes: dict[str, int] = {}
    if usage is not None and usage.input_tokens is not None:
        changes["input_tokens"] = usage.input_tokens
    output = usage.output_tokens if usage is not None else None
    return {**changes, "output_tokens": (output or 0) + extra_output}
