"""What is in the distributions, and the container's definition."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    """The names in the sdist and in the wheel that is built from it."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,) = out.glob("ttsr_proxy-*.tar.gz")
    (wheel,) = out.glob("ttsr_proxy-*.whl")
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    return in_sdist, in_wheel


def test_both_distributions_hold_the_package_its_type_marker_and_every_shipped_rule(
    built: tuple[set[str], set[str]],
) -> None:
    in_sdist, in_wheel = built
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "ttsr_proxy").rglob("*.py")}
    rules = {path.name for path in (ROOT / "rules").glob("*.md")}
    assert rules
    assert modules | {"ttsr_proxy/py.typed"} <= in_sdist & in_wheel
    assert {f"rules/{name}" for name in rules} <= in_sdist
    assert {f"ttsr_proxy/shipped_rules/{name}" for name in rules} <= in_wheel


def test_the_wheel_holds_nothing_else_and_the_sdist_can_be_tested(built: tuple[set[str], set[str]]) -> None:
    in_sdist, in_wheel = built
    assert {re.split(r"[/-]", name)[0] for name in in_wheel} == {"ttsr_proxy"}
    assert {"Makefile", "README.md", "LICENSE", "tests/conftest.py", "docs/configuration.md"} <= in_sdist


@pytest.fixture(scope="module")
def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the final stage, in order."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    instructions = [(word, rest) for word, rest in lines]
    last_stage = max(place for place, (word, _) in enumerate(instructions) if word == "FROM")
    return instructions[last_stage:]


def test_the_container_does_not_run_as_root(dockerfile: list[tuple[str, str]]) -> None:
    users = [rest for word, rest in dockerfile if word == "USER"]
    assert users == ["ttsr"]
    words = [word for word, _ in dockerfile]
    assert words.index("USER") < words.index("CMD")
    assert "RUN" not in words[words.index("USER") :]


def test_the_container_serves_on_its_port_and_says_whether_it_is_well(
    dockerfile: list[tuple[str, str]],
) -> None:
    by_word = dict(dockerfile)
    assert by_word["EXPOSE"] == "8787"
    assert by_word["VOLUME"] == '["/rules", "/state"]'
    assert "http://127.0.0.1:8787/healthz" in by_word["HEALTHCHECK"]
    command = re.findall(r'"([^"]+)"', by_word["CMD"])
    assert command[:2] == ["ttsr-proxy", "serve"]
    assert dict(zip(command[2::2], command[3::2], strict=True)) == {
        "--host": "0.0.0.0",
        "--rules": "/rules",
        "--state": "/state/state.db",
    }


def test_the_container_installs_only_what_is_pinned_by_its_hash() -> None:
    installs = re.findall(r"pip (?:install|wheel) [^&\n]*", (ROOT / "Dockerfile").read_text())
    assert installs
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)
    for name in ("requirements.txt", "build.txt"):
        listed = (ROOT / "container" / name).read_text().replace("\\\n", "")
        lines = [line for line in listed.splitlines() if line and not line.lstrip().startswith("#")]
        assert lines
        assert all(re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_the_pinned_packages_are_those_that_the_package_asks_for() -> None:
    listed = (ROOT / "container" / "requirements.txt").read_text()
    pinned = set(re.findall(r"^([a-z0-9-]+)==", listed, re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {re.split(r"[>=;]", line)[0].strip().replace(".", "-") for line in project["dependencies"]}
    assert asked <= pinned


def test_the_container_build_sees_only_what_it_copies() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (ROOT / "Dockerfile").read_text(), re.M)
    assert {name for names in copied for name in names.split()} == allowed
