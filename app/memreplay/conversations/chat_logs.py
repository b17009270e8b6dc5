"""Make conversations of the chats that a format finds in a file: sessions, ids, and what is left out.

A chat log has no scores to protect. So an entry that cannot be read is skipped with a warning, and a file is
refused only if nothing is left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import ChatMessage, MessageReader, error_of
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.conversations.validation_errors import LoadCallbacks, OnWarning, Place
from memreplay.errors import DatasetError


@dataclass(frozen=True)
class ChatSession:
    """Messages that belong together, with the date of the first where it is known."""

    messages: Sequence[ChatMessage]
    date: datetime | None = None
    id: str = ""


@dataclass(frozen=True)
class Chat:
    """A chat of a file. Without an ``id`` it is named after the file; ``date`` is when it began."""

    messages: Sequence[ChatMessage]
    place: Place
    id: object = None
    date: datetime | None = None
    sessions: Sequence[ChatSession] = ()
    title: object = None


FindChats = Callable[[Any, Place, MessageReader], Iterable[Chat | DatasetError]]
"""Finds the chats in one value of a file. It raises DatasetError for a value that holds none, and yields one in the
place of an entry that is none, which costs nothing but that entry.
"""


def read_chats(file: DatasetFile, callbacks: LoadCallbacks, find: FindChats) -> Iterator[Conversation]:
    """Yield a conversation for each chat in the values of a file."""
    log = ChatLog(file, callbacks)
    for place, value in file.values(log.callbacks):
        with_errors = log.catching(find, value, place)
        for chat in with_errors:
            yield from log.conversations(chat)
    log.finish()


class ChatLog:
    """A file while it is read: its reader of messages, the ids in use, and the entries that were skipped."""

    def __init__(self, file: DatasetFile, callbacks: LoadCallbacks) -> None:
        self.reader = MessageReader()
        self.callbacks = replace(callbacks, on_error=self._broken)
        self._file, self._outer = file, callbacks
        self._skipped: list[DatasetError] = []
        self._broken_lines: list[DatasetError] = []
        self._ids: set[str] = set()
        self._number = 0
        self._yielded = 0

    def catching(self, find: FindChats, value: Any, place: Place) -> Iterator[Chat]:
        """Yield the chats of a value, and skip it if it holds none."""
        self.values_go_on()
        try:
            for found in find(value, place, self.reader):
                if isinstance(found, DatasetError):
                    self._skipped.append(found)
                else:
                    yield found
        except DatasetError as error:
            self._skipped.append(error)

    def conversations(self, chat: Chat) -> Iterator[Conversation]:
        """Yield the conversation of a chat; nothing if nobody says anything in it."""
        self._number += 1
        try:
            sessions = chat.sessions or split_at_gaps(chat.messages, chat.date, self._outer.options.session_gap)
            conversation = conversation_of(self._id_of(chat), self._file.dataset, sessions, chat.place)
            if isinstance(chat.title, str) and chat.title.strip():
                conversation = conversation.model_copy(update={"title": " ".join(chat.title.split())})
        except DatasetError as error:
            self._skipped.append(error)
            return
        self._ids.add(conversation.id)
        self._yielded += 1
        yield conversation

    def finish(self) -> None:
        """Report what was left out; raise or report the errors if nothing is left."""
        if self._yielded and self._file.container == "lines":
            self.values_go_on()
        for error in self._broken_lines:
            self._outer.on_error(error)
        if not self._yielded and not self._broken_lines:
            place = Place(self._file.path)
            first = error_of(self.reader.left_out)
            errors = self._skipped or [place.error("holds no chat with messages", "at least one")]
            for error in errors[:1] if first is None or len(errors) > 1 else [_with_reason(errors[0], first)]:
                self._outer.on_error(error)
            self._skipped = errors[1:]
        report_skipped(self._skipped, self._outer.on_warning)
        self.reader.left_out.report(self._outer.on_warning)

    def _id_of(self, chat: Chat) -> str:
        """Return the id of a chat, made unique in the file."""
        named = isinstance(chat.id, str | int) and str(chat.id).strip()
        only = self._file.is_one_object or (chat.place.steps == () and chat.place.line is None)
        wanted = str(chat.id) if named else self._file.dataset if only else f"{self._file.dataset}-{self._number}"
        found, count = wanted, 1
        while found in self._ids:
            count += 1
            found = f"{wanted}-{count}"
        if found != wanted:
            self.reader.left_out.add("chat", "has the id of an earlier one and was given a new one", chat.place)
        return found

    def _broken(self, error: DatasetError) -> None:
        """Remember a value that is no JSON. A line is skipped if there are others: the last may be half written."""
        self._broken_lines.append(error)

    def values_go_on(self) -> None:
        self._skipped += self._broken_lines
        self._broken_lines = []


def _with_reason(error: DatasetError, reason: DatasetError) -> DatasetError:
    """Return the error of a chat without messages, with what kept them from being read."""
    return DatasetError(
        reason.path, reason.pointer or error.pointer, f"{reason.problem}; {error.problem}", error.expected
    )


_SHOWN_SKIPPED = 3


def report_skipped(errors: Sequence[DatasetError], on_warning: OnWarning) -> None:
    """Say which entries were left out: the first ones with their places, the others counted."""
    for error in errors[:_SHOWN_SKIPPED]:
        on_warning(f"{error.path}: {error.pointer or '/'}: {error.problem}: left out")
    more = len(errors) - _SHOWN_SKIPPED
    if more > 0:
        on_warning(f"{errors[0].path}: {more:,} more {'entry is' if more == 1 else 'entries are'} left out")


def split_at_gaps(messages: Sequence[ChatMessage], date: datetime | None, gap: float) -> list[ChatSession]:
    """Return the sessions of messages: one begins after a longer silence than ``gap`` hours.

    ``date`` is when the first one began, where its messages have no times.
    """
    sessions: list[list[ChatMessage]] = [[]]
    previous: datetime | None = None
    for message in messages:
        if message.at is not None:
            if previous is not None and message.at - previous > timedelta(hours=gap):
                carried = _system_before(sessions[-1])
                sessions.append(carried)
            previous = message.at
        sessions[-1].append(message)
    return [
        ChatSession(group, next((m.at for m in group if m.at is not None), date if number == 0 else None))
        for number, group in enumerate(sessions)
    ]


def _system_before(session: list[ChatMessage]) -> list[ChatMessage]:
    """Take the undated messages that nobody says from the end of a session: they belong to what follows."""
    carried: list[ChatMessage] = []
    while session and session[-1].at is None and session[-1].role == "other":
        carried.insert(0, session.pop())
    return carried


def conversation_of(
    conversation_id: str, dataset: str, sessions: Sequence[ChatSession], place: Place
) -> Conversation:
    """Return a conversation without questions. Turn ids are 1-based numbers.

    Names of users or assistants are kept where they tell two speakers apart.

    Raises:
        DatasetError: nobody says anything in it.
    """
    kept = [session for session in sessions if session.messages]
    named = _tells_apart([message for session in kept for message in session.messages])
    turns: list[Turn] = []
    for number, session in enumerate(kept, start=1):
        for message in session.messages:
            count = len(turns) + 1
            turns.append(
                Turn(
                    id=str(count),
                    number=count,
                    session=number,
                    role=message.role,
                    speaker=message.label if named or message.role == "other" else None,
                    text=message.text,
                )
            )
    if not any(turn.role != "other" for turn in turns):
        raise place.error("has no message of a user or an assistant", "at least one")
    return Conversation(
        id=conversation_id,
        dataset=dataset,
        sessions=tuple(
            Session(number=number, id=session.id or str(number), date=session.date)
            for number, session in enumerate(kept, start=1)
        ),
        turns=tuple(turns),
        questions=(),
    )


def _tells_apart(messages: Sequence[ChatMessage]) -> bool:
    """Return whether the names of speakers say more than their roles do."""
    names = {role: {m.label for m in messages if m.role == role} for role in ("user", "assistant")}
    if any(len(found) > 1 for found in names.values()):
        return True
    return all(found and None not in found for found in names.values())
