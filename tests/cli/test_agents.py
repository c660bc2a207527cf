"""How agents are pointed at the proxy."""

from __future__ import annotations

import json

import pytest

from ttsr_proxy.cli.agents import GENERIC, AgentError, agent_of

URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["claude"], "Claude Code"),
        (["/opt/bin/claude", "-p", "x"], "Claude Code"),
        (["codex", "exec"], "Codex"),
        (["opencode"], "opencode"),
        (["aider"], "aider"),
        (["omp"], "omp"),
        (["python", "claude"], GENERIC.name),
        (["claude-wrapper"], GENERIC.name),
    ],
)
def test_an_agent_is_known_by_the_name_of_its_program(command: list[str], name: str) -> None:
    assert agent_of(command).name == name


@pytest.mark.parametrize("program", ["gemini", "/usr/bin/gemini", "cursor-agent"])
def test_an_agent_that_cannot_be_watched_is_refused_with_the_reason(program: str) -> None:
    with pytest.raises(AgentError, match="cannot be run through ttsr-proxy"):
        agent_of([program])


def test_any_other_program_gets_the_variables_of_the_official_sdks() -> None:
    pointed = GENERIC.point(URL, {})
    assert pointed.variables["ANTHROPIC_BASE_URL"] == URL
    assert pointed.variables["OPENAI_BASE_URL"] == f"{URL}/v1"
    assert pointed.arguments == ()


@pytest.mark.parametrize("variable", ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"])
def test_claude_code_on_another_api_is_refused(variable: str) -> None:
    claude = agent_of(["claude"])
    assert claude.point(URL, {variable: "0"}).variables == {"ANTHROPIC_BASE_URL": URL}
    with pytest.raises(AgentError, match=variable):
        claude.point(URL, {variable: "1"})


def test_codex_takes_the_url_as_the_first_argument() -> None:
    assert agent_of(["codex"]).point(URL, {}).arguments == ("-c", f'openai_base_url="{URL}/v1"')


def test_opencode_keeps_the_configuration_that_the_user_gives_it_in_the_environment() -> None:
    given = {"theme": "x", "provider": {"openai": {"options": {"timeout": 5, "baseURL": "http://old"}}}}
    pointed = agent_of(["opencode"]).point(URL, {"OPENCODE_CONFIG_CONTENT": json.dumps(given)})
    config = json.loads(pointed.variables["OPENCODE_CONFIG_CONTENT"])
    assert config["theme"] == "x"
    assert config["provider"]["openai"]["options"] == {"timeout": 5, "baseURL": f"{URL}/v1"}
    assert config["provider"]["anthropic"]["options"] == {"baseURL": f"{URL}/v1"}


def test_opencode_with_a_configuration_that_is_not_json_is_refused() -> None:
    with pytest.raises(AgentError, match="OPENCODE_CONFIG_CONTENT is not JSON"):
        agent_of(["opencode"]).point(URL, {"OPENCODE_CONFIG_CONTENT": "{"})


def test_omp_is_pointed_by_its_anthropic_provider() -> None:
    assert agent_of(["omp"]).point(URL, {}).variables == {"ANTHROPIC_BASE_URL": URL}
