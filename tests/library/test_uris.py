"""`viking://` URIs."""

from __future__ import annotations

import pytest

from ttsr_proxy.library.errors import InvalidUri, NotFound
from ttsr_proxy.library.uris import RulesPlace, rules_place


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("viking://user/alice/memories/rules", RulesPlace()),
        ("viking://user/alice/memories/rules/", RulesPlace()),
        ("viking://user/memories/rules/http", RulesPlace("http")),
        ("viking://user/alice/memories/rules/http/time-out.md", RulesPlace("http", "time-out.md")),
        ("viking://user/alice/memories/rules/http/abstract.md", RulesPlace("http", "abstract.md")),
    ],
)
def test_places_in_the_own_rules(uri: str, place: RulesPlace) -> None:
    assert rules_place(uri, "alice") == place


@pytest.mark.parametrize("uri", ["viking://user/bob/memories/rules", "viking://agent/x", "viking://"])
def test_what_is_not_ones_own_does_not_exist(uri: str) -> None:
    with pytest.raises(NotFound):
        rules_place(uri, "alice")


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "viking://user/alice/memories/rules/..",
        "viking://user/alice/memories/rules/.state/library.json",
        "viking://user/alice/memories/rules/http/../x.md",
        "viking://user/alice/memories/rules/http/x.txt",
        "viking://user/alice/memories/rules/a/b/c.md",
        "viking://user/alice/memories/rules/http/.x.md",
    ],
)
def test_what_is_no_place_of_a_library_is_refused(uri: str) -> None:
    with pytest.raises(InvalidUri):
        rules_place(uri, "alice")
