"""Settings from file, environment and flags."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ttsr_proxy.config import (
    BudgetSettings,
    CaptureSettings,
    ConfigError,
    HoldSettings,
    RulebookSettings,
    Settings,
    TtsrSettings,
    Upstreams,
    load_settings,
)
from ttsr_proxy.redis import RedisUrl


class Place:
    """A project directory and a home, with a shorthand to load settings there."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.file = self.project / "ttsr-proxy.yaml"

    def directory(self, name: str) -> Path:
        path = self.project / name
        path.mkdir(parents=True)
        return path

    def load(
        self,
        text: str | None = None,
        env: Mapping[str, str] | None = None,
        flags: Mapping[str, Any] | None = None,
        upstreams: Iterable[str] = (),
        config: Path | None = None,
    ) -> Settings:
        if text is not None:
            self.file.write_text(text)
        return load_settings(
            project=self.project,
            home=self.home,
            environ=env or {},
            flags=flags,
            upstreams=upstreams,
            config=config,
        )

    def problems(self, *args: Any, **kwargs: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(*args, **kwargs)
        return str(caught.value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_any_source_the_defaults_hold(place: Place) -> None:
    settings = place.load()
    assert (settings.host, settings.port) == ("127.0.0.1", 8787)
    assert settings.upstreams == Upstreams("https://api.anthropic.com", "https://api.openai.com")
    assert settings.state == place.home / ".local/state/ttsr-proxy/state.db"
    assert settings.config_file is None
    (project,) = settings.projects
    assert (project.name, project.path, project.home) == ("default", place.project, place.home)
    assert project.ttsr == TtsrSettings()


def test_each_matching_key_reaches_its_setting(place: Place) -> None:
    settings = place.load("""
ttsr:
  enabled: false
  interruptMode: tool-only
  contextMode: keep
  repeatMode: after-gap
  repeatGap: 3
  builtinRules: false
  disabledRules: [no-eval, house-style]
  observeHelpers: false
  onError: pass
  toolFamilies: [{tools: [put], kind: write}]
  hold: {maxChars: 10, maxSeconds: 1.5}
  maxInterrupts: {rule: 1, response: 2, conversation: 3}
  onExhausted: block
""")
    assert settings.projects[0].ttsr == TtsrSettings(
        enabled=False,
        interrupt_mode="tool-only",
        context_mode="keep",
        repeat_mode="after-gap",
        repeat_gap=3,
        builtin_rules=False,
        disabled_rules=("no-eval", "house-style"),
        observe_helpers=False,
        on_error="pass",
        tool_families=({"tools": ["put"], "kind": "write"},),
        hold=HoldSettings(10, 1.5),
        budget=BudgetSettings(1, 2, 3, "block"),
    )
    assert settings.config_file == place.file


def test_environment_goes_before_the_file_and_flags_before_both(place: Place) -> None:
    text = "host: a\nport: 1\nretention: {days: 1, records: 5}\nttsr: {repeatGap: 1}\n"
    env = {"TTSR_HOST": "b", "TTSR_PORT": "2", "TTSR_RETENTION_DAYS": "2.5"}
    settings = place.load(text, env, {"host": "c", "port": None})
    assert (settings.host, settings.port) == ("c", 2)
    assert (settings.retention.days, settings.retention.records) == (2.5, 5)
    assert settings.projects[0].ttsr.repeat_gap == 1


@pytest.mark.parametrize(
    ("text", "value"), [("false", False), ("0", False), ("False", False), ("1", True), ("true", True)]
)
def test_switches_in_the_environment_take_words_and_digits(place: Place, text: str, value: bool) -> None:
    ttsr = place.load(env={"TTSR_BUILTIN_RULES": text, "TTSR_ENABLED": text}).projects[0].ttsr
    assert (ttsr.builtin_rules, ttsr.enabled) == (value, value)


def test_lists_in_the_environment_are_split_and_empty_variables_are_not_set(place: Place) -> None:
    one, two = place.directory("one"), place.directory("two")
    env = {
        "TTSR_DISABLED_RULES": "a, b,",
        "TTSR_RULES": f"{one}:{two}",
        "TTSR_PORT": "",
        "TTSR_MAX_INTERRUPTS_RULE": "7",
    }
    settings = place.load(env=env)
    (project,) = settings.projects
    assert project.ttsr.disabled_rules == ("a", "b")
    assert project.rules == (one, two)
    assert settings.port == 8787
    assert project.ttsr.budget.per_rule == 7


def test_paths_in_the_file_are_relative_to_it(place: Place) -> None:
    elsewhere = place.home / "conf"
    (elsewhere / "house-rules").mkdir(parents=True)
    (elsewhere / "ttsr.yaml").write_text("rules: [house-rules]\nstate: data/s.db\n")
    settings = place.load(config=elsewhere / "ttsr.yaml")
    assert settings.projects[0].rules == (elsewhere / "house-rules",)
    assert settings.state == elsewhere / "data/s.db"


def test_paths_on_the_command_line_are_relative_to_where_it_was_given(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = place.directory("sub/rules")
    monkeypatch.chdir(place.project / "sub")
    settings = place.load(flags={"rules": ["rules"], "state": "s.db"})
    assert settings.projects[0].rules == (rules,)
    assert settings.state == place.project / "sub" / "s.db"


def test_state_follows_xdg_state_home_when_it_is_absolute(place: Place) -> None:
    assert place.load(env={"XDG_STATE_HOME": "/var/s"}).state == Path("/var/s/ttsr-proxy/state.db")
    assert place.load(env={"XDG_STATE_HOME": "s"}).state == place.home / ".local/state/ttsr-proxy/state.db"


def test_state_may_be_on_redis_wherever_it_is_configured(place: Place) -> None:
    url = "rediss://me:s3cret@cache.internal:6380/2"
    library = "library: {root: rules-library}"
    from_file = place.load(f"state: {url}\n{library}").state
    assert from_file == place.load(library, env={"TTSR_STATE": url}).state == RedisUrl(url)
    assert place.load(flags={"state": url}).state == RedisUrl(url)
    assert "s3cret" not in f"{from_file} {place.load(flags={'state': url})!r}"


def test_state_on_redis_needs_a_place_for_the_library(place: Place) -> None:
    assert "environment: state: " in place.problems(env={"TTSR_STATE": "redis://cache"})
    problem = place.problems("state: here.db", flags={"state": "redis://cache"})
    assert problem.startswith("command line: state: on Redis ")
    assert "name one with library.root" in problem


@pytest.mark.parametrize(
    "wrong",
    [
        "postgres://me:s3cret@db/1",
        "redis://me:s3cret/x@db/1",
        "redis://me:12s3cret@:6379",
        "redis://me:1/s3cret@db",
        "redis://me:1?s3cret@db",
        "redis://me:1#s3cret@db",
        "redis://db/s3cret",
        "redis://[s3cret/",
        ["redis://me:s3cret@db"],
    ],
)
def test_a_wrong_state_url_is_an_error_that_names_the_key_and_not_the_credentials(
    place: Place, wrong: object
) -> None:
    problem = place.problems(f"state: {json.dumps(wrong)}")
    assert "state: " in problem
    assert "s3cret" not in problem


def test_a_token_that_is_too_short_is_not_shown(place: Place) -> None:
    problem = place.problems("token: s3cret")
    assert "token: its value is not allowed; expected a text of at least 16 characters" in problem


def test_one_upstream_url_serves_every_family(place: Place) -> None:
    assert place.load("upstream: http://one/").upstreams == Upstreams("http://one", "http://one")
    assert place.load(env={"TTSR_UPSTREAM": "http://two"}).upstreams == Upstreams("http://two", "http://two")


def test_an_upstream_for_one_family_leaves_the_other(place: Place) -> None:
    assert place.load("upstream: {openai: http://o}").upstreams.anthropic == "https://api.anthropic.com"
    both = place.load("upstream: http://f", upstreams=["anthropic=http://a"]).upstreams
    assert both == Upstreams("http://a", "http://f")


@pytest.mark.parametrize(
    "upstreams", [["openai=http://o", "http://both"], ["http://both", "openai=http://o"]]
)
def test_the_more_specific_upstream_flag_wins_in_any_order(place: Place, upstreams: list[str]) -> None:
    assert place.load(upstreams=upstreams).upstreams == Upstreams("http://both", "http://o")


def test_the_more_specific_upstream_variable_wins_in_any_order(place: Place) -> None:
    pairs = [("TTSR_UPSTREAM", "http://both"), ("TTSR_UPSTREAM_OPENAI", "http://o")]
    for env in (dict(pairs), dict(reversed(pairs))):
        assert place.load(env=env).upstreams == Upstreams("http://both", "http://o")


def test_projects_add_directories_and_override_matching(place: Place) -> None:
    for name in ("shared", "web", "web/rules"):
        place.directory(name)
    settings = place.load("""
rules: [shared]
ttsr: {repeatGap: 2, enabled: false}
projects:
  web: {path: web, rules: [web/rules], ttsr: {repeatGap: 5, hold: {maxChars: 1}}}
""")
    default, web = settings.projects
    assert (web.name, web.path) == ("web", place.project / "web")
    assert web.rules == (place.project / "shared", place.project / "web/rules")
    assert default.rules == (place.project / "shared",)
    assert web.ttsr == TtsrSettings(enabled=False, repeat_gap=5, hold=HoldSettings(max_chars=1))
    assert default.ttsr == TtsrSettings(enabled=False, repeat_gap=2)


def test_the_rulebook_is_switched_for_all_for_some_and_for_one_project(place: Place) -> None:
    place.directory("web")
    settings = place.load(
        """
rulebook:
  disabledAgents: [codex, 'review*']
projects:
  web:
    path: web
    rulebook:
      enabled: false
"""
    )
    assert settings.projects[0].rulebook == RulebookSettings(True, ("codex", "review*"))
    assert settings.projects[1].rulebook == RulebookSettings(False, ("codex", "review*"))
    environ = {"TTSR_RULEBOOK_ENABLED": "0", "TTSR_RULEBOOK_DISABLED_AGENTS": "omp,main"}
    assert place.load("", environ).projects[0].rulebook == RulebookSettings(False, ("omp", "main"))


def test_captures_are_a_projects_own(place: Place) -> None:
    place.directory("web")
    settings = place.load(
        """
capture: {days: 2, directory: kept, maxMegabytes: 5}
projects:
  web: {path: web, capture: {enabled: true, days: 3}}
  app: {path: web, capture: {directory: of-app}}
""",
        env={"TTSR_CAPTURE_MAX_MEGABYTES": "9", "TTSR_LIBRARY_ROOT": "/lib/rules"},
    )
    default, web, app = settings.projects
    assert default.capture == CaptureSettings(False, place.project / "kept", 9, 2)
    assert web.capture == CaptureSettings(True, None, 9, 3)
    assert [settings.captures_of(project) for project in (default, web, app)] == [
        place.project / "kept",
        Path("/lib/captures/web"),
        place.project / "of-app",
    ]


def test_the_environment_goes_before_a_projects_part_of_the_file(place: Place) -> None:
    settings = place.load("projects: {web: {path: ., ttsr: {enabled: true}}}", env={"TTSR_ENABLED": "0"})
    assert [project.ttsr.enabled for project in settings.projects] == [False, False]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ttsr: {interuptMode: never}", ["ttsr.interuptMode", "did you mean interruptMode?", "contextMode"]),
        ("ttsr: {interrupt_mode: never}", ["ttsr.interrupt_mode", "did you mean interruptMode?"]),
        ("prot: 1", ["prot", "unknown key", "did you mean port?"]),
        (
            "ttsr: {interruptMode: allways}",
            ["ttsr.interruptMode", "'allways'", "prose-only", "did you mean always?"],
        ),
        ("port: 70000", ["port", "70000", "a whole number from 0 to 65535"]),
        ("port: true", ["port", "True", "a whole number"]),
        ("port:", ["port", "None", "a whole number"]),
        ("ttsr: {enabled: maybe}", ["ttsr.enabled", "'maybe'", "true or false"]),
        ("ttsr: {repeatGap: -1}", ["ttsr.repeatGap", "a whole number of at least 0"]),
        ("ttsr: {hold: {maxSeconds: x}}", ["ttsr.hold.maxSeconds", "a number of at least 0"]),
        (
            "ttsr: {hold: {maxChar: 1}}",
            ["ttsr.hold.maxChar", "did you mean maxChars?", "Known keys here: maxChars, maxSeconds"],
        ),
        ("ttsr: {hold: 5}", ["ttsr.hold", "5", "keys and values"]),
        ("ttsr: {disabledRules: no-eval}", ["ttsr.disabledRules", "'no-eval'", "a list"]),
        ("ttsr: {onError: block}", ["ttsr.onError", "'block'", "expected pass"]),
        ("ttsr: {toolFamilies: [put]}", ["ttsr.toolFamilies", "each item keys and values"]),
        ("retention: {days: 0}", ["retention.days", "a number above 0"]),
        ("upstream: ftp://x", ["upstream", "ftp://x", "https://"]),
        ("upstream: {antropic: https://x}", ["upstream.antropic", "did you mean anthropic?"]),
        ("rules: [nowhere]", ["rules", "there is no directory", "project/nowhere"]),
        ("state: redis://x", ["state", "library.root"]),
        ("state: mysql://x", ["state", "redis://HOST:PORT"]),
        ("projects: [a]", ["projects", "a name for each project"]),
        ("projects: {web: {}}", ["projects.web", "`path` is missing"]),
        ("projects: {web: {path: ., prot: 1}}", ["projects.web.prot", "Known keys here: path, rules"]),
        ("projects: {web: {path: ., ttsr: {enabled: 3}}}", ["projects.web.ttsr.enabled", "3"]),
        ("projects: {'a/b': {path: .}}", ["projects.a/b", "letters"]),
        ("projects: {default: {path: .}}", ["projects.default", "--project"]),
        ("- a", ["keys and values"]),
        ("a: [", ["not valid YAML", "line 1"]),
        ("port: 2001-99-99", ["not valid YAML", "month"]),
        ("port: !!timestamp x", ["not valid YAML"]),
        ("port: !!bool x", ["not valid YAML"]),
        ("a: " + "[" * 5000, ["not valid YAML"]),
        ('"\\e[1m": "\U000f40d0": x', ["not valid YAML", r"\U000f40d0"]),
        ("? two\n\n  lines\n: 1\n", [r": two\nlines: unknown key"]),
        ('"a\\e[1m": 1', [r": a\x1b[1m: unknown key"]),
        ('projects: {"a\\nb": {path: x}}', [r"projects.a\nb: a project's name"]),
        ('projects: {a: {path: "./no\\e[1m"}}', [r"no\x1b[1m"]),
    ],
)
def test_a_wrong_key_or_value_names_the_file_the_key_and_what_is_allowed(
    place: Place, text: str, parts: list[str]
) -> None:
    message = place.problems(text)
    assert message.startswith(f"{place.file}: ")
    assert message.count("\n") == 0
    for part in parts:
        assert part in message


def test_every_problem_is_named_at_once(place: Place) -> None:
    message = place.problems("port: x\nhots: y\n", env={"TTSR_REPEAT_GAP": "many"}, upstreams=["openai=nope"])
    assert [line.split(": ")[1] for line in message.splitlines()] == [
        "port",
        "hots",
        "TTSR_REPEAT_GAP",
        "--upstream",
    ]


def test_a_config_file_that_is_named_must_exist(place: Place) -> None:
    assert "cannot be read" in place.problems(config=place.home / "none.yaml")


def test_a_variable_that_is_not_a_setting_is_a_warning(place: Place) -> None:
    (warning,) = place.load(
        env={"TTSR_INTERUPT_MODE": "never", "TTSR_PROXY_PORT": "tcp://1", "PATH": "/"}
    ).warnings
    assert "TTSR_INTERUPT_MODE" in warning
    assert "did you mean TTSR_INTERRUPT_MODE?" in warning


def test_an_empty_file_changes_nothing(place: Place) -> None:
    assert place.load("# nothing yet\n").projects[0].ttsr == TtsrSettings()
