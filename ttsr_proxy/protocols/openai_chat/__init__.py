"""The OpenAI Chat Completions API: `POST /v1/chat/completions`, as OpenAI, Azure and many others serve it."""

from __future__ import annotations

from ttsr_proxy.protocols.history import unchanged
from ttsr_proxy.protocols.openai import errors
from ttsr_proxy.protocols.openai_chat import history, request, response, usage, writer
from ttsr_proxy.protocols.protocol import ResponseWriter, StopReasons, WireProtocol
from ttsr_proxy.protocols.request import ApiRequest


class OpenAIChat:
    """The parts of this package, under the names that every wire protocol has."""

    name = "openai-chat"
    paths: tuple[str, ...] = ("/chat/completions",)
    counting_paths: tuple[str, ...] = ()
    stops = StopReasons(done="stop", tool="tool_calls", length="length")
    signs_thinking = False
    keeps_responses = False

    reader = staticmethod(response.ChatReader)
    read_message = staticmethod(response.read_message)
    without_hidden = staticmethod(response.without_hidden)
    initial_text = staticmethod(response.initial_text)
    usage_changes = staticmethod(usage.usage_changes)

    read_request = staticmethod(request.read_request)
    write_request = staticmethod(request.write_request)

    tool_result_item = staticmethod(history.tool_result_item)
    item_of_block = staticmethod(history.item_of_block)
    text_block = staticmethod(history.text_block)
    with_input = staticmethod(history.with_input)
    keep_marks = staticmethod(history.keep_marks)
    salvage = staticmethod(unchanged)
    chain_text = staticmethod(history.chain_text)
    strip_marks = staticmethod(history.strip_marks)
    without_thinking = staticmethod(history.without_thinking)

    error_object = staticmethod(errors.error_object)
    error_body = staticmethod(errors.error_body)
    read_error = staticmethod(errors.read_error)
    is_binding_error = staticmethod(errors.is_binding_error)
    error_status = staticmethod(errors.error_status)

    def writer(self, request: ApiRequest, prompt: str) -> ResponseWriter:
        """A writer; no answer repeats the prompt."""
        return writer.ChatWriter(request)


OPENAI_CHAT: WireProtocol = OpenAIChat()
