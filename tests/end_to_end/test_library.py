"""From a constraint in plain words to an interrupt, without a restart."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from coding_agent import Agent
from proxy_under_test import Proxy, Workspace
from strict_anthropic import StrictUpstream, text, turn
from ttsr_asserts import assert_clean, interrupts_in

BAD = "BADWORD"
CONSTRAINT = (
    f"Never say `{BAD}` in an answer, except in quotes.\n\n```ttsr\ncondition: {BAD}\nscope: text\n```\n"
)


async def compile_rules(proxy: Proxy, instruction: str) -> dict[str, Any]:
    async with aiohttp.ClientSession(proxy.url) as session:
        async with session.post("/api/v1/rules/compile", json={"instruction": instruction}) as answer:
            task = (await answer.json())["result"]
        while task["status"] in ("pending", "running"):
            await asyncio.sleep(0.02)
            async with session.get(f"/api/v1/tasks/{task['task_id']}") as answer:
                task = (await answer.json())["result"]
    assert task["status"] == "completed", task
    return task["result"]  # type: ignore[no-any-return]


def violate_until_told(upstream: StrictUpstream) -> None:
    upstream.otherwise(
        lambda body: turn(text("Clean." if "system-interrupt" in json.dumps(body["messages"]) else f"{BAD}!"))
    )


async def test_a_compiled_constraint_interrupts_and_a_paused_one_does_not(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    proxy = await start_proxy()
    violate_until_told(upstream)

    async def ask() -> Any:
        agent: Agent = await new_agent(proxy)
        return await agent.say("go")

    assert (await ask()).text == f"{BAD}!"
    (operation,) = (await compile_rules(proxy, CONSTRAINT))["operations"]
    assert operation["triggers"] == ["condition"]
    assert_clean(await ask(), BAD)
    (interrupt,) = interrupts_in(upstream.calls[-1])
    assert f"Never say `{BAD}` in an answer." in interrupt
    assert "Exception: Except in quotes" in interrupt
    assert operation["uri"] in interrupt
    (record,) = await proxy.log(("interrupted", "clean"))
    assert record["rule"] == operation["atomic_id"]

    await compile_rules(proxy, f"pause {operation['atomic_id']}")
    assert (await ask()).text == f"{BAD}!"
    await compile_rules(proxy, f"restore {operation['atomic_id']}")
    assert_clean(await ask(), BAD)
    await compile_rules(proxy, f"archive {operation['atomic_id']}")
    assert (await ask()).text == f"{BAD}!"


async def test_a_library_that_cannot_be_read_keeps_its_last_rules_and_stops_nothing(
    workspace: Workspace,
    upstream: StrictUpstream,
    start_proxy: Any,
    new_agent: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("service", "storage.user_library"):
        monkeypatch.setattr(f"ttsr_proxy.library.{module}.CHECK_SECONDS", 0.0)
    proxy = await start_proxy()
    violate_until_told(upstream)
    await compile_rules(proxy, CONSTRAINT)
    agent: Agent = await new_agent(proxy)
    assert_clean(await agent.say("go"), BAD)
    broken = workspace.state.parent / "library/users/default/memories/rules/broken"
    broken.mkdir()
    (broken / "x.md").write_bytes(b"\xff")
    other: Agent = await new_agent(proxy)
    assert_clean(await other.say("go"), BAD)


async def test_a_project_enforces_the_rules_of_its_own_user(
    tmp_path: Path, workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    folder = workspace.state.parent / "library/users/bob/memories/rules/words"
    folder.mkdir(parents=True)
    (folder / "no-bad-word.md").write_text(f"---\ncondition: {BAD}\nscope: text\n---\nDo not.\n")
    violate_until_told(upstream)
    agent: Agent = await new_agent(await start_proxy())
    assert (await agent.say("go")).text == f"{BAD}!"


async def test_proxied_traffic_never_compiles_and_needs_no_library(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.otherwise(lambda body: turn(text("Done.")))
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("Compile these rules: Every request must set a timeout.")
    assert not (workspace.state.parent / "library").exists()


async def test_a_rule_without_a_trigger_stays_out_of_the_prompt_and_the_stream(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    proxy = await start_proxy()
    await compile_rules(proxy, f"Never say {BAD} in an answer.")
    upstream.otherwise(lambda body: turn(text(f"{BAD}!")))
    agent: Agent = await new_agent(proxy)
    assert (await agent.say("go")).text == f"{BAD}!"
    assert f"Never say {BAD}" not in json.dumps(upstream.calls[-1].body)
