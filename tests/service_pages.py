"""The pages of the service in a real browser: Debian's Chromium, headless."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
PLAYWRIGHT = "no playwright: pip install 'labelonce[dev]'"


@contextmanager
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason=PLAYWRIGHT)
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


class Visit:
    """A page with what went wrong on it."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.trouble: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.goto(url)

    def text(self, part: str) -> str:
        return str(self.page.locator(part).inner_text())

    def waits_for(self, part: str, text: str) -> None:
        self.page.locator(part, has_text=text).first.wait_for()

    def shows_a_task(self) -> str:
        """Wait until a task can be answered and return its text."""
        self.page.locator("#choices :is(button, input):enabled").first.wait_for()
        return self.text("#text")

    def ends_well(self) -> None:
        self.page.close()
        assert self.trouble == []
