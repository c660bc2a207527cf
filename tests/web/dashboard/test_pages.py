"""The dashboard's pages as they are served."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from proxy_under_test import Proxy
from raw_http import RawAnswer, ask

from ttsr_proxy.web.dashboard.rendering import STATIC

HOSTILE = "</pre><script>alert(1)</script>"
PAGES = ("/ttsr/", "/ttsr/interrupts", "/ttsr/rules", "/ttsr/rules/no-eval", "/ttsr/conversations")


async def get(proxy: Proxy, path: str) -> tuple[int, str]:
    answer = await ask(proxy.url, "GET", path)
    return answer.status, answer.body.decode()


async def post(proxy: Proxy, path: str, body: bytes, *headers: tuple[str, str]) -> RawAnswer:
    form = ("content-type", "application/x-www-form-urlencoded")
    return await ask(proxy.url, "POST", path, form, *headers, body=body)


@pytest.mark.parametrize("path", PAGES)
async def test_pages_work_with_an_empty_log_and_are_locked_down(proxy: Proxy, path: str) -> None:
    answer = await ask(proxy.url, "GET", path)
    assert answer.status == 200
    (policy,) = answer.all("content-security-policy")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.all("x-content-type-options") == ["nosniff"]
    assert answer.all("referrer-policy") == ["same-origin"]
    page = answer.body.decode()
    assert not re.search(r"<script(?! src=)|\sstyle=|\son\w+=|https?://", page)
    for address in re.findall(r'(?:src|href)="(/ttsr/static/[^"]+)"', page):
        assert (await ask(proxy.url, "GET", address)).status == 200


async def test_the_address_without_its_slash_leads_to_the_dashboard(proxy: Proxy) -> None:
    answer = await ask(proxy.url, "GET", "/ttsr")
    assert (answer.status, answer.all("location")) == (308, ["/ttsr/"])


@pytest.mark.parametrize("name", STATIC)
async def test_files_of_the_pages_say_their_type(proxy: Proxy, name: str) -> None:
    answer = await ask(proxy.url, "GET", f"/ttsr/static/{name}")
    assert answer.status == 200
    assert answer.all("content-type")[0].startswith(STATIC[name])


async def test_no_other_file_is_served(proxy: Proxy) -> None:
    assert (await get(proxy, "/ttsr/static/..%2Fhandlers.py"))[0] == 404


async def test_filters_in_the_url_choose(proxy: Proxy, add: Any) -> None:
    await add(id="one", rule="no-eval", paths=("src/a.py",), model="m1")
    await add(id="two", rule="other", paths=("web/b.ts",), model="m2", action="reminded", outcome="pending")
    for query in ("rule=other", "path=b.ts", "model=m2", "action=reminded", "outcome=pending", "within=1h"):
        status, page = await get(proxy, f"/ttsr/interrupts?{query}")
        assert status == 200
        assert 'data-record="two"' in page
        assert ('data-record="one"' in page) == (query == "within=1h")


async def test_a_wrong_filter_is_a_page_that_says_what_is_allowed(proxy: Proxy) -> None:
    for query, part in (("within=2y", "within must be one of"), ("cursor=nonsense", "not a cursor")):
        status, page = await get(proxy, f"/ttsr/interrupts?{query}")
        assert status == 400
        assert part in page


async def test_older_pages_are_linked(proxy: Proxy, add: Any) -> None:
    for number in range(51):
        await add(id=f"n{number}", time=time.time() - 100 + number)
    _, page = await get(proxy, "/ttsr/interrupts?rule=no-eval")
    assert page.count("data-record=") == 50
    link = re.search(r'rel="next" href="([^"]+)"', page)
    assert link is not None
    _, older = await get(proxy, link[1].replace("&amp;", "&"))
    assert re.findall('data-record="(.*?)"', older) == ["n0"]
    assert "data-feed" not in older


async def test_a_record_shows_its_three_texts_with_the_match_marked(proxy: Proxy, add: Any) -> None:
    await add(violation="x = eval(y)", before="x = ", matched="eval(", injected="Do not.", correction="x = y")
    _, page = await get(proxy, "/ttsr/interrupts/r1")
    assert "x = <mark>eval(</mark>y)</pre>" in page
    assert ">Do not.</pre>" in page
    assert ">x = y</pre>" in page


async def test_markup_in_what_a_model_or_a_client_wrote_is_text(proxy: Proxy, add: Any) -> None:
    fields = ("rule", "model", "conversation", "client", "matched", "before", "after", "violation")
    further = ("correction", "injected", "detail", "pattern", "tool", "rule_path", "project", "agent")
    await add(**dict.fromkeys((*fields, *further), HOSTILE), paths=(HOSTILE, "\ud800"))
    quoted = "%3C%2Fpre%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E"
    for path in (
        "/ttsr/",
        "/ttsr/interrupts",
        "/ttsr/interrupts/r1",
        f"/ttsr/rules/{quoted}",
        "/ttsr/conversations",
        f"/ttsr/interrupts?rule={quoted}&project={quoted}",
        f"/ttsr/interrupts/{quoted}",
        f"/ttsr/interrupts?{quoted}=1",
    ):
        _, page = await get(proxy, path)
        assert "alert(1)" in page or path.endswith("=1")
        assert "<script>alert" not in page


async def test_rules_are_shown_with_their_state_and_reason(proxy: Proxy) -> None:
    _, page = await get(proxy, "/ttsr/rules")
    assert "condition 1 does not compile" in page
    _, rule = await get(proxy, "/ttsr/rules/no-eval")
    assert "eval\\(" in rule
    assert "interruptMode" in rule


async def test_what_is_not_there_is_a_404(proxy: Proxy) -> None:
    for path in ("/ttsr/interrupts/nothing", "/ttsr/rules/nothing"):
        assert (await get(proxy, path))[0] == 404


async def test_a_person_marks_a_false_positive_and_takes_the_mark_back(proxy: Proxy, add: Any) -> None:
    await add()
    own = ("origin", proxy.url)
    for mark, count in ((b"mark=1", "1"), (b"mark=0", "0")):
        answer = await post(proxy, "/ttsr/interrupts/r1", mark, own)
        assert (answer.status, answer.all("location")) == (303, ["/ttsr/interrupts/r1"])
        _, page = await get(proxy, "/ttsr/rules/no-eval")
        assert f"<dt>False positives</dt><dd>{count}<" in page


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ([], b"mark=1", 403),
        ([("origin", "http://evil.example")], b"mark=1", 403),
        ([("origin", "null")], b"mark=1", 403),
        (None, b"mark=2", 400),
        (None, b"", 400),
    ],
)
async def test_no_other_page_can_mark_anything(
    proxy: Proxy, add: Any, headers: list[tuple[str, str]] | None, body: bytes, status: int
) -> None:
    await add()
    sent = [("origin", proxy.url)] if headers is None else headers
    assert (await post(proxy, "/ttsr/interrupts/r1", body, *sent)).status == status
    (record,) = await proxy.interrupts()
    assert record["false_positive"] is False
