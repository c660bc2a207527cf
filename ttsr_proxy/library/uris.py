"""The `viking://` URIs of a user's library, and the names that may stand in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ttsr_proxy.library.errors import InvalidUri, NotFound

CARD = "abstract.md"
"""The file of a scenario that introduces it."""

_USER = re.compile(r"[A-Za-z0-9_.@-]{1,255}")
_SEGMENT = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_SCHEME = "viking://"


def is_user_id(text: str) -> bool:
    """Whether the text can name a user: letters, digits and `_ . @ -`, at most one `@`."""
    return bool(_USER.fullmatch(text)) and text not in (".", "..") and text.count("@") <= 1


def is_name(text: str) -> bool:
    """Whether the text can be the id of a rule or of a scenario."""
    return bool(_SEGMENT.fullmatch(text))


def rules_root(user: str) -> str:
    return f"viking://user/{user}/memories/rules"


def rule_uri(user: str, scenario_id: str, atomic_id: str) -> str:
    return f"{rules_root(user)}/{scenario_id}/{atomic_id}.md"


def card_uri(user: str, scenario_id: str) -> str:
    return f"{rules_root(user)}/{scenario_id}/{CARD}"


@dataclass(frozen=True, slots=True)
class RulesPlace:
    """A place in a user's rules: the root, a scenario, or a file of one."""

    scenario_id: str | None = None
    file_name: str | None = None


def rules_place(uri: str, user: str) -> RulesPlace:
    """What a URI names in this user's rules; `viking://user/memories/rules` is short for the own root.

    Raises InvalidUri for what is no such URI, and NotFound for another user's.
    """
    if not uri.startswith(_SCHEME):
        raise InvalidUri(f"expected a viking:// URI, not {uri[:200]!r}", uri=uri, reason="wrong scheme")
    segments = uri.removeprefix(_SCHEME).removesuffix("/").split("/")
    match segments:
        case ["user", "memories", "rules", *rest]:
            pass
        case ["user", owner, "memories", "rules", *rest]:
            if owner != user:
                raise NotFound(f"there is no {uri}", uri=uri)
        case _:
            raise NotFound(f"there is no {uri}", uri=uri)
    match rest:
        case []:
            return RulesPlace()
        case [scenario] if is_name(scenario):
            return RulesPlace(scenario)
        case [scenario, name] if is_name(scenario) and name.endswith(".md") and is_name(name[:-3]):
            return RulesPlace(scenario, name)
    raise InvalidUri(
        f"{uri[:200]!r} is not the URI of a rule or scenario", uri=uri, reason="not a rule, not a scenario"
    )
