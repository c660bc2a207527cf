"""What `doctor` says of where agents send their requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ttsr_proxy.cli.doctor.agents import of_agents
from ttsr_proxy.cli.doctor.finding import Finding
from ttsr_proxy.config import ProjectSettings, Settings, Upstreams

MakeSettings = Callable[..., Settings]
PROXY = "http://127.0.0.1:8787"


def judged(settings: Settings, **environ: str) -> Finding:
    """The only finding."""
    (finding,) = of_agents(settings, environ)
    return finding


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_an_environment_that_points_nobody_at_the_proxy_is_a_warning(settings: MakeSettings) -> None:
    finding = judged(settings())
    assert (finding.level, "no agent is pointed" in finding.what) == ("warn", True)
    assert "ttsr-proxy run" in finding.mend


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("ANTHROPIC_BASE_URL", PROXY),
        ("ANTHROPIC_BASE_URL", f"{PROXY}/"),
        ("ANTHROPIC_BASE_URL", "http://localhost:8787"),
        ("ANTHROPIC_API_BASE", PROXY),
        ("OPENAI_BASE_URL", f"{PROXY}/v1"),
        ("OPENAI_BASE_URL", f"{PROXY}/v1/"),
        ("OPENAI_API_BASE", f"{PROXY}/v1"),
        ("OPENAI_BASE_URL", f"{PROXY}/openai/deployments/x"),
    ],
)
def test_a_variable_that_points_at_the_proxy_is_fine(settings: MakeSettings, variable: str, url: str) -> None:
    assert judged(settings(), **{variable: url}).level == "ok"


@pytest.mark.parametrize(
    ("variable", "url", "level", "what", "mend"),
    [
        ("ANTHROPIC_BASE_URL", "https://gateway.example", "warn", "is not this proxy", PROXY),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:4000", "warn", "is not this proxy", PROXY),
        ("ANTHROPIC_BASE_URL", "https://127.0.0.1:8787", "fail", "plain HTTP", PROXY),
        ("ANTHROPIC_BASE_URL", f"{PROXY}/v1", "fail", "adds /v1 once more", f'"{PROXY}"'),
        ("ANTHROPIC_API_BASE", f"{PROXY}/v1/", "fail", "adds /v1 once more", f'"{PROXY}"'),
        ("OPENAI_BASE_URL", PROXY, "fail", "/v1 that is missing", f'"{PROXY}/v1"'),
        ("OPENAI_API_BASE", f"{PROXY}/", "fail", "/v1 that is missing", f'"{PROXY}/v1"'),
        ("ANTHROPIC_BASE_URL", "127.0.0.1:8787", "fail", "no http:// or https:// URL", PROXY),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:port", "fail", "no http:// or https:// URL", PROXY),
        ("ANTHROPIC_BASE_URL", f"{PROXY}/p/shop", "fail", "no project shop", "projects"),
    ],
)
def test_a_variable_that_does_not_work_is_told_with_what_it_should_be(
    settings: MakeSettings, variable: str, url: str, level: str, what: str, mend: str
) -> None:
    finding = judged(settings(), **{variable: url})
    assert finding.level == level
    assert what in finding.what
    assert mend in finding.mend


def test_an_upstream_that_ends_in_v1_makes_up_for_a_client_without_it(settings: MakeSettings) -> None:
    upstreams = Upstreams("http://127.0.0.1:9", "http://127.0.0.1:9/v1")
    assert judged(settings(upstreams=upstreams), OPENAI_BASE_URL=PROXY).level == "ok"


def test_the_path_of_a_named_project_is_part_of_the_base_url(
    settings: MakeSettings, project: ProjectSettings
) -> None:
    made = settings(projects=(project, replace(project, name="shop")))
    assert judged(made, ANTHROPIC_BASE_URL=f"{PROXY}/p/shop").level == "ok"
    assert judged(made, OPENAI_BASE_URL=f"{PROXY}/p/shop/v1").level == "ok"
    assert f'"{PROXY}/p/shop/v1"' in judged(made, OPENAI_BASE_URL=f"{PROXY}/p/shop").mend
    assert "shop" in judged(made, ANTHROPIC_BASE_URL=f"{PROXY}/p/shpo").mend


def test_a_password_in_a_url_is_not_told(settings: MakeSettings) -> None:
    finding = judged(settings(), ANTHROPIC_BASE_URL="https://me:secret@gateway.example/?key=secret")
    assert "secret" not in finding.what + finding.mend
    assert "gateway.example" in finding.what


def test_a_proxy_for_all_hosts_that_leaves_out_none_is_a_warning(settings: MakeSettings) -> None:
    given = {"ANTHROPIC_BASE_URL": PROXY, "HTTP_PROXY": "http://proxy.example:3128"}
    assert [finding.level for finding in of_agents(settings(), given)] == ["ok", "warn"]
    excepted = {**given, "NO_PROXY": "example.com, 127.0.0.1"}
    assert [finding.level for finding in of_agents(settings(), excepted)] == ["ok"]


def test_claude_code_on_another_cloud_is_a_warning(settings: MakeSettings) -> None:
    given = {"ANTHROPIC_BASE_URL": PROXY, "CLAUDE_CODE_USE_BEDROCK": "1"}
    assert [finding.level for finding in of_agents(settings(), given)] == ["ok", "warn"]
    assert judged(settings(), ANTHROPIC_BASE_URL=PROXY, CLAUDE_CODE_USE_BEDROCK="0").level == "ok"


def test_claude_codes_own_settings_are_read(settings: MakeSettings, project: ProjectSettings) -> None:
    write(
        project.path / ".claude/settings.local.json",
        json.dumps({"env": {"ANTHROPIC_BASE_URL": f"{PROXY}/v1"}}),
    )
    finding = judged(settings())
    assert (finding.level, "settings.local.json" in finding.what) == ("fail", True)


@pytest.mark.parametrize(
    ("text", "level", "what"),
    [
        (f'openai_base_url = "{PROXY}/v1"', "ok", "openai_base_url"),
        ('model = "gpt-5.5"', "warn", "openai_base_url is not set"),
        (f'openai_base_url = "{PROXY}"', "fail", "/v1 that is missing"),
        (
            f'model_provider = "own"\n[model_providers.own]\nbase_url = "{PROXY}/v1"',
            "ok",
            "model_providers.own.base_url",
        ),
        (
            f'openai_base_url = "{PROXY}/v1"\nmodel_provider = "own"\n'
            '[model_providers.own]\nbase_url = "https://other.example/v1"',
            "warn",
            "is not this proxy",
        ),
        (
            'profile = "work"\n[profiles.work]\nmodel_provider = "own"\n'
            '[model_providers.own]\nbase_url = "https://127.0.0.1:8787/v1"',
            "fail",
            "plain HTTP",
        ),
        ("openai_base_url = ", "warn", "is not understood"),
    ],
)
def test_codexs_file_is_read_as_codex_reads_it(
    settings: MakeSettings, project: ProjectSettings, text: str, level: str, what: str
) -> None:
    write(project.home / ".codex/config.toml", text)
    found = list(of_agents(settings(), {}))
    assert (found[0].level, what in found[0].what) == (level, True)


def test_codexs_file_may_be_elsewhere(settings: MakeSettings, tmp_path: Path) -> None:
    write(tmp_path / "codex/config.toml", f'openai_base_url = "{PROXY}/v1"')
    assert judged(settings(), CODEX_HOME=str(tmp_path / "codex")).level == "ok"


@pytest.mark.parametrize("place", ["project", "home", "variable", "content"])
def test_opencodes_providers_are_read_from_every_place(
    settings: MakeSettings, project: ProjectSettings, tmp_path: Path, place: str
) -> None:
    text = json.dumps({"provider": {"anthropic": {"options": {"baseURL": PROXY}}, "x": {"options": {}}}})
    environ = {}
    match place:
        case "project":
            write(project.path / "opencode.json", text)
        case "home":
            write(project.home / ".config/opencode/opencode.json", text)
        case "variable":
            write(tmp_path / "o.json", text)
            environ["OPENCODE_CONFIG"] = str(tmp_path / "o.json")
        case "content":
            environ["OPENCODE_CONFIG_CONTENT"] = text
    finding = judged(settings(), **environ)
    assert finding.level == "fail"
    assert "provider.anthropic.options.baseURL" in finding.what
    assert f'"{PROXY}/v1"' in finding.mend


def test_aiders_file_is_read(settings: MakeSettings, project: ProjectSettings) -> None:
    write(project.path / ".aider.conf.yml", f"openai-api-base: {PROXY}/v1\n")
    assert judged(settings()).level == "ok"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (".claude/settings.json", '{"env": []}'),
        ("opencode.json", "[1]"),
        ("opencode.json", '{"provider": {"a": 1, "b": {"options": {"baseURL": 3}}}}'),
        (".aider.conf.yml", "- a"),
    ],
)
def test_a_file_with_other_things_in_it_says_nothing(
    settings: MakeSettings, project: ProjectSettings, place: str, text: str
) -> None:
    write(project.path / place, text)
    assert "no agent is pointed" in judged(settings()).what


@pytest.mark.parametrize("place", [".claude/settings.json", "opencode.json", ".aider.conf.yml"])
def test_a_file_that_is_not_understood_is_a_warning(
    settings: MakeSettings, project: ProjectSettings, place: str
) -> None:
    write(project.path / place, "{// a comment\n:")
    found = list(of_agents(settings(), {"ANTHROPIC_BASE_URL": PROXY}))
    assert sorted(finding.level for finding in found) == ["ok", "warn"]


def test_a_proxy_on_all_addresses_is_named_by_one_that_leads_there(settings: MakeSettings) -> None:
    made = settings(host="0.0.0.0")
    assert judged(made, ANTHROPIC_BASE_URL=PROXY).level == "ok"
    assert PROXY in judged(made).mend
