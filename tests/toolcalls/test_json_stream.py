from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.toolcalls.json_stream import (
    MAX_DEPTH,
    ContainerStarted,
    JsonStream,
    PairJoiner,
    ScalarRead,
    StringDelta,
    StringEnded,
    well_formed,
)

ANY_TEXT = st.text(
    st.characters(exclude_categories=()) | st.sampled_from('"\\/\n\t\ud83d\ude00\ud800é'), max_size=12
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
CUTS = st.lists(st.integers(0, 400), max_size=40)


def decode(fragments: list[str]) -> tuple[dict[tuple, str], JsonStream]:
    """The strings of a document by place, and the decoder."""
    stream = JsonStream()
    strings: dict[tuple, list[str]] = {}
    ended = set()
    events = [event for fragment in fragments for event in stream.feed(fragment)] + stream.finish()
    for event in events:
        if isinstance(event, StringDelta):
            assert event.text
            assert event.path not in ended
            strings.setdefault(event.path, []).append(event.text)
        elif isinstance(event, StringEnded):
            strings.setdefault(event.path, [])
            ended.add(event.path)
    return {path: "".join(pieces) for path, pieces in strings.items()}, stream


def strings_of(value: Any, path: tuple = ()) -> dict[tuple, str]:
    if isinstance(value, str):
        return {path: well_formed(value)}
    if isinstance(value, dict):
        items = [(well_formed(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        return {}
    return {place: text for key, item in items for place, text in strings_of(item, (*path, key)).items()}


def has_unique_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return len({well_formed(key) for key in value}) == len(value) and all(
            map(has_unique_keys, value.values())
        )
    return not isinstance(value, list) or all(map(has_unique_keys, value))


@settings(max_examples=100, deadline=None)
@given(
    value=JSON.filter(has_unique_keys),
    ensure_ascii=st.booleans(),
    indent=st.sampled_from([None, 1]),
    cuts=CUTS,
)
def test_any_split_of_any_document_gives_the_strings_of_json_loads(cut, value, ensure_ascii, indent, cuts):
    document = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)

    strings, stream = decode(cut(document, cuts))

    assert strings == strings_of(json.loads(document))
    assert stream.broken is None
    assert stream.raw == document


@settings(max_examples=100, deadline=None)
@given(
    text=st.text(st.sampled_from('{}[]",:\\u0d8 \n1-eE.truefalsnx\x00é\ud83d\ude00'), max_size=60), cuts=CUTS
)
def test_garbage_never_raises_and_means_the_same_however_it_is_cut(cut, text, cuts):
    strings, stream = decode([text])
    cut_strings, cut_stream = decode(cut(text, cuts))

    assert cut_strings == strings
    assert (cut_stream.broken, cut_stream.broken_at) == (stream.broken, stream.broken_at)
    assert cut_stream.complete == stream.complete
    if not stream.complete:
        assert cut_stream.raw == text


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.sampled_from('{}[]",:\\u0d8 \n1-eE.null\x01é'), max_size=30))
def test_only_documents_that_json_loads_reads_are_complete(text):
    stream = JsonStream()
    stream.feed(text)
    stream.finish()

    try:
        json.loads(text, strict=False)
    except ValueError:
        assert not stream.complete or stream.rest.strip(" \n")
    else:
        assert stream.complete
        assert not stream.rest.strip(" \n")


@pytest.mark.parametrize("at", range(len('{"c":"\\ud83d\\ude00 a\\nb"}')))
def test_an_escape_cut_anywhere_waits_for_its_other_half(at):
    document = '{"c":"\\ud83d\\ude00 a\\nb"}'

    strings, _ = decode([document[:at], document[at:]])

    assert strings == {("c",): "\U0001f600 a\nb"}


def test_halves_of_a_pair_that_arrive_as_characters_become_one_character():
    strings, _ = decode(['{"c":"\ud83d', '\ude00"}'])

    assert strings == {("c",): "\U0001f600"}


def test_a_lone_surrogate_is_the_replacement_character():
    strings, _ = decode(['["\\ud83d", "\\ude00x", "\\ud83d\\ud83d\\ude00"]'])

    assert list(strings.values()) == ["�", "�x", "�\U0001f600"]


def test_pieces_are_given_out_as_they_arrive():
    stream = JsonStream()

    assert stream.feed('{"edits":[{"new_string":"a') == [
        ContainerStarted((), True),
        ContainerStarted(("edits",), False),
        ContainerStarted(("edits", 0), True),
        StringDelta(("edits", 0, "new_string"), "a"),
    ]
    assert stream.open_string == ("edits", 0, "new_string")
    assert stream.feed('b","n":1') == [
        StringDelta(("edits", 0, "new_string"), "b"),
        StringEnded(("edits", 0, "new_string")),
    ]
    assert stream.feed("2}]}") == [ScalarRead(("edits", 0, "n"), "12")]
    assert stream.complete


def test_what_follows_the_document_is_left_as_the_rest():
    stream = JsonStream()
    stream.feed('{"a":1}')
    assert (stream.complete, stream.rest) == (True, "")

    other = JsonStream()
    other.feed('{"a":1} {"b"')
    assert (other.complete, other.rest, other.raw) == (True, ' {"b"', '{"a":1}')
    assert other.feed(":2}") == []
    assert other.rest == ":2}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a" 1}', "character 5: expected ':', found '1'"),
        ('{"a":1,}', "character 7: expected a key, found '}'"),
        ("[1 2]", "character 3: expected ',' or the end of the container, found '2'"),
        ("[1,]", "character 3: expected a value, found ']'"),
        ("{]", "character 1: expected a key or '}', found ']'"),
        ('["\\x"]', "character 2: expected an escape sequence after '\\'"),
        ("[01]", "character 3: expected a number, true, false or null"),
        ("*** Begin Patch", "character 0: expected a value, found '*'"),
    ],
)
def test_a_document_that_is_not_json_says_where_and_why(text, reason):
    for fragments in ([text], list(text)):
        stream = JsonStream()
        for fragment in fragments:
            stream.feed(fragment)
        assert stream.broken == reason
        assert stream.raw == text


def test_depth_is_bounded():
    stream = JsonStream()
    stream.feed("[" * MAX_DEPTH)
    assert stream.broken is None

    stream.feed("[")
    assert stream.broken is not None
    assert str(MAX_DEPTH) in stream.broken


def test_raw_control_characters_in_strings_are_taken_as_they_are():
    strings, stream = decode(['{"a":"x\ny\x00"}'])

    assert strings == {("a",): "x\ny\x00"}
    assert stream.complete


@settings(max_examples=100, deadline=None)
@given(text=ANY_TEXT, cuts=CUTS)
def test_joined_pieces_equal_the_well_formed_text(cut, text, cuts):
    joiner = PairJoiner()

    joined = "".join([joiner.feed(piece) for piece in cut(text, cuts)] + [joiner.finish()])

    assert joined == well_formed(text)
    joined.encode()
