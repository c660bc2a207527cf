from __future__ import annotations

from ttsr_proxy.interception.blocks import Reach, WatchedBlock
from ttsr_proxy.protocols.events import BlockStarted
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.ruleset import RuleSet

RULE = Rule(
    name="no-any", path="no-any.md", content="No any.", condition=(": any",), scope=("tool:edit(*.ts)",)
)
NAMES = frozenset({"no-any"})


def test_a_tool_input_that_is_plain_text_is_read_as_such():
    start = BlockStarted(b"", 0, "tool", "apply_patch", "call_1", {}, freeform=True)
    block = WatchedBlock(start, Reach(NAMES, NAMES), RuleSet([RULE]), FamilyTable.default(), None)

    assert block.feed("*** Begin Patch\n*** Update File: a.md\n+x: any\n*** Update File: a.t") == []
    (found,) = block.feed("s\n@@\n-a: any\n+b: any\n")

    assert found.context.paths == ("a.ts",)
    assert found.match.rule is RULE
