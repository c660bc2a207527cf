"""The rulebook as part of a system prompt (reference, "System prompt inclusion path").

Always-apply rules stand there with their content, rulebook rules as a list. The same rules give the same
bytes, so that prompt caches hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ttsr_proxy.rules.model import Rule

SCHEME = "rule://"
"""How the address of a rule begins; the rest is its name."""

_INSTRUCTION = (
    "These are the rules of the domains of this project. Before you work on something that one of them is "
    f"about, read it: open `{SCHEME}<name>` with the tool that you read files with."
)


class RulePrompt:
    """What some rules say in a system prompt, made once for all conversations."""

    def __init__(self, always_apply: Sequence[Rule], rulebook: Sequence[Rule]) -> None:
        contents = dict.fromkeys(content for rule in always_apply if (content := rule.content.strip()))
        self._contents = tuple((content, _plain(content)) for content in contents)
        self._lines = tuple(map(_line, rulebook))
        self._whole = _blocks([content for content, _ in self._contents], self._lines)

    def blocks(self, known: Iterable[str]) -> str:
        """`<generic-rules>` and `<domain-rules>`; empty without rules that are news.

        `known` are the texts of the prompt so far: what already stands there is not said again. White space
        does not count in that comparison.
        """
        if not self._whole:
            return ""
        told = _plain("\n".join(known))
        news = [content for content, plain in self._contents if plain not in told]
        lines = [line for line in self._lines if line not in told]
        if len(news) == len(self._contents) and len(lines) == len(self._lines):
            return self._whole
        return _blocks(news, lines)


def _blocks(contents: Sequence[str], lines: Sequence[str]) -> str:
    blocks = []
    if contents:
        blocks.append("\n".join(["<generic-rules>", "\n\n".join(contents), "</generic-rules>"]))
    if lines:
        blocks.append("\n".join(["<domain-rules>", _INSTRUCTION, *lines, "</domain-rules>"]))
    return "\n\n".join(blocks)


def _line(rule: Rule) -> str:
    globs = f" ({', '.join(rule.globs)})" if rule.globs else ""
    return f"- {rule.name}{globs}: {_plain(rule.description or '')}"


def _plain(text: str) -> str:
    return " ".join(text.split())
