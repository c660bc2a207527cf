"""The texts after which a negative lookahead is certain to hold."""

from __future__ import annotations

from ttsr_proxy.triggers.jsregex.nodes import Node


def excluding(node: Node) -> Node | None:
    return None
