"""The reference implementation's own answers for rule files."""

import json
from pathlib import Path

import pytest

from ttsr_proxy.rules.model import Rule

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "conformance" / "parse.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_a_rule_file_reads_as_the_reference_reads_it(vector):
    assert Rule.from_markdown(vector["file"], vector["content"]).to_dict() == vector["expect"]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_bytes_and_text_read_alike(vector):
    rule = Rule.from_markdown(vector["file"], vector["content"])
    assert Rule.from_markdown(vector["file"], vector["content"].encode()) == rule
