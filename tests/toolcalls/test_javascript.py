from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.toolcalls import FamilyTable, ToolCallReader, View, ViewDelta
from ttsr_proxy.toolcalls.javascript import payloads_of
from ttsr_proxy.toolcalls.syntax import MAX_NESTING, MAX_SIGNS, MAX_SOURCE, Payload

PATCH = "*** Begin Patch\n*** Update File: a.ts\n+x"
LINES = ",".join(map(json.dumps, PATCH.splitlines()))


@pytest.mark.parametrize(
    "script",
    [
        f"await tools.apply_patch({json.dumps(PATCH)});",
        f"tools['apply_patch']({json.dumps(PATCH)})",
        f"const patch = `{PATCH}`;\nconst same = patch; text(await tools.apply_patch(same));",
        f"tools.apply_patch({{input: {json.dumps(PATCH)}}})",
        f"const input = `{PATCH}`; tools.apply_patch({{input}})",
        f"tools.apply_patch(({json.dumps(PATCH[:20])}) + {json.dumps(PATCH[20:])})",
        f"tools.apply_patch([{LINES}].join('\\n'))",
        f"const all = [{LINES}]; tools.apply_patch(all.join(`\\n`))",
        f"tools.apply_patch(String.raw`{PATCH}`)",
    ],
)
def test_a_patch_is_found_however_its_text_is_put_together(script):
    assert payloads_of(script) == (Payload("edit", "patch", (), PATCH),)


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r"'a\'b\u0041\x42\u{1F600}\0\v\z'", "a'bAB\U0001f600\0\vz"),
        (r'"\ud83d\ude00 \ud83d"', "\U0001f600 \ufffd"),
        ("'a\\\nb'", "ab"),
        ("`a${value}b`", "ab"),
        (r"String.raw`a\nb`", r"a\nb"),
        ("''", ""),
        ("'a' + known + 'b'", "ab"),
        (r"'\u{110000}'", "\ufffd"),
    ],
)
def test_literals_have_the_text_that_the_script_would_see(literal, text):
    assert payloads_of(f"tools.exec_command({{cmd: {literal}}})") == (Payload("bash", "shell", (), text),)


@pytest.mark.parametrize(
    "script",
    [
        "",
        "apply_patch('x')",
        "other.apply_patch('x')",
        "tools.view_image({path: 'x'})",
        "tools.apply_patch(unknown)",
        "tools.exec_command({workdir: '/x', cmd: make()})",
        "// tools.apply_patch('x')",
        "'tools.apply_patch(1)'",
        "const a = b; const b = a; tools.apply_patch(a)",
        "tools.apply_patch('x'" + "(" * (MAX_NESTING + 1),
        "tools.apply_patch('x') //" + " " * MAX_SOURCE,
        "tools.apply_patch('x');" + "f(a);" * MAX_SIGNS,
        "tools.apply_patch('x');" + "''" * (MAX_SIGNS + 1),
        "tools.apply_patch('x');`" + "${a}" * (MAX_SIGNS + 1) + "`",
    ],
)
def test_nothing_is_found_where_no_text_is_given_to_a_tool(script):
    assert payloads_of(script) == ()


def test_code_in_the_literals_of_a_script_does_not_count_against_the_bounds():
    patch = "*** Add File: a.ts\n" + "+f((a) | b);\n" * MAX_SIGNS

    for literal in (json.dumps(patch), f"`{patch}`"):
        (payload,) = payloads_of(f"tools.apply_patch({literal})")
        assert payload.text == patch


def test_constants_that_double_each_other_stay_small():
    lines = ["const a0 = 'x'.repeat(9) + '" + "x" * 1000 + "'"]
    lines += [f"const a{n} = a{n - 1} + a{n - 1}" for n in range(1, 60)]

    found = payloads_of(";".join([*lines, "tools.apply_patch(a59)"]))

    assert sum(len(payload.text) for payload in found) <= 4 * MAX_SOURCE


def test_a_script_is_a_view_with_its_commands_and_files_behind_it():
    script = 'await tools.exec_command({cmd: "echo x > a.ts"})'
    reader = ToolCallReader("exec", FamilyTable.default(), freeform=True)

    assert reader.feed(script[:20]) == (ViewDelta(0, (), "eval", script[:20]),)
    reader.feed(script[20:])
    reader.finish()

    assert reader.views() == (
        View((), script, "eval"),
        View((), "echo x > a.ts", "bash"),
        View(("a.ts",), "x\n", "write"),
    )


WORDS = r"""tools .apply_patch ( ) {cmd: } ' " ` ${ \ + [ ].join( a const ; tools.exec_command( \u{ \ud83d x ,
    => String.raw` / ="""


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=25))
def test_no_script_makes_it_fail(words):
    for payload in payloads_of("tools;" + " ".join(words)):
        payload.text.encode()
