"""What is fuzzed: functions that take any bytes and must neither raise, hang nor break a promise.

They are run by hypothesis with every test run, and for as long as one likes by `make fuzz`. The first byte of
an input decides where it is cut and which variant is taken; the rest is what the reader is fed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from reminding import reminded

from ttsr_proxy.config import ConfigError, load_settings
from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.protocols.events import ProtocolEvent
from ttsr_proxy.protocols.openai_chat import OPENAI_CHAT
from ttsr_proxy.protocols.openai_responses import OPENAI_RESPONSES
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.protocols.sse import SseDecoder
from ttsr_proxy.replay.recording import NoTranscript, steps
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls import FamilyTable, ToolCallReader, views_of_call
from ttsr_proxy.toolcalls.json_stream import JsonStream, StringDelta, well_formed
from ttsr_proxy.toolcalls.prose import ProseEditReader
from ttsr_proxy.triggers.jsregex import PatternError, compile_condition
from ttsr_proxy.triggers.match import StreamContext
from ttsr_proxy.triggers.ruleset import RuleSet

Target = Callable[[bytes], None]

FAMILIES = FamilyTable.default()
PROTOCOLS: tuple[WireProtocol, ...] = (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES)
TOOLS = ("Write", "Edit", "MultiEdit", "apply_patch", "Bash", "exec", "deploy")
FORMATS = frozenset(("search-replace", "whole", "patch", "xml"))
MAX_CONDITION = 200
"""Characters of a fuzzed condition: compiling is bounded by limits of its own, and long ones find little."""


def cut(data: bytes) -> tuple[int, bytes, list[bytes]]:
    """A number, the input, and the input in pieces."""
    number, rest = (data[0], data[1:]) if data else (0, b"")
    size = 1 + number % 31
    return number, rest, [rest[at : at + size] for at in range(0, len(rest), size)]


def sse(data: bytes) -> None:
    """No byte is lost, and the cut changes nothing."""
    _, stream, pieces = cut(data)
    whole, parts = SseDecoder(1 << 12), SseDecoder(1 << 12)
    events = [*whole.feed(stream), *whole.finish()]
    assert b"".join(event.raw for event in events) == stream
    assert [*(event for piece in pieces for event in parts.feed(piece)), *parts.finish()] == events


def json_arguments(data: bytes) -> None:
    """Decoded strings are those of `json.loads`, however the document is cut."""
    number, raw, _ = cut(data)
    text = raw.decode("utf-8", "replace")
    size = 1 + number % 31
    stream = JsonStream()
    found: dict[tuple[str | int, ...], str] = {}
    events = [event for at in range(0, len(text), size) for event in stream.feed(text[at : at + size])]
    for event in (*events, *stream.finish()):
        if isinstance(event, StringDelta):
            found[event.path] = found.get(event.path, "") + event.text
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict) and _unique(text):
        for path, expected in _strings(value):
            assert found.get(path, "") == well_formed(expected), path


def _unique(text: str) -> bool:
    """No object has a key twice; then it has one value, which the decoder saw as two."""
    unique = True

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal unique
        unique = unique and len({well_formed(key) for key, _ in items}) == len(items)
        return dict(items)

    json.loads(text, strict=False, object_pairs_hook=pairs)
    return unique


def _strings(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, (*path, well_formed(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, index))


def tool_calls(data: bytes) -> None:
    """Views of any arguments are the same however they come; patches, commands and scripts among them."""
    number, raw, _ = cut(data)
    tool, size = TOOLS[number % len(TOOLS)], 1 + number % 29
    text = raw.decode("utf-8", "replace")
    arguments = json.dumps(
        {"path": "a.py", "file_path": "a.py", "command": text, "content": text, "input": text}
    )
    for sent, freeform in ((text, False), (text, True), (arguments, False)):
        reader = ToolCallReader(tool, FAMILIES, project_root="/w", freeform=freeform)
        for at in range(0, len(sent), size):
            reader.feed(sent[at : at + size])
        reader.finish()
        views = reader.views()
        assert views == views_of_call(tool, sent, FAMILIES, project_root="/w", freeform=freeform)
        for view in views:
            view.text.encode()


def prose(data: bytes) -> None:
    """Edits in prose are the same however the answer comes, and what is safe stays safe."""
    number, raw, _ = cut(data)
    text, size = raw.decode("utf-8", "replace"), 1 + number % 29
    whole, parts = (ProseEditReader(FORMATS, FAMILIES, project_root="/w") for _ in range(2))
    whole.feed(text)
    whole.finish()
    safe = 0
    for at in range(0, len(text), size):
        parts.feed(text[at : at + size])
        assert safe <= parts.safe_until <= at + size
        safe = parts.safe_until
    parts.finish()
    assert parts.views() == whole.views()


def conditions(data: bytes) -> None:
    """A condition compiles or says why not; a match of the stream is one of the whole text."""
    _, raw, _ = cut(data)
    source, _, text = raw.decode("utf-8", "replace").partition("\0")
    try:
        compile_condition(source[:MAX_CONDITION])
    except PatternError:
        return
    ruleset = RuleSet([Rule("fuzzed", condition=(source[:MAX_CONDITION],), scope=("text",))])
    context = StreamContext("text")
    stream = ruleset.stream(context)
    text = text[:500]
    fired = {match.rule.name for at in range(0, len(text), 7) for match in stream.feed(text[at : at + 7])}
    assert 0 <= stream.safe_until <= len(text)
    fired |= {match.rule.name for match in stream.finish()}
    if not stream.muted:
        assert fired == {match.rule.name for match in ruleset.check(text, context)}


def rule_files(data: bytes) -> None:
    """Any file is a rule, with warnings at most, and can be used or is refused with a reason."""
    rule = Rule.from_markdown("fuzzed.md", data)
    json.dumps(rule.to_dict())
    # Conditions have a target of their own; one that compiles slowly says nothing about files.
    if sum(map(len, rule.condition or ())) <= MAX_CONDITION:
        ruleset = RuleSet([rule])
        assert ruleset.compiled or all(ruleset.rejected.values())


def protocols(data: bytes) -> None:
    """Every reader keeps every byte, sees the same events at any split, and takes any request and body."""
    number, stream, pieces = cut(data)
    protocol = PROTOCOLS[number % len(PROTOCOLS)]
    whole, parts = protocol.reader(), protocol.reader()
    events = [*whole.feed(stream), *whole.finish()]
    assert b"".join(event.raw for event in events) == stream
    again = [*(event for piece in pieces for event in parts.feed(piece)), *parts.finish()]
    assert [_seen(event) for event in again] == [_seen(event) for event in events]
    protocol.read_message(stream)
    protocol.read_error(stream)
    request = protocol.read_request(stream, {})
    if request is not None:
        protocol.write_request(request, reminded(protocol, request.items, "remember"))


def _seen(event: ProtocolEvent) -> tuple[object, ...]:
    """What must be equal; events of one reader also refer to chunks that are its own."""
    return type(event), event.raw, getattr(event, "text", None), getattr(event, "value", None)


def configuration(data: bytes) -> None:
    """Any file is settings or an error that names it."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "ttsr-proxy.yaml"
        path.write_bytes(data)
        told = ""
        try:
            load_settings(project=Path(directory), home=Path(directory), environ={})
        except ConfigError as error:
            told = str(error)
        assert all(str(path) in line and line.isprintable() for line in told.splitlines())


def transcripts(data: bytes) -> None:
    """Every line of a transcript is read or named, in order; what is none is refused as that."""
    lines = data.splitlines()
    try:
        found = list(steps(lines))
    except NoTranscript:
        return
    places = [one.line for one in found]
    assert places == sorted(places)
    assert not places or places[-1] <= len(lines)


def _events(*payloads: object) -> tuple[bytes, ...]:
    return tuple(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)


_PATCH = (
    b"*** Begin Patch\n",
    b"*** Update File: a.ts\n",
    b"*** Add File: b\n",
    b"*** End Patch",
    b"@@ -1 +1 @@\n",
    b"--- a/x\n",
    b"+++ b/x\n",
    b"+added\n",
    b"-gone\n",
    b" kept\n",
    b"[c.md#12AB]\n",
)
_SHELL = (
    b"cat <<'EOF' > f\n",
    b"EOF\n",
    b"echo -n x",
    b" >> f",
    b"printf '%s\\n' ",
    b"sed -i 's/a/b/' f",
    b"cd /w && ",
    b"$(",
    b")",
    b"`",
    b"tee f",
    b"apply_patch ",
    b"; ",
    b"| ",
    b"$'\\x41'",
    b"<<<",
)
_SCRIPT = (b"await tools.apply_patch(", b"`", b"${x}", b"const x = ", b'"a" + "b"', b");", b"String.raw`")
_PROSE = (
    b"a.py\n",
    b"<<<<<<< SEARCH\n",
    b"=======\n",
    b">>>>>>> REPLACE\n",
    b"```",
    b"```python\n",
    b"\n",
    b"<write_to_file>",
    b"</write_to_file>",
    b"<path>a</path>",
    b"<content>",
    b"</content>",
    b"<",
)
_JSON = (
    b'{"a":',
    b'"',
    b"\\",
    b"\\u",
    b"d83d",
    b"\\ude00",
    b"[",
    b"]",
    b"}",
    b",",
    b"null",
    b"1e5",
    b"-",
    b"\n",
    '"é"'.encode(),
    b'{"path":"a.py","content":"',
    b'"}',
)

TARGETS: dict[str, tuple[Target, tuple[bytes, ...]]] = {
    "sse": (
        sse,
        (
            b"data:",
            b"data: x",
            b"\n",
            b"\r",
            b"\r\n",
            b"event: e",
            b":",
            b"id:",
            b"\xef\xbb\xbf",
            b"\xf0\x9f",
        ),
    ),
    "json_arguments": (json_arguments, _JSON),
    "tool_calls": (tool_calls, (*_PATCH, *_SHELL, *_SCRIPT, *_JSON)),
    "prose": (prose, (*_PROSE, *_PATCH)),
    "conditions": (
        conditions,
        (
            b"(?:",
            b"(?=",
            b"(?!",
            b"(?<=",
            b"(?<!",
            b"(?<n>",
            b"(",
            b")",
            b"[^",
            b"]",
            b"a",
            b"ab",
            b"\\b",
            b"\\d",
            b"\\p{L}",
            b"\\1",
            b"*",
            b"+?",
            b"{2,3}",
            b"|",
            b"^",
            b"$",
            b".",
            b"(?i)",
            b"\\u{1F600}",
            b"\0",
            b"\n",
        ),
    ),
    "rule_files": (
        rule_files,
        (
            b"---\n",
            b"---\r\n",
            b"condition: ",
            b"globs: ",
            b"*.ts",
            b"scope: tool:edit(*.ts)",
            b"\n",
            b"- ",
            b"alwaysApply: true\n",
            b'"',
            b"'",
            b"#",
            b"\t",
            b"\xef\xbb\xbf",
            b"&a ",
            b"*a",
            b"!!python/x ",
            b"? ",
            b"{",
            b"[",
            b"<!-- x -->\n",
            b"\xff\xfe",
            b"trigger: glob\n",
            b"repeatGap: ",
            b"9" * 30,
            b": ",
        ),
    ),
    "protocols": (
        protocols,
        (
            *_events(
                {
                    "type": "message_start",
                    "message": {"id": "m", "content": [], "usage": {"input_tokens": 1}},
                },
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_stop"},
                {"choices": [{"index": 0, "delta": {"content": "x"}}]},
                {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}}]},
                {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
                {"type": "response.output_text.delta", "output_index": 0, "delta": "x"},
                {"type": "response.completed", "response": {"output": []}},
            ),
            b"data: [DONE]\n\n",
            b"data: {",
            b"\n\n",
            b'{"messages": [{"role": "user", "content": "x"}]}',
            b'{"input": [{"type": "message", "role": "user", "content": "x"}]}',
            *_JSON,
        ),
    ),
    "configuration": (
        configuration,
        (
            b"ttsr:\n  ",
            b"port: ",
            b"8787\n",
            b"upstream: ",
            b"http://a\n",
            b"projects:\n  a:\n    path: .\n",
            b"&a ",
            b"*a",
            b"<<: ",
            b"- ",
            b"\n",
            b"2001-99-99",
            b"{",
            b"}",
            b"!!binary x\n",
            b"? ",
            b"host: ",
            b"\t",
        ),
    ),
    "transcripts": (
        transcripts,
        (
            b'{"sessionId": "s", "uuid": "u", "parentUuid": null, "type": "assistant", "message": ',
            b'{"id": "m", "content": [{"type": "text", "text": "x"}]}',
            b'{"content": [{"type": "tool_use", "id": "t", "name": "Write", "input": {"content": "x"}}]}',
            b'{"type": "session_meta", "payload": {"id": "c", "source": {"subagent": ',
            b'{"type": "turn_context", "payload": {"cwd": "/"}}\n',
            b'{"type": "response_item", "payload": ',
            b'{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}',
            b'{"type": "local_shell_call", "action": {"command": ["ls"]}}',
            b'{"type": "compacted", "payload": {}}\n',
            b"}\n",
            b"\n",
            *_JSON,
        ),
    ),
}
"""Each target by its name, with the pieces that its inputs are made of."""
