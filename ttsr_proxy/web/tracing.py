"""Whether requests leave traces, as OpenTelemetry's own variables say
(https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).

Without them nothing of OpenTelemetry is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from ttsr_proxy.web.spans import Spans

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

_log = structlog.get_logger()


def exporters(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the exporters that are asked for; none when tracing is off."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ()
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if not named:
        named = "otlp" if any(environ.get(name) for name in _ENDPOINTS) else "none"
    names = tuple(filter(None, (name.strip() for name in named.split(","))))
    return () if "none" in names else names


def spans_for(environ: Mapping[str, str]) -> Spans | None:
    """Where requests leave their spans; None when tracing is off, or cannot be done, which is logged."""
    names = exporters(environ)
    if not names:
        return None
    try:
        from ttsr_proxy.web.spans import Spans
    except ImportError:
        _log.warning("tracing_off", reason="the extra is not installed: pip install 'ttsr-proxy[otel]'")
        return None
    return Spans.exported(names, environ)
