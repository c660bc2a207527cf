"""Which backreferences can ever hold something, decided before matching.

JavaScript forgets what a group captured at every turn of a loop around it, and lets a backreference to a
group that took no part match the empty string. So a reference that stands inside its group, before it, in
another alternative, or outside the negative lookaround that holds it is the empty string, always, and is
removed here. The engine keeps captures from turn to turn; a loop that may skip a group somebody refers to
therefore captures the empty string in its place at the start of each turn, which comes to the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ttsr_proxy.triggers.jsregex.nodes import (
    EMPTY,
    Alt,
    Backref,
    Group,
    Look,
    NamedBackref,
    Node,
    Repeat,
    Seq,
    alt,
    children,
    seq,
)


@dataclass(slots=True)
class _Resolver:
    names: dict[str, tuple[int, ...]]
    referenced: set[int] = field(default_factory=set)

    def resolve(self, node: Node, passed: frozenset[int], ahead: bool) -> tuple[Node, frozenset[int]]:
        """The node rewritten, and the groups that may be set after it when `passed` may be set before it."""
        match node:
            case Backref() | NamedBackref():
                indices = node.indices if isinstance(node, Backref) else self.names[node.name]
                live = tuple(index for index in indices if index in passed)
                self.referenced.update(live)
                return (Backref(live, node.ignore_case) if live else EMPTY), passed
            case Group(item=item, index=index):
                item, after = self.resolve(item, passed - {index}, ahead)
                return Group(item, index), after | {index}
            case Seq(items=items):
                return self._sequence(items, passed, ahead)
            case Alt(options=options):
                resolved = [self.resolve(option, passed, ahead) for option in options]
                return alt(*(n for n, _ in resolved)), passed.union(*(after for _, after in resolved))
            case Repeat(item=item):
                item, after = self.resolve(item, passed - _groups(item), ahead)
                return replace(node, item=item), after | passed
            case Look(item=item):
                item, after = self.resolve(item, passed, node.ahead)
                return replace(node, item=item), passed if node.negated else after
            case _:
                return node, passed

    def _sequence(
        self, items: tuple[Node, ...], passed: frozenset[int], ahead: bool
    ) -> tuple[Node, frozenset[int]]:
        resolved: list[Node] = []
        # A lookbehind is matched from right to left, so there a group is passed before what is left of it.
        for item in items if ahead else reversed(items):
            item, passed = self.resolve(item, passed, ahead)
            resolved.append(item)
        return seq(*(resolved if ahead else reversed(resolved))), passed


def resolve(node: Node, names: dict[str, tuple[int, ...]]) -> Node:
    """The tree with live backreferences only, and capturing groups only where one of them needs it."""
    resolver = _Resolver(names)
    node, _ = resolver.resolve(node, frozenset(), True)
    node = _without_unused_groups(node, frozenset(resolver.referenced))
    return _forgetting(node, True) if resolver.referenced else node


def _without_unused_groups(node: Node, used: frozenset[int]) -> Node:
    match node:
        case Group(item=item, index=index):
            item = _without_unused_groups(item, used)
            return Group(item, index) if index in used else item
        case Repeat(item=item) | Look(item=item):
            return replace(node, item=_without_unused_groups(item, used))
        case Seq(items=items):
            return seq(*(_without_unused_groups(item, used) for item in items))
        case Alt(options=options):
            return alt(*(_without_unused_groups(option, used) for option in options))
        case _:
            return node


def _groups(node: Node) -> frozenset[int]:
    below = frozenset[int]().union(*(_groups(child) for child in children(node)))
    return below | {node.index} if isinstance(node, Group) else below


def _certain(node: Node) -> frozenset[int]:
    """Groups that are set whenever the node has matched."""
    match node:
        case Group(item=item, index=index):
            return _certain(item) | {index}
        case Seq(items=items):
            return frozenset[int]().union(*(_certain(item) for item in items))
        case Alt(options=options):
            return frozenset[int].intersection(*(_certain(option) for option in options))
        case Repeat(item=item, low=low):
            return _certain(item) if low else frozenset()
        case Look(item=item, negated=False):
            return _certain(item)
        case _:
            return frozenset()


def _forgetting(node: Node, ahead: bool) -> Node:
    """Give each loop that may skip a group the empty capture that stands for "took no part"."""
    match node:
        case Repeat(item=item, high=high):
            forgotten = [Group(EMPTY, index) for index in sorted(_groups(item) - _certain(item))]
            item = _forgetting(item, ahead)
            if high == 1 or not forgotten:
                return replace(node, item=item)
            return replace(node, item=seq(*forgotten, item) if ahead else seq(item, *forgotten))
        case Group(item=item):
            return replace(node, item=_forgetting(item, ahead))
        case Look(item=item):
            return replace(node, item=_forgetting(item, node.ahead))
        case Seq(items=items):
            return seq(*(_forgetting(item, ahead) for item in items))
        case Alt(options=options):
            return alt(*(_forgetting(option, ahead) for option in options))
        case _:
            return node
