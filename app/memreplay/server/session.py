"""One conversation with a served memory, driven turn by turn by a client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from memory_backends.base import ClosingStatus, Exchange, MemoryBackend, Message, Namespace, Recall, Role, Snapshot
from memory_backends.records import BenchmarkTurnPayload
from memory_backends.retrieval.rendering import MONTHS
from memreplay.llm.model import Reply
from memreplay.llm.prompts import HISTORY_HEADING, read_prompt

USUAL_LABELS = ("User", "AI")

_LABEL = re.compile(r"([^\s:][^\n:]{0,39}): ?")
_HEADING = re.compile(r"\[(\d{1,2}) ([A-Z][a-z]+) (\d{1,4}), (\d\d):(\d\d)\]")


@dataclass(frozen=True)
class TranscriptMessage:
    """A message of a transcript. ``begins_session`` marks one that follows a date line."""

    role: Role
    label: str
    text: str
    said_at: datetime | None
    begins_session: bool


def labels_in(text: str, users_words: str = "") -> tuple[str, str] | None:
    """Return the labels of user and assistant in a text that precedes a message of the user.

    They are ``User`` and ``AI`` if either begins a line. Otherwise the user's is the label of ``users_words``, and
    the assistant's the next one; if ``users_words`` does not occur, the assistant's is the last label. None if no
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
    """Return the label before a colon at the start of each line that has one."""
    lines = (line for line in text.split("\n") if date_of_heading(line) is None)
    return [match[1] for line in lines if (match := _LABEL.match(line))]


def read_transcript(
    text: str, labels: tuple[str, str], said_at: datetime | None = None, users_words: str = ""
) -> list[TranscriptMessage]:
    """Return the messages of a text, in order. ``said_at`` is the date that applies at its beginning.

    Lines without a label continue the message before; at the beginning, they are the user's. If the text begins
    with ``users_words``, these are one message even if they look like several.
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
    """Return the text without a date line at its beginning."""
    heading, _, rest = text.partition("\n")
    return rest if rest and date_of_heading(heading) else text


def date_of_heading(line: str) -> datetime | None:
    """Return the date of a line such as ``[8 May 2023, 13:56]``; None for other lines."""
    match = _HEADING.fullmatch(line)
    if match is None or match[2] not in MONTHS:
        return None
    try:
        return datetime(int(match[3]), MONTHS.index(match[2]) + 1, int(match[1]), int(match[4]), int(match[5]))
    except ValueError:
        return None


@dataclass(frozen=True)
class Limits:
    """The most hits, and the most tokens of context, that memory may return for a turn."""

    top_k: int
    context_tokens: int


Reader = Callable[[str, str], Awaitable[Reply]]
"""Turns the context that memory returned, and the message, into a reply."""


class ServedSession:
    """Answers turns, one at a time.

    The ``history`` of each turn tells how the conversation went: its new part is ingested. If the history is
    missing, or does not continue what was ingested, the session ingests its own last exchange instead. So the last
    question of a conversation leaves nothing in memory.
    """

    def __init__(self, memory: MemoryBackend, reader: Reader, limits: Limits) -> None:
        self._memory = memory
        self._reader = reader
        self._limits = limits
        self._lock = asyncio.Lock()
        self._history = ""
        self._labels: tuple[str, str] | None = None
        self._labels_are_certain = False
        self._date: datetime | None = None
        self._session_number = 1
        self._exchanges: list[Exchange] = []
        self._pending: tuple[str, str] | None = None
        self._turns = 0

    @property
    def turns(self) -> int:
        """Return the number of messages ingested so far."""
        return self._turns

    async def open(self, namespace: Namespace) -> None:
        """Open the memory, empty."""
        await self._memory.open(namespace)

    async def run_turn(self, payload: BenchmarkTurnPayload) -> Reply:
        """Ingest what was said before the message, and reply to it.

        Raises:
            BackendError: the memory failed.
        """
        async with self._lock:
            await self._catch_up(payload)
            recall = await self._recall(payload.message)
            reply = await self._reader(recall.context, payload.message)
            if reply.error is None:
                self._pending = (without_heading(payload.message), reply.text or "")
            return reply

    async def copy_from(self, other: ServedSession) -> None:
        """Ingest everything that another session has ingested, and continue from its state."""
        async with other._lock, self._lock:
            for exchange in other._exchanges:
                await self._observe(exchange)
            self._history, self._pending = other._history, other._pending
            self._labels, self._labels_are_certain = other._labels, other._labels_are_certain
            self._date, self._session_number = other._date, other._session_number

    async def snapshot(self) -> Snapshot:
        """Return the content of its memory."""
        async with self._lock:
            return await self._memory.snapshot()

    async def close(self, status: ClosingStatus) -> None:
        """End the conversation."""
        async with self._lock:
            await self._memory.close(status)

    async def _catch_up(self, payload: BenchmarkTurnPayload) -> None:
        pending, self._pending = self._pending, None
        history = self._without_message(payload)
        new = self._new_in(history)
        if new is not None:
            self._history = history
            if not self._labels_are_certain:
                self._labels = labels_in(new, pending[0] if pending else "") or self._labels
                self._labels_are_certain = pending is not None
            words = pending[0] if pending else ""
            said = await asyncio.to_thread(read_transcript, new, self._labels or USUAL_LABELS, self._date, words)
            await self._ingest(said)
        elif pending is not None:
            message, reply = pending
            user, assistant = self._labels or USUAL_LABELS
            await self._ingest(
                [
                    TranscriptMessage("user", user, message, self._date, False),
                    TranscriptMessage("assistant", assistant, reply, self._date, False),
                ]
            )

    def _without_message(self, payload: BenchmarkTurnPayload) -> str:
        """Return the history without the message itself, which some runners append to it."""
        history = payload.history.rstrip("\n")
        last = f"{(self._labels or USUAL_LABELS)[0]}: {payload.message}"
        return history.removesuffix(last) if history == last or history.endswith("\n" + last) else payload.history

    def _new_in(self, history: str) -> str | None:
        """Return the new part of a history; None if the history is missing or does not continue the ingested
        one.
        """
        if not history.strip() or not history.startswith(self._history):
            return None
        new = history[len(self._history) :]
        at_a_line = not self._history or self._history.endswith("\n") or new.startswith("\n")
        return new if at_a_line or not new else None

    async def _ingest(self, said: list[TranscriptMessage]) -> None:
        group: list[Message] = []
        for each in said:
            follows = bool(group) and group[-1].role == "assistant" and each.role == "user"
            if group and (follows or each.begins_session):
                await self._observe(Exchange(messages=tuple(group)))
                group = []
            if each.begins_session and self._turns + len(group) > 0:
                self._session_number += 1
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
        """Recall for a question if the message is one of our question prompts, else perceive an ordinary turn."""
        top_k, context_tokens = self._limits.top_k, self._limits.context_tokens
        asked = read_prompt(f"{HISTORY_HEADING}\n\n{message}")
        if asked is not None:
            return await self._memory.recall(asked.question, top_k, context_tokens)
        user = (self._labels or USUAL_LABELS)[0]
        perceived = self._message("user", user, without_heading(message), self._turns + 1)
        return await self._memory.perceive(perceived, top_k, context_tokens)

    def _message(self, role: Role, label: str, text: str, number: int) -> Message:
        return Message(
            turn_id=str(number),
            turn_number=number,
            session=self._session_number,
            role=role,
            label=label,
            text=text,
            said_at=self._date,
        )
