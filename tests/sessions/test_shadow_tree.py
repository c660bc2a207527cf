"""From a request's echoes to their records, and from there to the history that upstream knows."""

from __future__ import annotations

from typing import Any, cast

import pytest
from playbook import MemoryStore
from playbook.notation import request_lines
from reminding import user_says

from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.protocols.anthropic.history import text_block
from ttsr_proxy.protocols.history import HistoryItem, Role
from ttsr_proxy.sessions.echoes import find_echoes, join_prose, text_anchor
from ttsr_proxy.sessions.recall import Recalled, recall
from ttsr_proxy.sessions.record import GivenBlock, ResponseRecord, ShadowBlock
from ttsr_proxy.sessions.shadow import append_to_user, restore

Messages = list[dict[str, Any]]


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [text_block(text) for text in texts]}


def assistant(*blocks: str | dict[str, Any]) -> dict[str, Any]:
    content = [text_block(block) if isinstance(block, str) else block for block in blocks]
    return {"role": "assistant", "content": content}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Read", "input": arguments}


def items_of(messages: Messages) -> list[HistoryItem]:
    return [
        ANTHROPIC.item_of_block(block, message["role"], at)
        for at, message in enumerate(messages)
        for block in message["content"]
    ]


class Tree:
    """Records of responses, as the proxy makes them."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    async def add(
        self,
        name: str,
        before: Messages,
        given: tuple[str | dict[str, Any], ...],
        *,
        parent: str | None = None,
        tail: str | None = None,
        hidden_after: int | None = None,
        **fields: Any,
    ) -> None:
        """A response to `before`. `tail` was added to the request, a hidden turn follows a given block."""
        blocks = [ANTHROPIC.item_of_block(b, "assistant") for b in assistant(*given)["content"]]
        produced: list[ShadowBlock] = []
        for at, block in enumerate(blocks):
            produced.append(ShadowBlock("assistant", block.kind, block.value, at))
            if at == hidden_after:
                produced.append(ShadowBlock("user", "text", text_block(f"hidden {name}"), None))
        place = find_echoes(items_of(before), ANTHROPIC.chain_text).place
        unique = [block.anchor for block in blocks if block.anchor]
        prose = join_prose(block.text for block in blocks if block.kind == "text")
        await self.store.save(
            ResponseRecord(
                id=name,
                parent=parent,
                tenant="tenant",
                project="default",
                conversation="c",
                created=float(len(self.store.records)),
                turn=0,
                anchors=(*unique, text_anchor(place, prose), place),
                tail=(text_block(tail),) if tail else (),
                given=tuple(GivenBlock(block.kind, block.anchor, block.text) for block in blocks),
                produced=tuple(produced),
                hidden=True,
                **fields,
            )
        )

    async def recall(self, messages: Messages, tenant: str = "tenant") -> Recalled:
        return await recall(self.store, tenant, items_of(messages), ANTHROPIC.chain_text)

    async def upstream_sees(self, messages: Messages) -> list[str]:
        items = items_of(messages)
        recalled = await self.recall(messages)
        restored = restore(items, recalled, ANTHROPIC.item_of_block, ANTHROPIC.keep_marks)
        grouped: Messages = []
        for item in restored:
            if grouped and grouped[-1]["role"] == item.role:
                grouped[-1]["content"].append(item.value)
            else:
                grouped.append({"role": item.role, "content": [item.value]})
        return request_lines({"messages": grouped})


@pytest.fixture
def tree() -> Tree:
    return Tree()


GO = [user("go")]
MORE = [*GO, assistant("One."), user("more")]


@pytest.mark.parametrize(
    ("roles", "place"),
    [
        ("system user", 2),
        ("system user system", 2),
        ("system user assistant", 2),
        ("system system", 2),
        ("system assistant", 1),
        ("assistant", 0),
        ("", 0),
    ],
)
def test_the_proxy_s_own_words_follow_the_user_or_else_the_system_prompt(roles: str, place: int) -> None:
    items = [ANTHROPIC.item_of_block(text_block("x"), cast(Role, role), 0) for role in roles.split()]
    added = user_says(ANTHROPIC, "added")
    append_to_user(items, [added])
    assert items.index(added) == place


async def test_a_chain_is_followed_from_the_newest_echo_to_its_root(tree: Tree) -> None:
    await tree.add("a", GO, ("One.",), tail="told")
    await tree.add("b", MORE, ("Two.",), parent="a")
    messages = [*MORE, assistant("Two."), user("end")]
    recalled = await tree.recall(messages)
    assert [record.id for record in recalled.chain] == ["a", "b"]
    assert recalled.pending_from is not None
    assert recalled.pending_from.id == "b"
    assert await tree.upstream_sees(messages) == [
        "user: go | told",
        "assistant: One.",
        "user: more",
        "assistant: Two.",
        "user: end",
    ]


async def test_a_fork_follows_its_own_path(tree: Tree) -> None:
    await tree.add("a", GO, ("One.",))
    await tree.add("b", MORE, ("Two.",), parent="a", tail="told b")
    await tree.add("c", MORE, ("Three.",), parent="a", tail="told c")
    for name, said in (("b", "Two."), ("c", "Three.")):
        messages = [*MORE, assistant(said), user("end")]
        assert [record.id for record in (await tree.recall(messages)).chain] == ["a", name]
        assert f"user: more | told {name}" in await tree.upstream_sees(messages)


async def test_of_forks_with_the_same_text_the_oldest_counts(tree: Tree) -> None:
    await tree.add("a", GO, ("Same.",), tail="told a")
    await tree.add("b", GO, ("Same.",), tail="told b")
    assert await tree.upstream_sees([*GO, assistant("Same."), user("end")]) == [
        "user: go | told a",
        "assistant: Same.",
        "user: end",
    ]


async def test_later_anchors_decide_between_forks_with_the_same_text(tree: Tree) -> None:
    await tree.add("a", GO, ("One.",), tail="told a")
    await tree.add("b", GO, ("One.",), tail="told b")
    await tree.add("c", MORE, (call("toolu_c"),), parent="b")
    messages = [*MORE, assistant(call("toolu_c")), user("end")]
    assert [record.id for record in (await tree.recall(messages)).chain] == ["b", "c"]
    assert (await tree.upstream_sees(messages))[0] == "user: go | told b"


async def test_a_rewind_is_judged_by_what_is_left(tree: Tree) -> None:
    await tree.add("a", GO, ("One.",))
    await tree.add("b", MORE, ("Two.",), parent="a", reminded=("no-eval",))
    recalled = await tree.recall([*GO, assistant("One."), user("something else")])
    assert [record.id for record in recalled.chain] == ["a"]


async def test_a_compacted_history_has_no_records(tree: Tree) -> None:
    await tree.add("a", GO, ("One.",), tail="told")
    messages = [user("summary of it all"), assistant("I see."), user("go on")]
    assert (await tree.recall(messages)).chain == ()
    assert await tree.upstream_sees(messages) == [
        "user: summary of it all",
        "assistant: I see.",
        "user: go on",
    ]


async def test_the_same_words_after_another_beginning_are_another_response(tree: Tree) -> None:
    await tree.add("a", GO, ("One.",), tail="told")
    assert (await tree.recall([user("stop"), assistant("One."), user("end")])).chain == ()


async def test_another_tenants_records_are_never_found(tree: Tree) -> None:
    await tree.add("a", GO, ("One.",))
    assert (await tree.recall([*GO, assistant("One."), user("end")], tenant="other")).chain == ()


async def test_a_lost_store_leaves_the_clients_history(tree: Tree) -> None:
    messages = [*GO, assistant("One.", call("toolu_1")), user("end")]
    assert (await tree.recall(messages)).tip is None
    assert await tree.upstream_sees(messages) == ["user: go", "assistant: One. | Read {}", "user: end"]


async def test_a_lost_ancestor_costs_only_itself(tree: Tree) -> None:
    await tree.add("b", MORE, ("Two.",), parent="swept", tail="told")
    recalled = await tree.recall([*MORE, assistant("Two."), user("end")])
    assert [record.id for record in recalled.chain] == ["b"]


async def test_a_shortened_answer_is_recognised_by_its_beginning(tree: Tree) -> None:
    await tree.add("a", GO, ("One two", "three four"), tail="told", hidden_after=0)
    assert await tree.upstream_sees([*GO, assistant("One two", "three"), user("end")]) == [
        "user: go | told",
        "assistant: One two",
        "user: hidden a",
        "assistant: three four",
        "user: end",
    ]


async def test_texts_that_the_client_joined_are_taken_apart_again(tree: Tree) -> None:
    await tree.add("a", GO, ("One two.", "Three."), hidden_after=0)
    assert await tree.upstream_sees([*GO, assistant("One two.\n\nThree."), user("end")]) == [
        "user: go",
        "assistant: One two.",
        "user: hidden a",
        "assistant: Three.",
        "user: end",
    ]


async def test_defaults_that_a_client_adds_to_a_call_are_no_change(tree: Tree) -> None:
    await tree.add("a", GO, (call("toolu_1", path="x"),), tail="told")
    echoed = assistant(call("toolu_1", limit=None, path="x"))
    assert 'assistant: Read {"path":"x"}' in await tree.upstream_sees([*GO, echoed, user("end")])


async def test_a_call_that_the_client_changed_stays_changed(tree: Tree) -> None:
    await tree.add("a", GO, (call("toolu_1", path="x"),), tail="told")
    echoed = assistant(call("toolu_1", path="y"))
    assert 'assistant: Read {"path":"y"}' in await tree.upstream_sees([*GO, echoed, user("end")])


async def test_a_block_that_the_client_dropped_stays_dropped(tree: Tree) -> None:
    await tree.add("a", GO, ("One.", call("toolu_1")), tail="told")
    assert await tree.upstream_sees([*GO, assistant(call("toolu_1")), user("end")]) == [
        "user: go | told",
        "assistant: Read {}",
        "user: end",
    ]


async def test_a_text_that_the_client_moved_goes_back_to_its_place(tree: Tree) -> None:
    await tree.add("a", GO, (call("toolu_1"), "After."), tail="told")
    assert await tree.upstream_sees([*GO, assistant("After.", call("toolu_1")), user("end")]) == [
        "user: go | told",
        "assistant: Read {} | After.",
        "user: end",
    ]


async def test_what_the_client_added_stays_where_it_put_it(tree: Tree) -> None:
    await tree.add("a", GO, (call("toolu_1"), call("toolu_2")), tail="told")
    echoed = assistant(call("toolu_1"), "A note.", call("toolu_2"))
    assert "assistant: Read {} | A note. | Read {}" in await tree.upstream_sees([*GO, echoed, user("end")])


async def test_a_cache_breakpoint_stays_on_the_clients_block(tree: Tree) -> None:
    await tree.add("a", GO, ("One.",), tail="told")
    marked = {**text_block("One."), "cache_control": {"type": "ephemeral"}}
    items = items_of([*GO, assistant(marked), user("end")])
    recalled = await tree.recall([*GO, assistant(marked), user("end")])
    restored = restore(items, recalled, ANTHROPIC.item_of_block, ANTHROPIC.keep_marks)
    assert [item.value for item in restored if "cache_control" in item.value] == [marked]
