"""Token counts that the client is told."""

from __future__ import annotations

from ttsr_proxy.protocols.events import Usage


def usage_changes(started: Usage | None, ending: Usage | None, extra_output: int) -> dict[str, int]:
    """The last attempt's usage with `extra_output` on top of its output."""
    known = {**(started.fields if started else {}), **(ending.fields if ending else {})}
    prompt, completion = known.get("prompt_tokens"), known.get("completion_tokens")
    output = (completion if type(completion) is int else 0) + extra_output
    if type(prompt) is not int:
        return {"completion_tokens": output}
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
