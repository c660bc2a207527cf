"""The Redis server that holds the state: can it be reached, and does it take something."""

from __future__ import annotations

from ttsr_proxy.cli.doctor.finding import Finding, fail, ok
from ttsr_proxy.errors import StoreError, TtsrError
from ttsr_proxy.redis import RedisUrl
from ttsr_proxy.sessions.redis import RedisConversationStore


async def of_server(url: RedisUrl) -> Finding:
    """The server behind the URL, shown without its credentials."""
    try:
        store = RedisConversationStore(url)
    except TtsrError as error:
        return fail(str(error), "install it, or name a file with --state (TTSR_STATE)")
    try:
        await store.open()
        if await store.recovered():
            return ok(f"{url} answers and takes what is written")
        return fail(
            f"{url} can be read but takes nothing",
            "see to its memory, to the user's permissions, and that it is no replica",
        )
    except StoreError as error:
        return fail(str(error), "see docs/operations.md, Redis")
    finally:
        await store.close()
