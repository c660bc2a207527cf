"""What a shell command would write into files: redirections, `tee`, `sed -i`, `apply_patch` and the like.

Only what stands in the command itself can be seen: literal words, here-documents and the output of `echo`,
`printf` and `cat`. Expansions stand as they are written; the output of other programs is unknown, and what is
unknown is no view.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Final

from ast_grep_py import SgNode

from ttsr_proxy.toolcalls.sed import added_by_sed
from ttsr_proxy.toolcalls.syntax import HEREDOC, MAX_PATHS, Payload, Payloads, parse

MAX_DEPTH: Final = 150
"""Constructs within each other (lists, groups, `bash -c`) that are entered."""

MAX_PATH: Final = 4096
"""Characters of a directory that `cd` leads to; of a longer one the end counts."""

_WRITES_FILES: Final = re.compile(r">|\btee\b|\bsed\b|\bperl\b|patch|\bgit\b")
_OUTPUT: Final = frozenset({">", ">>", ">|", "&>", "&>>"})
_REDIRECTS: Final = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_PREFIXES: Final = frozenset({"sudo", "env", "command", "builtin", "exec", "nohup", "time", "nice"})
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_QUOTED_ESCAPE: Final = re.compile(r'\\([\\"$`])|\\\n')
_HEREDOC_ESCAPE: Final = re.compile(r"\\([\\$`])|\\\n")
_ANSI_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_NAMED: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_LEADING_TABS: Final = re.compile(r"^\t+", re.MULTILINE)
_CONVERSION: Final = re.compile(r"%(%|[-+ #0-9.*]*[a-zA-Z])")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def payloads_of(command: str) -> tuple[Payload, ...]:
    """What the command adds to files, in the order in which it stands there."""
    reader = _Reader()
    reader.read(command, 0)
    return tuple(reader.payloads.found)


class _Reader:
    """Runs the command as far as literal text flows through it. Text that is not known is None."""

    def __init__(self) -> None:
        self.payloads = Payloads()
        self._directory = ""

    def read(self, command: str, depth: int) -> str | None:
        if depth > MAX_DEPTH or not _WRITES_FILES.search(command):
            return None
        root = parse(_with_heredoc_ends(command), "bash")
        return None if root is None else self._run(root, None, depth)

    def _run(self, node: SgNode, stdin: str | None, depth: int) -> str | None:
        """Go through a construct; returns what it prints."""
        if depth > MAX_DEPTH:
            return None
        kind = node.kind()
        if kind == "command":
            return self._command(node, stdin, depth)
        if kind == "redirected_statement":
            return self._redirected(node, stdin, depth)
        inner = (
            _commands(node) if kind == "list" else [child for child in node.children() if child.is_named()]
        )
        if kind == "pipeline":
            for child in inner:
                stdin = self._run(child, stdin, depth + 1)
            return stdin
        directory = self._directory
        printed = [self._run(child, stdin, depth + 1) for child in inner]
        if kind == "subshell":
            self._directory = directory
        known = [text for text in printed if text is not None]
        return "".join(known) if known else None

    def _redirected(self, node: SgNode, stdin: str | None, depth: int) -> str | None:
        body: list[SgNode] = []
        targets: list[SgNode] = []
        following: list[SgNode] = []
        for child in node.children():
            kind = child.kind()
            if kind == "heredoc_redirect":
                stdin = _heredoc(child)
                # What stands behind `<<WORD` on its line is inside the redirection for this grammar.
                for inner in child.children():
                    if inner.kind() == "file_redirect":
                        targets.append(inner)
                    elif inner.is_named() and not inner.kind().startswith("heredoc"):
                        (following if inner.kind() != "word" else body).append(inner)
            elif kind == "herestring_redirect":
                stdin = _herestring(child)
            elif kind == "file_redirect":
                targets.append(child)
            elif child.is_named():
                body.append(child)
        # For the shell, a redirection behind `a && b` is b's own.
        commands = [command for part in body for command in _commands(part)]
        printed: str | None = None
        for number, command in enumerate(commands, 1):
            printed = self._run(command, stdin if number == len(commands) else None, depth + 1)
        if printed is not None:
            self._write("write", [path for target in targets for path in _output_files(target)], printed)
        for part in following:
            printed = self._run(part, printed, depth + 1)
        return printed

    def _write(self, kind: str, files: Sequence[str], text: str) -> None:
        paths = tuple(self._located(path) for path in files if path and not path.startswith("/dev/"))
        if paths:
            self.payloads.add(kind, "text", paths, text)

    def _located(self, path: str) -> str:
        if not self._directory or path.startswith(("/", "~", "$")):
            return path
        return posixpath.normpath(posixpath.join(self._directory, path))

    def _command(self, node: SgNode, stdin: str | None, depth: int) -> str | None:
        words: list[str] = []
        for child in node.children():
            kind = child.kind()
            if kind == "herestring_redirect":
                stdin = _herestring(child)
            elif child.is_named() and kind not in _REDIRECTS and kind != "variable_assignment":
                words.append(_value(child))
        words = _without_prefix(words)
        if not words:
            return None
        name, arguments = posixpath.basename(words[0]), words[1:]
        if name in _SHELLS:
            return self._shell(arguments, stdin, depth)
        action = _ACTIONS.get(name)
        return action(self, arguments, stdin) if action else None

    def _shell(self, arguments: Sequence[str], stdin: str | None, depth: int) -> str | None:
        script = stdin
        words = iter(arguments)
        for word in words:
            if word in ("-o", "+o", "-O", "+O"):
                next(words, "")
            elif not word.startswith(("-", "+")):
                return None
            elif word.startswith("-") and not word.startswith("--") and "c" in word:
                script = next(words, None)
                break
        return self.read(script, depth + 1) if script is not None else None

    def _cd(self, arguments: Sequence[str], stdin: str | None) -> str | None:
        if len(arguments) == 1 and not arguments[0].startswith("-"):
            self._directory = self._located(arguments[0])[-MAX_PATH:]
        return None

    def _cat(self, arguments: Sequence[str], stdin: str | None) -> str | None:
        files = [word for word in arguments if word == "-" or not word.startswith("-")]
        return stdin if not files or "-" in files else None

    def _echo(self, arguments: Sequence[str], stdin: str | None) -> str | None:
        words, end, escapes = list(arguments), "\n", False
        while words and re.fullmatch(r"-[neE]+", words[0]):
            option = words.pop(0)
            end = "" if "n" in option else end
            escapes = escapes or "e" in option
        text = " ".join(words)
        return (_ansi(text) if escapes else text) + end

    def _printf(self, arguments: Sequence[str], stdin: str | None) -> str | None:
        words = list(arguments[1:] if arguments[:1] == ["--"] else arguments)
        if not words or words[0] == "-v":
            return None
        pattern, values = _ansi(words[0]), words[1:]
        pieces: list[str] = []
        while True:
            left = len(values)

            def value(conversion: re.Match[str]) -> str:
                if conversion[1] == "%":
                    return "%"
                word = values.pop(0) if values else ""
                return _ansi(word) if conversion[1].endswith("b") else word

            pieces.append(_CONVERSION.sub(value, pattern))
            # The format is used again while arguments are left that it takes.
            if not values or len(values) == left:
                return "".join(pieces)

    def _tee(self, arguments: Sequence[str], stdin: str | None) -> str | None:
        if stdin is not None:
            self._write("write", [word for word in arguments if not word.startswith("-")], stdin)
        return stdin

    def _sed(self, arguments: Sequence[str], stdin: str | None) -> str | None:
        scripts: list[str] = []
        plain: list[str] = []
        in_place, words = False, iter(arguments)
        for word in words:
            if word == "--":
                plain.extend(words)
            elif word in ("-e", "--expression"):
                scripts.append(next(words, ""))
            elif word.startswith("--expression="):
                scripts.append(word.partition("=")[2])
            elif word in ("-f", "--file", "-l"):
                next(words, "")
            elif word.startswith("--"):
                in_place = in_place or word.startswith("--in-place")
            elif word.startswith("-") and len(word) > 1:
                flags = word[1:]
                in_place = in_place or "i" in flags
                if "e" in flags.partition("i")[0]:
                    scripts.append(next(words, ""))
            else:
                plain.append(word)
        if not scripts and plain:
            # BSD's sed takes an empty suffix as a word of its own: sed -i '' SCRIPT FILE.
            scripts.append(plain.pop(1 if plain[0] == "" and len(plain) > 1 else 0))
        if in_place:
            for text in added_by_sed("\n".join(scripts)):
                self._write("edit", plain[:MAX_PATHS], text)
        return None

    def _perl(self, arguments: Sequence[str], stdin: str | None) -> str | None:
        flags = [word for word in arguments if word.startswith("-")]
        if any("i" in word for word in flags) and any("e" in word for word in flags):
            return self._sed(["-i", "-e", *(word for word in arguments if not word.startswith("-"))], stdin)
        return None

    def _apply_patch(self, arguments: Sequence[str], stdin: str | None) -> str | None:
        text = arguments[0] if arguments else stdin
        if text is not None:
            self.payloads.add("edit", "patch", (), text)
        return None

    def _patch(self, arguments: Sequence[str], stdin: str | None) -> str | None:
        return self._apply_patch((), stdin)

    def _git(self, arguments: Sequence[str], stdin: str | None) -> str | None:
        return self._apply_patch((), stdin) if arguments[:1] in (["apply"], ["am"]) else None


_Action = Callable[[_Reader, Sequence[str], str | None], str | None]

_ACTIONS: Final[dict[str, _Action]] = {
    "cd": _Reader._cd,
    "pushd": _Reader._cd,
    "cat": _Reader._cat,
    "echo": _Reader._echo,
    "printf": _Reader._printf,
    "tee": _Reader._tee,
    "sed": _Reader._sed,
    "gsed": _Reader._sed,
    "perl": _Reader._perl,
    "apply_patch": _Reader._apply_patch,
    "applypatch": _Reader._apply_patch,
    "patch": _Reader._patch,
    "git": _Reader._git,
}
"""Programs whose effect on files, or whose output, stands in their arguments and input."""


def _with_heredoc_ends(command: str) -> str:
    """A here-document that the command does not end, ended: the shell takes all that is left for its text."""
    words = HEREDOC.findall(command)
    if words and words[-1] not in map(str.strip, command.splitlines()):
        return f"{command}\n{words[-1]}\n"
    return command


def _commands(node: SgNode) -> list[SgNode]:
    """The commands of `a && b || c`, which the grammar nests to the left; what is no list is one."""
    found: list[SgNode] = []
    while node.kind() == "list":
        *left, right = [child for child in node.children() if child.is_named()]
        found.append(right)
        if not left:
            break
        node = left[0]
    else:
        found.append(node)
    return found[::-1]


def _without_prefix(words: list[str]) -> list[str]:
    """The command that `sudo`, `env X=1` and the like would run."""
    at = 0
    while at < len(words) and words[at] in _PREFIXES:
        at += 1
        while at < len(words) and (words[at].startswith("-") or _ASSIGNMENT.match(words[at])):
            at += 1
    if at < len(words) and words[at] == "timeout":
        at += 2
    return words[at:]


def _output_files(redirect: SgNode) -> list[str]:
    """Where a redirection sends what the command prints."""
    operator, words, descriptor = "", [], "1"
    for child in redirect.children():
        if child.kind() == "file_descriptor":
            descriptor = child.text()
        elif child.is_named():
            words.append(_value(child))
        else:
            operator = child.text()
    return words[:1] if operator in _OUTPUT and descriptor == "1" else []


def _value(node: SgNode) -> str:
    """A word as the program gets it; expansions stay as they are written."""
    kind, text = node.kind(), node.text()
    match kind:
        case "command_name" | "concatenation":
            return "".join(_value(child) for child in node.children()) or text
        case "raw_string":
            return text[1:-1]
        case "ansi_c_string":
            return _ansi(text[2:-1])
        case "string" | "translated_string":
            return _QUOTED_ESCAPE.sub(_kept, text[1:-1] if kind == "string" else text[2:-1])
        case "word":
            return _ESCAPE.sub(lambda escape: "" if escape[1] == "\n" else escape[1], text)
    return text


def _kept(escape: re.Match[str]) -> str:
    return escape[1] or ""


def _ansi(text: str) -> str:
    return _ANSI_ESCAPE.sub(_ansi_character, text) if "\\" in text else text


def _ansi_character(escape: re.Match[str]) -> str:
    code: str = escape[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _NAMED.get(code, code if code in "\\'\"" else "\\" + code)


def _heredoc(redirect: SgNode) -> str | None:
    """The text of a here-document, as the command reads it."""
    start = body = ""
    is_indented = False
    for child in redirect.children():
        kind = child.kind()
        if kind == "heredoc_start":
            start = child.text()
        elif kind == "heredoc_body":
            body = child.text()
        elif kind == "<<-":
            is_indented = True
    if is_indented:
        body = _LEADING_TABS.sub("", body)
    return body if re.search(r"[\"'\\]", start) else _HEREDOC_ESCAPE.sub(_kept, body)


def _herestring(redirect: SgNode) -> str:
    words = [child for child in redirect.children() if child.is_named()]
    return "".join(map(_value, words)) + "\n"
