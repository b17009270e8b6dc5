"""List conversations while their files are read. Their texts wait in a temporary file until one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import SpooledTemporaryFile
from threading import Lock

from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import OnBytesRead

_BYTES_IN_MEMORY = 8_000_000


@dataclass(frozen=True)
class ListedConversation:
    """A row of a list of conversations. ``length`` is in words: ``12 turns``."""

    id: str
    length: str = ""
    title: str | None = None
    date: datetime | None = None
    opening: str = ""


def listed(conversation: Conversation) -> ListedConversation:
    """Return the row of a conversation."""
    return ListedConversation(
        conversation.id, length_of(conversation.end), conversation.title, conversation.date, conversation.opening
    )


def length_of(turns: int | None) -> str:
    """Return in words how long a conversation is; ``turns`` is None while replies decide that."""
    return "tests that converse" if turns is None else f"{turns:,} turn{'' if turns == 1 else 's'}"


class _StoppedError(Exception):
    """Nobody waits for the rest of a file."""


class Catalog:
    """The conversations that were read so far. One thread fills it, and another one lists and chooses.

    Texts take no memory beyond a few megabytes: they are written to a temporary file without a name, which goes
    with the catalog.
    """

    def __init__(self) -> None:
        self.entries: list[ListedConversation] = []
        self.warnings: list[str] = []
        """Items that were left out."""
        self.path: Path | None = None
        """The file that is being read."""
        self.size = 0
        self.read = 0
        """Bytes of this file, and how many of them were read."""
        self._kept: list[tuple[int, int] | Conversation] = []
        self._texts = SpooledTemporaryFile(max_size=_BYTES_IN_MEMORY)  # noqa: SIM115 - it lives as long as this
        self._end = 0
        self._lock = Lock()
        self._stopped = False

    def fill(self, load: Callable[[Sequence[str], Catalog], Iterable[Conversation]], specs: Sequence[str]) -> None:
        """Add the conversations that ``load`` yields, until :meth:`stop` is called."""
        try:
            for conversation in load(specs, self):
                self.add(conversation)
                if self._stopped:
                    return
        except _StoppedError:
            return

    def stop(self) -> None:
        """Read no further."""
        self._stopped = True

    def opened(self, path: Path) -> OnBytesRead:
        """Follow how far a file is read."""
        self.path, self.size, self.read = path, path.stat().st_size, 0
        return self._advance

    def _advance(self, count: int) -> None:
        if self._stopped:
            raise _StoppedError
        self.read += count

    def add(self, conversation: Conversation) -> None:
        """Add a conversation. Tests that converse have no texts yet and are kept as they are."""
        if conversation.end is None:
            self._kept.append(conversation)
        else:
            written = conversation.model_dump_json().encode("utf-8", "surrogatepass")
            with self._lock:
                self._texts.seek(self._end)
                self._texts.write(written)
            self._kept.append((self._end, len(written)))
            self._end += len(written)
        self.entries.append(listed(conversation))

    def conversation(self, index: int) -> Conversation:
        """Return the conversation of an entry."""
        kept = self._kept[index]
        if isinstance(kept, Conversation):
            return kept
        start, length = kept
        with self._lock:
            self._texts.seek(start)
            written = self._texts.read(length)
        conversation = Conversation.model_validate_json(written)
        return conversation.model_copy(update={"title": self.entries[index].title})
