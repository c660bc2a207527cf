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
    "name",
    [
        "../x.md",
        "a/../../x.md",
        "/etc/x.md",
        "C:/x.md",
        "C:\\x.md",
        "a\\..\\x.md",
        "a//x.md",
        "\\x.md",
        "./x.md",
    ],
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


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_are_left_out(kind: int) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        special = zipfile.ZipInfo("special.md")
        special.external_attr = (kind | 0o777) << 16
        archive.writestr(special, "/etc/passwd")
        plain = zipfile.ZipInfo("plain.md")
        plain.external_attr = (stat.S_IFREG | 0o644) << 16
        archive.writestr(plain, "text")
    assert [text.name for text in read_archive(data.getvalue())] == ["plain.md"]


@pytest.mark.parametrize(
    "suffix", [".md", ".mdx", ".markdown", ".txt", ".rst", ".json", ".yaml", ".yml", ".toml", ".MD"]
)
def test_text_files_are_known_by_their_suffix(suffix: str) -> None:
    assert [text.name for text in read_archive(packed({f"a{suffix}": "x", f"a{suffix}.py": "x"}))] == [
        f"a{suffix}"
    ]


def test_names_are_normalised() -> None:
    found = read_archive(packed({"docs\\cafe\u0301.md": "x"}))
    assert [text.name for text in found] == ["docs/caf\u00e9.md"]


def test_a_file_that_is_binary_behind_its_first_bytes_is_text() -> None:
    head = b"a" * 8 * 1024
    data = packed({"late.md": head + b"\0", "early.md": head[:-1] + b"\0"}, zipfile.ZIP_STORED)
    assert [text.name for text in read_archive(data)] == ["late.md"]


def test_a_name_with_a_nul_is_cut_there_and_stays_inside() -> None:
    # Python's reader ends a name at its first NUL, as C programs do.
    data = packed({"aXmd.md": "x"}).replace(b"aXmd.md", b"a\0md.md")
    assert read_archive(data) == []


def test_the_archive_itself_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed({"a.md": "x"})
    monkeypatch.setattr(archives, "MAX_ARCHIVE", len(data) - 1)
    with pytest.raises(InvalidArgument, match="the archive is larger than"):
        read_archive(data)


def test_the_limits_are_those_that_are_documented() -> None:
    assert (archives.MAX_ARCHIVE, archives.MAX_ENTRIES, archives.MAX_ENTRY) == (16 * 2**20, 500, 2**20)
    assert (archives.MAX_RATIO, archives.MAX_DEPTH, archives.MAX_NAME) == (200, 8, 200)


def test_an_archive_at_its_limits_is_read() -> None:
    deep = "/".join("abcdefg") + "/x.md"
    long = "x" * (archives.MAX_NAME - 3) + ".md"
    large = bytes(range(1, 251)) * (archives.MAX_ENTRY // 250)
    files: dict[str, bytes | str] = {f"{number}.txt": "" for number in range(497)}
    found = read_archive(packed({deep: "x", long[1:]: "x", "large.md": large, **files}, zipfile.ZIP_STORED))
    assert len(found) == 500


@pytest.mark.parametrize("data", [b"PK\x03\x04 not a zip", packed({"inner.zip": "x"})])
def test_what_is_no_plain_archive_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgument):
        read_archive(data)


def test_an_encrypted_entry_is_refused() -> None:
    data = bytearray(packed({"a.md": "secret"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InvalidArgument, match="encrypted"):
        read_archive(bytes(data))
