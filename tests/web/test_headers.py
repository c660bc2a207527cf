"""Which headers go through."""

from __future__ import annotations

from ttsr_proxy.web.headers import credential, lower_case, to_client, to_upstream


def test_what_belongs_to_one_connection_stays_there() -> None:
    raw = [
        (b"Connection", b"close, X-Mine"),
        (b"X-Mine", b"1"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Proxy-Authorization", b"secret"),
        (b"X-Other", b"2"),
    ]
    assert dict(to_upstream(raw, decoded=False)) == {"X-Other": "2", "Accept-Encoding": "identity"}
    assert dict(to_client(raw, length_changes=False, decoded=False)) == {"X-Other": "2"}


def test_the_length_goes_when_the_body_may_change_and_the_encoding_when_it_was_taken_off() -> None:
    raw = [(b"Content-Length", b"9"), (b"Content-Encoding", b"gzip"), (b"ETag", b"e")]

    def kept(**how: bool) -> set[str]:
        return set(to_client(raw, **how))

    assert kept(length_changes=False, decoded=False) == {"Content-Length", "Content-Encoding", "ETag"}
    assert kept(length_changes=True, decoded=False) == {"Content-Encoding", "ETag"}
    assert kept(length_changes=False, decoded=True) == {"ETag"}
    assert "Content-Encoding" in to_upstream(raw, decoded=False)
    assert "Content-Encoding" not in to_upstream(raw, decoded=True)


def test_bytes_that_are_no_text_survive() -> None:
    raw = [(b"X-Odd", b"\xff\xc3\xa9")]
    value = to_upstream(raw, decoded=False)["X-Odd"]
    assert value.encode("utf-8", "surrogateescape") == b"\xff\xc3\xa9"


def test_of_repeated_headers_the_first_counts() -> None:
    assert lower_case([(b"A", b"1"), (b"a", b"2")]) == {"a": "1"}


def test_the_credential_is_what_the_provider_would_read() -> None:
    assert credential({"x-api-key": "a", "authorization": "b"}) == "a"
    assert credential({"authorization": "b"}) == "b"
    assert credential({}) == ""
