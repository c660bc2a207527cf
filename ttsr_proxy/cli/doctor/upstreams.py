"""The upstreams: does anything answer there. No credentials are sent, and no other host is asked."""

from __future__ import annotations

import asyncio
import ssl

import aiohttp
from yarl import URL

from ttsr_proxy.cli.doctor.finding import Finding, fail, ok
from ttsr_proxy.config import Settings
from ttsr_proxy.web.guard import is_loopback
from ttsr_proxy.web.proxies import ForwardProxies

_SECONDS = 10.0

_OTHER_URL = "correct the upstream (--upstream, TTSR_UPSTREAM or upstream in the configuration)"
_TRUST = (
    "if a proxy of your company signs its own certificates, name its root with SSL_CERT_FILE; else the"
    " address is not what it seems to be"
)


async def of_upstreams(settings: Settings) -> list[Finding]:
    """Each upstream once, with the families of protocols that it serves."""
    upstreams = settings.upstreams
    families: dict[str, list[str]] = {}
    for name in ("anthropic", "openai"):
        families.setdefault(getattr(upstreams, name), []).append(name)
    return list(
        await asyncio.gather(
            *(_ask(url, f"{' and '.join(names)} at {url}", settings) for url, names in families.items())
        )
    )


async def _ask(url: str, what: str, settings: Settings) -> Finding:
    target = URL(url, encoded=True)
    if settings.port and target.port == settings.port and is_loopback(target.host or ""):
        return fail(f"{what} is the proxy's own address: requests would go round in circles", _OTHER_URL)
    through = ForwardProxies().of(target)
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.get(
                target, allow_redirects=False, proxy=through.url, proxy_headers=through.headers
            ) as answer,
        ):
            return ok(f"{what} answers (HTTP {answer.status})")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return _failed(what, error, through=through.url is not None)


def _failed(what: str, error: Exception, *, through: bool) -> Finding:
    by = " through the HTTP proxy of the environment" if through else ""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            inner = error.certificate_error
            reason = inner.verify_message if isinstance(inner, ssl.SSLCertVerificationError) else str(inner)
            return fail(f"{what}: its TLS certificate is not accepted: {reason}", _TRUST)
        case aiohttp.ClientSSLError():
            reason = getattr(error.os_error, "reason", None) or str(error.os_error)
            return fail(
                f"{what}: TLS failed: {reason}", f"if the server speaks plain HTTP, use http://; {_OTHER_URL}"
            )
        case aiohttp.ClientConnectorDNSError():
            return fail(
                f"{what}: its name is not known{by}", f"check the network's name service, or {_OTHER_URL}"
            )
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return fail(
                f"{what}: the HTTP proxy of the environment does not let it through: {error}",
                "correct HTTPS_PROXY or HTTP_PROXY, or name the host in NO_PROXY",
            )
        case aiohttp.ClientConnectorError():
            reason = error.strerror or type(error.os_error).__name__
            return fail(f"{what}: cannot connect{by}: {reason}", f"start the server there, or {_OTHER_URL}")
        case TimeoutError():
            return fail(
                f"{what}: no answer within {_SECONDS:.0f} s{by}",
                f"check the network and firewalls, or {_OTHER_URL}",
            )
        case _:
            return fail(
                f"{what}: what answers is no HTTP server ({type(error).__name__})",
                f"if the server speaks TLS, use https://; {_OTHER_URL}",
            )
