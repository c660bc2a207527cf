"""A scripted upstream that speaks Chat Completions and refuses what the real API refuses.

The scripts are those of `strict_anthropic`: `turn(text("Hi"), tool("Write", {...}))`.
"""

from strict_openai_chat.server import StrictChatUpstream, strict_chat_upstream
from strict_openai_chat.validate import validate
from strict_openai_chat.wire import Dialect

__all__ = ["Dialect", "StrictChatUpstream", "strict_chat_upstream", "validate"]
