"""What secrets look like: well-known key formats, and the places where any value is a secret.

Each pattern's group `secret` is what must not be kept; without that group it is the whole match. Quantifiers
are bounded or possessive, so that no text makes them slow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_START: Final = r"(?<![A-Za-z0-9])"

_KEYS: Final = (
    (("sk-",), r"sk-(?=[\w-]{0,80}\d)[\w-]{8,}"),  # OpenAI, Anthropic, OpenRouter and many that followed
    (("k_live_", "k_test_"), r"(?:sk|rk|pk)_(?:live|test)_\w{8,}"),  # Stripe
    (("whsec_",), r"whsec_[\w+/=-]{16,}"),
    (
        ("akia", "asia", "aroa", "aida", "agpa", "anpa"),
        r"(?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA)[A-Z0-9]{12,}",
    ),  # AWS
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_\w{12,}"),  # GitHub
    (("github_pat_",), r"github_pat_\w{16,}"),
    (("glpat", "gldt", "glrt", "glptt", "gloas", "glsa"), r"gl(?:pat|dt|rt|ptt|oas|sa)[-_][\w.-]{12,}"),
    (("xox",), r"xox[a-z]-[\w-]{8,}"),  # Slack
    (("xapp-",), r"xapp-[\w-]{8,}"),
    (("aiza",), r"AIza[\w-]{24,}"),  # Google
    (("ya29.",), r"ya29\.[\w-]{12,}"),
    (("gocspx-",), r"GOCSPX-[\w-]{12,}"),
    (("hf_", "gsk_", "npm_", "r8_"), r"(?:hf|gsk|npm|r8)_(?=\w{0,80}\d)\w{16,}"),
    (("lin_api_", "dop_v1_", "doo_v1_"), r"(?:lin_api|dop_v1|doo_v1)_\w{16,}"),
    (("shpat_", "shpss_"), r"shp(?:at|ss)_\w{16,}"),  # Shopify
    (("tvly-", "pplx-", "nvapi-", "xai-"), r"(?:tvly|pplx|nvapi|xai)-(?=[\w-]{0,80}\d)[\w-]{16,}"),
    (("pypi-",), r"pypi-[\w-]{16,}"),
    (("hvs.",), r"hvs\.[\w-]{12,}"),  # Vault
    (("sg.",), r"SG\.[\w-]{12,}\.[\w-]{12,}"),  # SendGrid
    (("age-secret-key-1",), r"AGE-SECRET-KEY-1\w{16,}"),
    (("eyj",), r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),  # JSON Web Token
)
"""Keys that tell themselves by their beginning."""

_PEM: Final = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)"
)

_NAME_HINTS: Final = ("pass", "pwd", "secret", "credential", "key", "token")
_NAME: Final = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|credential|api[-_ ]?key"
    r"|(?:access|private|signing|encryption)[-_]?key|token(?!s|iz))[\w.-]{0,40}"
)
"""A name whose value is a secret, in any case, with what may follow it (`_FOR_TESTS`)."""

_QUOTE: Final = r"""(?P<quote>\\?["'`])"""
_ASSIGN: Final = r"""\\?["'`]?\]?\s{0,8}(?::\s{0,4}[\w.\[\]| ]{1,40}=|:=|=>|==?|:)\s{0,8}"""
_BARE: Final = r"""[^\s"'`,;&(){}\[\]<>\\]"""

_PLACES: Final = (
    (
        _NAME_HINTS,
        rf"(?i:{_NAME}){_ASSIGN}[a-zA-Z]{{0,2}}{_QUOTE}(?P<secret>(?:(?!(?P=quote))[^\r\n]){{4,2000}})",
    ),
    # KEY=value as in a shell or an .env file; then `key: value` with a digit, as in YAML. Not calls, lookups.
    (_NAME_HINTS, rf"(?i:{_NAME})=(?P<secret>{_BARE}{{4,}}+)(?![(\[])"),
    (_NAME_HINTS, rf"(?i:{_NAME})\s{{0,4}}[:=]\s{{0,4}}(?P<secret>(?=\S{{0,80}}\d){_BARE}{{8,}}+)(?![(\[])"),
    (
        ("authorization", "api-key"),
        r"(?i:(?:proxy-)?authorization|x-(?:goog-)?api-key|api-key)\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?"
        r"(?:(?i:bearer|basic|token|digest)\s{1,4})?(?P<secret>[^\s\"'\\,]{4,})",
    ),
    (
        ("cookie",),
        r"(?i:(?:set-)?cookie)\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?(?P<secret>[^\"'\\\r\n]{0,80}=[^\"'\\\r\n]{4,})",
    ),
    (("bearer",), r"(?i:bearer)\s{1,4}(?P<secret>(?=\S{0,80}\d)[\w.~+/=-]{8,}|[\w.~+/=-]{20,})"),
    (("basic",), r"(?i:basic)\s{1,4}(?P<secret>[A-Za-z0-9+/]{8,}={1,2}|(?=\S{0,80}\d)[A-Za-z0-9+/]{12,})"),
    (("://",), r"://[^\s/:@\"'`]{0,100}:(?P<secret>[^\s/@\"'`]{3,200})@"),
    (("=",), r"[?&;](?i:key|sig|signature|auth|code|jwt|session|sid)=(?P<secret>[^&\s\"'`#<>\\]{4,})"),
    (("hooks.slack.com/",), r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/]{8,})"),
)
"""Places where any value is a secret."""


@dataclass(frozen=True, slots=True)
class SecretFormat:
    """A pattern, and what a text must hold for it to match."""

    hints: tuple[str, ...]
    """Any of these, in lower case, is in every match. Looking for them first is what makes masking fast."""
    pattern: re.Pattern[str]


SECRET_FORMATS: Final = (
    *(SecretFormat(hints, re.compile(_START + key)) for hints, key in _KEYS),
    SecretFormat(("private key",), re.compile(_PEM)),
    *(SecretFormat(hints, re.compile(place)) for hints, place in _PLACES),
)
