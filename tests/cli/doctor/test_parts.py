"""What `doctor` says of what is installed and configured."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from ttsr_proxy.cli.doctor import parts
from ttsr_proxy.cli.doctor.finding import Finding
from ttsr_proxy.cli.doctor.parts import of_ast_worker, of_extras, of_models
from ttsr_proxy.config import (
    CompilerSettings,
    JudgeSettings,
    LibrarySettings,
    RecallSettings,
    Settings,
)

MakeSettings = Callable[..., Settings]


def of_library(settings: MakeSettings, environ: dict[str, str], **library: object) -> list[Finding]:
    made = settings(library=LibrarySettings(**library))  # type: ignore[arg-type]
    return [finding for finding in of_models(made, environ) if not finding.what.startswith("no ")]


def test_every_extra_for_users_is_told() -> None:
    names = {finding.what.split()[1] for finding in of_extras()}
    assert {"semantic", "jev", "mcp"} <= names
    assert not names & {"dev", "fuzz", "audit"}


def test_an_extra_that_is_not_installed_is_told_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: ["not-there>=1; extra == 'later'", "click>=8"])
    (finding,) = of_extras()
    assert (finding.level, "pip install 'ttsr-proxy[later]'" in finding.what) == ("ok", True)


async def test_an_ast_worker_that_starts_is_fine() -> None:
    assert (await of_ast_worker()).level == "ok"


async def test_an_ast_worker_that_does_not_start_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dead:
        async def run(self, jobs: object) -> list[None]:
            return [None]

        def close(self) -> None:
            pass

    monkeypatch.setattr(parts, "AstWorker", Dead)
    finding = await of_ast_worker()
    assert (finding.level, "does not start" in finding.what) == ("fail", True)


def test_without_models_all_is_fine(settings: MakeSettings) -> None:
    assert {finding.level for finding in of_models(settings(), {})} == {"ok"}


def test_a_compiler_whose_key_is_set_is_fine(settings: MakeSettings) -> None:
    compiler = CompilerSettings(kind="openai", model="m", api_key_env="KEY")
    (finding,) = of_library(settings, {"KEY": "secret"}, compiler=compiler)
    assert (finding.level, "secret" in finding.what) == ("ok", False)


@pytest.mark.parametrize(
    ("compiler", "level", "what"),
    [
        (CompilerSettings(kind="openai", model="m", api_key_env="KEY"), "fail", "KEY is not set"),
        (CompilerSettings(kind="openai", model="m"), "warn", "without a key"),
        (CompilerSettings(kind="openai"), "fail", "names no model"),
        (CompilerSettings(require_model=True), "fail", "requireModel is true"),
    ],
)
def test_a_compiler_that_cannot_be_asked_is_told(
    settings: MakeSettings, compiler: CompilerSettings, level: str, what: str
) -> None:
    found = of_library(settings, {}, compiler=compiler)
    assert [finding.level for finding in found if what in finding.what] == [level]


def test_a_model_file_that_is_not_there_is_a_failure(settings: MakeSettings, tmp_path: Path) -> None:
    (finding,) = of_library(settings, {}, recall=RecallSettings(model_path=tmp_path / "model.onnx"))
    assert (finding.level, "model.onnx" in finding.what) == ("fail", True)


@pytest.mark.parametrize(
    "library",
    [{"recall": RecallSettings(backend="minilm")}, {"judge": JudgeSettings(provider="jev")}],
)
def test_a_part_that_is_configured_and_not_installed_is_a_failure(
    settings: MakeSettings, monkeypatch: pytest.MonkeyPatch, library: dict[str, object]
) -> None:
    monkeypatch.setattr(parts, "find_spec", lambda _: None)
    (finding,) = of_library(settings, {}, **library)
    assert finding.level == "fail"
    assert finding.mend.startswith("pip install 'ttsr-proxy[")


def test_a_judge_whose_key_is_missing_is_a_failure(settings: MakeSettings) -> None:
    (finding,) = of_library(settings, {}, judge=JudgeSettings(provider="jev"))
    assert (finding.level, "TYPESAFE_API_KEY is not set" in finding.what) == ("fail", True)


def test_an_embedding_model_whose_key_is_missing_is_a_failure(settings: MakeSettings) -> None:
    recall = RecallSettings(backend="openai", base_url="http://127.0.0.1:9", model="m", api_key_env="KEY")
    (finding,) = of_library(settings, {}, recall=recall)
    assert (finding.level, "KEY is not set" in finding.what) == ("fail", True)
