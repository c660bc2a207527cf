"""Whether agents are pointed at the proxy, and so that their requests arrive where they should."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from yarl import URL

from ttsr_proxy.cli.doctor.agent_files import READERS, Setting, Unread
from ttsr_proxy.cli.doctor.finding import Finding, fail, ok, warn
from ttsr_proxy.config import DEFAULT_PROJECT, Settings
from ttsr_proxy.web.guard import is_loopback

_ELSEWHERE = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
_OFF = ("", "0", "false", "no", "off")
_HTTP_PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_RUN = "`ttsr-proxy run -- AGENT` points an agent at a proxy of its own"


def of_agents(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """What the environment and the agents' files say."""
    place = settings.projects[0]
    found = [item for reader in READERS for item in reader(environ, place.home, place.path)]
    for item in found:
        if isinstance(item, Unread):
            yield warn(
                f"{item.place} is not understood, so nobody knows where it leads: {item.reason}",
                "correct the file; comments in JSON are not read here",
            )
        else:
            yield _judged(item, settings)
    if not any(isinstance(item, Setting) and item.url for item in found):
        yield warn(
            "no agent is pointed at the proxy in this environment",
            f"{_RUN}; for one that stays, export ANTHROPIC_BASE_URL={_wanted(settings, 'bare')}",
        )
    for variable in _ELSEWHERE:
        if environ.get(variable, "").lower() not in _OFF:
            yield warn(
                f"{variable} is set: Claude Code does not use the Anthropic API and is not watched",
                f"unset {variable}",
            )
    if any(environ.get(name) for name in _HTTP_PROXIES) and not _is_excepted(settings.host, environ):
        yield warn(
            "an HTTP proxy is set for all hosts: agents may send to it what is meant for this machine",
            f"add {_name(settings.host)} to NO_PROXY",
        )


def _judged(setting: Setting, settings: Settings) -> Finding:
    what, wanted = f"{setting.agent}: {setting.place}", _wanted(settings, setting.form)
    if setting.url is None:
        return warn(f"{what} is not set: nothing of it is watched", f'set it to "{wanted}"; or {_RUN}')
    try:
        url = URL(setting.url)
        port = url.port
    except ValueError:
        url, port = URL(), None
    if url.scheme not in ("http", "https") or not url.host:
        return fail(f"{what} is no http:// or https:// URL with a host", f'set it to "{wanted}"')
    # A URL may hold a password, and this report is shown to others.
    what = f"{what} is {url.with_user(None).with_query(None)}"
    if not _is_here(url.host, settings.host) or (settings.port and port != settings.port):
        return warn(
            f"{what}, which is not this proxy ({_base(settings)}): nothing of it is watched",
            f'set it to "{wanted}", and the old value as upstream (--upstream); `ttsr-proxy run` does both',
        )
    if url.scheme == "https":
        return fail(f"{what}, but the proxy speaks plain HTTP", f'set it to "{wanted}"')
    return _judged_path(what, url.path, setting, settings)


def _judged_path(what: str, path: str, setting: Setting, settings: Settings) -> Finding:
    """The path before the client's own: a named project's, then `/v1` where the client does not add it."""
    prefix, rest = "", path.rstrip("/")
    if rest.startswith("/p/"):
        _, _, name, *more = rest.split("/")
        names = [project.name for project in settings.projects if project.name != DEFAULT_PROJECT]
        prefix, rest = f"/p/{name}", "".join(f"/{part}" for part in more)
        if name not in names:
            return fail(
                f"{what}, but there is no project {name}",
                f"use one of {', '.join(names)}" if names else "add it under projects, or leave /p/... out",
            )
    wanted = _wanted(settings, setting.form, prefix)
    if setting.form == "bare" and rest.endswith("/v1"):
        return fail(f"{what}, and the client adds /v1 once more", f'set it to "{wanted}"')
    if setting.form == "v1" and rest == "" and not settings.upstreams.openai.endswith("/v1"):
        return fail(f"{what}, and the client does not add the /v1 that is missing", f'set it to "{wanted}"')
    return ok(f"{what}: the proxy")


def _wanted(settings: Settings, form: str, prefix: str = "") -> str:
    return f"{_base(settings)}{prefix}{'/v1' if form == 'v1' else ''}"


def _base(settings: Settings) -> str:
    name = _name(settings.host)
    return f"http://{f'[{name}]' if ':' in name else name}:{settings.port or 'PORT'}"


def _name(host: str) -> str:
    """The name by which this machine's programs know what listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def _is_here(name: str, host: str) -> bool:
    """Whether a URL's host leads to a proxy that listens on `host`."""
    return name == host or (is_loopback(name) and is_loopback(_name(host)))


def _is_excepted(host: str, environ: Mapping[str, str]) -> bool:
    names = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return any(name.strip() in ("*", _name(host)) for name in names.split(","))
