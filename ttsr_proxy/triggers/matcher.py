"""One block of output, matched while it grows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ttsr_proxy.triggers.ast import MAX_SOURCE, AstCheck, AstHit, may_match
from ttsr_proxy.triggers.conditions import BlockText, ConditionScan, Hit
from ttsr_proxy.triggers.gate import CONTEXT
from ttsr_proxy.triggers.match import Match
from ttsr_proxy.triggers.plan import Plan
from ttsr_proxy.triggers.starts import StartSweep


class _Scans(dict[int, ConditionScan]):
    """The scans of a plan's conditions, made when they are first needed."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan
        self.begin = 0
        """No match may start before this."""

    def __missing__(self, index: int) -> ConditionScan:
        planned = self._plan.conditions[index]
        scan = self[index] = ConditionScan(planned.compiled, planned.groups)
        scan.begin_at(self.begin)
        return scan


class StreamMatcher:
    """Feed it the deltas of one block; it reports each rule's first match, once.

    A match is reported with the first delta after which no continuation of the text could undo it; what
    depends on the end of the block is reported at the end. The same text gives the same matches, however it
    is cut. Made by `RuleSet.stream`.

    The end is either `finish()`, which also searches ast patterns in the caller's thread, or `close()`, then
    `ast_check` run elsewhere, then `apply_ast()` with its hits.
    """

    __slots__ = (
        "_ast_held", "_awake", "_block", "_by_start", "_closed", "_cuts", "_fed", "_fired", "_held_by_start",
        "_holding", "_plan", "_safe", "_safe_is_known", "_scans", "_tail", "ast_check", "not_inspected",
    )  # fmt: skip

    def __init__(self, plan: Plan, holding: frozenset[str]) -> None:
        self._plan = plan
        self._block = BlockText()
        self._fed = 0
        self._tail = ""
        self._scans = _Scans(plan)
        self._awake = set(plan.always)
        self._by_start = StartSweep(plan.start_table) if plan.start_table else None
        self._fired: set[int] = set()
        self._closed = False
        self._holding = plan.holding(holding)
        self._held_by_start = StartSweep(self._holding.by_start) if self._holding.by_start else None
        self._ast_held = self._holding.ast
        self._cuts: dict[str, int] = {}
        """Where the first match of each holding rule begins."""
        self._safe = 0
        self._safe_is_known = False
        """Nothing has happened since `_safe` was found out."""
        self.ast_check: AstCheck | None = None
        """After `close()`: the search of ast patterns that is still to be done, if any."""
        self.not_inspected: str | None = None
        """After `close()`: why ast patterns that apply are not searched."""

    @property
    def text(self) -> str:
        """The block so far."""
        return self._block.text

    @property
    def muted(self) -> tuple[tuple[str, str], ...]:
        """Rule name and pattern of each condition that ran over its time limit and is left out."""
        return tuple(
            (self._name(planned.rule), planned.pattern)
            for index, planned in enumerate(self._plan.conditions)
            if index in self._scans and self._scans[index].muted
        )

    @property
    def safe_until(self) -> int:
        """How many characters of the block may be shown now; it never decreases.

        Everything before the first start from which a holding rule's condition could still match, and before
        the first match of a holding rule. 0 while an ast pattern of a holding rule is still to be searched.
        """
        if self._safe_is_known:
            return self._safe
        self._safe_is_known = True
        limit = 0 if self._ast_held else min(self._cuts.values(), default=self._fed)
        if limit > self._safe and not self._closed:
            limit = min(limit, self._first_held())
        self._safe = max(self._safe, limit)
        return self._safe

    def forgive(self, rule: str) -> None:
        """The match of this rule is no violation: it holds nothing back."""
        self._cuts.pop(rule, None)
        self._safe_is_known = False

    def begin_at(self, place: int) -> None:
        """Before any text: no match may start before this character of the block."""
        self._scans.begin = place

    def feed(self, delta: str) -> tuple[Match, ...]:
        """Add text; the matches that it settles, by start and then rule order."""
        if self._closed:
            raise RuntimeError("the block has ended; ask the rule set for a new matcher")
        window = self._take(delta)
        if not delta or not self._plan.conditions:
            return ()
        for index in self._plan.gate.woken(window, len(delta)):
            if self._plan.conditions[index].rule not in self._fired:
                self._awake.add(index)
        if self._by_start is not None:
            self._by_start.advance(self._block.text, self._scans)
            self._awake |= self._by_start.live
        return self._search_awake() if self._awake else ()

    def skim(self, text: str) -> bool:
        """Whether `text` leaves every condition asleep: then it is taken in, and settles no match.

        Else nothing has happened, and it has to be fed. For text that came in many deltas at once.
        """
        if self._closed or self._awake or self._by_start is not None:
            return False
        fired, conditions = self._fired, self._plan.conditions
        woken = self._plan.gate.woken(self._tail + text, len(text))
        if any(conditions[index].rule not in fired for index in woken):
            return False
        self._take(text)
        return True

    def finish(self) -> tuple[Match, ...]:
        """End the block: the matches that depend on its end, and those of ast patterns."""
        matches = self.close()
        if self.ast_check is None:
            return matches
        return self.in_order((*matches, *self.apply_ast(self.ast_check.run())))

    def close(self) -> tuple[Match, ...]:
        """End the block: the matches of `condition` that depend on its end. Sets `ast_check`."""
        if self._closed:
            return ()
        self._closed = True
        self._safe_is_known = False
        text = self._block.text
        asleep = set(self._plan.by_start) - self._awake
        for index in asleep:
            # Only an empty match at the very end is left to these.
            self._scans[index].begin_at(self._fed)
        rules: set[int] = set()
        for index in self._awake | asleep:
            rule = self._plan.conditions[index].rule
            if rule not in self._fired and self._is_possible(index) and self._scans[index].conclude(text):
                rules.add(rule)
        matches = [match for rule in rules for match in self._fire_first(rule)]
        self._plan_ast()
        return self.in_order(matches)

    def apply_ast(self, hits: Iterable[AstHit]) -> tuple[Match, ...]:
        """Take the answer to `ast_check`: the matches of rules that have not matched before."""
        self.ast_check = None
        self._ast_held = self._safe_is_known = False
        by_pattern = {hit.pattern: hit for hit in hits}
        matches = []
        for rule in self._plan.ast:
            patterns = self._plan.rules[rule].ast_patterns
            found = [by_pattern[pattern] for pattern in patterns if pattern in by_pattern]
            if found and rule not in self._fired:
                first = min(found, key=lambda hit: (hit.start, hit.end))
                matches.append(self._fire(rule, "ast", first.pattern, first.start, first.end))
        return self.in_order(matches)

    def in_order(self, matches: Iterable[Match]) -> tuple[Match, ...]:
        """The matches by start, then by rule order."""
        order = {self._name(number): number for number in range(len(self._plan.rules))}
        return tuple(sorted(matches, key=lambda match: (match.start, order[match.rule.name])))

    def _take(self, delta: str) -> str:
        """Add text to the block; returns it with the few characters before it."""
        self._block.add(delta)
        self._fed += len(delta)
        self._safe_is_known = False
        window = self._tail + delta
        self._tail = window[-CONTEXT:]
        return window

    def _search_awake(self) -> tuple[Match, ...]:
        text = self._block.text
        fired: set[int] = set()
        for index in tuple(self._awake):
            scan = self._scans[index]
            rule = self._plan.conditions[index].rule
            if scan.muted or rule in self._fired:
                self._rest(index)
            elif self._is_possible(index):
                if scan.advance(text) is not None:
                    fired.add(rule)
                elif self._by_start is not None and not scan.is_live and index in self._by_start.live:
                    self._rest(index)
        if not fired:
            return ()
        matches: list[Match] = []
        for rule in fired:
            # Another condition of the rule, not searched at every delta, may have matched before this one.
            for index in self._plan.of_rule[rule]:
                if index in self._awake and self._is_possible(index):
                    self._scans[index].advance(self._block.text, force=True)
            matches += self._fire_first(rule)
        return self.in_order(matches)

    def _is_possible(self, index: int) -> bool:
        """Whether all literals of a match are there; puts the condition to sleep if the first is not."""
        groups = self._plan.conditions[index].groups
        if not groups:
            return True
        seen = self._scans[index].possible(self._block, groups)
        if seen == 0:
            self._awake.discard(index)
        return seen == len(groups)

    def _fire_first(self, rule: int) -> list[Match]:
        """The match of the rule's condition that was settled first."""
        hits: list[tuple[int, int, Hit]] = [
            (hit.length, index, hit)
            for index in self._plan.of_rule[rule]
            if index in self._scans and (hit := self._scans[index].hit) is not None
        ]
        if not hits:
            return []
        _, index, hit = min(hits, key=lambda entry: entry[:2])
        return [self._fire(rule, "regex", self._plan.conditions[index].pattern, hit.start, hit.end)]

    def _fire(self, rule: int, trigger: Literal["regex", "ast"], pattern: str, start: int, end: int) -> Match:
        self._fired.add(rule)
        self._safe_is_known = False
        self._awake.difference_update(self._plan.of_rule[rule])
        for sweep in (self._by_start, self._held_by_start):
            if sweep is not None:
                sweep.drop(self._plan.of_rule[rule])
        if rule in self._holding.rules:
            self._cuts[self._name(rule)] = start
        return Match(self._plan.rules[rule].rule, trigger, pattern, start, end)

    def _rest(self, index: int) -> None:
        """Stop searching a condition until new text wakes it."""
        self._awake.discard(index)
        if self._by_start is not None:
            self._by_start.live.discard(index)

    def _first_held(self) -> int:
        """The first start from which a condition that text is held for can still match."""
        text = self._block.text
        limit = self._fed
        candidates: Iterable[int] = self._holding.searched
        if self._held_by_start is not None:
            limit = self._held_by_start.settle(text, self._scans)
            candidates = [*candidates, *self._held_by_start.live]
        # One that begins at or after the limit cannot lower it and need not be searched yet.
        for index in sorted(candidates, key=lambda index: self._scans[index].alive_from):
            scan = self._scans[index]
            if scan.alive_from >= limit:
                break
            if not scan.muted and self._plan.conditions[index].rule not in self._fired:
                hit = scan.advance(text)
                if scan.is_live:
                    limit = min(limit, scan.alive_from if hit is None else hit.start)
                    continue
            if self._held_by_start is not None:
                self._held_by_start.live.discard(index)
        return limit

    def _plan_ast(self) -> None:
        text = self._block.text
        patterns = [
            pattern
            for rule in self._plan.ast
            if rule not in self._fired
            for pattern in self._plan.rules[rule].ast_patterns
            if may_match(pattern, text)
        ]
        if patterns and len(text) > MAX_SOURCE:
            self.not_inspected = f"text of {len(text)} characters is too long for ast patterns ({MAX_SOURCE})"
        elif patterns and self._plan.language is not None:
            self.ast_check = AstCheck(self._plan.language, text, tuple(dict.fromkeys(patterns)))
        if self.ast_check is None:
            self._ast_held = False

    def _name(self, rule: int) -> str:
        return self._plan.rules[rule].rule.name
