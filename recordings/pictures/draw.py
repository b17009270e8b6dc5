"""Draws the pictures of the README: the demo, and the bug that the README finds, as the screen shows them.

``make pictures`` runs it; do so after changing a screen.
"""

from __future__ import annotations

import asyncio
import html
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic

import memreplay as memreplay_api
from memreplay.paths import demo_recording
from memreplay.recording.reader import Recording
from memreplay.tui.app import MemreplayApp
from memreplay.tui.launch import Launch

HERE = Path(__file__).resolve().parent
BUG = ("--dataset", "identity-02", "--ablate", "verbatim", "--perceive", "--no-cache")
Keys = Sequence[tuple[str, str]]
"""Each key, after the text that must be on the screen before it is pressed."""
Shot = tuple[Keys, str, str, tuple[int, int]]
"""Keys that lead on from the previous shot, the text that the picture shows, its name, columns and rows."""

TIMEOUT_S = 60.0
SECONDS_TO_SETTLE = 1.0


def nothing_live(backends: Sequence[str], model: str) -> None:
    raise AssertionError("a recording is shown; nothing runs")


def launch(recording: Path) -> Launch:
    return Launch(
        datasets=list,
        load=lambda spec: [],
        recordings=list,
        assemble=nothing_live,  # type: ignore[arg-type]
        backends=(),
        all_backends=(),
        model="memreplay/extractive",
        recording=recording,
    )


async def until_shown(app: MemreplayApp, text: str) -> None:
    """Wait until a text is on the screen, and nothing changes any more."""
    deadline, before = monotonic() + TIMEOUT_S, ""
    while text not in (now := text_of(app)) or now != before:
        if monotonic() > deadline:
            raise TimeoutError(f"{text!r} did not appear on the screen")
        before = now
        await asyncio.sleep(SECONDS_TO_SETTLE)


def text_of(app: MemreplayApp) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", app.export_screenshot())).replace("\xa0", " ")


async def draw(recording: Path, shots: Sequence[Shot]) -> None:
    app = MemreplayApp(launch(recording))
    async with app.run_test(size=shots[0][3]) as pilot:
        for keys, shown, name, size in shots:
            await pilot.resize_terminal(*size)
            for text, key in keys:
                await until_shown(app, text)
                await pilot.press(key)
            await until_shown(app, shown)
            (HERE / f"{name}.svg").write_text(app.export_screenshot(), encoding="utf-8")


def memreplay(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "memreplay", *arguments], check=True)


def facts_with(recording: Path, words: str, turn: int) -> list[str]:
    """The ids of what `hybrid` distilled with these words, up to a turn."""
    with closing(Recording.open(recording)) as reader:
        run = reader.run()
        timeline = reader.timeline(run.id, reader.conversation_ids(run.id)[0])
        stored = timeline.snapshot_at("hybrid", turn).points["qdrant"]["hybrid_knowledge"]
        return [id_ for id_, payload in stored.items() if words in payload["content"]]


def main() -> None:
    steps = [("results of all", "down"), ("results of all", "enter"), *((f"turn {turn}/50", ".") for turn in range(1, 8))]
    asyncio.run(draw(demo_recording(), [(steps, "turn 8/50", "replay", (160, 45))]))
    with tempfile.TemporaryDirectory() as folder:
        bug = Path(folder) / "bug.sqlite3"
        memreplay("--batch", *BUG, "--recording", str(bug))
        why: Shot = ([("RECORDED", "r"), ("At which school", "enter")], "the architectures", "why", (160, 36))
        write: Shot = ([("the architectures", "w")], "turn 2/14", "write", (160, 40))
        asyncio.run(draw(bug, [why, write]))
        to_whatif = [*why[0], ("the architectures", "i"), ("unchanged", "A"), ("✗ closed book", "down"), *[("what if", "down")] * 2]
        asyncio.run(draw(bug, [(to_whatif, "the prompt with: evidence added", "whatif", (160, 44))]))
        gone = ["--delete", "key:shared_state/shared_data/user.city"]
        for id_ in facts_with(bug, "flat in Dundee", 8):
            gone += ["--delete", f"point:{id_}"]
        memreplay("fork", str(bug), "--at", "8", *gone)
        fork: Shot = ([("RECORDED", "F"), ("which branch to open", "enter")], "differs from turn 8", "fork", (140, 24))
        on_bars = [("broken", "]"), ("RECORDED", "l"), *([("from when to when", "down")] * 2)]
        life: Shot = ([*on_bars, ("from when to when", "enter")], "stored: In which city", "lifetime", (140, 30))
        asyncio.run(draw(bug, [fork, life]))
        draw_agent(Path(folder) / "agent.sqlite3")


class Notebook:
    """The memory of the agent in the README: it drops promotions."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}

    def add(self, messages: list[dict[str, str]], user_id: str) -> list[dict[str, str]]:
        kept = [message["content"] for message in messages if "promotion to" not in message["content"]]
        numbered = {str(len(self.pages) + number): text for number, text in enumerate(kept, start=1)}
        self.pages |= numbered
        return [{"id": id_, "memory": text} for id_, text in numbered.items()]

    def search(self, query: str, user_id: str) -> list[dict[str, object]]:
        asked = set(query.lower().split())
        scored = [(len(asked & set(text.lower().split())) / len(asked), id_) for id_, text in self.pages.items()]
        return [{"id": id_, "memory": self.pages[id_], "score": score} for score, id_ in sorted(scored, reverse=True)[:2]]


def draw_agent(recording: Path) -> None:
    memory = memreplay_api.record(Notebook(), recording, writes=["add"], reads=["search"])
    says = ("I live in Girona.", "I got a promotion to lead engineer!", "My dog is called Bruno.", "What was my promotion?")
    for text in says:
        with memreplay_api.turn("tuesday", "user", text):
            found = memory.search(text, user_id="ann")
        reply = f"I remember: {found[0]['memory']}" if found else "Nice to meet you."
        with memreplay_api.turn("tuesday", "assistant", reply):
            memory.add([{"role": "user", "content": text}], user_id="ann")
    asked = [("RECORDED", "G"), ("turn 8/8", "comma"), ("turn 7/8", "a"), *(("memory have returned", key) for key in "lead")]
    marked = [*asked, ("lead", "enter")]
    asyncio.run(draw(recording, [(marked, "never written", "agent", (140, 22))]))


if __name__ == "__main__":
    main()
