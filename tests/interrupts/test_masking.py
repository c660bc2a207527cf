"""Canaries go in, none comes out."""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ttsr_proxy.interrupts.masking import mask, mask_record
from ttsr_proxy.interrupts.record import InterruptRecord

MakeRecord = Callable[..., InterruptRecord]

ALNUM = string.ascii_letters + string.digits
BODY = "q7Zp2LxV9rTb4KwN8mJc5HdF1sGy6Ea3"
"""The random part of every planted secret."""

PLANTED = [
    f"sk-ant-api03-{BODY}",
    f"sk-proj-{BODY}",
    "sk-test-123456",
    f"sk_live_{BODY}",
    "AKIAQ7ZP2LXV9RTB4KWN",
    f"ghp_{BODY}",
    f"github_pat_11A_{BODY}",
    f"glpat-{BODY[:20]}",
    f"xoxb-123456789012-{BODY}",
    f"AIzaSy{BODY}",
    f"hf_{BODY}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{BODY}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n{BODY}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\\n{BODY}",
    f'password = "{BODY}"',
    f"DB_PASSWORD={BODY}",
    f'"api_key": "{BODY}"',
    f'{{\\"client_secret\\": \\"{BODY}\\"}}',
    f"const authToken: string = '{BODY}'",
    f"secret_key: {BODY}",
    f'os.environ["API_KEY"] = "{BODY}"',
    f"Authorization: Bearer {BODY}",
    f"authorization: Basic {BODY}=",
    f"'x-api-key': '{BODY}'",
    f"Cookie: theme=dark; session={BODY}",
    f"curl -H 'bearer {BODY}'",
    f"postgres://admin:{BODY}@db.example.org/app",
    f"GET /v1/models?key={BODY}",
    f"https://hooks.slack.com/services/T0001/B0002/{BODY}",
]


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_secret_is_masked_and_its_surroundings_are_kept(planted: str) -> None:
    masked = mask(f"before the secret\n{planted}\nafter the secret")
    assert BODY not in masked
    assert planted not in masked
    assert "[masked]" in masked
    assert masked.startswith("before the secret\n")


@pytest.mark.parametrize(
    "harmless",
    [
        "task-12345678 is done",
        "class='sk-loading-indicator'",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "a bearer authentication scheme",
        "password = getpass.getpass()",
        "token = self.next_token()",
        "max_tokens: 64000000",
        "the secret: never guess",
        "https://example.org/path?page=12345",
        "const x = eval(input);",
        "def login(password: str) -> None:",
    ],
)
def test_ordinary_text_stays_as_it_is(harmless: str) -> None:
    assert mask(harmless) == harmless


def test_a_masked_secret_shows_its_first_characters_only() -> None:
    assert mask(f"use sk-ant-api03-{BODY} here") == "use sk-ant[masked] here"


def test_a_short_secret_shows_at_most_a_quarter() -> None:
    assert mask("PASSWORD=abcdefgh") == "PASSWORD=ab[masked]"


@settings(max_examples=100)
@given(
    before=st.text(max_size=30),
    body=st.text(ALNUM, min_size=20, max_size=60),
    after=st.text(max_size=30),
    shape=st.sampled_from(
        ["sk-ant-api03-9{}", "ghp_{}", "xoxp-{}", 'password="{}"', "API_TOKEN={}", "Bearer 9{}", "x://u:{}@h"]
    ),
)
def test_no_canary_survives_in_any_text(before: str, body: str, after: str, shape: str) -> None:
    assume(body not in before + after)
    masked = mask(f"{before} {shape.format(body)} {after}")
    assert body not in masked
    assert mask(masked) == masked


@settings(max_examples=100)
@given(
    cuts=st.tuples(st.integers(0, 80), st.integers(0, 80)).map(sorted),
    shape=st.sampled_from(["key is sk-ant-api03-{} ok", 'x = 1; password = "{}"; y = 2', "a ghp_{} b"]),
)
def test_a_secret_across_the_edges_of_a_match_is_masked_in_every_part(
    make_record: MakeRecord, cuts: list[int], shape: str
) -> None:
    text = shape.format(BODY)
    first, second = cuts
    masked = mask_record(
        make_record(before=text[:first], matched=text[first:second], after=text[second:], violation=text)
    )
    assert BODY[6:] not in masked.before + masked.matched + masked.after
    for kept in (masked.before, masked.matched, masked.after, masked.violation):
        assert not any(BODY[at : at + 6] in kept for at in range(4, len(BODY) - 6))
    assert mask_record(masked) == masked


@pytest.mark.parametrize("cut", range(1, len(BODY) - 4))
def test_a_secret_cut_off_by_the_context_is_known_from_the_block(make_record: MakeRecord, cut: int) -> None:
    secret = f"sk-ant-api03-{BODY}"
    masked = mask_record(
        make_record(
            before=f"{BODY[cut:]} then ",
            matched="eval(x)",
            after=f" or {secret[: 13 + cut]}",
            violation=f"{secret} then eval(x) or {secret}",
        )
    )
    assert BODY[cut:] not in masked.before
    assert BODY[:cut] not in masked.after or cut < 4
    assert masked.matched == "eval(x)"


def test_a_value_known_to_be_secret_is_masked_where_it_stands_alone(make_record: MakeRecord) -> None:
    masked = mask_record(
        make_record(violation=f'password = "{BODY}"', correction=f"print('{BODY}')", detail=f"saw {BODY}")
    )
    assert BODY not in masked.correction + masked.detail + masked.violation


def test_every_text_of_a_record_but_the_pattern_is_masked(make_record: MakeRecord) -> None:
    planted = f"ghp_{BODY}"
    names = ("before", "matched", "after", "violation", "correction", "injected", "detail")
    record = make_record(**dict.fromkeys(names, planted), pattern=planted, paths=(f"a/{planted}",))
    masked = mask_record(record)
    assert masked.pattern == planted
    unmasked = dataclasses.replace(masked, pattern="")
    assert BODY not in repr(unmasked)
