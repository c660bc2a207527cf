"""Who asks: the user of a request to the library's API.

Only the library's own paths ask. On the proxy's paths `x-api-key` and `authorization` are the provider's
credentials and never an identity here.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from ttsr_proxy.config import AuthSettings
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.library.errors import LibraryError, Refused
from ttsr_proxy.library.uris import is_user_id

DEV_USER = "default"

_LINE = re.compile(r"(?P<user>\S+)\s+(?P<hash>[0-9a-f]{64})")


class Unauthenticated(LibraryError):
    """No key, or one that nobody has."""

    code = "UNAUTHENTICATED"


class KeyFileError(TtsrError):
    """The file of keys cannot be used."""


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Names the user of a request by the configured mode."""

    settings: AuthSettings
    users: Mapping[str, str]
    """User by the SHA-256 of the key, in hexadecimal."""

    @classmethod
    def load(cls, settings: AuthSettings) -> Authenticator:
        """Read the file of keys. Raises KeyFileError, which names the line."""
        users = {} if settings.keys_file is None else _read_keys(settings.keys_file)
        if settings.mode == "api_key" and not users:
            raise KeyFileError("library.auth.mode is api_key, but library.auth.keysFile names no keys")
        return cls(settings, users)

    def user(self, request: web.Request) -> str:
        """The user. Raises Unauthenticated or Refused."""
        match self.settings.mode:
            case "dev":
                return self._dev(request)
            case "api_key":
                return self._by_key(request)
            case "trusted":
                return self._by_header(request)

    def upstream_credential(self, request: web.Request) -> str | None:
        """The caller's `Authorization` header, where it is not what tells the library who asks."""
        authorization = request.headers.get("authorization")
        is_identity = self.settings.mode != "dev" and not request.headers.get("x-api-key")
        return None if is_identity else authorization or None

    def _dev(self, request: web.Request) -> str:
        # The host's name too: a page in a browser may have got a name of its own to lead here.
        if not _is_loopback(request.remote) or not _is_loopback(request.url.host):
            raise Refused("without keys the library answers this machine only; see library.auth.mode")
        return DEV_USER

    def _by_key(self, request: web.Request) -> str:
        key = _key(request)
        if not key:
            raise Unauthenticated("send your key as X-API-Key or as Authorization: Bearer")
        sent = _digest(key)
        found = [user for stored, user in self.users.items() if hmac.compare_digest(stored, sent)]
        if found:
            return found[0]
        if self._is_root(key):
            raise Refused("the root key has no library; use a user's key")
        raise Unauthenticated("the key is not known")

    def _by_header(self, request: web.Request) -> str:
        if not _is_loopback(request.remote) and not self._is_root(_key(request)):
            raise Unauthenticated("the gateway must send the root key as X-API-Key")
        account = request.headers.get("x-openviking-account", "")
        user = request.headers.get("x-openviking-user", "")
        for name, value in (("X-OpenViking-Account", account), ("X-OpenViking-User", user)):
            if not is_user_id(value):
                raise Unauthenticated(f"{name} must name who asks: letters, digits and _ . @ -")
        return user

    def _is_root(self, key: str) -> bool:
        stored = self.settings.root_key_hash
        return bool(stored and key) and hmac.compare_digest(stored, _digest(key))


def _read_keys(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(f"library.auth.keysFile: {path} cannot be read: {error}") from error
    users: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or not is_user_id(match["user"]):
            raise KeyFileError(
                f"{path}, line {number}: expected a user and the SHA-256 of the key in hexadecimal"
            )
        users[match["hash"]] = match["user"]
    return users


def _key(request: web.Request) -> str:
    key = request.headers.get("x-api-key", "")
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    return key or (bearer.strip() if scheme.lower() == "bearer" else "")


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def _is_loopback(host: str | None) -> bool:
    if host is None:
        return False
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host.lower() in ("localhost", "localhost.")
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
