"""Globs beyond the reference vectors, and the names of paths."""

from __future__ import annotations

import pytest

from ttsr_proxy.triggers.globs import GlobError, compile_glob, path_names


@pytest.mark.parametrize(
    ("glob", "matching", "other"),
    [
        ("*", ["a", ".env", ""], ["a/b"]),
        ("**/*", ["a", "a/b", "./a", "/x/a", "C:/x/a"], ["src/", "a/b/"]),
        ("src/**", ["src/a", "src/x/.y", "src/"], ["src", "lib/a"]),
        ("**/x", ["x", "a/x", "./x", "../x"], ["ax", "x/a"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("**.ts", ["a.ts", ".ts"], ["x/a.ts"]),
        ("*/", ["src/", "/"], ["src", "a/b/"]),
        ("*/*", ["src/", "a/b"], ["a"]),
        ("a{,x}", ["a", "ax"], ["a{,x}"]),
        ("{a}", ["a"], ["{a}"]),
        ("{}", [""], ["{}"]),
        ("{a,{b,c}d}", ["a", "bd", "cd"], ["b", "ad"]),
        ("{**/a,b}.ts", ["a.ts", "x/y/a.ts", "b.ts"], ["x/b.ts"]),
        ("v{1..3}", ["v1", "v3"], ["v0", "v4", "v{1..3}"]),
        ("v{a..c}", ["va", "vc"], ["vd"]),
        ("{a", ["{a"], ["a"]),
        ("[a", ["[a"], ["a"]),
        ("[]a]", ["]", "a"], ["[]a]"]),
        ("[^a-c]x", ["dx"], ["ax", "x"]),
        ("[[:alpha:]]", ["a]", ":]"], ["b", "b]"]),
        ("@(a|b)+(c)", ["ac", "bccc"], ["a", "c"]),
        ("?(a)b", ["b", "ab"], ["aab"]),
        ("*(a|b)c", ["c", "abac"], ["xc"]),
        ("!(a|b).ts", ["c.ts", "ab.ts", ".ts"], ["a.ts", "x/c.ts"]),
        ("!a", ["b", ""], ["a"]),
        ("!!a", ["a"], ["b"]),
        (r"\*.ts", ["*.ts"], ["a.ts"]),
        (r"a\tb", ["a\tb"], ["atb"]),
        ("a//b", ["a//b"], ["a/b"]),
        ("*.TS", ["a.TS"], ["a.ts"]),
        ("a&&b--[x&&y]", ["a&&b--&", "a&&b--x"], ["a&&b--z"]),
    ],
)
def test_globs_have_the_semantics_of_bun(glob: str, matching: list[str], other: list[str]) -> None:
    compiled = compile_glob(glob)
    assert [path for path in [*matching, *other] if compiled.matches(path)] == matching


@pytest.mark.parametrize("glob", ["a" * 2_000, "!(a)" * 60, "{" * 40 + "a" + "}" * 40, "{1..100000}"])
def test_a_glob_that_would_cost_too_much_is_refused(glob: str) -> None:
    with pytest.raises(GlobError):
        compile_glob(glob)


@pytest.mark.parametrize("glob", ["(" * 1_000, "[a" * 500, "@(" * 500, "{a," * 300, "*" * 1_000, "!" * 1_000])
def test_strange_globs_are_globs(glob: str) -> None:
    compile_glob(glob).matches("src/a.ts")


def test_a_path_made_to_be_slow_does_not_match_instead_of_stalling() -> None:
    assert not compile_glob("**/a/" * 8 + "b").matches("a/" * 2_000)


def test_without_a_root_a_path_is_offered_as_written_and_by_its_base_name() -> None:
    assert path_names(r"src\x\a.ts", None).names == ("src/x/a.ts", "a.ts")
    assert path_names("a.ts", None).names == ("a.ts",)


@pytest.mark.parametrize("path", ["src/a.ts", "./src/a.ts", "/w/app/src/a.ts", "src/x/../a.ts"])
def test_with_a_root_a_path_is_offered_relative_to_it(path: str) -> None:
    names = path_names(path, "/w/app/")
    assert names.match(compile_glob("src/*.ts"))
    assert names.match(compile_glob("a.ts"))
    assert names.match(compile_glob("/w/app/src/*.ts"))
    assert not names.outside


@pytest.mark.parametrize("path", ["/tmp/scratch/a.ts", "../other/a.ts", "/w/app-two/a.ts", "src/../../a.ts"])
def test_a_project_glob_does_not_reach_outside_the_root(path: str) -> None:
    names = path_names(path, "/w/app")
    assert names.outside
    for glob in ("**/*.ts", "*.ts", "**", "!*.py"):
        assert not names.match(compile_glob(glob))


def test_an_absolute_glob_reaches_outside_the_root() -> None:
    assert path_names("/tmp/scratch/a.ts", "/w/app").match(compile_glob("/tmp/**/*.ts"))


def test_windows_paths_are_relative_to_a_windows_root() -> None:
    names = path_names(r"C:\w\app\src\a.ts", "C:/w/app")
    assert names.match(compile_glob("src/*.ts"))
    assert path_names(r"C:\tmp\a.ts", "C:/w/app").outside
