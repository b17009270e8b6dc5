"""Agents with a memory, for the flight recorder: what they say is scripted, and the memories are real or tiny."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import memreplay

SAYS = (
    "My name is Ann and I live in Girona.",
    "I got a promotion to lead engineer!",
    "My dog is called Bruno.",
    "I moved to Lyon last week.",
    "Where do I live?",
    "What was my promotion?",
)
USER = "ann"


class Notebook:
    """Keeps every message but those that hold a word; searches by the number of words that are the same."""

    version = "1.0"

    def __init__(self, drops: str = "promotion to") -> None:
        self.items: dict[str, str] = {}
        self._drops = drops

    def add(self, messages: list[dict[str, str]], user_id: str | None = None) -> dict[str, Any]:
        kept = [each["content"] for each in messages if self._drops not in each["content"]]
        numbered = {str(len(self.items) + number): text for number, text in enumerate(kept, start=1)}
        self.items |= numbered
        return {"results": [{"id": id_, "memory": text, "event": "ADD"} for id_, text in numbered.items()]}

    def search(self, query: str, user_id: str | None = None, limit: int = 2) -> dict[str, Any]:
        words = set(query.lower().split())
        scored = [(len(words & set(text.lower().split())), id_, text) for id_, text in self.items.items()]
        best = sorted(scored, key=lambda each: -each[0])[:limit]
        return {"results": [{"id": id_, "memory": text, "score": score / 10} for score, id_, text in best]}

    def fail(self) -> None:
        raise ValueError("no such page")

    def __len__(self) -> int:
        return len(self.items)


def recorded_notebook(path: Path, **kept: Any) -> Notebook:
    """Return a notebook that is recorded."""
    return memreplay.record(Notebook(**kept), path, writes=["add"], reads=["search", "fail"])


def converse(memory: Any, *, marked: bool = False, says: tuple[str, ...] = SAYS, session: str = "monday") -> None:
    """Let an agent answer each message with the best thing it remembers, and write both to its memory."""

    def turn(role: str, text: str) -> AbstractContextManager[None]:
        return memreplay.turn(session, role, text) if marked else nullcontext()

    for text in says:
        with turn("user", text):
            found = memory.search(text, user_id=USER)["results"]
        reply = f"I see. {found[0]['memory'] if found else ''}".strip()
        with turn("assistant", reply):
            messages = [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]
            memory.add(messages, user_id=USER)
