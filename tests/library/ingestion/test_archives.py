"""ZIP archives: what is read, and what is refused."""

from __future__ import annotations

import io
import stat
import struct
import zipfile

import pytest

from ttsr_proxy.library.errors import InvalidArgument
from ttsr_proxy.library.ingestion import archives
from ttsr_proxy.library.ingestion.archives import is_archive, read_archive


def packed(files: dict[str, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def test_text_files_are_read_by_name_and_the_rest_is_left_out() -> None:
    data = packed(
        {
            "b.md": "B\r\n", "a/a.txt": "A", "x.png": b"\0\1", "binary.md": b"a\0b", ".git/x.md": "no",
            "node_modules/y.md": "no", "old.md": "caf\xe9".encode("cp1252"), "a/": b"",
        }
    )  # fmt: skip
    found = {text.name: text.text for text in read_archive(data)}
    assert found == {"a/a.txt": "A", "b.md": "B\n", "old.md": "café"}
    assert list(found) == sorted(found)


def test_an_archive_is_known_by_its_first_bytes() -> None:
    assert is_archive(packed({"a.md": "x"}))
    assert is_archive(packed({}))
    assert not is_archive(b"# PK")


@pytest.mark.parametrize(
    "name", ["../x.md", "a/../../x.md", "/etc/x.md", "C:/x.md", "C:\\x.md", "a\\..\\x.md", "a//x.md"]
)
def test_a_name_that_leads_outside_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="outside itself"):
        read_archive(packed({name: "x"}))


@pytest.mark.parametrize("name", ["/".join("abcdefghi") + ".md", "x" * 250 + ".md"])
def test_a_name_nested_too_deep_or_too_long_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="too deep or named too long"):
        read_archive(packed({name: "x"}))


def test_a_bomb_is_refused_by_what_is_read_not_by_what_it_claims() -> None:
    bomb = bytearray(packed({"a.md": b"a" * (archives.MAX_ENTRY + 1)}))
    directory = bomb.index(b"PK\x01\x02")
    # The directory claims that the entry is small.
    struct.pack_into("<I", bomb, directory + 24, 10)
    with pytest.raises(InvalidArgument):
        read_archive(bytes(bomb))


def test_an_entry_compressed_too_much_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="compressed more than 200 times"):
        read_archive(packed({"a.md": b"a" * 1_000_000}))


def test_all_entries_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_ARCHIVE", 3_000)
    many = {f"{number}.md": bytes(range(1, 200)) * 5 for number in range(4)}
    with pytest.raises(InvalidArgument, match="too large"):
        read_archive(packed(many, zipfile.ZIP_DEFLATED))


def test_an_archive_with_too_many_entries_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="more than 500 entries"):
        read_archive(packed({f"{number}.md": "" for number in range(501)}))


def test_overlapping_entries_are_refused() -> None:
    data = bytearray(packed({"a.md": "x" * 50, "b.md": "y" * 50}, zipfile.ZIP_STORED))
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    struct.pack_into("<I", data, second + 42, 10)
    with pytest.raises(InvalidArgument, match="overlap"):
        read_archive(bytes(data))


def test_links_are_left_out() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        link = zipfile.ZipInfo("link.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert read_archive(data.getvalue()) == []


@pytest.mark.parametrize("data", [b"PK\x03\x04 not a zip", packed({"inner.zip": "x"})])
def test_what_is_no_plain_archive_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgument):
        read_archive(data)


def test_an_encrypted_entry_is_refused() -> None:
    data = bytearray(packed({"a.md": "secret"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InvalidArgument, match="encrypted"):
        read_archive(bytes(data))
