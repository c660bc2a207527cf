"""Putting back what the proxy hid: from the client's history to the one that upstream knows.

Only conversations in which something was hidden are touched, and only from there on: everything before
stays as the client sends it, as it was when upstream first saw it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ttsr_proxy.jsontext import JsonObject, decode_object
from ttsr_proxy.protocols.history import HistoryItem, Role
from ttsr_proxy.sessions.echoes import join_prose
from ttsr_proxy.sessions.recall import Recalled
from ttsr_proxy.sessions.record import ResponseRecord, ShadowBlock

ItemOf: TypeAlias = Callable[[JsonObject, Role], HistoryItem]
"""A protocol's way to make an item of a block and a role."""

KeepMarks: TypeAlias = Callable[[JsonObject, JsonObject], JsonObject]
"""(recorded, client's): the recorded block with the client's own marks (cache breakpoints)."""


def restore(
    items: Sequence[HistoryItem], recalled: Recalled, item_of: ItemOf, keep_marks: KeepMarks
) -> tuple[HistoryItem, ...]:
    """The history as upstream saw it. Without anything hidden, the items themselves."""
    if not recalled.hidden:
        return tuple(items)
    restored = _due(recalled.continued, item_of) if recalled.continued is not None else []
    done: dict[str, int] = {}
    position = 0
    for echo in recalled.echoes:
        restored.extend(items[position : echo.start])
        run = items[echo.start : echo.end]
        record = recalled.records.get(echo.start)
        if record is None or not record.hidden:
            restored.extend(run)
        else:
            if record.id not in done:
                append_to_user(restored, [item_of(block, "user") for block in record.tail])
            # Where results stand between the calls of one response, its echo comes in several runs.
            rebuilt, done[record.id] = _rebuild(run, record, done.get(record.id, 0), item_of, keep_marks)
            restored.extend(rebuilt)
        position = echo.end
    restored.extend(items[position:])
    return tuple(restored)


def previous_id(asked_for: str | None, recalled: Recalled) -> str | None:
    """The response that upstream is asked to continue: what it knows in place of what the client knows."""
    record = recalled.continued
    if record is None:
        return asked_for
    return record.upstream or record.after


def _due(record: ResponseRecord, item_of: ItemOf) -> list[HistoryItem]:
    """What upstream lacks of a response that is continued by its id.

    Of one that it keeps, the results of hidden calls, for which the client had to do its own first. One that
    it does not keep, and what was asked for it, is said again in its place.
    """
    if record.upstream is not None:
        return [item_of(block.value, block.role) for block in _waiting_results(record.produced)]
    items = [item_of(block.value, block.role) for block in record.asked]
    append_to_user(items, [item_of(block, "user") for block in record.tail])
    return [*items, *(item_of(block.value, block.role) for block in record.produced)]


def _waiting_results(produced: Sequence[ShadowBlock]) -> Sequence[ShadowBlock]:
    """The results at the end, if they stand beside calls of the client."""
    end = len(produced)
    while end and produced[end - 1].kind == "tool_result":
        end -= 1
    for block in reversed(produced[:end]):
        if block.role == "user":
            break
        if block.kind == "tool_call" and block.given is not None:
            return produced[end:]
    return ()


def append_to_user(items: list[HistoryItem], blocks: Sequence[HistoryItem]) -> None:
    """Put blocks at the end of the last user message: before a trailing system message or prefill.

    Without a user message they follow the system messages at the very beginning.
    """
    if not blocks:
        return
    last = next((i for i in range(len(items) - 1, -1, -1) if items[i].role == "user"), None)
    opening = next((i for i, item in enumerate(items) if item.role != "system"), len(items))
    at = opening if last is None else last + 1
    items[at:at] = blocks


def _rebuild(
    run: Sequence[HistoryItem], record: ResponseRecord, start: int, item_of: ItemOf, keep_marks: KeepMarks
) -> tuple[list[HistoryItem], int]:
    """The run as upstream knows it, from the record's block `start` on, and the block behind its last."""
    echoed, added = _pair(run, record)
    blocks = record.produced
    last = max((i for i, block in enumerate(blocks) if block.given in echoed), default=start - 1)
    # A hidden user turn right behind the last echoed block still belongs to what the model was told, and
    # so do hidden calls, whose results stand there.
    while last + 1 < len(blocks) and _goes_along(blocks[last + 1]):
        last += 1
    rebuilt = list(added.get(-1, ()))
    message = run[0].message
    for block in blocks[start : last + 1]:
        if block.given is None:
            rebuilt.append(item_of(block.value, block.role))
        elif block.given in echoed:
            item = echoed[block.given]
            rebuilt.append(_settle(item, item_of(keep_marks(block.value, item.value), block.role)))
            message = item.message
        if block.given is not None:
            rebuilt.extend(added.pop(block.given, ()))
    for position in sorted(added):
        if position >= 0:
            rebuilt.extend(added[position])
    return [item if item.role == "user" else _in_message(item, message) for item in rebuilt], last + 1


def _goes_along(block: ShadowBlock) -> bool:
    return block.given is None and (block.role == "user" or block.kind == "tool_call")


def _in_message(item: HistoryItem, message: int | None) -> HistoryItem:
    return item if item.message is not None else item._replace(message=message)


def _pair(
    run: Sequence[HistoryItem], record: ResponseRecord
) -> tuple[dict[int, HistoryItem], dict[int, list[HistoryItem]]]:
    """Which given block each echoed item is, and what the client added, by the given block it follows."""
    echoed: dict[int, HistoryItem] = {}
    added: dict[int, list[HistoryItem]] = {}
    after = -1
    for item in run:
        positions = _given_as(item, record, echoed)
        if positions:
            echoed.update(dict.fromkeys(positions, item))
            after = positions[-1]
        else:
            added.setdefault(after, []).append(item)
    return echoed, added


def _given_as(item: HistoryItem, record: ResponseRecord, taken: Mapping[int, HistoryItem]) -> list[int]:
    """The given blocks that an echoed item stands for: one, or several texts that the client joined.

    Chat clients also join reasoning, which nothing signs there.
    """
    given = record.given
    free = [i for i, block in enumerate(given) if i not in taken and block.kind == item.kind]
    if item.anchor is not None:
        known = [i for i in free if item.anchor in (given[i].anchor, given[i].alias)]
        if known or item.kind not in ("tool_call", "text"):
            return known[:1]
    if item.kind == "tool_call":
        nameless = [i for i in free if given[i].anchor is None]
        return [i for i in nameless if _same_call(given[i].text, item.text)][:1]
    said = item.text
    same = [i for i in free if given[i].text == said][:1]
    if same or item.kind not in ("text", "thinking"):
        return same
    text = join_prose((said,))
    if not text:
        return []
    whole = [i for i in free if join_prose((given[i].text,)) == text]
    if whole:
        return whole[:1]
    for start in range(len(free)):
        joined = ""
        for end in range(start, len(free)):
            joined = join_prose((joined, given[free[end]].text))
            if joined.startswith(text):
                # All of these blocks, or the beginning that was kept when the user cut the answer short.
                return free[start : end + 1]
            if not text.startswith(joined):
                break
    return []


def _settle(item: HistoryItem, recorded: HistoryItem) -> HistoryItem:
    """The recorded block, unless the client changed what it says. Added defaults are no change.

    A call whose id the client has made up stays the client's, since its result refers to that id.
    """
    changed = item.kind == "tool_call" and (
        item.anchor != recorded.anchor or not _same_call(recorded.text, item.text)
    )
    return item if changed else recorded._replace(message=item.message)


def _same_call(recorded: str, echoed: str) -> bool:
    ours, theirs = decode_object(recorded), decode_object(echoed)
    if ours is None or theirs is None:
        return recorded == echoed
    if ours.get("id") == "":
        # The client has made up the id that the server did not give.
        del ours["id"]
    return _within(ours, theirs)


def _within(ours: object, theirs: object) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return all(key in theirs and _within(value, theirs[key]) for key, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_within, ours, theirs))
    return ours == theirs
