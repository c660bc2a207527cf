"""Token counts that the client is told."""

from __future__ import annotations

from ttsr_proxy.protocols.events import Usage

_INPUT_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def usage_changes(started: Usage | None, ending: Usage | None, extra_output: int) -> dict[str, int]:
    """The last attempt's usage for the client: its input figures, its output and `extra_output` on top.

    What the final `message_delta` says replaces what `message_start` said, in SDKs and agents alike.
    """
    known = {**(started.fields if started else {}), **(ending.fields if ending else {})}
    changes = {name: known[name] for name in _INPUT_FIELDS if type(known.get(name)) is int}
    output = known.get("output_tokens")
    return {**changes, "output_tokens": (output if type(output) is int else 0) + extra_output}
