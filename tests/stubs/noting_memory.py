"""A memory that can be kept, and notes on disk which process did what with it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from memory_backends.base import Exchange, Hit, Namespace, Recall, Snapshot

FILE = "MEMORY_NOTES"
"""The variable that names the file with the notes."""


class Noting:
    """Ranks what it heard by the words that it shares with the question."""

    def __init__(self) -> None:
        self._heard: list[list[str]] = []

    async def open(self, namespace: Namespace) -> None:
        self._heard = []

    async def observe(self, exchange: Exchange) -> None:
        self._note("observe")
        self._heard.append([exchange.text, *exchange.turn_ids])

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        self._note("recall")
        asked = {*question.casefold().split()}
        best = sorted(self._heard, key=lambda heard: -len(asked & {*heard[0].casefold().split()}))[:top_k]
        hits = tuple(
            Hit(id=str(rank), store="list", place="heard", rank=rank, score=None, text=text, turns=tuple(turns))
            for rank, (text, *turns) in enumerate(best, 1)
        )
        return Recall(hits=hits, context="\n".join(hit.text for hit in hits), tokens=len(best))

    async def snapshot(self) -> Snapshot:
        return Snapshot(values={"list": {"heard": self._heard}})

    async def save(self, path: Path) -> None:
        (path / "heard.json").write_text(json.dumps(self._heard))

    async def load(self, path: Path) -> None:
        self._note("load")
        self._heard = json.loads((path / "heard.json").read_text())

    def _note(self, what: str) -> None:
        with Path(os.environ[FILE]).open("a") as notes:
            notes.write(f"{what} {os.getpid()}\n")


def noted(file: Path) -> dict[str, set[int]]:
    """What was done in which processes, since this was called last."""
    found: dict[str, set[int]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        what, process = line.split()
        found.setdefault(what, set()).add(int(process))
    file.unlink(missing_ok=True)
    return found
