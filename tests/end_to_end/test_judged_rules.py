"""Judged rules: the judge is asked behind the client's back, and a yes reminds in a later request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from coding_agent import Agent, ChatAgent, ResponsesAgent
from proxy_under_test import Proxy, Workspace, running_proxy
from scripted_judge import KEY, ScriptedJudge, scripted_judge
from strict_anthropic import StrictUpstream, stall, strict_upstream, text, thinking, tool, turn
from strict_openai_chat import strict_chat_upstream
from strict_openai_responses import strict_responses_upstream
from structlog.testing import capture_logs

PROTOCOLS: dict[str, tuple[Callable[[], Any], type[Agent]]] = {
    "anthropic": (strict_upstream, Agent),
    "openai-chat": (strict_chat_upstream, ChatAgent),
    "openai-responses": (strict_responses_upstream, ResponsesAgent),
}
RUDE = "You fool, it works."
WRITE = {"file_path": "src/a.py", "content": "# you fool\n"}

Start = Callable[..., Awaitable[Proxy]]


@pytest.fixture
async def judge(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedJudge]:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    async with scripted_judge() as server:
        server.broken = {"fool": 0.9}
        workspace.judge = server.settings()
        yield server


def reminders(body: dict[str, Any]) -> list[str]:
    """The rules of the reminders in a request, in order."""
    words = json.dumps(body).split('<system-reminder reason=\\"rule_violation\\" rule=\\"')
    return [word.partition("\\")[0] for word in words[1:]]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_yes_about_text_reminds_in_the_next_request(
    workspace: Workspace, judge: ScriptedJudge, protocol: str, stream: bool
) -> None:
    serve, agent_of = PROTOCOLS[protocol]
    workspace.judged("no-insults")
    async with (
        serve() as upstream,
        running_proxy(workspace, upstream.url) as proxy,
        agent_of(proxy.url, stream=stream) as agent,
    ):
        upstream.script(turn(text(RUDE)), turn(text("Certainly.")), turn(text("Bye.")))
        answer = await agent.say("does it work?")
        assert answer.text == RUDE
        (item,) = await proxy.log(("deferred", "pending"))
        await agent.say("and now?")
        await proxy.log(("deferred", "clean"))
        await agent.say("thanks")
        assert [reminders(call.body) for call in upstream.calls] == [[], ["no-insults"], ["no-insults"]]
        assert upstream.refusals == []
    assert (item["trigger"], item["pattern"], item["source"]) == ("judged", "Is it rude?", "text")
    assert (item["matched"], item["detail"], item["protocol"]) == (RUDE, "judged 0.90", protocol)
    assert json.dumps(item["injected"])[1:-1] in json.dumps(upstream.calls[1].body)
    (asked, again) = judge.asked
    assert asked["state"] == {"output": {"kind": "text", "parts": [{"id": "p0", "text": RUDE}]}}
    (question,) = asked["questions"].values()
    assert question == {"question": "Is it rude?", "rule": "Be polite."}
    assert again["state"]["output"]["parts"][0]["text"] == "Certainly."


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_yes_about_a_call_reminds_behind_its_result(
    workspace: Workspace, judge: ScriptedJudge, protocol: str, stream: bool
) -> None:
    serve, agent_of = PROTOCOLS[protocol]
    workspace.judged("no-insults", scope=["tool:write(*.py)"])
    async with (
        serve() as upstream,
        running_proxy(workspace, upstream.url) as proxy,
        agent_of(proxy.url, stream=stream) as agent,
    ):
        upstream.script(turn(text("I write."), tool("Write", WRITE)), turn(text("Done.")))
        answer = await agent.say("go")
        assert len(answer.calls) == 1
        (item,) = await proxy.log(("reminded", "pending"))
        await agent.results(Write="written")
        await proxy.log(("reminded", "clean"))
        assert reminders(upstream.calls[1].body) == ["no-insults"]
        assert upstream.refusals == []
    assert (item["tool"], item["paths"], item["matched"]) == ("Write", ["src/a.py"], WRITE["content"])
    assert "In an earlier answer of yours, the Write call for src/a.py broke this rule." in item["injected"]
    (asked,) = judge.asked
    assert asked["state"] == {
        "output": {
            "kind": "tool call",
            "tool": "Write",
            "parts": [{"id": "p0", "paths": ["src/a.py"], "text": WRITE["content"]}],
        }
    }


@pytest.mark.parametrize(("probability", "expected"), [(0.7, ["deferred"]), (0.69, [])])
async def test_a_probability_of_seven_tenths_is_a_yes(
    workspace: Workspace,
    upstream: StrictUpstream,
    judge: ScriptedJudge,
    start_proxy: Any,
    new_agent: Any,
    probability: float,
    expected: list[str],
) -> None:
    workspace.judged("no-insults")
    judge.broken = {"fool": probability}
    upstream.script(turn(text(RUDE)), turn(text("One more.")))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    await judge.was_asked(1)
    await agent.say("more")
    await judge.was_asked(2)
    await _settled(proxy)
    assert [item["action"] for item in await proxy.interrupts()] == expected


async def test_all_rules_about_an_output_are_asked_in_one_request_and_each_output_in_its_own(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    workspace.judged("no-boasts", "Does it boast?")
    workspace.judged("short-thoughts", "Is it long?", scope="thinking")
    upstream.script(turn(thinking("Hm."), text("Fine."), tool("Write", WRITE)))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    await proxy.log(("reminded", "pending"), ("reminded", "pending"))
    asked = {
        one["state"]["output"]["kind"]: sorted(question["question"] for question in one["questions"].values())
        for one in judge.asked
    }
    assert len(judge.asked) == 3
    assert asked == {
        "thinking": ["Is it long?"],
        "text": ["Does it boast?", "Is it rude?"],
        "tool call": ["Does it boast?", "Is it rude?"],
    }


@pytest.mark.parametrize(
    "front",
    [
        {"condition": "fool", "scope": ["text", "tool"]},
        {"astCondition": "print($A)", "scope": "tool:write(*.py)"},
    ],
    ids=["condition", "astCondition"],
)
async def test_a_condition_is_a_prefilter_and_never_interrupts(
    workspace: Workspace,
    upstream: StrictUpstream,
    judge: ScriptedJudge,
    start_proxy: Any,
    new_agent: Any,
    front: dict[str, Any],
) -> None:
    workspace.judged("no-insults", interruptMode="always", **front)
    judge.broken = {"fool": 0.9}
    call = {"file_path": "a.py", "content": "print('fool')\n"}
    upstream.script(
        turn(text("Wise words."), tool("Write", {"file_path": "b.py", "content": "x = 1\n"})),
        turn(tool("Write", call)),
    )
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    answer = await agent.results()
    assert answer.calls[0]["input"] == call
    (item,) = await proxy.log(("reminded", "pending"))
    assert item["matched"] == ("fool" if "condition" in front else "print('fool')")
    assert len(judge.asked) == len(upstream.calls) - 1 == 1


async def test_no_request_waits_for_a_judge_and_a_late_yes_reminds_in_a_later_one(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    judge.go_on.clear()
    upstream.script(
        turn(text(RUDE)), turn(text("Two.")), turn(text("Three.")), turn(text("Four.")), turn(text("5"))
    )
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    for words in ("one", "two", "three"):
        assert (await agent.say(words)).complete
    assert [reminders(call.body) for call in upstream.calls] == [[], [], []]
    judge.go_on.set()
    await proxy.log(("deferred", "pending"))
    await agent.say("four")
    assert reminders(upstream.calls[3].body) == ["no-insults"]
    assert json.dumps(upstream.calls[3].messages[-1]).count("system-reminder reason") == 1
    await proxy.log(("deferred", "clean"))
    await agent.say("five")
    assert reminders(upstream.calls[4].body) == ["no-insults"]
    assert upstream.refusals == []


async def test_two_late_answers_about_one_rule_remind_once(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    judge.go_on.clear()
    upstream.script(turn(text(RUDE)), turn(text(f"Again: {RUDE}")), turn(text("Three.")))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("one")
    await agent.say("two")
    judge.go_on.set()
    await proxy.log(("deferred", "pending"), ("deferred", "pending"))
    await agent.say("three")
    assert reminders(upstream.calls[2].body) == ["no-insults"]
    items = await proxy.log(("deferred", "clean"), ("deferred", "undelivered"))
    assert "reminded of it meanwhile" in items[1]["detail"]


@pytest.mark.parametrize(
    "failing",
    [
        lambda: web.json_response({"error": f"bad key {KEY}"}, status=401),
        lambda: web.json_response({"error": "x"}, status=500),
        lambda: web.Response(text="no json"),
        lambda: web.json_response({"model": "m", "answers": {}, "usage": {}}),
    ],
    ids=["refused key", "500", "garbage", "unanswered"],
)
@pytest.mark.parametrize("provider", ["jev", "openai"])
async def test_a_judge_that_fails_costs_a_log_line_and_a_count(
    workspace: Workspace,
    upstream: StrictUpstream,
    judge: ScriptedJudge,
    start_proxy: Any,
    new_agent: Any,
    provider: str,
    failing: Any,
) -> None:
    workspace.judged("no-insults")
    workspace.judge = judge.settings(provider=provider, model="m-1", timeout=1.0)
    judge.failing = failing
    upstream.script(turn(text(RUDE)), turn(text("Two.")))
    with capture_logs() as logs:
        proxy = await start_proxy()
        agent: Agent = await new_agent(proxy)
        assert (await agent.say("go")).text == RUDE
        await judge.was_asked(1)
        await _settled(proxy)
        assert (await proxy.judged())["unanswered"] == 1
        assert (await agent.say("more")).complete
    assert await proxy.interrupts() == []
    assert reminders(upstream.calls[1].body) == []
    assert [line["event"] for line in logs].count("not_judged") >= 1
    assert KEY not in str(logs)


async def test_without_a_judge_the_rule_is_off_and_the_start_says_so(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults", condition="fool", scope="text")
    upstream.script(turn(text(RUDE)))
    with capture_logs() as logs:
        proxy = await start_proxy()
        agent: Agent = await new_agent(proxy)
        assert (await agent.say("go")).text == RUDE
    (told,) = [line for line in logs if line["event"] == "judged_rules_off"]
    assert told["rules"] == 1
    assert told["reason"] == "no judge is configured (library.judge.provider)"
    assert await proxy.interrupts() == []


@pytest.mark.parametrize("where", ["rule", "configuration"])
async def test_what_is_only_observed_is_judged_and_logged(
    workspace: Workspace,
    upstream: StrictUpstream,
    judge: ScriptedJudge,
    start_proxy: Any,
    new_agent: Any,
    where: str,
) -> None:
    workspace.judged("no-insults", **({"observe": True} if where == "rule" else {}))
    upstream.script(turn(text(RUDE)), turn(text("Two.")))
    proxy = await start_proxy(observe=where == "configuration")
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    (item,) = await proxy.log(("observed", "undelivered"))
    assert item["detail"] == "judged 0.90; would have been reminded of"
    await agent.say("more")
    assert reminders(upstream.calls[1].body) == []


@pytest.mark.parametrize(
    ("front", "asked", "reminded"),
    [
        ({}, 2, [0, 1, 1, 1]),
        ({"repeatMode": "always"}, 4, [0, 1, 2, 3]),
        ({"repeatMode": "after-gap", "repeatGap": 1}, 4, [0, 1, 1, 2]),
    ],
    ids=["once", "always", "after-gap"],
)
async def test_a_rule_reminds_again_as_its_repeat_mode_says(
    workspace: Workspace,
    upstream: StrictUpstream,
    judge: ScriptedJudge,
    start_proxy: Any,
    new_agent: Any,
    front: dict[str, Any],
    asked: int,
    reminded: list[int],
) -> None:
    workspace.judged("no-insults", **front)
    upstream.script(*(turn(text(f"{RUDE} {number}")) for number in range(4)))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    for number in range(4):
        await agent.say(f"say {number}")
        # The answer is judged before the next request, so that the test does not depend on timing.
        await _settled(proxy)
    assert [len(reminders(call.body)) for call in upstream.calls] == reminded
    assert len(judge.asked) == asked
    assert upstream.refusals == []


async def _settled(proxy: Proxy) -> None:
    """Wait until everything that the judge was asked is in the log."""
    async with asyncio.timeout(5):
        while True:
            counts = await proxy.judged()
            logged = await proxy.interrupts()
            if not counts.get("waiting") and len(logged) == counts.get("broken", 0):
                return


async def test_a_broken_rule_after_its_reminder_is_told_in_the_log(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    upstream.script(turn(text(RUDE)), turn(text("Still a fool.")))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    await proxy.log(("deferred", "pending"))
    await agent.say("more")
    items = await proxy.log(("deferred", "violated again"), ("suppressed", "violated again"))
    assert items[1]["detail"] == "judged 0.90; the model was reminded with this request"


async def test_what_a_judge_cannot_say_of_a_reminder_is_not_called_clean(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    upstream.script(turn(text(RUDE)), turn(text("Two.")))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    await proxy.log(("deferred", "pending"))
    judge.failing = lambda: web.json_response({}, status=400)
    await agent.say("more")
    (item,) = await proxy.log(("deferred", "failed"))
    assert item["detail"] == "the judge did not say whether the next answer kept the rule"


async def test_a_reminder_outlives_the_proxy(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    upstream.script(turn(thinking("Hm."), text(RUDE)), turn(text("Two.")))
    async with running_proxy(workspace, upstream.url) as proxy:
        agent: Agent = await new_agent(proxy)
        await agent.say("go")
        await proxy.log(("deferred", "pending"))
    async with running_proxy(workspace, upstream.url) as proxy:
        agent.base_url = proxy.url
        await agent.say("more")
        await proxy.log(("deferred", "clean"))
    assert reminders(upstream.calls[1].body) == ["no-insults"]


async def test_a_yes_that_comes_while_the_proxy_stops_is_kept(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    judge.go_on.clear()
    upstream.script(turn(text(RUDE)), turn(text("Two.")))
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(running_proxy(workspace, upstream.url))
        agent: Agent = await new_agent(proxy)
        await agent.say("go")
        await judge.was_asked(1)
        asyncio.get_running_loop().call_later(0.1, judge.go_on.set)
    async with running_proxy(workspace, upstream.url) as proxy:
        agent.base_url = proxy.url
        await agent.say("more")
    assert reminders(upstream.calls[1].body) == ["no-insults"]


async def test_only_what_the_client_has_is_asked_about(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    workspace.rule("no-bad-word", "BADWORD", scope=["text", "tool"])
    upstream.script(
        turn(tool("Write", {"file_path": "a.py", "content": "BADWORD fool"})), turn(text("A wise answer."))
    )
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    await proxy.log(("interrupted", "clean"))
    (asked,) = await judge.was_asked(1)
    assert asked["state"]["output"]["parts"][0]["text"] == "A wise answer."


async def test_secrets_are_masked_before_the_judge_sees_them(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    secret = "sk-ant-api03-" + "Ab1" * 30
    workspace.judged("no-insults")
    upstream.script(turn(text(f"The key is {secret}.")))
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("go")
    (asked,) = await judge.was_asked(1)
    assert secret not in json.dumps(asked)
    assert "[masked]" in asked["state"]["output"]["parts"][0]["text"]


async def test_a_model_behind_an_openai_compatible_api_can_be_the_judge(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    workspace.judged("no-boasts", "Does it boast?")
    workspace.judge = judge.settings(provider="openai", model="m-1")
    upstream.script(turn(text(RUDE)))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    await proxy.log(("deferred", "pending"), ("deferred", "pending"))
    assert len(judge.asked) == 1
    assert judge.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_a_rule_for_another_agent_is_not_asked_about(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults", agents=["reviewer"])
    workspace.judged("no-boasts", "Does it boast?")
    upstream.script(turn(text(RUDE)))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    (item,) = await proxy.log(("deferred", "pending"))
    assert item["rule"] == "no-boasts"


async def test_a_compiled_rule_with_a_question_is_judged(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("Hello.")), turn(text(RUDE)))
    proxy = await start_proxy()
    source = (
        "# Tone\n\n- Answers must be polite.\n\n  ```ttsr\n  question: Is it rude?\n  scope: text\n  ```\n"
    )
    async with aiohttp.ClientSession(f"{proxy.url}/") as session:
        async with session.post("api/v1/rules/compile", json={"instruction": source}) as accepted:
            task = (await accepted.json())["result"]["task_id"]
        async with asyncio.timeout(10):
            while True:
                async with session.get(f"api/v1/tasks/{task}") as polled:
                    state = (await polled.json())["result"]
                if state["status"] in ("completed", "failed"):
                    break
    (operation,) = state["result"]["operations"]
    assert operation["operation"] == "NEW", state
    agent: Agent = await new_agent(proxy)
    await agent.say("hello")
    await agent.say("go")
    (item,) = await proxy.log(("deferred", "pending"))
    assert item["rule"] == operation["atomic_id"]
    assert item["rule_path"] == operation["uri"]


async def test_the_dashboard_shows_the_question(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    upstream.script(turn(text(RUDE)))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    (item,) = await proxy.log(("deferred", "pending"))
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{proxy.url}/ttsr/interrupts/{item['id']}") as response,
    ):
        page = await response.text()
    assert "A judge said yes to <code>Is it rude?</code>" in page
    assert "judged 0.90" in page


async def test_helper_calls_of_an_agent_are_not_judged(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    workspace.rule("no-fools", "fool", scope="text")
    upstream.script(turn(text("A fool's title")), turn(text("Wise.")))
    proxy = await start_proxy()
    helper: Agent = await new_agent(
        proxy, tools=[], headers={"user-agent": "opencode/1.18.33", "x-session-affinity": "s"}
    )
    await helper.say("title?")
    await proxy.log(("observed", "undelivered"))
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    (asked,) = await judge.was_asked(1)
    assert asked["state"]["output"]["parts"][0]["text"] == "Wise."


async def test_a_client_that_leaves_is_reminded_of_what_it_has(
    workspace: Workspace, upstream: StrictUpstream, judge: ScriptedJudge, start_proxy: Any, new_agent: Any
) -> None:
    workspace.judged("no-insults")
    waiting = stall()
    upstream.script(turn(text(RUDE), text("And ", waiting, "more.")), turn(text("Two.")))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    agent.add_user({"type": "text", "text": "go"})
    async with agent.request() as response:
        async for line in response.content:
            if b"And " in line:
                break
        response.close()
    (item,) = await proxy.log(("deferred", "pending"))
    assert item["violation"] == RUDE
