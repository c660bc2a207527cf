"""The conversation as upstream has it while one response comes about: what was said, what came back.

Reminders stand at *places*. The open place holds the reminder of the last interrupt; a further interrupt
before anything was delivered replaces it, and once something was delivered it is frozen where it stands,
because the model's answer (and its signed thinking) follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.protocols.request import ApiRequest
from ttsr_proxy.sessions.record import PendingReminder, ShadowBlock
from ttsr_proxy.sessions.shadow import append_to_user

Form: TypeAlias = Literal["reminded", "translated", "client"]
"""The forms of a request: with new material, with only what upstream already knows, as the client sent it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the reminder of an interrupt stands.

    `kept` is violating output that stays visible to the model, `results` answer its calls. Without either,
    and before anything was produced, the reminder is appended to the last user message.
    """

    rules: tuple[str, ...]
    reminder: str
    kept: tuple[ShadowBlock, ...] = ()
    results: tuple[HistoryItem, ...] = ()


class Draft:
    """`items` is the translated history, `deferred` what earlier responses left for this request.

    `previous` is the id of the response to be continued, as upstream knows it. `prompt` extends the system
    prompt; it is new in the first request of a conversation.
    """

    def __init__(
        self,
        protocol: WireProtocol,
        request: ApiRequest,
        items: Sequence[HistoryItem],
        deferred: Sequence[PendingReminder],
        *,
        without_thinking: bool,
        previous: str | None = None,
        prompt: str = "",
        prompt_is_new: bool = False,
    ) -> None:
        self._protocol = protocol
        self._request = request
        self._renamed = previous != request.previous
        self._asked = replace(request, previous=previous)
        self._items = tuple(items)
        self.deferred = tuple(deferred)
        self.without_thinking = without_thinking
        self.form: Form = "reminded"
        self._prompt = prompt
        self._prompt_is_new = prompt_is_new
        self._tail: list[str] = []
        """Frozen reminders at the end of the last user message."""
        self._produced: list[ShadowBlock] = []
        self._frozen_rules: list[str] = []
        self.place: Place | None = None

    @property
    def has_news(self) -> bool:
        """The request would carry something that upstream has not seen yet."""
        return self.reminds or bool(self._prompt and self._prompt_is_new)

    @property
    def reminds(self) -> bool:
        """The request would carry reminders that upstream has not seen yet."""
        return bool(self.deferred or self._tail or self._produced or self.place)

    @property
    def prompt(self) -> str:
        """What the current form adds to the system prompt."""
        kept = self.form == "reminded" or (self.form == "translated" and not self._prompt_is_new)
        return self._prompt if kept else ""

    @property
    def translated(self) -> bool:
        """The translated history differs from what the client sent."""
        return (
            self._renamed
            or self._items != self._request.items
            or bool(self._prompt and not self._prompt_is_new)
        )

    @property
    def asked(self) -> tuple[HistoryItem, ...]:
        """What the request says, without what this response adds."""
        return self._items

    @property
    def previous(self) -> str | None:
        """The id of the response that upstream is asked to continue."""
        return self._asked.previous

    @property
    def produced(self) -> tuple[ShadowBlock, ...]:
        return tuple(self._produced)

    @property
    def continues(self) -> bool:
        """The next attempt continues an answer whose beginning was delivered."""
        return bool(self._produced)

    @property
    def reminders(self) -> tuple[str, ...]:
        """The texts of all reminders that this response's request carries, hidden turns included."""
        texts = [pending.text for pending in self.deferred] + self._tail
        texts += [str(b.value.get("text", "")) for b in self._produced if b.role == "user"]
        return (*texts, self.place.reminder) if self.place else tuple(texts)

    def body(self, raw: bytes, *, spent_tokens: int = 0) -> bytes:
        """The request body in the current form; the client's own bytes when nothing is to change.

        `spent_tokens` were delivered by earlier attempts and come off the client's cap.
        """
        if self.form == "client":
            return raw
        items, more = self.items(), self.prompt or None
        if items == self._request.items and not self._renamed and more is None:
            return raw
        cap = self._request.max_tokens
        if not self.continues or cap is None or self.form != "reminded":
            return self._protocol.write_request(self._asked, items, system_suffix=more)
        left = max(1, cap - spent_tokens)
        return self._protocol.write_request(self._asked, items, max_tokens=left, system_suffix=more)

    def items(self) -> tuple[HistoryItem, ...]:
        """The history in the current form."""
        items = list(self._items)
        if self.form == "reminded":
            append_to_user(items, [self._item(block) for block in self._tail_blocks()])
            for block in self._turns():
                items.append(self._protocol.item_of_block(block.value, block.role))
        return tuple(items) if not self.without_thinking else self._protocol.without_thinking(items)

    def replace_place(self, place: Place) -> None:
        """A further interrupt with nothing delivered since the last."""
        self.place = place

    def advance(self, delivered: Sequence[ShadowBlock], place: Place | None) -> None:
        """Something was delivered: freeze the open place, put it behind, open a new one."""
        self._freeze()
        self._produced.extend(delivered)
        self.place = place

    def closed(self, final: Sequence[ShadowBlock]) -> tuple[tuple[JsonObject, ...], tuple[ShadowBlock, ...]]:
        """Tail and produced blocks of the record of this response, whose last attempt gave `final`."""
        if self.form != "reminded":
            return (), tuple(final)
        return tuple(self._tail_blocks()), (*self._turns(), *final)

    @property
    def reminded(self) -> tuple[str, ...]:
        """The rules whose reminders upstream has seen in the current form."""
        if self.form != "reminded":
            return ()
        names = [pending.rule for pending in self.deferred] + self._frozen_rules
        if self.place is not None:
            names.extend(self.place.rules)
        return tuple(dict.fromkeys(names))

    @property
    def hidden(self) -> bool:
        """In the current form upstream has seen something in this response that the client never gets."""
        return self.form == "reminded" and self.has_news

    def _tail_blocks(self) -> list[JsonObject]:
        texts = [pending.text for pending in self.deferred] + self._tail
        if self.place is not None and self._at_tail(self.place):
            texts.append(self.place.reminder)
        return [self._protocol.text_block(text) for text in texts]

    def _turns(self) -> list[ShadowBlock]:
        turns = list(self._produced)
        if self.place is not None and not self._at_tail(self.place):
            turns.extend(self._hidden_turn(self.place))
        return turns

    def _at_tail(self, place: Place) -> bool:
        return not self._produced and not place.kept

    def _freeze(self) -> None:
        place, self.place = self.place, None
        if place is None:
            return
        self._frozen_rules.extend(place.rules)
        if self._at_tail(place):
            self._tail.append(place.reminder)
        else:
            self._produced.extend(self._hidden_turn(place))

    def _hidden_turn(self, place: Place) -> list[ShadowBlock]:
        results = [ShadowBlock("user", item.kind, item.value, None) for item in place.results]
        text = ShadowBlock("user", "text", self._protocol.text_block(place.reminder), None)
        return [*place.kept, *results, text]

    def _item(self, block: JsonObject) -> HistoryItem:
        return self._protocol.item_of_block(block, "user")
