"""One content block of an attempt, under the matchers of the rules that can reach it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttsr_proxy.protocols.events import BlockStarted
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.toolcalls.reader import ToolCallReader
from ttsr_proxy.toolcalls.views import ViewDelta
from ttsr_proxy.triggers.ast import AstCheck, AstHit
from ttsr_proxy.triggers.match import Match, Source, StreamContext
from ttsr_proxy.triggers.matcher import StreamMatcher
from ttsr_proxy.triggers.ruleset import RuleSet


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """A match and where in the block it was found. `text` is the matched text's whole view so far."""

    match: Match
    context: StreamContext
    text: str
    view: int


@dataclass(frozen=True, slots=True)
class Reach:
    """Which rules a block is watched for: all that can reach it, and those that may interrupt it."""

    rules: frozenset[str]
    holding: frozenset[str]


class WatchedBlock:
    """A block's text, its matches and how much of it may be shown.

    A tool call is watched through the views of its family, prose as one text. `received` counts the
    characters of the block's own stream (for a tool call: of its argument JSON).
    """

    def __init__(
        self,
        start: BlockStarted,
        reach: Reach,
        ruleset: RuleSet,
        families: FamilyTable,
        project_root: str | None,
        *,
        whole: bool = False,
    ) -> None:
        self.start = start
        self.kind = start.kind
        self.index = start.index
        self.holding = bool(reach.holding)
        self.whole = whole or start.kind == "tool"
        """Nothing of it may be shown before it is complete and clean."""
        self.cleared = False
        self.begun = False
        """Its opening event went to the client."""
        self.client_index = -1
        self.received = 0
        self.waiting: list[BlockMatch] = []
        """Matches of which it is not yet known whether they only repeat a reminder."""
        self._pieces: list[str] = []
        self._visible: int | None = None
        self._reach = reach
        self._ruleset = ruleset
        self._matchers: dict[int, StreamMatcher] = {}
        self._resumed: list[StreamMatcher] = []
        """Matchers of single rules that look on behind an exempt match."""
        self._contexts: dict[int, StreamContext] = {}
        self._calls: ToolCallReader | None = None
        if reach.rules and start.kind == "tool":
            self._calls = ToolCallReader(
                start.tool or "", families, project_root=project_root, freeform=start.freeform
            )
        elif reach.rules and start.kind in ("text", "thinking"):
            self._open_view(0, StreamContext("text" if start.kind == "text" else "thinking"))

    @property
    def source(self) -> Source:
        if self.kind == "thinking":
            return "thinking"
        return "tool" if self.kind == "tool" else "text"

    @property
    def watched(self) -> bool:
        return bool(self._reach.rules)

    @property
    def text(self) -> str:
        """What has come of the block's own stream."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def first_visible(self) -> int | None:
        """Where the first character that is not white space stands; None while there is none."""
        return self._visible

    @property
    def safe_until(self) -> int:
        """Characters that no interrupting match can reach back into."""
        if not self.holding or self.cleared:
            return self.received
        if self.whole:
            return 0
        limits = [matcher.safe_until for matcher in (self._matchers[0], *self._resumed)]
        return min([*limits, *(found.match.start for found in self.waiting)])

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that a tool call names, as far as they are known."""
        seen = (path for context in self._contexts.values() for path in context.paths)
        return tuple(dict.fromkeys(seen))

    def feed(self, text: str) -> list[BlockMatch]:
        """More of the block's stream; the matches that it completes."""
        if not text:
            return []
        if self._visible is None:
            stripped = text.lstrip()
            if stripped:
                self._visible = self.received + len(text) - len(stripped)
        self._pieces.append(text)
        self.received += len(text)
        if self._calls is not None:
            return self._feed_views(self._calls.feed(text))
        if 0 not in self._matchers:
            return []
        matches = self._found(0, self._matchers[0].feed(text))
        for resumed in self._resumed:
            matches += self._found(0, resumed.feed(text))
        return matches

    def close(self) -> list[BlockMatch]:
        """The block is complete: what the regex conditions say about the whole of it."""
        matches = self._feed_views(self._calls.finish()) if self._calls is not None else []
        for view, matcher in self._matchers.items():
            matches += self._found(view, matcher.close())
        for resumed in self._resumed:
            matches += self._found(0, resumed.close())
        return matches

    def ast_jobs(self) -> tuple[tuple[int, AstCheck], ...]:
        """After `close`: what ast-grep still has to look at, by view."""
        jobs = ((view, matcher.ast_check) for view, matcher in self._matchers.items())
        return tuple((view, job) for view, job in jobs if job is not None)

    def apply_ast(self, view: int, hits: Sequence[AstHit]) -> list[BlockMatch]:
        """The matches that ast-grep's hits in a view mean."""
        return self._found(view, self._matchers[view].apply_ast(hits))

    def muted(self) -> tuple[tuple[str, str], ...]:
        """Rules and conditions that overran their time in this block."""
        return tuple(muted for matcher in self._matchers.values() for muted in matcher.muted)

    def not_inspected(self) -> tuple[str, ...]:
        """After `close`: why ast patterns that apply are not searched."""
        reasons = (matcher.not_inspected for matcher in self._matchers.values())
        return tuple(reason for reason in reasons if reason is not None)

    def exempt(self, found: BlockMatch, until: int) -> list[BlockMatch]:
        """A match in prose is no violation: look for its rule again from `until` on."""
        name = found.match.rule.name
        matcher = self._ruleset.select(lambda rule: rule.name == name).stream(
            found.context, holding=self._reach.holding & {name}
        )
        matcher.begin_at(until)
        self._resumed.append(matcher)
        return self._found(0, matcher.feed(self._matchers[0].text))

    def view_text(self, view: int) -> str:
        """The text of a view so far."""
        return self._matchers[view].text

    def _feed_views(self, deltas: Sequence[ViewDelta]) -> list[BlockMatch]:
        matches: list[BlockMatch] = []
        for delta in deltas:
            if delta.view not in self._matchers:
                context = StreamContext("tool", self.start.tool, delta.paths, delta.kind)
                self._open_view(delta.view, context)
            matches += self._found(delta.view, self._matchers[delta.view].feed(delta.text))
        return matches

    def _open_view(self, view: int, context: StreamContext) -> None:
        self._contexts[view] = context
        self._matchers[view] = self._ruleset.stream(context, holding=self._reach.holding)

    def _found(self, view: int, matches: Sequence[Match]) -> list[BlockMatch]:
        if not matches:
            return []
        text = self._matchers[view].text
        return [BlockMatch(match, self._contexts[view], text, view) for match in matches]
