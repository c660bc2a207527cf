"""The settings: can they be read, and what was odd about them."""

from __future__ import annotations

from collections.abc import Iterator

from ttsr_proxy.cli.doctor.finding import Finding, fail, ok, warn
from ttsr_proxy.config import CONFIG_FILE, ConfigError, Settings
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.web.guard import is_loopback
from ttsr_proxy.web.library_auth import Authenticator

_REFERENCE = "docs/configuration.md has every key and what it may be"


def of_settings(settings: Settings) -> Iterator[Finding]:
    """What there is to say about settings that could be read."""
    place = settings.projects[0].path
    if settings.config_file is None:
        yield ok(f"no {CONFIG_FILE} in {place}: defaults, environment and options hold")
    else:
        yield ok(f"{settings.config_file} is read; every key and value is known")
    for warning in settings.warnings:
        yield warn(warning, f"correct its name or unset it; {_REFERENCE}")
    for project in settings.projects:
        name = f"project {project.name}"
        if not project.ttsr.enabled:
            yield warn(f"{name}: matching is off, every request passes", "set ttsr.enabled to true")
        elif project.ttsr.observe:
            yield warn(f"{name}: rules only observe, nothing is interrupted", "set ttsr.observe to false")
    if settings.token is None and not is_loopback(settings.host):
        yield warn(
            f"others can reach {settings.host}; without a token the log is served to nobody",
            "set token (TTSR_TOKEN), or host to 127.0.0.1",
        )
    try:
        Authenticator.load(settings.library.auth)
    except TtsrError as error:
        yield fail(str(error), "correct the file of keys; docs/library.md says what its lines are")


def of_error(error: ConfigError) -> Iterator[Finding]:
    """One finding for each key or value that is wrong."""
    for line in str(error).splitlines():
        yield fail(line, f"correct it there; {_REFERENCE}")
