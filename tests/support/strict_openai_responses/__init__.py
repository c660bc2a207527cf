"""A scripted upstream that speaks OpenAI Responses and refuses what the real API refuses.

Turns are written in the language of `strict_anthropic.script`, with steps for what only this API has.
"""

from strict_openai_responses.script import custom, reasoning, refusal, shell
from strict_openai_responses.server import StrictResponsesUpstream, strict_responses_upstream
from strict_openai_responses.validate import Kept, validate
from strict_openai_responses.wire import Writer

__all__ = [
    "Kept",
    "StrictResponsesUpstream",
    "Writer",
    "custom",
    "reasoning",
    "refusal",
    "shell",
    "strict_responses_upstream",
    "validate",
]
