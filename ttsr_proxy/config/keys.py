"""Every key of the configuration: its name, what it may hold, which setting it sets.

The environment variables and the documentation's tables follow from these tables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, inspect

from ttsr_proxy.config.settings import (
    AuthMode,
    AuthSettings,
    BudgetSettings,
    CaptureSettings,
    CompilerKind,
    CompilerSettings,
    HoldSettings,
    JudgeProvider,
    JudgeSettings,
    LibrarySettings,
    LogFormat,
    LogSettings,
    OnError,
    ProjectSettings,
    RecallBackend,
    RecallSettings,
    RetentionSettings,
    RulebookSettings,
    Settings,
    SourceSettings,
    TtsrSettings,
    Upstreams,
)
from ttsr_proxy.modes import ContextMode, InterruptMode, OnExhausted, RepeatMode

Port: TypeAlias = Annotated[int, Meta(ge=0, le=65535)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Days: TypeAlias = Annotated[float, Meta(gt=0)]
Name: TypeAlias = Annotated[str, Meta(min_length=1)]
Token: TypeAlias = Annotated[str, Meta(min_length=16)]
Limit: TypeAlias = Annotated[float, Meta(gt=0)]
Sha256: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]

Form: TypeAlias = Literal["value", "names", "table", "upstream", "file", "state", "directory", "directories"]


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `name` is its dotted name in the file, `owner.attribute` the setting it sets."""

    name: str
    type: Any
    owner: type
    attribute: str
    text: str
    """What it does, as the documentation says it."""
    form: Form = "value"
    secret: bool = False
    """A wrong value is not shown."""

    @property
    def variable(self) -> str | None:
        """The environment variable that sets it, if one can. The prefix stands for `ttsr.` too."""
        if self.form == "table":
            return None
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name.removeprefix("ttsr."))
        return "TTSR_" + words.replace(".", "_").upper()


def expected(type_: Any) -> str:
    """What a value of the type looks like, for messages and documentation."""
    return _describe(inspect.type_info(type_))


def choices(type_: Any) -> tuple[str, ...]:
    """The allowed words, if the type is a choice of words."""
    info = inspect.type_info(type_)
    return tuple(map(str, info.values)) if isinstance(info, inspect.LiteralType) else ()


def _describe(info: inspect.Type) -> str:
    match info:
        case inspect.LiteralType(values=[only]):
            return str(only)
        case inspect.LiteralType(values=values):
            return "one of " + ", ".join(map(str, values))
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=int(low), le=int(high)):
            return f"a whole number from {low} to {high}"
        case inspect.IntType(ge=int(low)):
            return f"a whole number of at least {low}"
        case inspect.FloatType(gt=low) if low is not None:
            return f"a number above {low:g}"
        case inspect.FloatType(ge=low) if low is not None:
            return f"a number of at least {low:g}"
        case inspect.ListType(item_type=item):
            return f"a list, each item {_describe(item)}"
        case inspect.DictType():
            return "keys and values"
        case inspect.StrType(pattern=str()):
            return "64 hexadecimal digits in lower case"
        case inspect.StrType(min_length=16):
            return "a text of at least 16 characters"
        case inspect.StrType(min_length=1):
            return "a text that is not empty"
    raise TypeError(f"no description for {info!r}")


TTSR_KEYS = (
    Key(
        "ttsr.enabled",
        bool,
        TtsrSettings,
        "enabled",
        "The switch of the stream rules. Off, no answer is matched; the rulebook has its own switch.",
    ),
    Key(
        "ttsr.interruptMode",
        InterruptMode,
        TtsrSettings,
        "interrupt_mode",
        "Which matches interrupt the model; others only remind it. A rule's own `interruptMode` goes first.",
    ),
    Key(
        "ttsr.contextMode",
        ContextMode,
        TtsrSettings,
        "context_mode",
        "Whether the retry shows the model its violating output (`keep`) or not (`discard`).",
    ),
    Key(
        "ttsr.repeatMode",
        RepeatMode,
        TtsrSettings,
        "repeat_mode",
        "Whether a rule that has fired in a conversation may fire again: never (`once`), after `repeatGap` "
        "responses (`after-gap`), or each time (`always`).",
    ),
    Key(
        "ttsr.repeatGap",
        Count,
        TtsrSettings,
        "repeat_gap",
        "Responses that must lie between two firings of a rule.",
    ),
    Key(
        "ttsr.builtinRules",
        bool,
        TtsrSettings,
        "builtin_rules",
        "Whether the rules shipped with the product apply.",
    ),
    Key(
        "ttsr.disabledRules",
        list[Name],
        TtsrSettings,
        "disabled_rules",
        "Names of rules that are switched off.",
        form="names",
    ),
    Key(
        "ttsr.observe",
        bool,
        TtsrSettings,
        "observe",
        "Only log what rules would have done: nothing is stopped, held back or added to a request.",
    ),
    Key(
        "ttsr.observeHelpers",
        bool,
        TtsrSettings,
        "observe_helpers",
        "Whether helper calls of recognised agents (titles, compaction) are only observed.",
    ),
    Key(
        "ttsr.allowBypass",
        bool,
        TtsrSettings,
        "allow_bypass",
        "Whether a request with the header `x-ttsr-bypass: 1` passes without matching.",
    ),
    Key(
        "ttsr.onError",
        OnError,
        TtsrSettings,
        "on_error",
        "What happens to traffic when matching itself fails: it passes, and the failure is logged.",
    ),
    Key(
        "ttsr.toolFamilies",
        list[dict[str, Any]],
        TtsrSettings,
        "tool_families",
        "Tools of your own: what they write and where (see [tool families](tool-families.md)).",
        form="table",
    ),
    Key(
        "ttsr.hold.maxChars",
        Count,
        HoldSettings,
        "max_chars",
        "The most prose, in characters, that is held back while it could still become a violation.",
    ),
    Key(
        "ttsr.hold.maxSeconds",
        Seconds,
        HoldSettings,
        "max_seconds",
        "The longest that prose is held back, in seconds. Limits change delivery, never a verdict.",
    ),
    Key("ttsr.maxInterrupts.rule", Count, BudgetSettings, "per_rule", "Interrupts per rule in one response."),
    Key("ttsr.maxInterrupts.response", Count, BudgetSettings, "per_response", "Interrupts in one response."),
    Key(
        "ttsr.maxInterrupts.conversation",
        Count,
        BudgetSettings,
        "per_conversation",
        "Interrupts in one conversation.",
    ),
    Key(
        "ttsr.onExhausted",
        OnExhausted,
        BudgetSettings,
        "on_exhausted",
        "When those are spent: deliver the violating output and log it (`pass`), or refuse (`block`).",
    ),
)

RULEBOOK_KEYS = (
    Key(
        "rulebook.enabled",
        bool,
        RulebookSettings,
        "enabled",
        "Whether requests carry the [rulebook](rulebook.md), and `rule://` is answered.",
    ),
    Key(
        "rulebook.disabledAgents",
        list[Name],
        RulebookSettings,
        "disabled_agents",
        "Who gets no rulebook: clients and agents as the log names them (`codex`, `main`), globs allowed.",
        form="names",
    ),
)

_DIRECTORY_KEYS = (
    Key(
        "rules",
        list[Name],
        ProjectSettings,
        "rules",
        "Directories of rules to add, read with their subdirectories.",
        form="directories",
    ),
    Key(
        "extensions",
        list[Name],
        ProjectSettings,
        "extensions",
        "Package roots whose `rules/` directories are read, in this order.",
        form="directories",
    ),
)

_LIBRARY_USER = Key(
    "library.user",
    Name,
    ProjectSettings,
    "library_user",
    "The user whose compiled rules are enforced on the stream.",
)

CAPTURE_KEYS = (
    Key(
        "capture.enabled",
        bool,
        CaptureSettings,
        "enabled",
        "Whether whole exchanges are written to files, to be [replayed](replay.md#captures).",
    ),
    Key(
        "capture.directory",
        Name,
        CaptureSettings,
        "directory",
        "The directory of the captures. A project with settings of its own has its own.",
        form="file",
    ),
    Key(
        "capture.maxMegabytes",
        Limit,
        CaptureSettings,
        "max_megabytes",
        "The most that a project's captures may take; the oldest are deleted.",
    ),
    Key("capture.days", Days, CaptureSettings, "days", "Captures older than so many days are deleted."),
    Key(
        "capture.exchangeMegabytes",
        Limit,
        CaptureSettings,
        "exchange_megabytes",
        "The most that is kept of one exchange; what goes beyond is left out.",
    ),
)

LIBRARY_KEYS = (
    Key(
        "library.root",
        Name,
        LibrarySettings,
        "root",
        "The directory of the [rule library](library.md). It must be given when `state` is on Redis.",
        form="file",
    ),
    _LIBRARY_USER,
    Key(
        "library.auth.mode",
        AuthMode,
        AuthSettings,
        "mode",
        "How the library's API knows its users: everybody on this machine is `default` (`dev`), each user "
        "has a key (`api_key`), or a gateway in front names the user in a header (`trusted`).",
    ),
    Key(
        "library.auth.keysFile",
        Name,
        AuthSettings,
        "keys_file",
        "A file of lines `USER SHA256`, the hash of each user's key.",
        form="file",
    ),
    Key(
        "library.auth.rootKeyHash",
        Sha256,
        AuthSettings,
        "root_key_hash",
        "The hash of the key that a gateway shows in `trusted` mode.",
    ),
    Key(
        "library.compiler.kind",
        CompilerKind,
        CompilerSettings,
        "kind",
        "What compiles rules: the deterministic compiler (`none`), or a model behind one of two APIs.",
    ),
    Key(
        "library.compiler.baseUrl",
        Name,
        CompilerSettings,
        "base_url",
        "Base URL of the compiler's model; the upstream of its API unless given.",
        form="upstream",
    ),
    Key("library.compiler.model", Name, CompilerSettings, "model", "Name of the compiler's model."),
    Key(
        "library.compiler.apiKeyEnv",
        Name,
        CompilerSettings,
        "api_key_env",
        "The environment variable that holds the model's API key.",
    ),
    Key(
        "library.compiler.timeout",
        Limit,
        CompilerSettings,
        "timeout",
        "The longest that one call of the model may take, in seconds.",
    ),
    Key(
        "library.compiler.maxOutputTokens",
        Positive,
        CompilerSettings,
        "max_output_tokens",
        "The most tokens of one plan.",
    ),
    Key(
        "library.compiler.maxAttempts",
        Annotated[int, Meta(ge=1, le=3)],
        CompilerSettings,
        "max_attempts",
        "How often the model is asked for one plan: once, and again with what was wrong.",
    ),
    Key(
        "library.compiler.requireModel",
        bool,
        CompilerSettings,
        "require_model",
        "Without a model, fail instead of compiling deterministically.",
    ),
    Key(
        "library.compiler.useRequestCredentials",
        bool,
        CompilerSettings,
        "use_request_credentials",
        "Whether the model is asked with the `Authorization` header of who compiles, where there is one, and "
        "not with the key; see [with a model](library.md#with-a-model).",
    ),
    Key(
        "library.sources.allowUrls",
        bool,
        SourceSettings,
        "allow_urls",
        "Whether sources may be fetched from public URLs.",
    ),
    Key(
        "library.sources.resources",
        Name,
        SourceSettings,
        "resources",
        "The directory behind `viking://resources/`, read only.",
        form="directory",
    ),
)

SEARCH_KEYS = (
    Key(
        "library.recall.backend",
        RecallBackend,
        RecallSettings,
        "backend",
        "What finds rules for a task: the local model (`minilm`), an embeddings endpoint (`openai`), shared "
        "words (`bm25`), or the best of them that can be used.",
    ),
    Key(
        "library.recall.modelPath",
        Name,
        RecallSettings,
        "model_path",
        "Another sentence encoder in ONNX form.",
        form="file",
    ),
    Key(
        "library.recall.tokenizerPath",
        Name,
        RecallSettings,
        "tokenizer_path",
        "Its `tokenizer.json`.",
        form="file",
    ),
    Key(
        "library.recall.baseUrl",
        Name,
        RecallSettings,
        "base_url",
        "An OpenAI-compatible API whose `/embeddings` is used.",
        form="upstream",
    ),
    Key("library.recall.model", Name, RecallSettings, "model", "Its embedding model."),
    Key(
        "library.recall.apiKeyEnv",
        Name,
        RecallSettings,
        "api_key_env",
        "The environment variable that holds its key.",
    ),
    Key(
        "library.judge.provider",
        JudgeProvider,
        JudgeSettings,
        "provider",
        "Who judges whether a rule concerns a task, and whether output breaks a "
        "[judged rule](writing-rules.md#judged-rules): Jev (`jev`), a model behind an OpenAI-compatible API "
        "(`openai`), or nobody: all candidates `pass` and judged rules are off.",
    ),
    Key(
        "library.judge.baseUrl",
        Name,
        JudgeSettings,
        "base_url",
        "The judge's API; unless given `https://api.typesafe.ai` for `jev` and `https://api.openai.com` for "
        "`openai`.",
        form="upstream",
    ),
    Key(
        "library.judge.model",
        Name,
        JudgeSettings,
        "model",
        "The judge's model; `jev-latest` unless given for `jev`, required for `openai`.",
    ),
    Key(
        "library.judge.apiKeyEnv",
        Name,
        JudgeSettings,
        "api_key_env",
        "The environment variable that holds the judge's key; unless given `TYPESAFE_API_KEY`, and "
        "`OPENAI_API_KEY` for OpenAI's own API.",
    ),
    Key("library.judge.timeout", Limit, JudgeSettings, "timeout", "Seconds for one question to the judge."),
)

KEYS = (
    Key("host", Name, Settings, "host", "The address to listen on."),
    Key("port", Port, Settings, "port", "The port to listen on; 0 takes any free one."),
    Key("workers", Positive, Settings, "workers", "How many processes serve the port."),
    Key(
        "token",
        Token,
        Settings,
        "token",
        "What the dashboard, the log and the list of rules ask for (see [security](security.md#access)). On "
        "an address that others can reach they are refused without it.",
        secret=True,
    ),
    Key(
        "upstream.anthropic",
        Name,
        Upstreams,
        "anthropic",
        "Base URL of the Anthropic API. `upstream: URL` sets both.",
        form="upstream",
    ),
    Key(
        "upstream.openai",
        Name,
        Upstreams,
        "openai",
        "Base URL of the OpenAI API. `upstream: URL` sets both.",
        form="upstream",
    ),
    *_DIRECTORY_KEYS,
    Key(
        "state",
        Name,
        Settings,
        "state",
        "Where conversations and the interrupt log are: an SQLite file, or a "
        "[Redis server](operations.md#redis) as `redis://` or `rediss://` URL.",
        form="state",
        secret=True,
    ),
    Key(
        "log.format",
        LogFormat,
        LogSettings,
        "format",
        "The form of the program's own log: lines for people (`text`), JSON (`json`), or the one on a "
        "terminal and the other elsewhere (`auto`).",
    ),
    Key("retention.days", Days, RetentionSettings, "days", "Records unused for so many days are deleted."),
    Key("retention.records", Positive, RetentionSettings, "records", "The most records that are kept."),
    *CAPTURE_KEYS,
    *LIBRARY_KEYS,
    *SEARCH_KEYS,
    *TTSR_KEYS,
    *RULEBOOK_KEYS,
)

PROJECT_KEYS = (
    Key("path", Name, ProjectSettings, "path", "The project's directory (required).", form="directory"),
    *_DIRECTORY_KEYS,
    _LIBRARY_USER,
    *CAPTURE_KEYS,
    *TTSR_KEYS,
    *RULEBOOK_KEYS,
)
"""What stands under `projects.<name>`. Directories add to the top-level ones; `ttsr` keys go before them."""
