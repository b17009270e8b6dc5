"""A real browser, offline. Tests wait by retrying, with a limit that a loaded machine does not reach."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
LIMIT_MS = 120_000


@dataclass
class Opened:
    """A page with what went wrong on it: console errors, exceptions, requests other than for the file itself."""

    page: Any
    problems: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", lambda message: self._note(message.type in ("error", "warning"), message.text))
        self.page.on("pageerror", lambda error: self._note(True, str(error)))
        self.page.on("request", lambda request: self._note(not request.url.startswith("file:"), request.url))

    def _note(self, is_problem: bool, text: str) -> None:
        if is_problem:
            self.problems.append(text)


@contextmanager
def chromium() -> Iterator[Any]:
    """Skips the test if there is no browser."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no browser is installed (apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(OPTIONS), timeout=LIMIT_MS)
        yield browser
        browser.close()


def opened(browser: Any, path: Path, address: str = "", **options: Any) -> Opened:
    """Open a file and wait until its script has shown everything."""
    context = browser.new_context(**options)
    context.set_default_timeout(LIMIT_MS)
    page = context.new_page()
    found = Opened(page)
    found.watch()
    page.goto(f"{path.as_uri()}{address}")
    page.wait_for_selector("html[data-ready]")
    return found


def serious_violations(page: Any) -> list[str]:
    """What axe-core finds on the page, without what it calls minor or moderate."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
