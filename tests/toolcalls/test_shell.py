from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.toolcalls.shell import MAX_DEPTH, payloads_of
from ttsr_proxy.toolcalls.syntax import MAX_NESTING, MAX_SIGNS, MAX_SOURCE, Payload

WRITES = [
    ("cat > a.ts <<EOF\nx\nEOF", ["a.ts"], "x\n"),
    ("cat <<EOF > a.ts\nx\nEOF\n", ["a.ts"], "x\n"),
    ("cat <<'EOF' | tee a.ts b.ts >/dev/null\nx\nEOF", ["a.ts", "b.ts"], "x\n"),
    ('cat >> a.ts <<"E F" && npm test\nx\nE F\n', ["a.ts"], "x\n"),
    ("sudo tee -a a.ts <<EOF >/dev/null\nx\nEOF", ["a.ts"], "x\n"),
    ("A=1 env B=2 cat > a.ts <<EOF\nx\nEOF", ["a.ts"], "x\n"),
    ("timeout 5 cat > a.ts <<EOF\nx\nEOF", ["a.ts"], "x\n"),
    ("(\ncat <<-EOF\n\t\tx\n\tEOF\n) > a.ts", ["a.ts"], "x\n"),
    ("cat > a.ts <<EOF\nnever ended", ["a.ts"], "never ended\n"),
    ("cat > a.ts <<EOF\ncost \\$5 $HOME \\\\ \\n\nEOF", ["a.ts"], "cost $5 $HOME \\ \\n\n"),
    ("cat > a.ts <<'EOF'\ncost \\$5\nEOF", ["a.ts"], "cost \\$5\n"),
    ("cat <<< 'x y' > a.ts", ["a.ts"], "x y\n"),
    ("cat - > a.ts <<EOF\nx\nEOF", ["a.ts"], "x\n"),
    ("echo x  y > a.ts", ["a.ts"], "x y\n"),
    ("echo -n 'x' >| 'a b.ts' 2>&1", ["a b.ts"], "x"),
    ("echo -e 'x\\ty\\x41\\101\\q' &> a.ts", ["a.ts"], "x\ty\x41A\\q\n"),
    ('echo "a \\"b\\" $C" > "$HOME/a.ts"', ["$HOME/a.ts"], 'a "b" $C\n'),
    ("echo a\\ b'c'\"d\" > a.ts", ["a.ts"], "a bcd\n"),
    ("echo $'x\\ny' > a.ts", ["a.ts"], "x\ny\n"),
    ("printf '%s=%d%%\\n' a 1 b 2 > a.ts", ["a.ts"], "a=1%\nb=2%\n"),
    ("printf 'x\\n' > a.ts", ["a.ts"], "x\n"),
    ("printf -- '%b' 'x\\ny' > a.ts", ["a.ts"], "x\ny"),
    ("printf x y > a.ts", ["a.ts"], "x"),
    ("{ echo x; date; echo y; } > a.ts", ["a.ts"], "x\ny\n"),
    ("if true; then echo x > a.ts; fi", ["a.ts"], "x\n"),
    ("for f in 1 2; do echo x > a.ts; done", ["a.ts"], "x\n"),
    ("true && false || echo x > a.ts", ["a.ts"], "x\n"),
    ("f() { echo x > a.ts; }; f", ["a.ts"], "x\n"),
    ("echo x | sudo tee a.ts", ["a.ts"], "x\n"),
    ("bash -lc 'echo x > a.ts'", ["a.ts"], "x\n"),
    ("bash -e -o pipefail -c 'echo x > a.ts'", ["a.ts"], "x\n"),
    ("bash <<'EOF'\necho x > a.ts\nEOF", ["a.ts"], "x\n"),
    ("cd src && mkdir -p b; cd b && echo x > a.ts", ["src/b/a.ts"], "x\n"),
    ("cd src && cd .. && echo x > a.ts", ["a.ts"], "x\n"),
    ("(cd src); echo x > a.ts", ["a.ts"], "x\n"),
    ("cd src && echo x > /tmp/a.ts", ["/tmp/a.ts"], "x\n"),
]


@pytest.mark.parametrize(("command", "paths", "text"), WRITES, ids=[write[0][:40] for write in WRITES])
def test_text_that_a_command_prints_into_files_is_a_write(command, paths, text):
    expected = (Payload("write", "text", tuple(paths), text),) if paths else ()

    assert payloads_of(command) == expected


def test_a_redirection_belongs_to_the_last_command_of_a_list():
    assert payloads_of("echo a > a.ts && echo b && cat x.ts > b.ts") == (
        Payload("write", "text", ("a.ts",), "a\n"),
    )


def test_several_files_of_one_command_are_writes_of_their_own():
    command = "cat > a.ts <<A\nx\nA\ncat > b.md <<B\ny\nB\necho z >> a.ts"

    assert [(payload.paths, payload.text) for payload in payloads_of(command)] == [
        (("a.ts",), "x\n"),
        (("b.md",), "y\n"),
        (("a.ts",), "z\n"),
    ]


@pytest.mark.parametrize(
    "command",
    [
        "",
        "git push --force",
        "node make.js > a.ts",
        "> a.ts",
        "cat x.ts > a.ts",
        "cat x.ts | tee a.ts",
        "echo x > /dev/null",
        "echo x 2> a.ts",
        "echo 'x > a.ts'",
        "python - <<'EOF'\nopen('a.ts', 'w').write('x')\nEOF",
        "sed 's/a/b/' a.ts",
        "cat < a.ts",
        "bash script.sh > a.ts",
        "printf -v x y > a.ts",
    ],
)
def test_commands_whose_output_is_unknown_or_goes_to_no_file_write_nothing(command):
    assert payloads_of(command) == ()


@pytest.mark.parametrize(
    ("command", "paths", "texts"),
    [
        ("sed -i 's/old/new/g' a.ts b.ts", ("a.ts", "b.ts"), ["new"]),
        ("sed -i.bak -E -e 's/old/new/' -e '2a more' a.ts", ("a.ts",), ["new", "more"]),
        ("sed -i '' 's/old/new/' a.ts", ("a.ts",), ["new"]),
        ("sed -Ei 's/old/new/' -- a.ts", ("a.ts",), ["new"]),
        ("sed --in-place --expression='s/old/new/' a.ts", ("a.ts",), ["new"]),
        ("sed -n -i -f script.sed a.ts", (), []),
        ("sed -i 's/old//' a.ts", ("a.ts",), [""]),
        ("perl -pi -e 's/old/new/' a.ts", ("a.ts",), ["new"]),
        ("perl -e 's/old/new/' a.ts", (), []),
        ("cd src; sed -i 's/old/new/' a.ts", ("src/a.ts",), ["new"]),
    ],
)
def test_what_sed_puts_into_files_in_place_is_an_edit(command, paths, texts):
    assert payloads_of(command) == tuple(Payload("edit", "text", paths, text) for text in texts)


@pytest.mark.parametrize("start", ["apply_patch", "applypatch", "patch -p1", "git apply", "sudo git apply -"])
def test_patches_are_taken_from_the_input_of_the_programs_that_apply_them(start):
    assert payloads_of(f"{start} <<'EOF'\n+x\nEOF") == (Payload("edit", "patch", (), "+x\n"),)
    assert payloads_of("apply_patch '+x'") == (Payload("edit", "patch", (), "+x"),)
    assert payloads_of(f"{start} < fix.patch") == ()


@pytest.mark.parametrize(
    "command",
    [
        "echo x > a.ts" + "|a" * (MAX_SIGNS + 1),
        "echo x > a.ts;" + "(" * (MAX_NESTING + 1),
        "echo x > a.ts #" + "x" * MAX_SOURCE,
        "a=(" * 50_000 + "> a.ts",
    ],
    ids=["signs", "brackets", "length", "arrays"],
)
def test_nothing_is_looked_for_in_commands_beyond_the_bounds(command):
    assert payloads_of(command) == ()


def test_code_that_a_command_quotes_does_not_count_against_the_bounds():
    code = "call((a) | b);\n" * MAX_SIGNS

    for command in (f"cat > a.ts <<'EOF'\n{code}EOF\n", f"printf %s '{code}' > a.ts"):
        (payload,) = payloads_of(command)
        assert payload.text == code


def test_a_directory_that_grows_with_every_step_stays_short():
    (payload,) = payloads_of("cd abcdefg\n" * 2500 + "echo x > a.ts")

    assert len(payload.paths[0]) < 5000


def test_one_text_for_very_many_files_stays_small():
    text = "x" * 100_000
    command = f"cat <<EOF {'| tee a.ts ' * 900}\n{text}\nEOF"

    found = payloads_of(command)

    assert 0 < sum(len(payload.text) for payload in found) <= 4 * MAX_SOURCE


def test_deeply_nested_constructs_are_left_alone():
    command = "bash -c " * 2 + "echo > a.ts"
    assert payloads_of(command) == ()
    nested = "if x; then " * (MAX_DEPTH + 1) + "echo x > a.ts" + "; fi" * (MAX_DEPTH + 1)
    assert payloads_of(nested) == ()


WORDS = r"""cat echo tee sed -i s/a/b/ bash -c cd a.ts > >> <<EOF <<-'E' EOF && ; ( ) { } ' " $( ` $'\ if fi \
    | ü printf % apply_patch perl -pi -e <<< &> 2> %b -n"""
ANY_WORD = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=300, deadline=None)
@given(words=st.lists(st.sampled_from([*WORDS.split(), "\n", "\x00"]) | ANY_WORD, max_size=15))
def test_no_command_makes_it_fail(words):
    for payload in payloads_of(" ".join(words)):
        payload.text.encode()
