"""The compiled set of rules: which apply to a block, and whether they interrupt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from ttsr_proxy.modes import InterruptMode
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.compiled import CompiledRule, RuleRejected, compile_rule
from ttsr_proxy.triggers.globs import compile_glob, path_names
from ttsr_proxy.triggers.match import Match, Source, StreamContext
from ttsr_proxy.triggers.matcher import StreamMatcher
from ttsr_proxy.triggers.plan import Plan
from ttsr_proxy.triggers.scope import fold

_K = TypeVar("_K")
_V = TypeVar("_V")

NEEDS_JUDGE = "judged: needs a judge"
"""Why a rule with a question takes no part where nobody can be asked."""

MAIN_AGENT = "main"
"""The agent of a request that does not name one."""

_INTERRUPTED_SOURCES: dict[InterruptMode, frozenset[Source]] = {
    "always": frozenset(("text", "thinking", "tool")),
    "prose-only": frozenset(("text", "thinking")),
    "tool-only": frozenset(("tool",)),
    "never": frozenset(),
}
_CACHED = 512
"""Entries of each cache. Keys hold paths that models choose, so a full cache starts again."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The rules that a block could match, whatever its paths turn out to be, by name."""

    rules: Mapping[str, Rule]
    names: frozenset[str]
    interrupting: frozenset[str]
    """Those whose match interrupts by the rule's own mode, else the set's."""
    peculiar: frozenset[str]
    """Those that never interrupt by a word of their own: `observe`, or a budget of none."""


class RuleSet:
    """An immutable set of compiled rules.

    Rules are taken in order; the first accepted rule of a name wins. A rule is accepted when at least one of
    its conditions can be used and its scope reaches a stream; `rejected` says why another was not, and
    `warnings` what was left out of an accepted one. `project_root` is the absolute directory that project
    globs are relative to; without it paths are matched as written and nothing is outside.

    Rules with a question are for a judge. They have a set of their own (`judged`), whose conditions say which
    output is worth asking about (`screening`); any other set rejects them.
    """

    __slots__ = (
        "_accepted", "_by_agent", "_plans", "_reached", "_reaching", "_root", "_subsets", "interrupt_mode",
        "registered", "rejected", "rules", "warnings",
    )  # fmt: skip

    def __init__(
        self,
        rules: Iterable[Rule],
        interrupt_mode: InterruptMode = "always",
        project_root: str | None = None,
        *,
        judged: bool = False,
    ) -> None:
        if interrupt_mode not in _INTERRUPTED_SOURCES:
            raise ValueError(
                f"interrupt_mode must be one of {', '.join(_INTERRUPTED_SOURCES)}, not {interrupt_mode!r}"
            )
        accepted: dict[str, CompiledRule] = {}
        rejected: dict[str, str] = {}
        warnings: dict[str, tuple[str, ...]] = {}
        for rule in rules:
            if rule.name in accepted:
                warnings[rule.name] = (
                    *warnings.get(rule.name, ()),
                    f"a second rule of this name is ignored ({rule.path or 'no path'})",
                )
                continue
            if rule.question is not None and not judged:
                rejected[rule.name] = NEEDS_JUDGE
                continue
            try:
                compiled = compile_rule(rule)
            except RuleRejected as reason:
                rejected[rule.name] = str(reason)
                continue
            accepted[rule.name] = compiled
            rejected.pop(rule.name, None)
            if compiled.warnings:
                warnings[rule.name] = compiled.warnings
        self._set_up(tuple(accepted.values()), rejected, warnings, interrupt_mode, project_root)

    def _set_up(
        self,
        accepted: tuple[CompiledRule, ...],
        rejected: Mapping[str, str],
        warnings: Mapping[str, tuple[str, ...]],
        interrupt_mode: InterruptMode,
        root: str | None,
    ) -> None:
        self._accepted = accepted
        self._root = root
        self._plans: dict[tuple[Source, str | None, str | None, tuple[str, ...]], Plan] = {}
        self._reaching: dict[tuple[Source, str | None, str | None], tuple[Rule, ...]] = {}
        self._reached: dict[tuple[Source, tuple[tuple[str | None, str | None], ...]], Reached] = {}
        self._subsets: dict[tuple[str, ...], RuleSet] = {}
        self._by_agent: dict[str, RuleSet] = {}
        self.interrupt_mode: InterruptMode = interrupt_mode
        self.rules: tuple[Rule, ...] = tuple(compiled.rule for compiled in accepted)
        """The accepted rules, in order."""
        self.registered: tuple[str, ...] = tuple(rule.name for rule in self.rules)
        """Their names."""
        self.rejected: Mapping[str, str] = MappingProxyType(dict(rejected))
        """Why a rule was not accepted, by name."""
        self.warnings: Mapping[str, tuple[str, ...]] = MappingProxyType(dict(warnings))
        """What an author should know about an accepted rule, by name."""

    def __len__(self) -> int:
        return len(self.rules)

    @property
    def compiled(self) -> tuple[CompiledRule, ...]:
        """The accepted rules, compiled, in order."""
        return self._accepted

    @property
    def project_root(self) -> str | None:
        """The directory that project globs are relative to."""
        return self._root

    def interrupts(self, rule: Rule, source: Source) -> bool:
        """Whether a match of `rule` in this source interrupts: by the rule's own mode, else the set's."""
        return source in _INTERRUPTED_SOURCES[rule.interrupt_mode or self.interrupt_mode]

    def reaching(self, source: Source, tool: str | None = None, kind: str | None = None) -> tuple[Rule, ...]:
        """The rules that a block of this source and tool could match, whatever its paths turn out to be.

        Cheap to ask for every block: answers are cached. An empty answer means that the block needs no
        matching, and one without an interrupting rule that nothing of it must be held.
        """
        key = (source, fold(tool), fold(kind))
        known = self._reaching.get(key)
        if known is None:
            known = tuple(compiled.rule for compiled in self._accepted if compiled.reaches(*key))
            _store(self._reaching, key, known)
        return known

    def reached(self, source: Source, tools: Iterable[tuple[str | None, str | None]]) -> Reached:
        """As `reaching`, for a block that may be any of several tools and kinds."""
        key = (source, tuple((fold(tool), fold(kind)) for tool, kind in tools))
        known = self._reached.get(key)
        if known is None:
            rules = {rule.name: rule for tool, kind in key[1] for rule in self.reaching(source, tool, kind)}
            known = Reached(
                rules,
                frozenset(rules),
                frozenset(name for name, rule in rules.items() if self.interrupts(rule, source)),
                frozenset(name for name, rule in rules.items() if rule.observe or rule.max_interrupts == 0),
            )
            _store(self._reached, key, known)
        return known

    def admitting(self, context: StreamContext) -> tuple[Rule, ...]:
        """The rules whose scope and globs let a block with exactly these paths be matched."""
        return tuple(
            compiled.rule
            for compiled in self._plan(context).rules
            if compiled.reaches(context.source, context.tool, context.kind)
        )

    def stream(self, context: StreamContext, holding: Collection[str] | None = None) -> StreamMatcher:
        """A matcher for one block, which is fed the block's text as it arrives.

        `holding` names the rules for which `safe_until` holds text back; by default those that interrupt
        in this source.
        """
        plan = self._plan(context)
        return StreamMatcher(plan, plan.interrupting if holding is None else frozenset(holding))

    def check(self, text: str, context: StreamContext) -> tuple[Match, ...]:
        """The matches of both triggers in a complete text: what `stream` reports however it is split."""
        matcher = self.stream(context, holding=())
        return matcher.in_order((*matcher.feed(text), *matcher.finish()))

    def select(self, predicate: Callable[[Rule], bool]) -> RuleSet:
        """The rules that the predicate accepts, as a set that shares everything already compiled."""
        chosen = tuple(compiled for compiled in self._accepted if predicate(compiled.rule))
        if len(chosen) == len(self._accepted):
            return self
        names = tuple(compiled.rule.name for compiled in chosen)
        subset = self._subsets.get(names)
        if subset is None:
            subset = RuleSet.__new__(RuleSet)
            warnings = {name: self.warnings[name] for name in names if name in self.warnings}
            subset._set_up(chosen, self.rejected, warnings, self.interrupt_mode, self._root)
            _store(self._subsets, names, subset)
        return subset

    def for_agent(self, agent: str | None) -> RuleSet:
        """The rules for one agent: those whose `agents` globs match its name, or that have none."""
        name = (agent or MAIN_AGENT).strip()
        chosen = self._by_agent.get(name)
        if chosen is None:
            chosen = self.select(lambda rule: is_for_agent(rule, name))
            _store(self._by_agent, name, chosen)
        return chosen

    def _plan(self, context: StreamContext) -> Plan:
        key = (context.source, fold(context.tool), fold(context.kind), context.paths)
        plan = self._plans.get(key)
        if plan is None:
            names = [path_names(path, self._root) for path in context.paths]
            rules = tuple(
                compiled
                for compiled in self._accepted
                if compiled.admits(context.source, context.tool, context.kind, names)
            )
            interrupting = frozenset(
                compiled.rule.name for compiled in rules if self.interrupts(compiled.rule, context.source)
            )
            plan = Plan(rules, context, interrupting)
            _store(self._plans, key, plan)
        return plan


def is_for_agent(rule: Rule, agent: str | None) -> bool:
    """Whether one of the rule's `agents` globs matches the agent's name, or it has none."""
    name = (agent or MAIN_AGENT).strip()
    return rule.agents is None or any(compile_glob(glob).matches(name) for glob in rule.agents)


def _store(cache: dict[_K, _V], key: _K, value: _V) -> None:
    if len(cache) >= _CACHED:
        cache.clear()
    cache[key] = value
