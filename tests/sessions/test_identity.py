"""What the clients that were observed tell about themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.sessions.identity import identify

TOOLS: dict[str, Any] = {"tools": [{"name": "Write"}, {"name": "Bash"}]}
OMP_TOOLS: dict[str, Any] = {"tools": [{"name": "_write"}, {"name": "web_search"}]}
CLAUDE_CODE = {"user-agent": "claude-cli/2.1.197 (external, cli)", "x-claude-code-session-id": "s-1"}
CODEX = {"user-agent": "codex_exec/0.171.0", "session-id": "s-2", "thread-id": "t-2"}
OPENCODE = {"user-agent": "opencode/1.18.33 ai-sdk/provider", "x-session-id": "ses_3"}
AIDER_CHAT = {
    "messages": [{"role": "system", "content": "Every *SEARCH/REPLACE block* must use this format"}]
}
AIDER_ANTHROPIC = {
    "system": [{"type": "text", "text": "You MUST use this *file listing* format:"}],
    "messages": [],
}
COMPACTION = "Your task is to create a detailed summary of the conversation so far, paying close attention"


def codex_turn(**fields: object) -> dict[str, str]:
    return {**CODEX, "x-codex-turn-metadata": json.dumps(fields)}


def said(*texts: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {**TOOLS, "messages": [{"role": "user", "content": content}]}


@pytest.mark.parametrize(
    ("headers", "body", "client", "session", "agent"),
    [
        (CLAUDE_CODE, TOOLS, "claude-code", "s-1", "main"),
        ({**CLAUDE_CODE, "x-claude-code-agent-id": "a17"}, TOOLS, "claude-code", "s-1", "a17"),
        ({"x-claude-code-session-id": "s-1"}, TOOLS, "claude-code", "s-1", "main"),
        (CLAUDE_CODE, OMP_TOOLS, "omp", "s-1", "main"),
        ({"user-agent": "omp/18.2.3"}, {"prompt_cache_key": "k-9"}, "omp", "k-9", "main"),
        (CODEX, TOOLS, "codex", "s-2", "main"),
        ({"originator": "codex_cli_rs"}, {"prompt_cache_key": "s-2"}, "codex", "s-2", "main"),
        ({**CODEX, "x-codex-parent-thread-id": "t-1"}, TOOLS, "codex", "s-2", "t-2"),
        (codex_turn(agent_name="/root/tests", parent_thread_id="t-1"), TOOLS, "codex", "s-2", "tests"),
        (codex_turn(agent_name="/root/a/b", parent_thread_id="t-1"), TOOLS, "codex", "s-2", "a/b"),
        (codex_turn(agent_name="/root", parent_thread_id="t-1"), TOOLS, "codex", "s-2", "t-2"),
        ({**CODEX, "x-openai-subagent": "review"}, TOOLS, "codex", "s-2", "review"),
        ({**CODEX, "x-openai-subagent": "collab_spawn"}, TOOLS, "codex", "s-2", "main"),
        (codex_turn(agent_name="/root"), TOOLS, "codex", "s-2", "main"),
        (OPENCODE, TOOLS, "opencode", "ses_3", "main"),
        ({**OPENCODE, "x-parent-session-id": "ses_1"}, TOOLS, "opencode", "ses_1", "ses_3"),
        ({"user-agent": "Anthropic/Python 2.14.0"}, {}, "anthropic-sdk", None, "main"),
        ({"user-agent": "AsyncOpenAI/Python 3.57.0"}, {}, "openai-sdk", None, "main"),
        ({"x-title": "Aider", "user-agent": "OpenAI/Python 2.20.0"}, {}, "aider", None, "main"),
        ({"user-agent": "OpenAI/Python 2.20.0"}, AIDER_CHAT, "aider", None, "main"),
        ({"user-agent": "AsyncAnthropic/Python 0.40"}, AIDER_ANTHROPIC, "aider", None, "main"),
        ({"user-agent": "litellm/1.81.10"}, {"system": "*file listing* format"}, "aider", None, "main"),
        ({"user-agent": "opencode/1.0"}, AIDER_CHAT, "opencode", None, "main"),
        ({"user-agent": "OpenAI/Python"}, {"messages": [{"content": 3}, 3]}, "openai-sdk", None, "main"),
        ({"user-agent": "RooCode/3.30", "x-title": "Roo Code"}, {}, "roo-code", None, "main"),
        ({"user-agent": "Kilo-Code/4.0"}, {}, "kilo-code", None, "main"),
        ({"user-agent": "Cline/3.0"}, {}, "cline", None, "main"),
        ({"user-agent": "GitHubCopilotChat/0.30"}, TOOLS, "copilot", None, "main"),
        ({"user-agent": "Zed/0.200"}, TOOLS, "zed", None, "main"),
        ({}, {}, "unknown", None, "main"),
        ({**CLAUDE_CODE, "x-ttsr-session": "mine", "x-ttsr-agent": "me"}, TOOLS, "claude-code", "mine", "me"),
    ],
)
def test_client_session_and_agent_are_told_from_headers_and_body(
    headers: dict[str, str], body: dict[str, Any], client: str, session: str | None, agent: str
) -> None:
    identity = identify(headers, body)
    assert (identity.client, identity.session, identity.agent) == (client, session, agent)


@pytest.mark.parametrize(
    "user_id",
    [
        '{"device_id":"d","account_uuid":"a","session_id":"0b6f2a0e-77a1-4c55-9a55-0f4b5f1c2d3e"}',
        "user_0a1b_account__session_0b6f2a0e-77a1-4c55-9a55-0f4b5f1c2d3e",
    ],
)
def test_the_session_is_found_in_the_metadata_of_either_form(user_id: str) -> None:
    identity = identify({"user-agent": "claude-cli/1.0"}, {**TOOLS, "metadata": {"user_id": user_id}})
    assert identity.session == "0b6f2a0e-77a1-4c55-9a55-0f4b5f1c2d3e"


def test_omp_without_tools_is_told_from_claude_code_by_its_metadata() -> None:
    headers = {"user-agent": "claude-cli/2.1.197", "x-claude-code-session-id": "s"}
    assert identify(headers, {"metadata": {"user_id": '{"session_id":"s"}'}}).client == "omp"
    claude = {"metadata": {"user_id": '{"device_id":"d","session_id":"s"}'}}
    assert identify(headers, claude).client == "claude-code"


@pytest.mark.parametrize(
    ("headers", "body", "helper"),
    [
        (CLAUDE_CODE, said("write a file"), None),
        (CLAUDE_CODE, {"messages": []}, "no tools"),
        (CLAUDE_CODE, {"tools": []}, "no tools"),
        (CLAUDE_CODE, said("<system-reminder>x</system-reminder>", COMPACTION), "compaction"),
        (CLAUDE_CODE, said(COMPACTION, "<system-reminder>x</system-reminder>"), "compaction"),
        (CLAUDE_CODE, said(f"CRITICAL: Respond with TEXT ONLY.\n\n{COMPACTION}"), "compaction"),
        (CLAUDE_CODE, said(COMPACTION.replace("the conversation so far", "this conversation")), "compaction"),
        (CLAUDE_CODE, said(COMPACTION, "now write the file"), None),
        (CLAUDE_CODE, said(f"What does '{COMPACTION}' mean?"), None),
        (CLAUDE_CODE, {**TOOLS, "messages": [{"role": "user", "content": COMPACTION}]}, "compaction"),
        (CODEX, TOOLS, None),
        (CODEX, {"input": [{"type": "additional_tools", "tools": [{"type": "custom"}]}]}, None),
        (CODEX, {"input": [{"type": "message"}]}, "no tools"),
        (CODEX, {**TOOLS, "input": [{"type": "compaction_trigger"}]}, "compaction"),
        (codex_turn(request_kind="compaction"), TOOLS, "compaction"),
        (codex_turn(request_kind="prewarm"), TOOLS, "prewarm"),
        (codex_turn(request_kind="turn"), TOOLS, None),
        ({**CODEX, "x-openai-subagent": "compact"}, TOOLS, "compaction"),
        ({**CODEX, "x-openai-subagent": "review"}, TOOLS, None),
        (
            CODEX,
            {"input": [{"type": "additional_tools", "tools": [{"type": "namespace", "tools": []}]}]},
            None,
        ),
        (OPENCODE, {"functions": [{"name": "write"}]}, None),
        ({"user-agent": "omp/18.2.3"}, {"messages": []}, "no tools"),
        (OPENCODE, {"messages": [{"role": "user", "content": "Generate a title"}]}, "no tools"),
        (OPENCODE, TOOLS, None),
    ],
)
def test_side_traffic_of_recognised_agents_is_named(
    headers: dict[str, str], body: dict[str, Any], helper: str | None
) -> None:
    assert identify(headers, body, path="/v1/messages").helper == helper


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"user-agent": "Anthropic/Python 2.14.0"},
        {"user-agent": "aider/0.86", "x-title": "aider"},
        {"user-agent": "Cline/3.0"},
        {"user-agent": "RooCode/3.30"},
    ],
)
def test_others_have_no_helper_calls(headers: dict[str, str]) -> None:
    assert identify(headers, said(COMPACTION) | {"tools": []}).helper is None
    assert identify(headers, {}, path="/v1/messages/count_tokens").helper is None


def test_counting_tokens_is_side_traffic_of_claude_code() -> None:
    assert identify(CLAUDE_CODE, TOOLS, path="/v1/messages/count_tokens").helper == "count_tokens"


@pytest.mark.parametrize(
    ("headers", "path", "activity"),
    [
        (CLAUDE_CODE, "/v1/messages", "events"),
        (CODEX, "/v1/responses", "events"),
        ({"user-agent": "omp/18.2.3"}, "/v1/messages", "events"),
        ({"user-agent": "omp/18.2.3"}, "/v1/chat/completions", "content"),
        ({"user-agent": "omp/18.2.3"}, "/v1/responses", "content"),
        (OPENCODE, "/v1/chat/completions", "bytes"),
        ({"user-agent": "OpenAI/Python 3.57.0"}, "/v1/chat/completions", "bytes"),
        ({}, "/v1/messages", "bytes"),
    ],
)
def test_what_clients_count_as_a_sign_of_life_is_known(
    headers: dict[str, str], path: str, activity: str
) -> None:
    assert identify(headers, TOOLS, path=path).activity == activity


def test_a_session_id_is_one_short_printable_line() -> None:
    session = identify({"x-ttsr-session": "a\r\nb\x1b[31m" + "x" * 1000}, {}).session
    assert session is not None
    assert session.startswith("ab[31mx")
    assert len(session) == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELDS = ("tools", "messages", "input", "metadata", "prompt_cache_key")


@settings(max_examples=100)
@given(
    body=st.dictionaries(st.sampled_from(FIELDS), JSON),
    headers=st.sampled_from([CLAUDE_CODE, CODEX, OPENCODE, {"x-codex-turn-metadata": "[]"}, {}]),
)
def test_no_body_makes_it_fail(body: dict[str, Any], headers: dict[str, str]) -> None:
    assert identify(headers, body).client
