"""A scripted upstream that speaks Anthropic Messages and refuses what the real API refuses."""

from strict_anthropic.script import (
    HttpError,
    Turn,
    drop,
    fresh_id,
    http_error,
    ping,
    raw,
    redacted,
    server_tool,
    stall,
    stream_error,
    text,
    thinking,
    tool,
    turn,
)
from strict_anthropic.server import Received, StrictUpstream, listening, serving, strict_upstream
from strict_anthropic.validate import BOUND_ELSEWHERE, validate

__all__ = [
    "BOUND_ELSEWHERE",
    "HttpError",
    "Received",
    "StrictUpstream",
    "Turn",
    "drop",
    "fresh_id",
    "http_error",
    "listening",
    "ping",
    "raw",
    "redacted",
    "server_tool",
    "serving",
    "stall",
    "stream_error",
    "strict_upstream",
    "text",
    "thinking",
    "tool",
    "turn",
    "validate",
]
