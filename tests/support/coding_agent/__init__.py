"""A client that behaves as coding agents do, and refuses streams that some agent would choke on."""

from coding_agent.agent import TOOLS, Agent, EchoStyle
from coding_agent.chat import ChatAgent
from coding_agent.chat_stream import ChatStreamReader
from coding_agent.responses import ResponsesAgent
from coding_agent.responses_stream import ResponsesStreamReader
from coding_agent.stream import Answer, IllegalStream, StreamReader, read_message

__all__ = [
    "TOOLS",
    "Agent",
    "Answer",
    "ChatAgent",
    "ChatStreamReader",
    "EchoStyle",
    "IllegalStream",
    "ResponsesAgent",
    "ResponsesStreamReader",
    "StreamReader",
    "read_message",
]
