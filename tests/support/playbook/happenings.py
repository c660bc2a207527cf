"""What happens: what the client does, what upstream does, that time passes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from strict_anthropic import turn

from ttsr_proxy.triggers.ast import AstHit

if TYPE_CHECKING:
    from playbook.book import Playbook


@dataclass(frozen=True, slots=True)
class Happening:
    name: str
    run: Callable[[Playbook], None]


# The client.


def says(words: str) -> Happening:
    """The user says something; the client sends its whole history."""

    def run(book: Playbook) -> None:
        book.agent.add_user({"type": "text", "text": words})
        book.ask()

    return Happening(f"says({words!r})", run)


def results(**by_name: str) -> Happening:
    """The client sends the results of all calls of the last answer."""

    def run(book: Playbook) -> None:
        book.agent.add_results(**by_name)
        book.ask()

    return Happening("results()", run)


def asks_again() -> Happening:
    """The client sends the very same request again."""
    return Happening("asks_again()", lambda book: book.ask())


def leaves() -> Happening:
    """The client closes its connection."""
    return Happening("leaves()", lambda book: book.act(book.exchange.client_gone(book.now)))


# Upstream.


def answers(*steps: Any, lingers: bool = False, **options: Any) -> Happening:
    """Upstream answers with blocks, up to the first `stall()`; steps and options of `strict_anthropic.turn`.

    Each piece of a block is one delta unless `chunk` says otherwise. `lingers`: the connection stays open.
    """
    said = turn(*steps, **{"chunk": 1_000_000, **options})
    return Happening(f"answers{steps}", lambda book: book.answered(said, lingers=lingers))


def goes_on() -> Happening:
    """Upstream goes on after a `stall()`."""
    return Happening("goes_on()", lambda book: book.go_on())


def refuses(status: int, message: str = "no", *, kind: str, retry_after: float | None = None) -> Happening:
    """Upstream answers with an error."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    return Happening(
        f"refuses({status}, {message!r})",
        lambda book: book.act(book.exchange.attempt_refused(status, body, retry_after, book.now)),
    )


def drops(reason: str = "the connection was cut") -> Happening:
    """The connection to upstream fails."""
    return Happening(
        f"drops({reason!r})", lambda book: book.act(book.exchange.attempt_lost(reason, book.now))
    )


def closes() -> Happening:
    """Upstream closes its answer in order, whether that is complete or not."""
    return Happening("closes()", lambda book: book.act(book.exchange.attempt_ended(book.now)))


def sends_garbage(reason: str = "the answer is text/html") -> Happening:
    """Upstream answers with something that cannot be read."""
    return Happening(
        f"sends_garbage({reason!r})",
        lambda book: book.act(book.exchange.attempt_uninspectable(reason, book.now)),
    )


# The rest of the world.


def passes(seconds: float) -> Happening:
    """Time passes."""
    return Happening(f"passes({seconds})", lambda book: book.pass_time(seconds))


def ast_answers(*results: Sequence[AstHit] | None) -> Happening:
    """ast-grep answers: the hits of each job, None for one that was not done; without any, what it finds."""

    def run(book: Playbook) -> None:
        jobs = book.take_awaited()
        done = [None if hits is None else tuple(hits) for hits in results] or [job.run() for job in jobs]
        book.act(book.exchange.ast_checked(done, book.now))

    return Happening(f"ast_answers{results}", run)
