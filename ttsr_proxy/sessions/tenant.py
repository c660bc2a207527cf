"""Whose conversation it is: a keyed hash, so that the credential itself is never stored."""

from __future__ import annotations

import hashlib
from typing import Final

SECRET_BYTES: Final = 32
"""Length of a store's secret."""


def tenant_key(secret: bytes, credential: str, project: str) -> str:
    """The tenant of a request: equal for equal credential and project, and of no use to guess either.

    `secret` is the store's own (`ConversationStore.tenant_secret`), so keys of two stores cannot be compared.
    """
    digest = hashlib.blake2b(key=secret, digest_size=20)
    for part in (credential, project):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()
