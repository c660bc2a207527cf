"""The rulebook as text of a system prompt."""

from __future__ import annotations

from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.prompt import RulePrompt

ALWAYS = [Rule("a", content="Be brief.\n", always_apply=True), Rule("b", content="Be kind.")]
BOOK = [
    Rule("db", description="How we write\n  migrations.", globs=["*.sql", "db/**"]),
    Rule("api", description="How we name routes."),
]


def test_generic_rules_come_before_domain_rules_with_their_content() -> None:
    blocks = RulePrompt(ALWAYS, BOOK).blocks(())
    generic, domain = blocks.split("\n\n<domain-rules>")
    assert generic == "<generic-rules>\nBe brief.\n\nBe kind.\n</generic-rules>"
    assert "- db (*.sql, db/**): How we write migrations.\n- api: How we name routes.\n" in domain
    assert "rule://<name>" in domain
    assert domain.endswith("</domain-rules>")


def test_what_the_prompt_already_says_is_not_said_again() -> None:
    known = ["You are an agent.\n\nBe   brief.\r\n", "- api: How we name routes."]
    blocks = RulePrompt(ALWAYS, BOOK).blocks(known)
    assert "Be brief." not in blocks
    assert "Be kind." in blocks
    assert "- api" not in blocks


def test_without_rules_that_are_news_there_is_no_block() -> None:
    assert RulePrompt((), ()).blocks(()) == ""
    assert RulePrompt(ALWAYS, ()).blocks(["Be brief. Be kind."]) == ""
    assert RulePrompt([Rule("empty", content=" \n", always_apply=True)], ()).blocks(()) == ""
