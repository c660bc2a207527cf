"""One exchange as it happens: what was sent and received, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["client_request", "upstream_request", "upstream_response", "client_response"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Which exchange it is, in the words of the interrupt log."""

    id: str
    """The request's id, which the interrupt log and the program's log have too."""
    record: str
    """The id of its response in the conversation's tree."""
    parent: str | None
    """The same of the response that the request continues."""
    time: float
    """Seconds since the epoch."""
    project: str
    root: str
    """The project's directory."""
    conversation: str
    turn: int
    client: str
    agent: str
    protocol: str
    observed: str | None
    """Why the exchange was only observed, else None."""


@dataclass(slots=True)
class Message:
    """One request or response."""

    kind: Kind
    at: float
    """Seconds since the exchange began."""
    attempt: int | None = None
    method: str = ""
    url: str = ""
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: list[bytes] = field(default_factory=list)
    timing: list[tuple[float, int]] = field(default_factory=list)
    """Of each piece: when it came, in seconds since the exchange began, and its bytes."""
    ended: str = ""
    """How it ended, where that is not simply its end; of the client's response always."""

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)


class Tape:
    """Runs along with an exchange. `now` is a monotonic clock; beyond `limit` bytes no more is kept."""

    def __init__(self, label: Label, limit: int, now: Callable[[], float]) -> None:
        self.label = label
        self.messages: list[Message] = []
        self.truncated = False
        """Something was left out since it was too much."""
        self._left = limit
        self._now = now
        self._began = now()
        self._attempts = 0

    def asked(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """The client's request."""
        self._request("client_request", None, method, path, headers, body)

    def asks(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """Another upstream call."""
        self._attempts += 1
        self._request("upstream_request", self._attempts, method, url, headers, body)

    def answered(self, status: int, headers: Mapping[str, str]) -> Callable[[bytes], None]:
        """Upstream answers the last call; what is returned takes the pieces of its body."""
        message = self._add(
            Message("upstream_response", self._at(), self._attempts, status=status, headers=headers)
        )
        return lambda piece: self._piece(message, piece)

    def lost(self, reason: str) -> None:
        """The last upstream call failed, or was given up."""
        last = self._last("upstream_request", "upstream_response")
        if last is not None and last.kind == "upstream_request":
            last = self._add(Message("upstream_response", self._at(), self._attempts))
        if last is not None:
            last.ended = last.ended or reason

    def answers(self, status: int, headers: Mapping[str, str]) -> Callable[[bytes], None]:
        """The client is answered; what is returned takes the pieces of the body."""
        message = self._add(Message("client_response", self._at(), status=status, headers=headers))
        return lambda piece: self._piece(message, piece)

    def relays(self) -> None:
        """The client gets upstream's last answer as it comes."""
        answer = self._last("upstream_response")
        if answer is not None:
            self._add(Message("client_response", self._at(), status=answer.status, ended="relayed"))

    def over(self, how: str) -> None:
        """The exchange has ended, in the words of the metrics' `outcome`."""
        response = self._last("client_response")
        if response is not None:
            response.ended = response.ended or how

    def _last(self, *kinds: Kind) -> Message | None:
        return next((message for message in reversed(self.messages) if message.kind in kinds), None)

    def _request(
        self, kind: Kind, attempt: int | None, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        message = self._add(Message(kind, self._at(), attempt, method, url, headers=headers))
        self._piece(message, body)

    def _add(self, message: Message) -> Message:
        self.messages.append(message)
        return message

    def _piece(self, message: Message, piece: bytes) -> None:
        message.timing.append((self._at(), len(piece)))
        kept = piece[: self._left]
        self._left -= len(kept)
        self.truncated |= len(kept) < len(piece)
        message.pieces.append(kept)

    def _at(self) -> float:
        return round(self._now() - self._began, 6)
