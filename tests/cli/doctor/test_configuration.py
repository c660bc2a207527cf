"""What `doctor` says of the settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ttsr_proxy.cli.doctor.configuration import of_error, of_settings
from ttsr_proxy.config import (
    AuthSettings,
    ConfigError,
    LibrarySettings,
    ProjectSettings,
    Settings,
    TtsrSettings,
)

MakeSettings = Callable[..., Settings]


def levels(settings: Settings) -> dict[str, str]:
    return {finding.what: finding.level for finding in of_settings(settings)}


def test_settings_without_a_file_are_fine(settings: MakeSettings) -> None:
    (finding,) = of_settings(settings())
    assert finding.level == "ok"
    assert "no ttsr-proxy.yaml" in finding.what


def test_a_file_that_was_read_is_named(settings: MakeSettings) -> None:
    (finding,) = of_settings(settings(config_file=Path("/etc/ttsr.yaml")))
    assert (finding.level, finding.what.split()[0]) == ("ok", "/etc/ttsr.yaml")


def test_a_warning_of_the_settings_is_a_warning(settings: MakeSettings) -> None:
    found = levels(settings(warnings=("environment: TTSR_PROT is not a setting",)))
    assert found["environment: TTSR_PROT is not a setting"] == "warn"


def test_each_wrong_key_is_a_failure_with_what_is_allowed() -> None:
    found = list(of_error(ConfigError(["a.yaml: prot: unknown key", "a.yaml: port: 'x' is not allowed"])))
    assert [finding.level for finding in found] == ["fail", "fail"]
    assert all("docs/configuration.md" in finding.mend for finding in found)


@pytest.mark.parametrize(
    ("ttsr", "what"),
    [(TtsrSettings(enabled=False), "matching is off"), (TtsrSettings(observe=True), "only observe")],
)
def test_matching_that_cannot_interrupt_is_a_warning(
    settings: MakeSettings, project: ProjectSettings, ttsr: TtsrSettings, what: str
) -> None:
    found = levels(settings(projects=(replace(project, ttsr=ttsr),)))
    assert [level for text, level in found.items() if what in text] == ["warn"]


def test_an_address_that_others_reach_without_a_token_is_a_warning(settings: MakeSettings) -> None:
    assert any("others can reach 0.0.0.0" in what for what in levels(settings(host="0.0.0.0")))
    assert not any("others can reach" in what for what in levels(settings(host="0.0.0.0", token="t" * 32)))


def test_a_wrong_file_of_keys_is_a_failure(settings: MakeSettings, tmp_path: Path) -> None:
    auth = AuthSettings(mode="api_key", keys_file=tmp_path / "missing")
    found = levels(settings(library=LibrarySettings(auth=auth)))
    assert [level for what, level in found.items() if "keysFile" in what] == ["fail"]
