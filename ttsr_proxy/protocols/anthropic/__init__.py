"""The Anthropic Messages API: `POST /v1/messages`."""

from __future__ import annotations

from ttsr_proxy.protocols.anthropic import errors, history, request, response, usage, writer
from ttsr_proxy.protocols.history import unchanged
from ttsr_proxy.protocols.protocol import ResponseWriter, StopReasons, WireProtocol
from ttsr_proxy.protocols.request import ApiRequest


class AnthropicMessages:
    """The parts of this package, under the names that every wire protocol has."""

    name = "anthropic"
    paths: tuple[str, ...] = ("/v1/messages",)
    counting_paths: tuple[str, ...] = ("/v1/messages/count_tokens",)
    stops = StopReasons(done="end_turn", tool="tool_use", length="max_tokens")
    signs_thinking = True
    keeps_responses = False

    reader = staticmethod(response.AnthropicReader)
    read_message = staticmethod(response.read_message)
    without_hidden = staticmethod(response.without_hidden)
    initial_text = staticmethod(response.initial_text)
    usage_changes = staticmethod(usage.usage_changes)

    read_request = staticmethod(request.read_request)
    write_request = staticmethod(request.write_request)

    tool_result_item = staticmethod(history.tool_result_item)
    item_of_block = staticmethod(history.item_of_block)
    with_input = staticmethod(history.with_input)
    text_block = staticmethod(history.text_block)
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
        """A writer; nothing of the request shapes the stream."""
        return writer.AnthropicWriter()


ANTHROPIC: WireProtocol = AnthropicMessages()
