"""The settings as the rest of the program uses them, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from ttsr_proxy.errors import TtsrError
from ttsr_proxy.modes import ContextMode, InterruptMode, OnExhausted, RepeatMode
from ttsr_proxy.redis import RedisUrl

OnError: TypeAlias = Literal["pass"]
AuthMode: TypeAlias = Literal["dev", "api_key", "trusted"]
LogFormat: TypeAlias = Literal["auto", "text", "json"]
CompilerKind: TypeAlias = Literal["none", "openai", "anthropic"]
RecallBackend: TypeAlias = Literal["auto", "minilm", "openai", "bm25"]
JudgeProvider: TypeAlias = Literal["pass", "jev", "openai"]

State: TypeAlias = Path | RedisUrl
"""Where conversations and the interrupt log are: an SQLite file, or a Redis server."""

NO_LIBRARY_ROOT = "on Redis it has no directory for the rule library; name one with library.root"

DEFAULT_PROJECT = "default"
"""The name of the project that is served without a `/p/<name>` prefix."""


@dataclass(frozen=True, slots=True)
class HoldSettings:
    """How much prose may be held back while a match is still possible."""

    max_chars: int = 4096
    max_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """How often a response and a conversation may be interrupted."""

    per_rule: int = 2
    per_response: int = 4
    per_conversation: int = 20
    on_exhausted: OnExhausted = "pass"


@dataclass(frozen=True, slots=True)
class TtsrSettings:
    """Matching (`ttsr:` in the configuration file); names as in the reference."""

    enabled: bool = True
    interrupt_mode: InterruptMode = "always"
    context_mode: ContextMode = "discard"
    repeat_mode: RepeatMode = "once"
    repeat_gap: int = 10
    builtin_rules: bool = True
    disabled_rules: tuple[str, ...] = ()
    observe: bool = False
    """Matches are only logged."""
    observe_helpers: bool = True
    allow_bypass: bool = False
    """Clients may ask for a request to pass without matching."""
    on_error: OnError = "pass"
    tool_families: tuple[Mapping[str, object], ...] = ()
    """Rows for `toolcalls.FamilyTable.with_custom`, as they stand in the file."""
    hold: HoldSettings = field(default_factory=HoldSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)


@dataclass(frozen=True, slots=True)
class RulebookSettings:
    """Rules in requests (`rulebook:` in the configuration file)."""

    enabled: bool = True
    disabled_agents: tuple[str, ...] = ()
    """Clients (`codex`) and agents (`main`, a sub-agent's name), as names or globs."""


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Base URL of the model API of each family of protocols."""

    anthropic: str = "https://api.anthropic.com"
    openai: str = "https://api.openai.com"


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long, and how many of, the interrupt log's and the conversations' records are kept."""

    days: float = 30.0
    records: int = 100_000


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The program's own log."""

    format: LogFormat = "auto"


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """Whose library a request to the library's API is about."""

    mode: AuthMode = "dev"
    keys_file: Path | None = None
    """Lines of `USER SHA256`: the hash of each user's key, in hexadecimal."""
    root_key_hash: str = ""


@dataclass(frozen=True, slots=True)
class CompilerSettings:
    """The model that compiles rules; without one the deterministic compiler does."""

    kind: CompilerKind = "none"
    base_url: str = ""
    """Empty: the upstream of the protocol."""
    model: str = ""
    api_key_env: str = ""
    timeout: float = 120.0
    max_output_tokens: int = 16_384
    max_attempts: int = 3
    require_model: bool = False
    use_request_credentials: bool = False
    """The caller's own credential goes before the key."""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Where texts to compile may come from."""

    allow_urls: bool = True
    resources: Path | None = None
    """The folder behind `viking://resources/`, read only."""


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """How the library finds the rules that could be for a task."""

    backend: RecallBackend = "auto"
    model_path: Path | None = None
    tokenizer_path: Path | None = None
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Who judges whether a rule of the library concerns a task, and whether output breaks a judged rule."""

    provider: JudgeProvider = "pass"
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    timeout: float = 10.0


@dataclass(frozen=True, slots=True)
class LibrarySettings:
    """The rule library (`library:` in the configuration file)."""

    root: Path | None = None
    """None: `library` beside the state file; with state on Redis it must be given."""
    auth: AuthSettings = field(default_factory=AuthSettings)
    compiler: CompilerSettings = field(default_factory=CompilerSettings)
    sources: SourceSettings = field(default_factory=SourceSettings)
    recall: RecallSettings = field(default_factory=RecallSettings)
    judge: JudgeSettings = field(default_factory=JudgeSettings)


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Whether whole exchanges are written to files, where, and how many of them."""

    enabled: bool = False
    directory: Path | None = None
    """None: `captures/<project>` beside the rule library."""
    max_megabytes: float = 256.0
    """For all files of the directory; the oldest go first."""
    days: float = 7.0
    exchange_megabytes: float = 16.0
    """For one exchange; what goes beyond is left out."""


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """One working directory whose rules are enforced.

    `rules` are the mounted rule directories (provider `mounted`), `extensions` the package roots of provider
    `omp-plugins`; both are absolute. `home` is where the user's own rule directories are.
    """

    name: str
    path: Path
    home: Path
    rules: tuple[Path, ...] = ()
    extensions: tuple[Path, ...] = ()
    ttsr: TtsrSettings = field(default_factory=TtsrSettings)
    library_user: str = "default"
    """Whose compiled rules are enforced here."""
    rulebook: RulebookSettings = field(default_factory=RulebookSettings)
    capture: CaptureSettings = field(default_factory=CaptureSettings)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything `ttsr-proxy serve` is started with. The first project is the default one."""

    state: State
    projects: tuple[ProjectSettings, ...]
    host: str = "127.0.0.1"
    port: int = 8787
    """0 takes any free port."""
    workers: int = 1
    """Processes that serve the port."""
    token: str | None = field(default=None, repr=False)
    """What the proxy's own pages and interfaces ask for."""
    upstreams: Upstreams = field(default_factory=Upstreams)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    log: LogSettings = field(default_factory=LogSettings)
    library: LibrarySettings = field(default_factory=LibrarySettings)
    config_file: Path | None = None
    """The configuration file that was read."""
    warnings: tuple[str, ...] = ()
    """What was noticed while the settings were read, and was not wrong enough to stop for."""

    @property
    def library_root(self) -> Path:
        """The directory of the rule library. Raises TtsrError when none is given and state is on Redis."""
        if self.library.root is not None:
            return self.library.root
        if isinstance(self.state, RedisUrl):
            raise TtsrError(f"state: {NO_LIBRARY_ROOT}")
        return self.state.parent / "library"

    def captures_of(self, project: ProjectSettings) -> Path:
        """The directory of a project's captures."""
        return project.capture.directory or self.library_root.parent / "captures" / project.name
