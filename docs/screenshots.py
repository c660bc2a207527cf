"""Takes the pictures of the dashboard in docs/images from the real pages, with a made-up week in the log.

Needs Chromium on the machine and the environment of the tests: `make screenshots`.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.async_api import Page, async_playwright

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests" / "support"))

from many_interrupts import many_interrupts  # noqa: E402
from proxy_under_test import Workspace, running_proxy  # noqa: E402

from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore  # noqa: E402

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
RULES = {
    "no-eval": (r"\beval\(", "Parse input, never evaluate it", "tool:write(*.py), tool:edit(*.py)"),
    "no-any-type": (r":\s*any\b", "Give every value a type", "tool:write(*.ts), tool:edit(*.ts)"),
    "no-bare-except": (
        r"except\s*:",
        "Name the exceptions that you expect",
        "tool:write(*.py), tool:edit(*.py)",
    ),
    "no-print-debugging": (r"\bprint\(", "Log, do not print", "tool:write(src/*.py), tool:edit(src/*.py)"),
    "no-em-dash": ("—", "Plain punctuation", "text"),
}


async def main() -> None:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        sys.exit(f"screenshots need one of {', '.join(PROGRAMS)}")
    with tempfile.TemporaryDirectory() as directory:
        workspace = Workspace(Path(directory))
        for name, (condition, description, scope) in RULES.items():
            workspace.rule(name, condition, description=description, scope=scope)
        log = SqliteInterruptStore(workspace.state)
        await log.add(list(many_interrupts(400, time.time(), 6.5)))
        await log.close()
        async with running_proxy(workspace, "http://127.0.0.1:9") as proxy, async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            )
            desk = await browser.new_page(base_url=proxy.url, viewport={"width": 1200, "height": 760})
            await take(desk, "/ttsr/?within=7d", "overview")
            await take(desk, "/ttsr/interrupts", "interrupts")
            await desk.goto("/ttsr/interrupts?rule=no-eval&outcome=clean")
            await desk.locator("tbody a[href^='/ttsr/interrupts/']").first.click()
            await desk.wait_for_load_state("networkidle")
            await desk.screenshot(path=HERE / "images" / "record.png")
            phone = await browser.new_page(
                base_url=proxy.url, viewport={"width": 390, "height": 760}, color_scheme="dark"
            )
            await take(phone, "/ttsr/?within=7d", "phone-dark")
            await browser.close()


async def take(page: Page, path: str, name: str) -> None:
    await page.goto(path)
    # The live feed stays open, so the network is never idle.
    await page.wait_for_load_state("load")
    await page.screenshot(path=HERE / "images" / f"{name}.png")


if __name__ == "__main__":
    asyncio.run(main())
