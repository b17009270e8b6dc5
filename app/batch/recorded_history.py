"""What attribution reads of a recorded conversation, and no more than that.

A timeline also folds what every store held at every position, for the screens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from app.conversations.models import Conversation
from app.replay.asks import Answer, Asks
from app.replay.events import (
    AnswerScored,
    BackendEvent,
    Extracted,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
)
from memory_backends.operations import Extraction


class RecordedHistory:
    """The events of one conversation by backend and position, its answers, and the calls of extractors.

    ``backends`` are in the order in which they are first heard of.
    """

    def __init__(self, conversation: Conversation, events: Iterable[ReplayEvent]) -> None:
        self.conversation = conversation
        self.backends: list[str] = []
        self.extractions: dict[str, list[Extraction]] = defaultdict(list)
        self._at: dict[tuple[str, int], list[ReplayEvent]] = defaultdict(list)
        self._asks = Asks()
        for event in events:
            self._take(event)

    def events_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """What one backend did at exactly this position, in order; asks and calls of its extractor are apart."""
        return self._at.get((backend, turn), ())

    def answers(self) -> Iterator[Answer]:
        """All asks, in the order in which they were asked."""
        return iter(self._asks)

    def _take(self, event: ReplayEvent) -> None:
        if not isinstance(event, BackendEvent):
            return
        if event.backend not in self.backends:
            self.backends.append(event.backend)
        match event:
            case QuestionAsked() | ReplyReceived() | AnswerScored():
                self._asks.take_in(event)
            case Extracted(extraction=extraction):
                self.extractions[event.backend].append(extraction)
            case _:
                self._at[event.backend, event.turn].append(event)
