"""Templates to responses, with the headers that keep hostile content from doing anything."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import resources
from typing import Any, Final

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from ttsr_proxy.interrupts.as_json import iso_time

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

# Not `no-referrer`: with it browsers send `Origin: null` with the forms of our own pages.
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

STATIC: Final = {"dashboard.css": "text/css", "dashboard.js": "text/javascript", "icon.svg": "image/svg+xml"}
"""The files that the pages load, with their types."""


def _shown_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _quantity(number: float) -> str:
    return f"{number:,.1f}" if isinstance(number, float) else f"{number:,}"


def _seconds(number: float) -> str:
    """`8.4 s`, `12 min`, `3.1 h`."""
    if number < 120:
        return f"{number:.1f} s"
    return f"{number / 60:.0f} min" if number < 7200 else f"{number / 3600:,.1f} h"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__ or "", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(iso=iso_time, time=_shown_time, quantity=_quantity, seconds=_seconds)
    return environment


_TEMPLATES: Final = _environment()


def page(template: str, *, status: int = 200, **values: Any) -> web.Response:
    """The template as a page. What UTF-8 cannot hold (lone surrogates) is shown escaped."""
    text = _TEMPLATES.get_template(template).render(values)
    return web.Response(
        body=text.encode("utf-8", "backslashreplace"),
        status=status,
        content_type="text/html",
        charset="utf-8",
        headers={**SECURITY_HEADERS, "Cache-Control": "no-store"},
    )


async def static(request: web.Request) -> web.Response:
    """A stylesheet or script of the pages."""
    name = request.match_info["name"]
    if name not in STATIC:
        return page("error.html", status=404, message=f"There is no file {name}.")
    body = resources.files(__package__ or "").joinpath("static", name).read_bytes()
    headers = {**SECURITY_HEADERS, "Cache-Control": "no-cache"}
    return web.Response(body=body, content_type=STATIC[name], charset="utf-8", headers=headers)
