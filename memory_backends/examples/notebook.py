"""A memory in a few lines, to start your own from: every exchange is a note, found again by the words it shares.

Try it with ``--backend memory_backends.examples.notebook:NotebookMemory``.
"""

import re

from memory_backends.base import Exchange, Hit, MemoryBackend, Message, Namespace, Recall, Snapshot
from memory_backends.resources import Resources
from memory_backends.retrieval.rendering import assemble


class NotebookMemory(MemoryBackend):
    """Keeps its notes in a dictionary. It uses no store of ours, and is shown all the same."""

    def __init__(self, resources: Resources) -> None:
        self.count_tokens = resources.count_tokens
        self.notes: dict[str, Exchange] = {}

    async def open(self, namespace: Namespace) -> None:
        """Begin with an empty notebook."""
        self.notes = {}

    async def observe(self, exchange: Exchange) -> None:
        """Write the exchange down under its first turn: the same one twice is still one note."""
        self.notes[exchange.turn_ids[0]] = exchange

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        """Return what an agent would be reminded of by this message; the replay shows it at every turn."""
        return await self.recall(message.text, top_k, context_tokens)

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        """Return the notes that share most words with the question, as many as there is room for."""
        asked = words(question)
        scores = {id_: len(asked & words(note.text)) for id_, note in self.notes.items()}
        best = sorted(scores, key=lambda id_: scores[id_], reverse=True)[:top_k]
        hits = [
            Hit(
                id=id_,
                store="notebook",
                place="notes",
                rank=rank,
                score=scores[id_],
                text=self.notes[id_].text,
                turns=self.notes[id_].turn_ids,
            )
            for rank, id_ in enumerate(best, start=1)
        ]
        order = {id_: self.notes[id_].turn_number for id_ in best}
        return assemble(hits, order, context_tokens, self.count_tokens)

    async def snapshot(self) -> Snapshot:
        """Return what the state panel shows: from one snapshot to the next, what changed is worked out."""
        return Snapshot(values={"notebook": {"notes": {id_: note.text for id_, note in self.notes.items()}}})


def words(text: str) -> set[str]:
    """Return the distinct words of a text."""
    return set(re.findall(r"\w+", text.lower()))
