"""Findings of a scan as SARIF 2.1.0 (OASIS, https://docs.oasis-open.org/sarif/sarif/v2.1.0/)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from ttsr_proxy.cli.rules.judging import Finding
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.inventory import Effect

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "PROJECTROOT"

_LEVELS: Mapping[Effect, str] = {
    "interrupts": "error",
    "reminds": "warning",
    "would interrupt": "note",
    "would remind": "note",
}


def sarif_log(
    rules: Sequence[Rule],
    effects: Mapping[str, Effect],
    results: Iterable[tuple[str, Finding]],
    notes: Iterable[tuple[str, str]],
    project: Path,
    shown_path: Callable[[Rule], str],
) -> JsonObject:
    """One run. Results and notes come with paths relative to the project, or absolute outside it.

    A rule that interrupts is an error, one that reminds a warning, one that only observes a note.
    Notifications say which files were left out.
    """
    index = {rule.name: number for number, rule in enumerate(rules)}
    levels = {rule.name: _LEVELS[effects[rule.name]] for rule in rules}
    seen: dict[tuple[str, str, str], int] = {}
    reported: list[JsonObject] = []
    for path, finding in results:
        key = (finding.rule, path, finding.text)
        seen[key] = seen.get(key, -1) + 1
        reported.append(
            {
                "ruleId": finding.rule,
                "ruleIndex": index[finding.rule],
                "level": levels[finding.rule],
                "message": {"text": _message(rules[index[finding.rule]])},
                "locations": [
                    {
                        "physicalLocation": {
                            "artifactLocation": _location(path),
                            "region": {
                                "startLine": finding.line,
                                "startColumn": finding.column,
                                "endLine": finding.end_line,
                                "endColumn": finding.end_column,
                                "charOffset": finding.start,
                                "charLength": finding.end - finding.start,
                                "snippet": {"text": finding.text},
                            },
                        }
                    }
                ],
                "partialFingerprints": {"matchedText/v1": _fingerprint(key, seen[key])},
            }
        )
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ttsr-proxy",
                        "version": version("ttsr-proxy"),
                        "rules": [_descriptor(rule, levels[rule.name], shown_path) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_ROOT: {"uri": project.as_uri().rstrip("/") + "/"}},
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {
                                "level": "note",
                                "message": {"text": reason},
                                "locations": [{"physicalLocation": {"artifactLocation": _location(path)}}],
                            }
                            for path, reason in notes
                        ],
                    }
                ],
                "results": reported,
            }
        ],
    }


def _descriptor(rule: Rule, level: str, shown_path: Callable[[Rule], str]) -> JsonObject:
    return {
        "id": rule.name,
        "shortDescription": {"text": _message(rule)},
        "help": {"text": rule.content or rule.name, "markdown": rule.content or rule.name},
        "defaultConfiguration": {"level": level},
        "properties": {"file": shown_path(rule)},
    }


def _message(rule: Rule) -> str:
    """One sentence about the rule: its description, else the first paragraph of its text."""
    first = rule.content.strip().partition("\n\n")[0]
    return " ".join((rule.description or first or rule.name).split())


def _location(path: str) -> JsonObject:
    if path.startswith("/"):
        return {"uri": Path(path).as_uri()}
    return {"uri": quote(path), "uriBaseId": _ROOT}


def _fingerprint(key: tuple[str, str, str], number: int) -> str:
    """What stays the same when lines move: rule, file, matched text, and which of several alike it is."""
    return hashlib.sha256("\0".join((*key, str(number))).encode("utf-8", "surrogatepass")).hexdigest()
