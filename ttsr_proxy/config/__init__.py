"""Settings from file, environment and flags."""

from ttsr_proxy.config.keys import KEYS, PROJECT_KEYS, Key
from ttsr_proxy.config.layers import ConfigError
from ttsr_proxy.config.load import CONFIG_FILE, default_state, load_settings
from ttsr_proxy.config.settings import (
    DEFAULT_PROJECT,
    AuthSettings,
    BudgetSettings,
    CompilerSettings,
    HoldSettings,
    JudgeSettings,
    LibrarySettings,
    LogFormat,
    LogSettings,
    OnError,
    ProjectSettings,
    RecallSettings,
    RetentionSettings,
    RulebookSettings,
    Settings,
    SourceSettings,
    State,
    TtsrSettings,
    Upstreams,
)
from ttsr_proxy.config.upstream import checked_upstream, join_upstream

__all__ = [
    "CONFIG_FILE",
    "DEFAULT_PROJECT",
    "KEYS",
    "PROJECT_KEYS",
    "AuthSettings",
    "BudgetSettings",
    "CompilerSettings",
    "ConfigError",
    "HoldSettings",
    "JudgeSettings",
    "Key",
    "LibrarySettings",
    "LogFormat",
    "LogSettings",
    "OnError",
    "ProjectSettings",
    "RecallSettings",
    "RetentionSettings",
    "RulebookSettings",
    "Settings",
    "SourceSettings",
    "State",
    "TtsrSettings",
    "Upstreams",
    "checked_upstream",
    "default_state",
    "join_upstream",
    "load_settings",
]
