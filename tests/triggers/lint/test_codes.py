"""Every kind of finding is explained to users."""

from __future__ import annotations

import re
from pathlib import Path

import ttsr_proxy
from ttsr_proxy.triggers import lint

ROOT = Path(ttsr_proxy.__file__).parent
SOURCES = [*Path(lint.__file__).parent.glob("*.py"), ROOT / "cli/rules/check.py"]


def test_every_code_is_in_the_documentation_and_no_other() -> None:
    code = re.compile(r'"(?:error|warning)",\s+"([a-z]+(?:-[a-z]+)*)"')
    used = {found for source in SOURCES for found in code.findall(source.read_text())}
    page = (ROOT.parent / "docs/writing-rules.md").read_text()
    table = page.partition("| code | level |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("|")]
    documented = {word for row in rows for word in re.findall(r"`([a-z-]+)`", row)}
    assert documented == used - {"warning"}  # the type Level
