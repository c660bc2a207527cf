"""Finds statements that bind in plain text, by their words alone: English, German and Chinese cues."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRONG = re.compile(
    r"""(?ix)
    \b(?: must | shall | should | required? | requires | need(?:s)?\ to | has\ to | have\ to | never | always
        | do(?:es)?\ not | don['’]t | doesn['’]t | cannot | can['’]t | may\ not | may\ only | only | forbidden
        | prohibited | not\ allowed | disallowed | mandatory | no\ longer
        | muss | müssen | soll(?:en)? | sollte(?:n)? | d[aü]rf(?:en)?\ (?:nicht|nur|kein\w*) | niemals | nie
        | immer | verboten | nicht\ erlaubt | keine?[rmns]? )\b
    | 必须 | 禁止 | 不得 | 不要 | 务必 | 应当 | 应该 | 只能 | 不允许 | 严禁
    """
)
# Verbs that open the items of guidelines; "No" and "Avoid" forbid.
_IMPERATIVE = re.compile(
    r"""(?ix)
    (?: use | keep | write | avoid | prefer | add | set | run | check | validate | log | pin | store | close
      | handle | test | document | name | return | raise | catch | wrap | make | ensure | include | exclude
      | limit | escape | encode | encrypt | redact | mask | hash | sign | verify | require | follow | put
      | place | pass | provide | give | treat | reject | refuse | forbid | no | one | every | all | each
      | verwende | nutze | schreibe | vermeide | halte | setze | prüfe )\b
    | 使用 | 避免 | 保持
    """
)
_VAGUE = re.compile(
    r"""(?ix)
    \b(?: usually | generally | ideally | typically | normally | mostly | often | sometimes | preferably
        | where\ possible | if\ possible | when\ possible | try\ to | consider | might | maybe | perhaps
        | as\ appropriate | reasonabl[ey] | in\ der\ regel | möglichst | üblicherweise | vielleicht )\b
    | 一般 | 通常 | 尽量 | 可能的话
    """
)
_CONDITION = re.compile(
    r"(?is)(?P<when>(?:(?:when(?:ever)?|if|before|after|while|wenn|falls|bevor|sobald)\b|当|如果)[^,，]{2,}?)[,，]\s*"
    r"(?P<rest>\S.*)"
)
_EXCEPTION = re.compile(
    r"(?is)(?P<rest>.{12,}?)[,;]?\s+(?P<exception>(?:except|unless|außer|es sei denn)\b.*?)\.?\s*"
)
_PRONOUN = re.compile(
    r"(?i)(?:(?:it|they|this|these|that|those|he|she|the (?:former|latter)|es|sie|dies\w*)\b|它|这)"
)
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)\s+(?=[\"'“(`]?[^\W\da-z_])|(?<=[。！？])\s*"
)
_TASK_BOX = re.compile(r"\[[ xX]\]\s+")
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_LETTERS = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that binds, taken apart by its words."""

    constraint: str
    applies_when: str
    exception: str


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph. One that starts with a pronoun belongs to the one before it."""
    joined: list[str] = []
    for sentence in _SENTENCE_END.split(" ".join(text.split())):
        if not sentence:
            continue
        if joined and _PRONOUN.match(sentence):
            joined[-1] += f" {sentence}"
        else:
            joined.append(sentence)
    return joined


def is_vague(text: str) -> bool:
    """Whether the text leaves open when it binds."""
    return bool(_VAGUE.search(text))


def is_binding(text: str) -> bool:
    """Whether a sentence says that something must or must not be."""
    if text.rstrip().endswith(("?", "？")):
        return False
    condition = _CONDITION.fullmatch(text)
    return bool(_STRONG.search(text) or _IMPERATIVE.match(condition["rest"] if condition else text))


def read_statement(text: str) -> Statement:
    """The constraint with its condition and its exception apart, where the words show them.

    A condition is left in the constraint if the rest would not stand on its own.
    """
    text = _TASK_BOX.sub("", " ".join(text.split()), count=1)
    applies_when = exception = ""
    if match := _CONDITION.fullmatch(text):
        applies_when = _capital(match["when"])
        if not _PRONOUN.match(match["rest"]):
            text = _capital(match["rest"])
    if match := _EXCEPTION.fullmatch(text):
        exception = _capital(match["exception"])
        text = match["rest"].rstrip(" ,;")
        text += "" if text.endswith((".", "!", "。")) else "."
    return Statement(text, applies_when, exception)


def normalised(text: str) -> str:
    """The text as it is compared: without case, punctuation, list marker and extra white space."""
    return " ".join(_LETTERS.findall(_BULLET.sub("", text).casefold()))


def likeness(first: str, second: str) -> float:
    """How many of their words two texts share, 0 to 1 (the Dice coefficient)."""
    one, other = set(normalised(first).split()), set(normalised(second).split())
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
