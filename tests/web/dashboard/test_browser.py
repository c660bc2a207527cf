"""The dashboard in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright, expect
from proxy_under_test import Proxy

from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Without these Chromium looks for updates and for Google's hosts at every start.
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE = "</pre></template><script>window.owned=1</script><img src=x onerror='window.owned=1'>"
PHONE = {"width": 390, "height": 800}
DESK = {"width": 1200, "height": 800}

pytestmark = pytest.mark.chromium


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)))
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield launched
        await launched.close()


@pytest.fixture
async def page(browser: Browser, proxy: Proxy) -> AsyncIterator[Page]:
    """A page that knows where it is, and fails the test on errors and on requests to anybody else."""
    context = await browser.new_context(base_url=proxy.url, viewport=DESK)
    opened = await context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    opened.on("request", lambda one: None if one.url.startswith(proxy.url) else wrong.append(one.url))
    yield opened
    await context.close()
    assert wrong == []


async def live(page: Page) -> None:
    await expect(page.locator("[data-live-status]")).to_have_text("Live")


async def test_new_matches_appear_by_themselves_and_outcomes_follow(
    page: Page, add: Any, log: SqliteInterruptStore
) -> None:
    await add(rule="first")
    await page.goto("/ttsr/interrupts")
    await live(page)
    await add(rule="second", outcome="pending")
    row = page.locator('[data-record="r2"]')
    await expect(row).to_contain_text("second")
    await expect(page.locator("[data-live-status]")).to_contain_text("1 new")
    await log.update("r2", outcome="clean")
    await expect(row).to_contain_text("clean")


async def test_a_live_page_keeps_to_its_filters_and_can_be_paused(page: Page, add: Any) -> None:
    await page.goto("/ttsr/interrupts?rule=wanted")
    await live(page)
    await add(rule="other")
    await add(rule="wanted")
    await expect(page.locator("[data-record]")).to_have_count(1)
    await page.get_by_role("button", name="Pause").click()
    await add(rule="wanted")
    await expect(page.locator("[data-live-status]")).to_have_text("Paused")
    await expect(page.locator("[data-record]")).to_have_count(1)
    await page.get_by_role("button", name="Resume").click()
    await expect(page.locator("[data-record]")).to_have_count(2)


async def test_a_person_filters_with_the_keyboard(page: Page, add: Any) -> None:
    await add(paths=("src/a.py",))
    await add(paths=("web/b.ts",))
    await page.goto("/ttsr/interrupts")
    await page.get_by_label("File contains").focus()
    await page.keyboard.type("b.ts")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**path=b.ts**")
    await expect(page.locator("[data-record]")).to_have_count(1)
    await expect(page.get_by_label("File contains")).to_have_value("b.ts")


async def test_output_reminder_and_correction_stand_side_by_side_and_below_each_other_on_a_phone(
    page: Page, add: Any
) -> None:
    await add(violation="bad one", before="", matched="bad", injected="be good", correction="good one")
    await page.goto("/ttsr/interrupts/r1")
    texts = page.locator(".sides pre")
    await expect(texts).to_have_text(["bad one", "be good", "good one"])
    await expect(page.locator(".sides mark")).to_have_text("bad")

    async def places() -> list[dict[str, float]]:
        boxes = [await one.bounding_box() for one in await page.locator(".sides section").all()]
        return [dict(box) for box in boxes if box]

    wide = await places()
    assert len({box["y"] for box in wide}) == 1
    await page.set_viewport_size(PHONE)
    narrow = await places()
    assert len({box["x"] for box in narrow}) == 1
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_hostile_output_is_shown_as_text_also_when_it_arrives_live(page: Page, add: Any) -> None:
    await page.goto("/ttsr/interrupts")
    await live(page)
    await add(matched=HOSTILE, violation=HOSTILE, injected=HOSTILE, correction=HOSTILE, model=HOSTILE)
    await expect(page.locator('[data-record="r1"]')).to_contain_text("</pre></template><script>")
    await page.goto("/ttsr/interrupts/r1")
    await expect(page.locator(".sides pre").last).to_have_text(HOSTILE)
    assert await page.evaluate("window.owned") is None


async def test_a_match_far_down_in_the_output_is_in_view(page: Page, add: Any) -> None:
    lines = "a line of the output\n" * 200
    await add(before="", matched="here", violation=f"{lines}here\n{lines}")
    await page.goto("/ttsr/interrupts/r1")
    box = await page.locator(".sides pre").first.bounding_box()
    mark = await page.locator(".sides mark").bounding_box()
    assert box is not None
    assert mark is not None
    assert box["y"] < mark["y"] < box["y"] + box["height"]


async def test_a_long_path_leaves_the_other_columns_their_width(page: Page, add: Any) -> None:
    await add(paths=("src/" + "a/" * 100 + "b.py",), matched="eval(expression)", model="claude-sonnet-4-5")
    await page.goto("/ttsr/interrupts")
    matched = await page.locator('td[data-label="Matched"] code').bounding_box()
    assert matched is not None
    assert matched["height"] < 30


async def test_a_false_positive_is_marked_with_the_button(page: Page, add: Any) -> None:
    await add()
    await page.goto("/ttsr/interrupts/r1")
    await page.get_by_role("button", name="Mark as a false positive").click()
    await expect(page.get_by_role("button", name="Take the mark back")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_on_any_page(
    browser: Browser, proxy: Proxy, add: Any, scheme: Any
) -> None:
    for outcome in ("clean", "violated again", "pending", "failed"):
        await add(outcome=outcome, detail="Because.")
    await add(action="blocked", late=True, false_positive=True)
    context = await browser.new_context(base_url=proxy.url, viewport=DESK, color_scheme=scheme)
    page = await context.new_page()
    for path in (
        "/ttsr/",
        "/ttsr/interrupts",
        "/ttsr/interrupts/r1",
        "/ttsr/rules",
        "/ttsr/rules/no-eval",
        "/ttsr/conversations",
        "/ttsr/interrupts/nothing",
    ):
        await page.goto(path)
        found = (await Axe().run(page)).response["violations"]
        serious = [one["id"] for one in found if one["impact"] in ("serious", "critical")]
        assert serious == [], path
    await context.close()
