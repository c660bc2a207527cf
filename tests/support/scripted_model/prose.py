"""Edits as aider's models write them: as text."""

from __future__ import annotations

from scripted_model.steps import Edit, Part, Say, Write


def in_prose(part: Part, style: str) -> Part:
    """The part with a file's text in aider's edit format `diff` or `whole`."""
    match part:
        case Write(path, content) if style == "whole":
            return Say(f"\n{path}\n```python\n{content}```\n")
        case Write(path, content):
            return Say(_block(path, "", content))
        case Edit(path, old, new) if style == "diff":
            return Say(_block(path, f"{old}\n", f"{new}\n"))
    return part


def _block(path: str, old: str, new: str) -> str:
    return f"\n{path}\n```python\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"
