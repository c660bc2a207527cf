"""How a fault of the program is told: by its place, since its message may hold what people wrote."""

from __future__ import annotations

import traceback
from typing import Final

_SHOWN: Final = 6


def fault(error: BaseException) -> dict[str, object]:
    """The kind of error and the last places of its trace, as fields of a log line."""
    trace = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    return {"error": type(error).__name__, "trace": trace[-_SHOWN:]}
