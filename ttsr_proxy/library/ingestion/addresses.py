"""Connects to public addresses only: each address is checked, and the checked one is connected to.

A name is resolved once, in aiohttp's connector, so that no second answer of its name server can lead
elsewhere (DNS rebinding). A name with one address that is not public is refused altogether.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Container

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from ttsr_proxy.library.errors import Refused

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")


def is_public(text: str) -> bool:
    """Whether an IP address is on the public internet; what is embedded in an IPv6 address counts too."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.teredo or address in _LOCAL_NAT64:
            return False
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


class PublicResolver(AbstractResolver):
    """Resolves names, and refuses those that lead to an address that is not public."""

    def __init__(self, inner: AbstractResolver | None = None, allowed: Container[str] = ()) -> None:
        self._inner = inner or ThreadedResolver()
        self._allowed = allowed
        """Addresses that count as public, for tests."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        for result in found:
            self.check(result["host"], host)
        return found

    def check(self, address: str, host: str) -> None:
        """Raise Refused for an address that is not public."""
        if address not in self._allowed and not is_public(address):
            raise Refused(f"{host} has an address that is not public; only public URLs may be fetched")

    async def close(self) -> None:
        await self._inner.close()
