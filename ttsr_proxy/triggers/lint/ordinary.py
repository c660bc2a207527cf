"""Samples of ordinary text: a condition that matches all that it watches forbids everything."""

from __future__ import annotations

import regex

from ttsr_proxy.triggers.compiled import CompiledRule
from ttsr_proxy.triggers.globs import path_names
from ttsr_proxy.triggers.match import StreamContext

_WRITTEN: dict[str, tuple[str, str]] = {
    "src/app.py": (
        "import os\n\n\nclass Store:\n    def __init__(self, path):\n        self.path = path\n\n"
        "    def read(self, name):\n        with open(os.path.join(self.path, name)) as file:\n"
        "            return file.read()\n",
        "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n"
        "    if not values:\n        return None\n    return total / len(values)\n",
    ),
    "src/app.ts": (
        "import { open } from './store';\n\nexport function read(name: string): string {\n"
        "  const file = open(name);\n  return file.text;\n}\n",
        "export class Counter {\n  private count = 0;\n\n  add(step: number) {\n    this.count += step;\n"
        "    return this.count;\n  }\n}\n",
    ),
    "src/app.js": (
        "const sum = (values) => values.reduce((a, b) => a + b, 0);\n\nmodule.exports = { sum };\n",
        "function greet(name) {\n  if (!name) {\n    return 'Hello';\n  }\n  return `Hello, ${name}`;\n}\n",
    ),
    "main.go": (
        "package main\n\nfunc sum(values []int) int {\n\ttotal := 0\n\tfor _, v := range values {\n"
        "\t\ttotal += v\n\t}\n\treturn total\n}\n",
        "package store\n\ntype Store struct {\n\tpath string\n}\n\nfunc (s *Store) Path() string {\n"
        "\treturn s.path\n}\n",
    ),
    "src/lib.rs": (
        "pub fn sum(values: &[i64]) -> i64 {\n    let mut total = 0;\n    for v in values {\n"
        "        total += v;\n    }\n    total\n}\n",
        "#[derive(Debug)]\npub struct Store {\n    path: String,\n}\n\nimpl Store {\n"
        "    pub fn path(&self) -> &str {\n        &self.path\n    }\n}\n",
    ),
    "src/App.java": (
        "package app;\n\npublic class App {\n    private final String name;\n\n"
        "    public App(String name) {\n"
        "        this.name = name;\n    }\n}\n",
        "package app;\n\nimport java.util.List;\n\nfinal class Sums {\n"
        "    static int sum(List<Integer> values) {\n"
        "        int total = 0;\n        for (int value : values) {\n            total += value;\n        }\n"
        "        return total;\n    }\n}\n",
    ),
    "src/app.c": (
        "#include <stddef.h>\n\nint sum(const int *values, size_t n) {\n    int total = 0;\n"
        "    for (size_t i = 0; i < n; i++) {\n        total += values[i];\n    }\n    return total;\n}\n",
        "struct store {\n    const char *path;\n};\n\nstatic int is_open(const struct store *s) {\n"
        "    return s->path != 0;\n}\n",
    ),
    "schema.sql": (
        "CREATE TABLE users (\n    id INTEGER PRIMARY KEY,\n    name TEXT NOT NULL\n);\n",
        "SELECT id, name\nFROM users\nWHERE name = 'Ann'\nORDER BY id;\n",
    ),
    "docs/page.md": (
        "# Stores\n\nA store keeps files in one directory. Give it the path when you make it.\n",
        "## Limits\n\n- at most 100 files\n- names are letters and digits\n",
    ),
}  # fmt: skip

_SAID = (
    "I have read the two files and changed the store so that it closes what it opens. The tests pass.",
    "The failure comes from the second argument: the caller gives a name where a path is expected.",
    "First I look at how the settings are read, then I make the change in one place.",
)
_RUN = ("ls -la src\n", "git status && git diff --stat\n", "python -m pytest -q tests/test_store.py\n")

SAMPLES: tuple[tuple[StreamContext, str], ...] = (
    *(
        (StreamContext("tool", "write", (path,), "write"), text)
        for path, texts in _WRITTEN.items()
        for text in texts
    ),
    *((StreamContext("text"), text) for text in _SAID),
    *((StreamContext("tool", "bash", (), "bash"), text) for text in _RUN),
)


def matched_samples(compiled: CompiledRule, pattern: regex.Pattern[str]) -> tuple[int, int]:
    """How many of the samples that the rule watches the pattern matches, and how many it watches."""
    matched = reached = 0
    for context, text in SAMPLES:
        paths = [path_names(path, None) for path in context.paths]
        if not compiled.admits(context.source, context.tool, context.kind, paths):
            continue
        reached += 1
        try:
            matched += pattern.search(text, timeout=1.0) is not None
        except TimeoutError:
            continue
    return matched, reached
