"""The OpenAI Responses API: `POST /v1/responses`, also under the paths of Azure."""

from __future__ import annotations

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.openai import errors
from ttsr_proxy.protocols.openai_responses import history, request, response, usage, writer
from ttsr_proxy.protocols.protocol import StopReasons, WireProtocol

_REASONING_WORDS = ("encrypted_content", "encrypted content", "'rs_", "reasoning")


def is_binding_error(error: JsonObject) -> bool:
    """Whether upstream refuses reasoning of the history: unknown, not decryptable, or out of its place."""
    message = error.get("message")
    return isinstance(message, str) and any(word in message for word in _REASONING_WORDS)


class OpenAIResponses:
    """The parts of this package, under the names that every wire protocol has."""

    name = "openai-responses"
    paths: tuple[str, ...] = ("/responses",)
    counting_paths: tuple[str, ...] = ("/responses/input_tokens",)
    stops = StopReasons(done="completed", tool="completed", length="max_output_tokens")
    signs_thinking = True
    keeps_responses = True

    reader = staticmethod(response.ResponsesReader)
    writer = staticmethod(writer.ResponsesWriter)
    read_message = staticmethod(response.read_message)
    without_hidden = staticmethod(response.without_hidden)
    initial_text = staticmethod(response.initial_text)
    usage_changes = staticmethod(usage.usage_changes)

    read_request = staticmethod(request.read_request)
    write_request = staticmethod(request.write_request)

    tool_result_item = staticmethod(history.tool_result_item)
    with_input = staticmethod(history.with_input)
    item_of_block = staticmethod(history.item_of_block)
    text_block = staticmethod(history.text_block)
    keep_marks = staticmethod(history.keep_marks)
    chain_text = staticmethod(history.chain_text)
    strip_marks = staticmethod(history.strip_marks)
    without_thinking = staticmethod(history.without_thinking)
    salvage = staticmethod(history.salvage)

    error_object = staticmethod(errors.error_object)
    error_body = staticmethod(errors.error_body)
    read_error = staticmethod(errors.read_error)
    is_binding_error = staticmethod(is_binding_error)
    error_status = staticmethod(errors.error_status)


OPENAI_RESPONSES: WireProtocol = OpenAIResponses()
