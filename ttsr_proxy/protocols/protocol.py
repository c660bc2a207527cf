"""What one wire protocol must offer so that everything above it can speak of responses in general.

A protocol is a stateless object with this surface; `reader()` and `writer()` make the two stateful parts, one
reader per upstream attempt and one writer per client response. Nothing here does I/O or raises on content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.events import (
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Other,
    ProtocolEvent,
    ResponseEnded,
    ResponseEnding,
    ResponseStarted,
    Usage,
)
from ttsr_proxy.protocols.history import HistoryItem, Role
from ttsr_proxy.protocols.request import ApiRequest


@dataclass(frozen=True, slots=True)
class StopReasons:
    """The protocol's own words for why an answer ended."""

    done: str
    tool: str
    length: str


class ResponseReader(Protocol):
    """Upstream's bytes of one attempt in, events out. The `raw` of all events together are those bytes."""

    def feed(self, data: bytes) -> list[ProtocolEvent]:
        """The events that `data` completes."""

    def finish(self) -> list[ProtocolEvent]:
        """Upstream closed.

        A last `Other` here is an event that was cut off: nothing may be written after it.
        """


class ResponseWriter(Protocol):
    """Bytes for the one response that the client receives, whatever the number of attempts behind it."""

    def start(self, event: ResponseStarted) -> bytes:
        """The opening of the first attempt, which gives the response its identity.

        Called again for the next attempt if it gave no bytes and nothing followed.
        """

    def break_off(self) -> bytes:
        """The attempt is aborted: what of its delivered events was not written yet. Another may follow."""

    def leave_out(self) -> bytes:
        """A block of this attempt is not for the client: what follows stands as if there were none."""

    def reindex(self, event: BlockStarted | BlockDelta | BlockEnded, index: int) -> bytes:
        """The event at the client's index: its original bytes if nothing has to change."""

    def delta(self, kind: Literal["text", "thinking"], index: int, text: str) -> bytes:
        """More text or thinking for an open block."""

    def part_of(self, event: BlockDelta, index: int, text: str) -> bytes:
        """The event with `text`, a part of its own text, in place of the whole."""

    def stop_block(self, index: int) -> bytes:
        """The end of an open block."""

    def marker(self, index: int, signature: str) -> bytes:
        """Sign the open thinking block `index` with the proxy's own mark; empty where that is impossible."""

    def ending(
        self,
        event: ResponseEnding,
        *,
        stop_reason: str | None = None,
        usage_changes: Mapping[str, int] | None = None,
    ) -> bytes:
        """An attempt's stop reason and usage, changed where given: its original bytes if nothing changes."""

    def end(self, event: ResponseEnded) -> bytes:
        """An attempt's terminal event."""

    def other(self, event: Other) -> bytes:
        """An event that is not interpreted.

        After `break_off`, what is no JSON or speaks of a block that was never opened is left out.
        """

    def finish(self, stop_reason: str, usage: Mapping[str, int]) -> bytes:
        """A legal end made by the proxy; every block must be closed."""

    def keepalive(self, open_block: tuple[int, BlockKind] | None, active: bool) -> bytes:
        """A sign of life without content. `active` is for clients that count only real events as activity."""

    def error(self, error: JsonObject) -> bytes:
        """The protocol's native error inside a stream; `error` as in `StreamFailed.error`."""


class WireProtocol(Protocol):
    """One model API's wire format."""

    name: str
    paths: tuple[str, ...]
    """The endpoints that answer with model output, as request paths without a query."""
    counting_paths: tuple[str, ...]
    """The endpoints that only count a request's tokens: same body, nothing to inspect in the answer."""
    stops: StopReasons
    signs_thinking: bool
    """Delivered thinking can go back upstream in a later attempt; where nothing signs it, it is left out."""
    keeps_responses: bool
    """Upstream keeps responses and knows them and their blocks by ids, which later requests may use."""

    def reader(self) -> ResponseReader:
        """A reader for one attempt."""

    def writer(self, request: ApiRequest, prompt: str) -> ResponseWriter:
        """A writer for the response to a client's request, to whose system prompt `prompt` was added."""

    def read_message(self, body: bytes) -> tuple[ProtocolEvent, ...] | None:
        """A complete answer that was not streamed, as the events a stream of it would give, `raw` empty.

        None when the body is no answer, an error for instance.
        """

    def read_request(self, body: bytes, headers: Mapping[str, str]) -> ApiRequest | None:
        """None when the request cannot be inspected."""

    def write_request(
        self,
        request: ApiRequest,
        items: Sequence[HistoryItem],
        *,
        max_tokens: int | None = None,
        system_suffix: str | None = None,
    ) -> bytes:
        """The request's body with `items` as its history, a new cap and more system text where given.

        It continues `request.previous`, whatever `request.body` says.
        """

    def tool_result_item(self, call_id: str, text: str, *, is_error: bool = True) -> HistoryItem:
        """The proxy's own answer to a tool call."""

    def with_input(self, value: JsonObject, arguments: JsonObject | str) -> JsonObject:
        """A tool call's block with other arguments: a JSON object, or the plain text of a freeform call."""

    def item_of_block(self, value: JsonObject, role: Role, message: int | None = None) -> HistoryItem:
        """The history item of a block's value, as `BlockEnded.value` has it."""

    def salvage(self, values: Sequence[JsonObject], cut: Collection[int]) -> list[JsonObject | None]:
        """The blocks of an answer that was aborted, as a later request may carry them; None for none.

        `cut` are the positions of blocks that are not whole.
        """

    def keep_marks(self, recorded: JsonObject, echoed: JsonObject) -> JsonObject:
        """The recorded block with the cache breakpoint that the client has set on its own echo of it."""

    def text_block(self, text: str) -> JsonObject:
        """The value of a plain text block."""

    def initial_text(self, event: BlockStarted) -> str:
        """The text, thinking or argument JSON that the opening event already carries.

        It is matched like a first delta; it reaches the client in the opening event itself.
        """

    def chain_text(self, item: HistoryItem) -> str | None:
        """What identifies the item however a client re-serialises it; None when it does not count."""

    def strip_marks(self, items: Sequence[HistoryItem]) -> tuple[HistoryItem, ...]:
        """`items` without the thinking that the proxy closed with its own mark (`marker`)."""

    def without_thinking(self, items: Sequence[HistoryItem]) -> tuple[HistoryItem, ...]:
        """`items` without any thinking."""

    def usage_changes(self, started: Usage | None, ending: Usage | None, extra_output: int) -> dict[str, int]:
        """What the client must be told after a retry, for `ending` or `finish`.

        Input and cache figures are the last attempt's, never sums, since clients size their context by them;
        output is that attempt's plus `extra_output`, the estimate for what earlier attempts delivered.
        """

    def error_object(self, status: int, message: str) -> JsonObject:
        """An error of the proxy's own, as `StreamFailed.error` would hold it."""

    def error_body(self, error: JsonObject) -> bytes:
        """The HTTP body that carries `error`."""

    def without_hidden(
        self, body: bytes, request: ApiRequest, *, call_ids: Collection[str], prompt: str
    ) -> bytes:
        """A complete answer without these tool calls and without what the proxy added to the system prompt.

        The very same bytes if it has none of it.
        """

    def read_error(self, body: bytes) -> JsonObject | None:
        """The error object in upstream's HTTP body; None when there is none."""

    def is_binding_error(self, error: JsonObject) -> bool:
        """Whether upstream refuses thinking in the history: unsigned, forged or bound to another one."""

    def error_status(self, error: JsonObject) -> int:
        """The HTTP status that fits an error which upstream reported inside a stream."""
