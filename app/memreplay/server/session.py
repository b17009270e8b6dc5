"""One conversation with a served memory, driven turn by turn from outside."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from memory_backends.base import ClosingStatus, Exchange, MemoryBackend, Message, Namespace, Recall, Role, Snapshot
from memory_backends.records import BenchmarkTurnPayload
from memory_backends.retrieval.rendering import MONTHS
from memreplay.llm.extractive.reader import read_prompt
from memreplay.llm.model import Reply
from memreplay.llm.prompts import HISTORY_HEADING

USUAL_LABELS = ("User", "AI")

_LABEL = re.compile(r"([^\s:][^\n:]{0,39}): ?")
_HEADING = re.compile(r"\[(\d{1,2}) ([A-Z][a-z]+) (\d{1,4}), (\d\d):(\d\d)\]")


@dataclass(frozen=True)
class TranscriptMessage:
    """A message of a transcript. ``begins_session`` marks one that stands under a date line."""

    role: Role
    label: str
    text: str
    said_at: datetime | None
    begins_session: bool


def labels_in(text: str, users_words: str = "") -> tuple[str, str] | None:
    """The labels of user and assistant in a text that a message of the user follows.

    ``User`` and ``AI`` where either begins a line. Else the user's is the name that stands before ``users_words``,
    and the assistant's the next one; where none does, the assistant's is the one that spoke last. None where no
    line begins with a label.
    """
    names = _names_in(text)
    if not names or set(USUAL_LABELS) & set(names):
        return USUAL_LABELS if names else None
    for name in names if users_words else ():
        _, found, rest = f"\n{text}\n".partition(f"\n{name}: {users_words}\n")
        if found:
            return (name, next((other for other in _names_in(rest) if other != name), USUAL_LABELS[1]))
    assistant = names[-1]
    return (next((name for name in names if name != assistant), USUAL_LABELS[0]), assistant)


def _names_in(text: str) -> list[str]:
    """What stands before a colon at the start of a line, one for each such line."""
    lines = (line for line in text.split("\n") if date_of_heading(line) is None)
    return [match[1] for line in lines if (match := _LABEL.match(line))]


def read_transcript(
    text: str, labels: tuple[str, str], said_at: datetime | None = None, users_words: str = ""
) -> list[TranscriptMessage]:
    """The messages of a text, in order. ``said_at`` is the date that is in force where it begins.

    Lines without a label belong to the message before; before the first, they are the user's. Where the text begins
    with ``users_words``, these are one message, whatever they look like.
    """
    text = text.lstrip("\n")
    date = date_of_heading(text.partition("\n")[0])
    opening = f"{labels[0]}: {users_words}\n"
    known: list[TranscriptMessage] = []
    if users_words and (rest := without_heading(text)).startswith(opening):
        said_at = date or said_at
        known, text = (
            [TranscriptMessage("user", labels[0], users_words, said_at, date is not None)],
            rest[len(opening) :],
        )
    return known + [
        TranscriptMessage("user" if label == labels[0] else "assistant", label, "\n".join(lines), date, begins)
        for label, lines, date, begins in _blocks(text, labels, said_at)
    ]


def _blocks(
    text: str, labels: tuple[str, str], said_at: datetime | None
) -> Iterator[tuple[str, list[str], datetime | None, bool]]:
    label, lines, begins = "", list[str](), False
    for line in text.removesuffix("\n").split("\n"):
        heading, match = date_of_heading(line), _LABEL.match(line)
        labelled = match is not None and match[1] in labels
        if (heading or labelled) and lines:
            yield label or labels[0], lines, said_at, begins
            label, lines, begins = "", [], False
        if heading:
            said_at, begins = heading, True
        elif labelled and match is not None:
            label, lines = match[1], [line[match.end() :]]
        elif line or lines:
            lines.append(line)
    if lines:
        yield label or labels[0], lines, said_at, begins


def without_heading(text: str) -> str:
    """The text without the date line that it may begin with."""
    heading, _, rest = text.partition("\n")
    return rest if rest and date_of_heading(heading) else text


def date_of_heading(line: str) -> datetime | None:
    """The date of a line such as ``[8 May 2023, 13:56]``; None of any other."""
    match = _HEADING.fullmatch(line)
    if match is None or match[2] not in MONTHS:
        return None
    try:
        return datetime(int(match[3]), MONTHS.index(match[2]) + 1, int(match[1]), int(match[4]), int(match[5]))
    except ValueError:
        return None


@dataclass(frozen=True)
class Limits:
    """What a turn may take of memory: at most so many hits, and tokens of context."""

    top_k: int
    budget: int


Reader = Callable[[str, str], Awaitable[Reply]]
"""What memory gave, and the message: to the reply."""


class ServedSession:
    """Takes turns, one at a time.

    What the conversation was is said by the ``history`` of the next turn: what of it is new is observed as it
    stands there. Where the history is left out, or does not go on from what was heard, the session's own last
    exchange is observed instead. So a question after which nothing else is said leaves nothing in memory.
    """

    def __init__(self, memory: MemoryBackend, reader: Reader, limits: Limits) -> None:
        self._memory = memory
        self._reader = reader
        self._limits = limits
        self._at_work = asyncio.Lock()
        self._history = ""
        self._labels: tuple[str, str] | None = None
        self._labels_are_sure = False
        self._date: datetime | None = None
        self._number_of_session = 1
        self._exchanges: list[Exchange] = []
        self._unheard: tuple[str, str] | None = None
        self._turns = 0

    @property
    def turns(self) -> int:
        """Messages observed so far."""
        return self._turns

    async def open(self, namespace: Namespace) -> None:
        """Begin empty."""
        await self._memory.open(namespace)

    async def run_turn(self, payload: BenchmarkTurnPayload) -> Reply:
        """Hear what was said, answer the message.

        Raises:
            BackendError: the memory cannot do what it should.
        """
        async with self._at_work:
            await self._catch_up(payload)
            recall = await self._recall(payload.message)
            reply = await self._reader(recall.context, payload.message)
            if reply.error is None:
                self._unheard = (without_heading(payload.message), reply.text or "")
            return reply

    async def take_over(self, other: ServedSession) -> None:
        """Remember what another session does."""
        async with other._at_work, self._at_work:
            for exchange in other._exchanges:
                await self._observe(exchange)
            self._history, self._unheard = other._history, other._unheard
            self._labels, self._labels_are_sure = other._labels, other._labels_are_sure
            self._date, self._number_of_session = other._date, other._number_of_session

    async def snapshot(self) -> Snapshot:
        """What its memory holds."""
        async with self._at_work:
            return await self._memory.snapshot()

    async def close(self, status: ClosingStatus) -> None:
        """The conversation is over."""
        async with self._at_work:
            await self._memory.close(status)

    async def _catch_up(self, payload: BenchmarkTurnPayload) -> None:
        unheard, self._unheard = self._unheard, None
        history = self._without_message(payload)
        new = self._new_in(history)
        if new is not None:
            self._history = history
            if not self._labels_are_sure:
                self._labels = labels_in(new, unheard[0] if unheard else "") or self._labels
                self._labels_are_sure = unheard is not None
            words = unheard[0] if unheard else ""
            said = read_transcript(new, self._labels or USUAL_LABELS, self._date, words)
            await self._hear(said)
        elif unheard is not None:
            message, reply = unheard
            user, assistant = self._labels or USUAL_LABELS
            await self._hear(
                [
                    TranscriptMessage("user", user, message, self._date, False),
                    TranscriptMessage("assistant", assistant, reply, self._date, False),
                ]
            )

    def _without_message(self, payload: BenchmarkTurnPayload) -> str:
        """The history without the message itself, which some runners put at its end."""
        history = payload.history.rstrip("\n")
        last = f"{(self._labels or USUAL_LABELS)[0]}: {payload.message}"
        return history.removesuffix(last) if history == last or history.endswith("\n" + last) else payload.history

    def _new_in(self, history: str) -> str | None:
        """What a history adds to what was heard; None where it is left out, or does not go on from there."""
        if not history.strip() or not history.startswith(self._history):
            return None
        new = history[len(self._history) :]
        at_a_line = not self._history or self._history.endswith("\n") or new.startswith("\n")
        return new if at_a_line or not new else None

    async def _hear(self, said: list[TranscriptMessage]) -> None:
        group: list[Message] = []
        for each in said:
            follows = bool(group) and group[-1].role == "assistant" and each.role == "user"
            if group and (follows or each.begins_session):
                await self._observe(Exchange(messages=tuple(group)))
                group = []
            if each.begins_session and self._turns + len(group) > 0:
                self._number_of_session += 1
            self._date = each.said_at
            group.append(self._message(each.role, each.label, each.text, self._turns + len(group) + 1))
        if group:
            await self._observe(Exchange(messages=tuple(group)))

    async def _observe(self, exchange: Exchange) -> None:
        await self._memory.observe(exchange)
        await self._memory.settle()
        self._exchanges.append(exchange)
        self._turns += len(exchange.messages)

    async def _recall(self, message: str) -> Recall:
        """What memory gives: for a question of ours as it does for any question, else as for an ordinary turn."""
        top_k, budget = self._limits.top_k, self._limits.budget
        asked = read_prompt(f"{HISTORY_HEADING}\n\n{message}")
        if asked is not None:
            return await self._memory.recall(asked.question, top_k, budget)
        user = (self._labels or USUAL_LABELS)[0]
        perceived = self._message("user", user, without_heading(message), self._turns + 1)
        return await self._memory.perceive(perceived, top_k, budget)

    def _message(self, role: Role, label: str, text: str, number: int) -> Message:
        return Message(
            turn_id=str(number),
            turn_number=number,
            session=self._number_of_session,
            role=role,
            label=label,
            text=text,
            said_at=self._date,
        )
