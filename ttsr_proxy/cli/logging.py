"""The program's own log on standard error: lines for people or JSON for programs, never a secret."""

from __future__ import annotations

import logging
import re
import sys
import traceback
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from ttsr_proxy.config import LogFormat
from ttsr_proxy.interrupts.masking import MARK, mask

_SECRET_NAMES = re.compile(
    r"authorization|cookie|api[-_]?key|password|secret|credential|(^|[-_])token$", re.I
)

_OWN = frozenset(("timestamp", "level", "request", "trace", "worker"))
"""Fields that this program makes up itself."""

_CLEAN: set[str] = set()
"""Short texts that were found to hold no secret: most words of a log come again and again."""

_CLEAN_CHARS = 80
_CLEAN_TEXTS = 1_000


def configure_logging(
    stream: TextIO | None = None, level: int = logging.INFO, form: LogFormat = "auto"
) -> None:
    """Send structlog's events and the libraries' warnings to `stream` (standard error).

    `auto` is `text` on a terminal and `json` elsewhere.
    """
    stream = stream or sys.stderr
    on_terminal = stream.isatty()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Plain tracebacks: the pretty ones print local variables, and those hold requests and keys.
    as_text: list[Processor] = [structlog.processors.format_exc_info, mask_secrets]
    if form == "text" or (form == "auto" and on_terminal):
        renderer: Processor = structlog.dev.ConsoleRenderer(
            colors=on_terminal, exception_formatter=structlog.dev.plain_traceback
        )
    else:
        renderer = structlog.processors.JSONRenderer(default=str)
    structlog.configure(
        processors=[*shared, *as_text, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.addFilter(_exceptions_by_place)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *as_text, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def _exceptions_by_place(record: logging.LogRecord) -> bool:
    """Tell an exception of a library by its type and place: its message may quote a request, as aiohttp's
    does for a header that it cannot read."""
    if record.exc_info and (error := record.exc_info[1]) is not None:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        record.msg, record.args = f"{record.getMessage()} ({type(error).__name__}{place})", ()
        record.exc_info = record.exc_text = None
    return True


def mask_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Mask fields named like credentials, and credentials inside other values."""
    return {
        name: value if name in _OWN else MARK if _SECRET_NAMES.search(name) else _masked(value)
        for name, value in event.items()
    }


def _masked(value: object) -> object:
    match value:
        case str():
            return value if value in _CLEAN else _masked_text(value)
        case dict():
            return {
                key: MARK if _SECRET_NAMES.search(str(key)) else _masked(item) for key, item in value.items()
            }
        case list() | tuple():
            return [_masked(item) for item in value]
    return value


def _masked_text(text: str) -> str:
    masked = mask(text)
    if masked == text and len(text) <= _CLEAN_CHARS:
        if len(_CLEAN) >= _CLEAN_TEXTS:
            _CLEAN.clear()
        _CLEAN.add(text)
    return masked
