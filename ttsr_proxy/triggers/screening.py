"""Which judged rules have a question about a complete text: the prefilter before the judge."""

from __future__ import annotations

from collections.abc import Iterable

from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.ast import AstCheck, AstHit
from ttsr_proxy.triggers.match import Match, StreamContext
from ttsr_proxy.triggers.ruleset import RuleSet


class Screening:
    """One text before a set of judged rules.

    A rule without conditions asks about every text in its scope, one with conditions about those that one of
    them matches. `ast_check`, if there is one, is to be run elsewhere and its hits given to `occasions`.
    """

    def __init__(self, judged: RuleSet, text: str, context: StreamContext) -> None:
        self._rules = judged.admitting(context)
        self._matcher = judged.stream(context, holding=())
        matches = (*self._matcher.feed(text), *self._matcher.close())
        self._matches = {match.rule.name: match for match in matches}
        self.ast_check: AstCheck | None = self._matcher.ast_check

    def occasions(self, hits: Iterable[AstHit] = ()) -> list[tuple[Rule, Match | None]]:
        """The rules that ask, in their order, with what their condition matched; None without conditions."""
        if self.ast_check is not None:
            self._matches |= {match.rule.name: match for match in self._matcher.apply_ast(hits)}
            self.ast_check = None
        return [
            (rule, self._matches.get(rule.name))
            for rule in self._rules
            if rule.name in self._matches or not (rule.condition or rule.ast_condition)
        ]
