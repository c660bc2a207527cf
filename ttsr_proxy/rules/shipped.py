"""Where the rules that come with the product are."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def shipped_rules_directory() -> Path | None:
    """The directory of the shipped rules: in the installed package, or `rules/` of a checkout."""
    for directory in (_PACKAGE / "shipped_rules", _PACKAGE.parent / "rules"):
        if directory.is_dir():
            return directory
    return None
