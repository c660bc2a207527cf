"""OpenTelemetry's spans of a request: one for what the client asked, within it one for each upstream call.

Attributes are those of the semantic conventions for HTTP and, where a model answers, for generative AI, which
are not final yet, and our own below `ttsr.`. No span holds a body, a header or a query.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points, version
from typing import Final, Self

import structlog
from aiohttp import web
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from yarl import URL

from ttsr_proxy.interception.attempt import Attempt
from ttsr_proxy.interrupts.masking import mask
from ttsr_proxy.interrupts.record import InterruptRecord

CLOSE_SECONDS: Final = 2.0
"""How long the end waits for a collector; the exporter itself would try again and again."""

_GROUP: Final = "opentelemetry_traces_exporter"
_OTLP: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

_PROVIDERS: Final = {"anthropic": "anthropic", "openai-chat": "openai", "openai-responses": "openai"}
"""By our protocols' names. Whose model it is behind that API is not known."""

_FAILURES: Final = frozenset(("failed", "broken_off", "fault"))
"""Outcomes that are an error whatever the status."""

_log = structlog.get_logger()


class Spans:
    """Makes the spans of all requests."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("ttsr_proxy", version("ttsr-proxy"))

    @classmethod
    def exported(cls, names: Iterable[str], environ: Mapping[str, str]) -> Self:
        """Spans go to the exporters of these names; one that cannot be used is logged and left out."""
        provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        for name in names:
            if name == "otlp":
                protocol = next((environ[key] for key in _PROTOCOLS if environ.get(key)), "http/protobuf")
                name = _OTLP.get(protocol.strip(), f"otlp ({protocol})")
            try:
                (exporter,) = entry_points(group=_GROUP, name=name)
                provider.add_span_processor(BatchSpanProcessor(exporter.load()()))
            except Exception as error:
                # Packages of others: what they raise when they are not set up right is not told anywhere.
                _log.warning("trace_exporter_left_out", exporter=name, reason=type(error).__name__)
        return cls(provider)

    def request(self, request: web.Request, request_id: str) -> RequestSpan:
        """The span of a client's request, below the one that its `traceparent` names."""
        span = self._tracer.start_span(
            request.method,
            extract(request.headers),
            SpanKind.SERVER,
            {
                "http.request.method": request.method,
                "url.scheme": request.scheme,
                "url.path": mask(request.rel_url.raw_path),
                "ttsr.request": request_id,
            },
        )
        return RequestSpan(self._tracer, span)

    def close(self) -> None:
        """Send what is left. Blocks, but not for long when there is nobody to send it to."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)


class RequestSpan:
    """The span of one request, and of its upstream call under way."""

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span
        self._context = set_span_in_context(span)
        self._call: Span | None = None

    @property
    def trace_id(self) -> str:
        """As `traceparent` has it."""
        return f"{self._span.get_span_context().trace_id:032x}"

    def call_begins(self, method: str, url: str, number: int, protocol: str, model: str) -> None:
        """Upstream is called, for the `number`th time from 1."""
        address = URL(url, encoded=True)
        attributes: dict[str, str | int] = {
            "http.request.method": method,
            "server.address": address.host or "",
            "server.port": address.port or 0,
        }
        name = method
        if number > 1:
            attributes["http.request.resend_count"] = number - 1
        if model:
            model = mask(model)
            name = f"chat {model}"
            attributes |= {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": _PROVIDERS[protocol],
                "gen_ai.request.model": model,
            }
        self._call = self._tracer.start_span(name, self._context, SpanKind.CLIENT, attributes)

    def call_ends(self, result: str, status: int | None, attempt: Attempt | None) -> None:
        """The call is closed. `attempt` is what was read of its answer, if it was read."""
        call, self._call = self._call, None
        if call is None:
            return
        call.set_attribute("ttsr.call.result", result)
        if status is not None:
            call.set_attribute("http.response.status_code", status)
        if attempt is not None:
            _tell_answer(call, attempt)
        if result in ("refused", "lost"):
            _fail(call, str(status) if result == "refused" else result)
        call.end()

    def interrupted(self, record: InterruptRecord) -> None:
        """A rule stopped the answer."""
        self._span.add_event(
            "ttsr.interrupt",
            {"ttsr.rule": record.rule, "ttsr.action": record.action, "ttsr.source": record.source},
        )

    def ends(self, outcome: str, status: int | None, facts: Mapping[str, str | int], route: str) -> None:
        """The request is over. `facts` become attributes below `ttsr.`, empty ones left out."""
        span = self._span
        if route:
            span.set_attribute("http.route", route)
            span.update_name(f"POST {route}")
        if status is not None:
            span.set_attribute("http.response.status_code", status)
        span.set_attribute("ttsr.outcome", outcome)
        for name, value in facts.items():
            if value != "":
                span.set_attribute(f"ttsr.{name}", mask(value) if isinstance(value, str) else value)
        if outcome in _FAILURES:
            _fail(span, outcome)
        elif status is not None and status >= 500:
            _fail(span, str(status))
        span.end()


def _tell_answer(call: Span, attempt: Attempt) -> None:
    started, ending = attempt.usage, attempt.ending
    if attempt.model:
        call.set_attribute("gen_ai.response.model", attempt.model)
    if attempt.response_id:
        call.set_attribute("gen_ai.response.id", attempt.response_id)
    if ending is not None and ending.stop_reason:
        call.set_attribute("gen_ai.response.finish_reasons", (ending.stop_reason,))
    for name in ("input_tokens", "output_tokens"):
        told = [getattr(usage, name) for usage in (ending and ending.usage, started) if usage is not None]
        tokens = next((count for count in told if count is not None), None)
        # Before the end upstream has counted no output.
        if tokens is not None and (name == "input_tokens" or ending is not None):
            call.set_attribute(f"gen_ai.usage.{name}", tokens)


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def _resource() -> Resource:
    """What the environment says of this service, and its name where that says none."""
    told = Resource.create()
    own = {SERVICE_VERSION: version("ttsr-proxy")}
    if str(told.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        own[SERVICE_NAME] = "ttsr-proxy"
    return told.merge(Resource(own))
