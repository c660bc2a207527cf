"""Settings from file, environment and flags; later wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ttsr_proxy.config.keys import KEYS
from ttsr_proxy.config.layers import ConfigError, Layer, Values, read_environment, read_file, read_flags
from ttsr_proxy.config.settings import (
    DEFAULT_PROJECT,
    NO_LIBRARY_ROOT,
    AuthSettings,
    BudgetSettings,
    CaptureSettings,
    CompilerSettings,
    HoldSettings,
    JudgeSettings,
    LibrarySettings,
    LogSettings,
    ProjectSettings,
    RecallSettings,
    RetentionSettings,
    RulebookSettings,
    Settings,
    SourceSettings,
    TtsrSettings,
    Upstreams,
)
from ttsr_proxy.redis import RedisUrl

CONFIG_FILE = "ttsr-proxy.yaml"

_Owner = TypeVar("_Owner")


def load_settings(
    *,
    project: Path,
    home: Path,
    environ: Mapping[str, str],
    config: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    upstreams: Iterable[str] = (),
) -> Settings:
    """The settings for a default project directory.

    `config` names the file; without it the project's `ttsr-proxy.yaml` is read if there is one. `flags` are
    values by key name, `upstreams` texts of `--upstream`. Raises ConfigError, which names every wrong key or
    value.
    """
    project = project.absolute()
    path = (config or project / CONFIG_FILE).absolute()
    file = read_file(path) if config or path.exists() else None
    base = Path.cwd()
    environment = read_environment(environ, base)
    command_line = read_flags(flags or {}, upstreams, base)
    layers = (file or Layer(), environment, command_line)
    problems = [problem for layer in layers for problem in layer.problems]
    if problems:
        raise ConfigError(problems)

    stated = {**environment.values, **command_line.values}
    values: Values = {**layers[0].values, **stated}
    default = ProjectSettings(
        DEFAULT_PROJECT,
        project,
        home,
        values.get("rules", ()),
        values.get("extensions", ()),
        _ttsr(values),
        values.get("library.user", DEFAULT_PROJECT),
        _filled(RulebookSettings, values),
        _filled(CaptureSettings, values),
    )
    named = (
        ProjectSettings(
            name,
            own["path"],
            home,
            default.rules + own.get("rules", ()),
            default.extensions + own.get("extensions", ()),
            # The environment and the flags go before a project's own part of the file too.
            _ttsr({**layers[0].values, **own, **stated}),
            {**layers[0].values, **own, **stated}.get("library.user", DEFAULT_PROJECT),
            _filled(RulebookSettings, {**layers[0].values, **own, **stated}),
            _filled(CaptureSettings, {**_shared_capture(layers[0].values), **own, **_shared_capture(stated)}),
        )
        for name, own in layers[0].projects.items()
    )
    if isinstance(values.get("state"), RedisUrl) and "library.root" not in values:
        origins = zip((path, "environment", "command line"), layers, strict=True)
        origin = [name for name, layer in origins if "state" in layer.values][-1]
        raise ConfigError([f"{origin}: state: {NO_LIBRARY_ROOT}"])
    return _filled(
        Settings,
        {"state": default_state(environ, home), **values},
        projects=(default, *named),
        library=_library(values),
        upstreams=_filled(Upstreams, values),
        retention=_filled(RetentionSettings, values),
        log=_filled(LogSettings, values),
        config_file=path if file else None,
        warnings=tuple(warning for layer in layers for warning in layer.warnings),
    )


def default_state(environ: Mapping[str, str], home: Path) -> Path:
    """Where state is kept unless configured: the XDG Base Directory Specification's `$XDG_STATE_HOME`."""
    state_home = Path(environ.get("XDG_STATE_HOME", ""))
    # The specification says that a relative value is to be ignored.
    base = state_home if state_home.is_absolute() else home / ".local" / "state"
    return base / "ttsr-proxy" / "state.db"


def _shared_capture(values: Values) -> Values:
    """What holds for every project: each has a directory of its own."""
    return {name: value for name, value in values.items() if name != "capture.directory"}


def _ttsr(values: Values) -> TtsrSettings:
    return _filled(
        TtsrSettings, values, hold=_filled(HoldSettings, values), budget=_filled(BudgetSettings, values)
    )


def _library(values: Values) -> LibrarySettings:
    return _filled(
        LibrarySettings,
        values,
        auth=_filled(AuthSettings, values),
        compiler=_filled(CompilerSettings, values),
        sources=_filled(SourceSettings, values),
        recall=_filled(RecallSettings, values),
        judge=_filled(JudgeSettings, values),
    )


def _filled(owner: type[_Owner], values: Values, **parts: Any) -> _Owner:
    """The owner with what was given for its keys, and its defaults for the rest."""
    given = {key.attribute: values[key.name] for key in KEYS if key.owner is owner and key.name in values}
    return owner(**given, **parts)
