"""Draws the pictures of the report and of the replay page, and the asciicast, from the demo.

``make pictures`` runs it. It needs Chromium; without one it leaves the pictures as they are.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from memreplay.paths import demo_recording

HERE = Path(__file__).resolve().parent
CONVERSATION = "identity-01"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
REPORT = ("report.html", "", "#plots .figures", (1280, 900))
QUESTION = ("report.html", "#q=identity-01-q2&backend=rag", "#explorer", (1280, 900))
REPLAY = ("replay.html", "#turn=8", ".replay", (1400, 1000))
"""The page, its address, what the picture shows, and the window's width and height."""


def memreplay(*arguments: object) -> None:
    command = [sys.executable, "-m", "memreplay", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def draw(browser: Browser, folder: Path, shot: tuple[str, str, str, tuple[int, int]], name: str) -> None:
    file, address, shown, (width, height) = shot
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    page.goto(f"{(folder / file).as_uri()}{address}")
    page.wait_for_selector("html[data-ready]")
    page.locator(shown).first.screenshot(path=HERE / name)
    page.close()


def main() -> None:
    demo = demo_recording()
    choice = ("--conversation", CONVERSATION)
    memreplay("export", demo, "--cast", HERE / "replay.cast", *choice)
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        print("no Chromium: the pictures of report and replay page are not drawn again", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        copy = folder / "demo.sqlite3"  # the command stores scores in the recording it reads
        shutil.copy(demo, copy)
        memreplay("report", copy, "--output", folder / "report.html")
        memreplay("export", copy, "--html", folder / "replay.html", *choice)
        browser = driver.chromium.launch(executable_path=path, args=list(OPTIONS))
        draw(browser, folder, REPORT, "report.png")
        draw(browser, folder, QUESTION, "question.png")
        draw(browser, folder, REPLAY, "replay-page.png")
        browser.close()


if __name__ == "__main__":
    main()
