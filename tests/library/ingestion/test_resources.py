"""Uploads and resources: kept for their user, found again, never outside their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ttsr_proxy.library.errors import Exhausted, InvalidArgument, NotFound, Refused
from ttsr_proxy.library.ingestion import uploads as uploads_module
from ttsr_proxy.library.ingestion.archives import NamedText
from ttsr_proxy.library.ingestion.resources import Resources
from ttsr_proxy.library.ingestion.uploads import Uploads


def test_an_upload_is_found_again_by_its_user_only(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path)
    upload = uploads.add("alice", "Team Standards.MD", b"# x")
    assert upload.startswith("upload_")
    assert upload.endswith(".md")
    assert uploads.read("alice", upload) == ("Team Standards.MD", b"# x")
    with pytest.raises(Refused):
        uploads.read("bob", upload)


@pytest.mark.parametrize("upload", ["upload_x/../../y", "nothing", "upload_abc.md", "", "../x"])
def test_an_unknown_upload_is_refused(tmp_path: Path, upload: str) -> None:
    with pytest.raises(Refused):
        Uploads(tmp_path).read("alice", upload)


def test_an_old_upload_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uploads = Uploads(tmp_path)
    upload = uploads.add("alice", "a.md", b"x")
    monkeypatch.setattr(uploads_module, "KEPT_SECONDS", -1.0)
    with pytest.raises(Refused):
        uploads.read("alice", upload)
    uploads.sweep("alice")
    assert list((tmp_path / "uploads/alice").iterdir()) == []


def test_a_user_has_a_limited_number_of_uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "MAX_PENDING", 1)
    uploads = Uploads(tmp_path)
    uploads.add("alice", "a.md", b"x")
    uploads.add("bob", "a.md", b"x")
    with pytest.raises(Exhausted):
        uploads.add("alice", "b.md", b"x")


def test_a_kept_text_has_a_uri_and_can_be_read_again(tmp_path: Path) -> None:
    resources = Resources(tmp_path, None)
    text = NamedText("standards.md", "# Rules\n")
    uri = resources.keep("alice", "uploads", "standards.md", [text])
    assert uri == "viking://user/alice/resources/uploads/standards.md"
    assert resources.keep("alice", "uploads", "standards.md", [text]) == uri
    assert resources.read("alice", uri) == [text]
    assert resources.read("alice", "viking://resources/uploads/standards.md") == [text]
    with pytest.raises(NotFound):
        resources.read("bob", uri)


def test_several_texts_are_a_folder_that_is_read_with_all_that_is_in_it(tmp_path: Path) -> None:
    resources = Resources(tmp_path, None)
    texts = [NamedText("a.md", "A"), NamedText("deep/b.md", "B")]
    uri = resources.keep("alice", "uploads", "docs", texts)
    assert resources.read("alice", uri) == texts
    assert resources.read("alice", f"{uri}/deep") == [NamedText("b.md", "B")]


def test_a_configured_folder_is_behind_the_shared_uri(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "team").mkdir(parents=True)
    (shared / "team/standards.md").write_text("x")
    (shared / "team/.hidden.md").write_text("x")
    (shared / "team/picture.png").write_bytes(b"\0")
    (tmp_path / "secret.md").write_text("secret")
    os.symlink(tmp_path / "secret.md", shared / "team/link.md")
    os.symlink(tmp_path, shared / "out")
    resources = Resources(tmp_path / "library", shared)
    assert resources.read("alice", "viking://resources/team") == [NamedText("standards.md", "x")]
    for uri in ("viking://resources/team/link.md", "viking://resources/out/secret.md"):
        with pytest.raises(NotFound):
            resources.read("alice", uri)


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("viking://resources/../x", InvalidArgument),
        ("viking://user/alice/resources/../../users", InvalidArgument),
        ("viking://user/bob/resources/uploads/x.md", NotFound),
        ("viking://resources/none.md", NotFound),
        ("/etc/passwd", InvalidArgument),
    ],
)
def test_other_uris_are_refused(tmp_path: Path, uri: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Resources(tmp_path, None).read("alice", uri)


def test_the_limits_of_uploads_are_those_that_are_documented() -> None:
    assert uploads_module.MAX_UPLOAD == 16 * 2**20
    assert (uploads_module.KEPT_SECONDS, uploads_module.MAX_PENDING) == (12 * 3600, 32)
