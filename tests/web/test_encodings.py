"""Content encodings of request bodies."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.web import encodings
from ttsr_proxy.web.encodings import Undecodable, decoded


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


ENCODERS: dict[str, list[Callable[[bytes], bytes]]] = {
    "gzip": [gzip.compress],
    "x-gzip": [gzip.compress],
    "deflate": [zlib.compress, raw_deflate],
    "br": [brotli.compress],
    "zstd": [zstd.compress],
    "identity": [bytes],
}
CASES = [(name, encode) for name, encoders in ENCODERS.items() for encode in encoders]


@given(st.binary(max_size=300), st.sampled_from(CASES))
def test_what_a_client_has_encoded_is_decoded(
    body: bytes, case: tuple[str, Callable[[bytes], bytes]]
) -> None:
    name, encode = case
    assert decoded(encode(body), name) == body


@given(st.binary(max_size=300), st.lists(st.sampled_from(CASES), max_size=3))
def test_several_encodings_are_taken_off_last_one_first(
    body: bytes, cases: list[tuple[str, Callable[[bytes], bytes]]]
) -> None:
    wire = body
    for _, encode in cases:
        wire = encode(wire)
    assert decoded(wire, " , ".join(name.upper() for name, _ in cases)) == body


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_members_in_a_row_are_one_body(name: str) -> None:
    (encode,) = ENCODERS[name]
    assert decoded(encode(b"one ") + encode(b"two"), name) == b"one two"


@pytest.mark.parametrize(("name", "encode"), [case for case in CASES if case[0] != "identity"])
def test_a_body_that_is_cut_short_or_is_not_what_its_header_says_is_told(
    name: str, encode: Callable[[bytes], bytes]
) -> None:
    for wire in (encode(b"a body of some length " * 9)[:-3], b"plain text"):
        with pytest.raises(Undecodable, match="is not"):
            decoded(wire, name)


def test_an_encoding_that_nobody_knows_is_told() -> None:
    with pytest.raises(Undecodable, match=r"unknown content encoding \(rot13\)"):
        decoded(b"x", "rot13")


@pytest.mark.parametrize(("name", "encode"), [case for case in CASES if case[0] != "identity"])
def test_a_small_body_that_becomes_huge_is_given_up_before_it_fills_memory(
    name: str, encode: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodings, "LARGEST_BODY", 1000)
    assert len(decoded(encode(bytes(1000)), name)) == 1000
    with pytest.raises(Undecodable, match="larger than 1,000 bytes"):
        decoded(encode(bytes(100_000)), name)
