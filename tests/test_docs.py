"""The documentation is complete, and its generated parts are current."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType

import click
import pytest

from ttsr_proxy.cli import main
from ttsr_proxy.config import KEYS, PROJECT_KEYS
from ttsr_proxy.web.app import ENDPOINTS

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
REFERENCE = (ROOT / "docs/configuration.md").read_text()


def _generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = _generate()


def test_the_generated_parts_are_current() -> None:
    assert list(GENERATE.outdated()) == [], "run `make docs`"


def test_a_part_that_is_not_current_is_found() -> None:
    page = "a\n<!-- generated: settings -->\noutdated\n<!-- end -->\nb\n"
    today = GENERATE.with_parts(page)
    assert "outdated" not in today
    assert today.startswith("a\n<!-- generated: settings -->\n| key |")
    assert today.endswith("|\n<!-- end -->\nb\n")


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_key_and_its_variable_are_in_the_reference(key: object) -> None:
    name, variable = key.name, key.variable  # type: ignore[attr-defined]
    assert f"| `{name}` |" in REFERENCE
    assert variable is None or f"| `{variable}` |" in REFERENCE


def test_every_key_of_a_project_is_in_the_reference() -> None:
    part = REFERENCE.partition("## Several projects")[2]
    names = {key.name.partition(".")[0] for key in PROJECT_KEYS}
    assert names == set(re.findall(r"^\| `(\w+)[\w.]*` \|", part, re.M))


def test_the_reference_names_no_variable_that_is_not_read() -> None:
    read = {key.variable for key in KEYS if key.variable} | {"TTSR_UPSTREAM"}
    assert set(re.findall(r"\bTTSR_[A-Z_]+\b", REFERENCE)) == read


@pytest.mark.parametrize(("name", "command"), list(GENERATE.commands()), ids=lambda value: str(value))
def test_every_command_and_option_is_in_the_reference(name: str, command: click.Command) -> None:
    _, _, section = REFERENCE.partition(f"### `{name}`\n")
    section = section.partition("\n### ")[0]
    assert section
    for parameter in command.params:
        for option in parameter.opts if isinstance(parameter, click.Option) else ():
            assert option in section
    assert command.help or command is main


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint[1])
def test_every_endpoint_is_in_the_operations_page(endpoint: tuple[str, str, str]) -> None:
    method, path, _ = endpoint
    assert f"| `{method} {path}` |" in (ROOT / "docs/operations.md").read_text()


def test_every_event_of_the_program_s_log_is_in_the_monitoring_page() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "ttsr_proxy").rglob("*.py"))
    told = set(re.findall(r'(?:log|get_logger\(\))\.(?:info|warning|error|exception)\(\s*"(\w+)"', source))
    told |= set(re.findall(r'\bNote\("(\w+)"', source))
    part = (ROOT / "docs/monitoring.md").read_text().partition("| event | what happened |")[2]
    listed = {
        name for row in re.findall(r"^\| (`.+?) \|", part, re.M) for name in re.findall(r"`(\w+)`", row)
    }
    assert len(told) > 15
    assert told | {"bypass_refused"} == listed


def _links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for link in _links(page):
        path, _, anchor = link.partition("#")
        target = Path(os.path.normpath(page.parent / path)) if path else page
        assert target.exists(), f"{link} in {page.name}"
        if anchor:
            titles = re.findall(r"^#+ (.+)$", target.read_text(), re.M)
            assert anchor in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached = {ROOT / "README.md"}
    while True:
        linked = {
            Path(os.path.normpath(page.parent / link.partition("#")[0]))
            for page in reached
            for link in _links(page)
        }
        pages = {page for page in linked if page.suffix == ".md"} | reached
        if pages == reached:
            break
        reached = pages
    assert set(PAGES) <= reached


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_speak_of_commands_that_exist(page: Path) -> None:
    exist = {name for name, _ in GENERATE.commands()}
    code = re.findall(r"`[^`\n]+`|^```.*?^```", page.read_text(), re.M | re.S)
    named = {
        name for part in code for name in re.findall(r"(?:^|`)(ttsr-proxy(?: rules)? [a-z]+)", part, re.M)
    }
    assert named <= exist


def test_the_version_has_an_entry_in_the_changelog() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version is not None
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()
