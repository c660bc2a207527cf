from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.toolcalls import close_partial

TEXT = st.text(max_size=8)
OBJECT = st.dictionaries(
    TEXT,
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("", {}),
        ("{", {}),
        ('{"pa', {}),
        ('{"path"', {}),
        ('{"path":', {}),
        ('{"path":"', {"path": ""}),
        ('{"path":"a.ts","content":"x\\n', {"path": "a.ts", "content": "x\n"}),
        ('{"c":"x\\', {"c": "x"}),
        ('{"c":"x\\u00', {"c": "x"}),
        ('{"c":"x\\ud83d', {"c": "x�"}),
        ('{"edits":[{"new":"a"},{"n', {"edits": [{"new": "a"}, {}]}),
        ('{"a":[1,[2', {"a": [1, [2]]}),
        ('{"a":{"b":"c"},"d":["e"', {"a": {"b": "c"}, "d": ["e"]}),
        ('{"a":tru', {}),
        ('{"a":true', {"a": True}),
        ('{"a":1,"a":"x"}', {"a": "x"}),
        ('{"a":"b"} tail', {"a": "b"}),
        ('{"a":"b" "c":1', {"a": "b"}),
        ("[1,2", {}),
        ("*** Begin Patch", {}),
    ],
)
def test_a_cut_object_is_closed_where_it_stands(text, closed):
    assert close_partial(text) == closed


@settings(max_examples=100, deadline=None)
@given(value=OBJECT)
def test_a_complete_object_is_what_json_loads_makes_of_it(value):
    assert close_partial(json.dumps(value)) == value


@settings(max_examples=100, deadline=None)
@given(value=OBJECT, at=st.integers(0, 300))
def test_a_prefix_gives_a_dictionary_whose_keys_the_whole_has(value, at):
    closed = close_partial(json.dumps(value)[:at])

    assert isinstance(closed, dict)
    assert list(closed) == list(value)[: len(closed)]


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.sampled_from('{}[]",:\\u0d8 \n1-.truefalsn\x00\ud83d'), max_size=60))
def test_garbage_gives_a_dictionary_too(text):
    closed = close_partial("{" + text)

    assert isinstance(closed, dict)
    json.dumps(closed).encode()


def test_deep_and_huge_values_do_not_raise():
    assert isinstance(close_partial('{"a":' * 5000), dict)
    assert close_partial('{"a":' + "9" * 5000 + "}") == {"a": "9" * 5000}
