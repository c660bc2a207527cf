"""Rules change while the proxy runs, and apply to whom they name."""

from __future__ import annotations

from typing import Any

from coding_agent import Agent
from proxy_under_test import Workspace
from strict_anthropic import StrictUpstream, text, tool, turn
from ttsr_asserts import assert_clean

BAD = "BADWORD"


async def test_a_rule_file_is_live_on_the_next_request(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    proxy = await start_proxy()
    upstream.otherwise(
        lambda body: turn(
            text("Clean." if "system-interrupt" in str(body["messages"]) else f"{BAD} and OTHER")
        )
    )

    async def ask() -> str:
        agent: Agent = await new_agent(proxy)
        return (await agent.say("go")).text

    assert await ask() == f"{BAD} and OTHER"
    path = workspace.rule("no-bad-word", BAD, scope="text")
    assert await ask() == "Clean."
    workspace.rule("no-bad-word", "SOMETHING ELSE ENTIRELY", scope="text")
    assert await ask() == f"{BAD} and OTHER"
    workspace.rule("no-bad-word", "OTHER", scope="text")
    assert (await ask()).endswith("Clean.")
    path.unlink()
    assert await ask() == f"{BAD} and OTHER"


async def test_a_rule_in_a_directory_that_did_not_exist_is_found(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"{BAD} 1")), turn(text(f"{BAD} 2")), turn(text("Clean.")))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    assert (await agent.say("go")).text == f"{BAD} 1"
    directory = workspace.project / ".omp" / "rules"
    directory.mkdir(parents=True)
    (directory / "no-bad-word.md").write_text(f"---\ncondition: {BAD}\nscope: text\n---\nDo not.\n")
    other: Agent = await new_agent(proxy)
    assert_clean(await other.say("go"), BAD)


async def test_a_broken_rule_file_costs_only_itself(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    (workspace.rules / "broken.md").write_bytes(b"\xff\xfe\x00---\ncondition: [\n")
    workspace.rule("bad-regex", "(((", scope="text")
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(turn(text(f"{BAD} 1")), turn(text("Clean.")))
    agent: Agent = await new_agent(await start_proxy())
    assert_clean(await agent.say("go"), BAD)


async def test_a_rule_for_named_agents_leaves_others_alone(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text", agents=["implement*"])
    upstream.otherwise(
        lambda body: turn(text("Clean." if "system-interrupt" in str(body["messages"]) else f"{BAD}!"))
    )
    proxy = await start_proxy()
    main: Agent = await new_agent(proxy)
    named: Agent = await new_agent(proxy, headers={"x-ttsr-agent": "implementer"})
    other: Agent = await new_agent(proxy, headers={"x-ttsr-agent": "review"})
    assert (await main.say("go")).text == f"{BAD}!"
    assert (await named.say("go")).text == "Clean."
    assert (await other.say("go")).text == f"{BAD}!"


async def test_a_rule_with_globs_fires_for_its_files_only(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="tool:write(*.py)")
    upstream.script(
        turn(tool("Write", {"file_path": "a.md", "content": BAD})),
        turn(tool("Write", {"file_path": "a.py", "content": BAD})),
        turn(text("Clean.")),
    )
    agent: Agent = await new_agent(await start_proxy())
    first = await agent.say("go")
    assert first.calls[0]["input"]["content"] == BAD
    assert_clean(await agent.results(), BAD)
    assert upstream.refusals == []


async def test_the_master_switch_turns_matching_off(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(turn(text(f"{BAD} 1")))
    agent: Agent = await new_agent(await start_proxy(enabled=False))
    answer = await agent.say("go")
    assert answer.raw == bytes(upstream.calls[0].wrote)
