"""One content block of an attempt, under the matchers of the rules that can reach it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttsr_proxy.growing import GrowingText
from ttsr_proxy.protocols.events import BlockStarted
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.toolcalls.prose import ProseEditReader, ProseFormat
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
    start: int
    """Where the block is cut for it: the match itself, or the beginning of the edit in prose around it."""
    end: int


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """The proxy's own answer to a call that reads a rule."""

    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Reach:
    """Which rules a block is watched for: all that can reach it, and those that may interrupt it."""

    rules: frozenset[str]
    holding: frozenset[str]
    edits: frozenset[str] = frozenset()
    """The same for the edits that may stand in prose."""
    edits_holding: frozenset[str] = frozenset()
    formats: frozenset[ProseFormat] = frozenset()
    """How edits are written in this prose."""


class WatchedBlock:
    """A block's text, its matches and how much of it may be shown.

    A tool call is watched through the views of its family, prose as one text. Edits in prose are views
    besides, numbered from 1. `received` counts the characters of the block's own stream (for a tool call: of
    its argument JSON).
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
        self.holding = bool(reach.holding or reach.edits_holding)
        self.whole = whole or start.kind == "tool"
        """Nothing of it may be shown before it is complete and clean."""
        self.cleared = False
        self.begun = False
        """Its opening event went to the client."""
        self.abandoned = False
        """Nothing of it may be shown: it will never be complete, or it is the proxy's to answer."""
        self.undecided = False
        """It may turn out to read a rule, which is not for the client."""
        self.answer: RuleAnswer | None = None
        self.client_index = -1
        self.received = 0
        self.overdue = 0
        """Characters that have to be shown although a match could still reach back into them."""
        self.waiting: list[BlockMatch] = []
        """Matches of which it is not yet known whether they only repeat a reminder."""
        self._own = GrowingText()
        self._visible: int | None = None
        self._reach = reach
        self._ruleset = ruleset
        self._matchers: dict[int, StreamMatcher] = {}
        self._resumed: list[StreamMatcher] = []
        """Matchers of single rules that look on behind an exempt match."""
        self._contexts: dict[int, StreamContext] = {}
        self._calls: ToolCallReader | None = None
        self._edits: ProseEditReader | None = None
        self._edits_closed = 0
        """Edits in prose whose matchers are closed: views 1 to this number."""
        self._edits_held_from: int | None = None
        """Where the first complete edit begins that is broken, or that ast-grep has still to look at."""
        self._quoted: list[BlockMatch] = []
        """Matches of the prose within an edit that is not complete."""
        if reach.rules and start.kind == "tool":
            self._calls = ToolCallReader(
                start.tool or "", families, project_root=project_root, freeform=start.freeform
            )
        elif self.watched and start.kind in ("text", "thinking"):
            self._open_view(0, StreamContext("text" if start.kind == "text" else "thinking"), reach.holding)
        if reach.edits:
            self._edits = ProseEditReader(reach.formats, families, project_root=project_root)

    @property
    def source(self) -> Source:
        if self.kind == "thinking":
            return "thinking"
        return "tool" if self.kind == "tool" else "text"

    @property
    def watched(self) -> bool:
        return bool(self._reach.rules or self._reach.edits)

    @property
    def withheld(self) -> bool:
        """Nothing of it may be shown yet, however long that takes."""
        return self.undecided or (self.holding and self.whole and not self.cleared)

    def unwatch(self) -> None:
        """Give up: all of it may be shown, and it is not looked into any more."""
        if self._prose is not None:
            self._own.add(self._prose.text)
        self.cleared, self.undecided = True, False
        self.waiting.clear()
        self._reach = Reach(frozenset(), frozenset())
        self._calls = self._edits = None
        self._matchers.clear()
        self._resumed.clear()

    @property
    def text(self) -> str:
        """What has come of the block's own stream."""
        return self._own.text if self._prose is None else self._prose.text

    @property
    def _prose(self) -> StreamMatcher | None:
        """The matcher of prose, which keeps the block's text; a call's matchers keep its views."""
        return self._matchers.get(0) if self._calls is None else None

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
        if self._edits is None and not self._resumed and not self.waiting:
            return self._matchers[0].safe_until
        limits = [matcher.safe_until for matcher in (self._matchers[0], *self._resumed)]
        return min([*limits, self.firm_until, *(found.match.start for found in self.waiting)])

    @property
    def firm_until(self) -> int:
        """Characters that may be shown at all: an edit in prose is held like a tool call."""
        if self.cleared or not self._reach.edits_holding or self._edits is None:
            return self.received
        limit = self._edits.safe_until
        return limit if self._edits_held_from is None else min(limit, self._edits_held_from)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that a tool call names, as far as they are known."""
        seen = (path for context in self._contexts.values() for path in context.paths)
        return tuple(dict.fromkeys(seen))

    def feed(self, text: str) -> list[BlockMatch]:
        """More of the block's stream; the matches that it completes."""
        if not text:
            return []
        self._take(text)
        if self._calls is not None:
            return self._feed_views(self._calls.feed(text))
        if 0 not in self._matchers:
            return []
        matches = self._feed_edits(self._edits.feed(text)) if self._edits is not None else []
        for matcher in (self._matchers[0], *self._resumed):
            matches += self._found(0, matcher.feed(text))
        return matches

    def skim(self, text: str) -> bool:
        """Whether text that came in several deltas at once holds nothing of interest: then it is taken in.

        Else nothing has happened. Only for prose; calls and edits are read delta by delta.
        """
        read_by_delta = self._calls is not None or self._edits is not None or self._resumed
        if read_by_delta or self.waiting or self.undecided:
            return False
        if self._prose is not None and not self._prose.skim(text):
            return False
        self._take(text)
        return True

    def close(self) -> list[BlockMatch]:
        """The block is complete: what the regex conditions say about the whole of it."""
        matches = self._feed_views(self._calls.finish()) if self._calls is not None else []
        if self._edits is not None:
            matches += self._feed_edits(self._edits.finish())
        for view in list(self._matchers):
            if not 0 < view <= self._edits_closed:
                matches += self._close_view(view)
        for resumed in list(self._resumed):
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
        for earlier in (self._matchers[0], *self._resumed):
            earlier.forgive(name)
        matcher = self._ruleset.select(lambda rule: rule.name == name).stream(
            found.context, holding=self._reach.holding & {name}
        )
        matcher.begin_at(until)
        self._resumed.append(matcher)
        return self._found(0, matcher.feed(self._matchers[0].text))

    def view_text(self, view: int) -> str:
        """The text of a view so far."""
        return self._matchers[view].text

    def _take(self, text: str) -> None:
        if self._visible is None:
            stripped = text.lstrip()
            if stripped:
                self._visible = self.received + len(text) - len(stripped)
        if self._prose is None:
            self._own.add(text)
        self.received += len(text)

    def _feed_views(self, deltas: Sequence[ViewDelta]) -> list[BlockMatch]:
        matches: list[BlockMatch] = []
        for delta in deltas:
            if delta.view not in self._matchers:
                context = StreamContext("tool", self.start.tool, delta.paths, delta.kind)
                self._open_view(delta.view, context, self._reach.holding)
            matches += self._found(delta.view, self._matchers[delta.view].feed(delta.text))
        return matches

    def _feed_edits(self, deltas: Sequence[ViewDelta]) -> list[BlockMatch]:
        edits = self._edits
        assert edits is not None
        matches: list[BlockMatch] = []
        for delta in deltas:
            view = delta.view + 1
            if view not in self._matchers:
                context = StreamContext("tool", edits.tool(delta.view), delta.paths, delta.kind)
                self._open_view(view, context, self._reach.edits_holding)
            matches += self._found(view, self._matchers[view].feed(delta.text))
        while self._edits_closed < edits.complete:
            self._edits_closed += 1
            matches += self._close_view(self._edits_closed)
        quoted, self._quoted = self._quoted, []
        return [*matches, *(found for one in quoted for found in self._outside_edits(one))]

    def _close_view(self, view: int) -> list[BlockMatch]:
        matcher = self._matchers[view]
        found = self._found(view, matcher.close())
        if view and self._edits is not None and matcher.safe_until < len(matcher.text):
            starts = (self._edits.region(view - 1).start, self._edits_held_from)
            self._edits_held_from = min(start for start in starts if start is not None)
        return found

    def _open_view(self, view: int, context: StreamContext, holding: frozenset[str]) -> None:
        self._contexts[view] = context
        self._matchers[view] = self._ruleset.stream(context, holding=holding)

    def _found(self, view: int, matches: Sequence[Match]) -> list[BlockMatch]:
        if not matches:
            return []
        text = self._matchers[view].text
        context = self._contexts[view]
        found = [BlockMatch(match, context, text, view, *self._place(view, match)) for match in matches]
        if view or self._edits is None:
            return found
        return [outside for one in found for outside in self._outside_edits(one)]

    def _place(self, view: int, match: Match) -> tuple[int, int]:
        """Where in the block a match stands, and where the block is cut for it: no edit is cut in two."""
        edits = self._edits
        if edits is None:
            return match.start, match.end
        if view:
            return edits.region(view - 1).start, self.received
        region = edits.region_at(match.start) if self._reach.edits_holding else None
        return match.start if region is None else region.start, match.end

    def _outside_edits(self, one: BlockMatch) -> list[BlockMatch]:
        """A rule that sees edits is not asked about their text as prose: it also quotes what they remove."""
        region = self._edits.region_at(one.match.start) if self._edits is not None else None
        if region is None or one.match.rule.name not in self._reach.edits:
            return [one]
        if region.end is None:
            self._quoted.append(one)
            return []
        return self.exempt(one, region.end)
