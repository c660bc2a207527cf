"""Tests of an exchange that read like a conversation, without sockets and with a clock of their own.

`>>` says what happens, `<<` what must follow from it, all of it and in order:

    (
        playbook(rule("no-bad-word", "BADWORD"))
        >> says("go")
        << asked("user: go")
        >> answers(text("Hello, BADWORD"))
        << aborted()
        << gets("start text[Hello, ")
        << asked("user: go", "assistant: Hello, ", "user: INTERRUPT(no-bad-word)")
        >> answers(text("world."))
        << gets("] text[world.] end_turn stop")
        << finished()
    )

Requests and streams are written in the notation of `playbook.notation`. The stream that the client gets is
read as strictly as the strictest client does; every request must be one that the API accepts.
"""

from playbook.book import Playbook
from playbook.expectations import aborted, asked, broken, checks, finished, gets, nothing, relayed, replied
from playbook.happenings import (
    answers,
    asks_again,
    ast_answers,
    closes,
    drops,
    goes_on,
    leaves,
    passes,
    refuses,
    results,
    says,
    sends_garbage,
)
from playbook.rules import rule
from playbook.store import MemoryStore

__all__ = [
    "MemoryStore",
    "Playbook",
    "aborted",
    "answers",
    "asked",
    "asks_again",
    "ast_answers",
    "broken",
    "checks",
    "closes",
    "drops",
    "finished",
    "gets",
    "goes_on",
    "leaves",
    "nothing",
    "passes",
    "refuses",
    "relayed",
    "replied",
    "results",
    "rule",
    "says",
    "sends_garbage",
]
