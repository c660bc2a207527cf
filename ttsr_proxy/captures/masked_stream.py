"""A streamed answer without secrets, also those that its events cut in pieces."""

from __future__ import annotations

import json

from ttsr_proxy.interrupts.masking import mask, mask_together
from ttsr_proxy.protocols.events import BlockDelta, BlockStarted
from ttsr_proxy.protocols.protocol import WireProtocol

_LEFT_OUT = b": an event with a part of a secret was left out\n\n"


def masked_stream(body: bytes, protocol: WireProtocol) -> str:
    """The events as they came but for secrets in them. Bytes that are no text become lone surrogates.

    A secret in a block's text may be spread over many deltas. Each gets its part of the masked text in place
    of its own; where that cannot be told apart in the event, the event is left out.
    """
    reader = protocol.reader()
    raws: list[bytes] = []
    blocks: list[list[tuple[int, str]]] = []
    open_blocks: dict[int, list[tuple[int, str]]] = {}
    for event in (*reader.feed(body), *reader.finish()):
        if event.raw or not raws:
            raws.append(event.raw)
        if isinstance(event, BlockStarted):
            open_blocks[event.index] = []
            blocks.append(open_blocks[event.index])
        elif isinstance(event, BlockDelta) and event.index in open_blocks:
            open_blocks[event.index].append((len(raws) - 1, event.text))
    for block in blocks:
        masked, _ = mask_together([text for _, text in block], ())
        for (at, text), instead in zip(block, masked, strict=True):
            if instead != text:
                raws[at] = _with_text(raws[at], text, instead)
    texts = [raw.decode("utf-8", "surrogateescape") for raw in raws]
    whole = "".join(texts)
    # One event at a time: nothing that is masked may reach over the end of an event.
    return whole if mask(whole) == whole else "".join(map(mask, texts))


def _with_text(raw: bytes, text: str, instead: str) -> bytes:
    for ascii_only in (False, True):
        written = json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "surrogatepass")
        if written in raw:
            return raw.replace(written, json.dumps(instead, ensure_ascii=ascii_only)[1:-1].encode())
    return _LEFT_OUT
