"""Make the conversation and the events of an ordinary recording out of the operations on a memory.

The same notes always give the same recording, so that it is made anew whenever there are new notes, and no agent
waits for it. What was said is taken from marked messages (:func:`memreplay.turn`) where there are any, else from
the messages that the memory was given; where there are none, the operations themselves are the turns. What was not
recorded stays unknown: nothing is said of what was stored before, or of a prompt that nobody noted.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from memory_backends.base import Hit, MemoryDescription
from memory_backends.storable import finite_score
from memory_backends.stores.trace import (
    FoundPoint,
    MemoryOperation,
    ReadChange,
    RemoveChange,
    SearchChange,
    StoredPoint,
    UpsertChange,
    WriteChange,
)
from memreplay.capture.journal import JournalReader
from memreplay.capture.marks import Mark, asked_of, mark_of, with_text
from memreplay.capture.operations import BY_NAME, Item, NoteReader, Operation
from memreplay.conversations.log_options import DEFAULT_LOG_OPTIONS
from memreplay.conversations.messages import ChatMessage, LeftOut
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.conversations.traces import Call, aligned
from memreplay.conversations.validation_errors import Place
from memreplay.engine.events import (
    BackendFailed,
    ConversationOpened,
    Observed,
    Perceived,
    ReplayEvent,
    StoreOperated,
    TurnPlayed,
)
from memreplay.errors import RecordingInUseError
from memreplay.llm import AS_RECORDED
from memreplay.recording.captured import CAPTURED, captured_until, replace_captured_run
from memreplay.recording.damage import reporting_damage
from memreplay.text import normalised

DEFAULT_OWNER: Final = "agent"
"""The conversation of a memory whose calls do not say whose memory it is."""


def bring_up_to_date(path: Path) -> tuple[str, ...]:
    """Make the run of a recording anew if its journal has new notes; returns what of them is not shown.

    A file without a journal is left alone.

    Raises:
        RecordingError: the file cannot be read or written.
    """
    if not has_news(path):
        return ()
    with _one_at_a_time:
        return _made_anew(path) if has_news(path) else ()


_one_at_a_time = threading.Lock()
_latest: _Capture | None = None
"""The latest result: a screen that follows an agent asks for the same file repeatedly."""


def _made_anew(path: Path) -> tuple[str, ...]:
    global _latest
    until = captured_until(path)
    known, _latest = _latest, None
    capture = known if known is not None and known.is_of(path, until) else _Capture(path)
    with reporting_damage(path):
        capture.read_on()
        try:
            replace_captured_run(path, capture.until, path.stem, capture.changed(), capture.settings)
        except RecordingInUseError:
            # Another memreplay makes it anew, or one records beside it: what was made before is shown.
            if until is None:
                raise
            return ()
    _latest = capture
    return capture.warnings


def is_captured(settings: Mapping[str, Any]) -> bool:
    """Return whether the settings of a run are those of one that was made of a journal."""
    return CAPTURED in settings


def shows_all(path: Path, settings: Mapping[str, Any]) -> bool:
    """Bring a recording up to date; returns whether a run with these settings was made of all that it has.

    Raises:
        RecordingError: the file cannot be read or written.
    """
    bring_up_to_date(path)
    return captured_until(path) == settings.get(CAPTURED)


def has_news(path: Path) -> bool:
    """Return whether a recording has notes that its run was not made of yet."""
    reader = JournalReader(path)
    try:
        last = reader.last
    finally:
        reader.close()
    return bool(last) and captured_until(path) != last


_NOTES_AT_ONCE: Final = 10_000


class _Capture:
    """The content of a file's notes; notes that come later are added to it.

    Kept are the operations. The events that they give are made for a conversation only if it has new ones.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, _identity_of(path)
        self._reader = NoteReader(path)
        self._operations: list[Operation] = []
        self._marks: list[Mark] = []
        self._is_redacted = False
        self._made: dict[str, _Owned] = {}
        self.until = 0

    def is_of(self, path: Path, until: int | None) -> bool:
        """Return whether this is what a recording holds that was made of the notes until then."""
        return (path, _identity_of(path), until) == (self._path, self._file, self.until)

    def read_on(self) -> None:
        """Read the notes that are new, in the order in which the conversations began."""
        reader = JournalReader(self._path)
        try:
            while notes := reader.after(self.until, _NOTES_AT_ONCE):
                self.until = notes[-1].key
                self._operations += self._reader.operations(notes)
                self._marks += [mark for note in notes if note.source == "mark" and (mark := mark_of(note))]
                self._is_redacted |= any(note.source == "redacted" for note in notes)
        finally:
            reader.close()
        self._operations.sort(key=lambda operation: (operation.at, operation.note))

    def changed(self) -> Iterator[tuple[Conversation, Sequence[ReplayEvent]]]:
        """Yield the conversations that are new or have something new, and their events by turn."""
        for owner, operations in _by_owner(self._operations).items():
            marks = [mark for mark in self._marks if mark.conversation == owner]
            before = self._made.get(owner)
            if before is not None and before.operations == operations and before.marks == marks:
                continue
            left_out = LeftOut()
            assembly = _Assembly(owner, self._path, operations, marks, left_out)
            conversation, events, memories = assembly.made()
            self._made[owner] = _Owned(operations, marks, memories, left_out)
            yield conversation, events

    def settings(self) -> dict[str, Any]:
        """Return the settings of the run, once :meth:`changed` was read to its end."""
        return {
            "backend": list(dict.fromkeys(name for each in self._made.values() for name in each.memories)),
            "model": [AS_RECORDED],
            "not_shown": list(self.warnings),
            "redacted": self._is_redacted,
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what of the notes is not shown."""
        all_left_out = LeftOut()
        all_left_out.include(self._reader.left_out)
        for each in self._made.values():
            all_left_out.include(each.left_out)
        said: list[str] = []
        all_left_out.report(said.append)
        return tuple(said)


def _identity_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another that takes its place."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


class _Owned(NamedTuple):
    """The operations and marks that a conversation was made of, and the memories in it."""

    operations: list[Operation]
    marks: list[Mark]
    memories: tuple[str, ...]
    left_out: LeftOut


def _by_owner(operations: Sequence[Operation]) -> dict[str, list[Operation]]:
    """Return the operations by whose memory they concern.

    A message without an owner belongs to the owner of what happened during it, else to that of the message before
    it in its session. Where only one owner is ever named, everything is theirs.
    """
    owner_of_turn: dict[str, str] = {}
    owner_of_session: dict[str, str] = {}
    for operation in operations:
        if operation.owner is not None:
            if operation.turn is not None:
                owner_of_turn.setdefault(operation.turn, operation.owner)
            if operation.session is not None:
                owner_of_session.setdefault(operation.session, operation.owner)
    session_of_turn = {each.turn: each.session for each in operations if each.kind == "message"}
    for turn, owner in owner_of_turn.items():
        if session := session_of_turn.get(turn):
            owner_of_session.setdefault(session, owner)
    named = {operation.owner for operation in operations if operation.owner is not None}
    fallback = named.pop() if len(named) == 1 else DEFAULT_OWNER
    found: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        session = operation.session or session_of_turn.get(operation.turn)
        owner = (
            operation.owner
            or owner_of_turn.get(operation.turn or "")
            or owner_of_session.get(session or "")
            or fallback
        )
        found[owner].append(operation)
    return found


class _Placed(NamedTuple):
    """An operation at a position, with the ids of the turns that caused it."""

    turn: int
    operation: Operation
    turns: tuple[str, ...]


class _Assembly:
    """The conversation of one owner, while it is made."""

    def __init__(
        self,
        owner: str,
        path: Path,
        operations: Sequence[Operation],
        marks: Sequence[Mark],
        left_out: LeftOut,
    ) -> None:
        self._owner, self._path, self._left_out = owner, path, left_out
        self._operations = operations
        self._marks = marks
        self._turns: list[Turn] = []
        self._numbers_by_words: dict[str, list[int]] = defaultdict(list)
        self._sessions: list[Session] = []
        self._last_at = 0.0
        self._message_ids: dict[str, int] = {}
        self._placed: list[_Placed] = []

    def made(self) -> tuple[Conversation, tuple[ReplayEvent, ...], tuple[str, ...]]:
        """Return the conversation, its events by turn, and the memories in it."""
        if any(operation.kind == "message" for operation in self._operations):
            self._place_by_marked_messages()
        elif any(operation.messages for operation in self._operations):
            self._place_by_messages_of_writes()
        else:
            self._place_alone()
        conversation = Conversation(
            id=self._owner,
            dataset=self._path.stem,
            sessions=tuple(self._sessions),
            turns=tuple(self._turns),
            questions=(),
        )
        marks = [with_text(mark, conversation) for mark in self._marks]
        conversation = conversation.model_copy(update={"questions": tuple(mark.question for mark in marks)})
        memories = _Memories(conversation)
        events = list(memories.events(self._placed))
        backends = tuple(memories.names)
        for mark in marks:
            events += asked_of(mark, conversation, backends, events, memories.prompts)
        # A stable sort: at a turn, everything stays in the order in which it happened.
        return conversation, tuple(sorted(events, key=lambda event: event.turn)), backends

    # ---- where an operation stands ------------------------------------------------------------------------------

    def _place_by_marked_messages(self) -> None:
        """Place each operation at the message during which it ran, else at the last one before it."""
        number_of: dict[str, int] = {}
        for operation in self._operations:
            if operation.kind == "message":
                for message in operation.messages:
                    self._add_turn(message, operation.session, operation.at)
                number_of[operation.turn or ""] = len(self._turns)
                continue
            number = number_of.get(operation.turn or "", len(self._turns))
            self._placed.append(_Placed(number, operation, self._heard(operation, number)))

    def _heard(self, operation: Operation, number: int) -> tuple[str, ...]:
        """Return the turns that an operation is about: those that say what it was given, else its exchange."""
        if operation.kind in _WRITING:
            texts = (message.text for message in operation.messages)
            said = {
                normalised(text) for text in (*texts, *operation.given, *(item.text for item in operation.items))
            }
            given = sorted(
                place
                for words in said
                for place in self._numbers_by_words.get(words, ())
                if number - _LOOKS_BACK < place <= number
            )
            if given:
                return tuple(self._turns[place - 1].id for place in given)
        first = number - 1
        while (
            first > 0
            and self._turns[first].role != "user"
            and self._turns[first].session == self._turns[first - 1].session
        ):
            first -= 1
        return tuple(turn.id for turn in self._turns[max(first, 0) : number])

    def _place_by_messages_of_writes(self) -> None:
        """Take the messages that the memory was given for the conversation.

        An agent reads its memory before it answers, and writes afterwards: what was read since the last write
        belongs to the user's next message.
        """
        transcripts = self._transcripts()
        waiting: list[Operation] = []
        for operation in self._operations:
            if not operation.messages:
                waiting.append(operation)
                continue
            before = len(self._turns)
            of_model = transcripts.get(operation.session) if operation.is_of_model else None
            numbers = self._add_messages(operation) if of_model is None else self._add_said(operation, of_model)
            asked_at = next((n for n in range(before + 1, len(self._turns) + 1) if self._role(n) == "user"), 0)
            for earlier in waiting:
                self._placed.append(self._placed_before(earlier, before, asked_at))
            waiting = []
            turns = tuple(self._turns[number - 1].id for number in numbers)
            self._placed.append(_Placed(len(self._turns), operation, turns))
        for operation in waiting:
            self._placed.append(self._placed_before(operation, len(self._turns), 0))

    def _transcripts(self) -> dict[str | None, _Transcript]:
        """Return what was said in each session, from what the agent's model was given and replied.

        Each call repeats the conversation in its own way, and some are no part of it, such as one that finds a
        title.
        """
        by_session: dict[str | None, list[Call]] = defaultdict(list)
        for operation in self._operations:
            if operation.is_of_model:
                by_session[operation.session].append(_call_of(operation, self._path))
        return {
            session: _Transcript(each for each in aligned(calls, self._left_out) if each.role != "other")
            for session, calls in by_session.items()
        }

    def _add_said(self, operation: Operation, transcript: _Transcript) -> list[int]:
        """Add what was said up to the end of a call, if that is part of the transcript; returns the new numbers."""
        said = transcript.up_to(operation.messages[-1])
        return [self._add_turn(message, operation.session, operation.at) for message in said]

    def _placed_before(self, operation: Operation, before: int, asked_at: int) -> _Placed:
        number = asked_at if operation.kind in ("read", "get", "list") and asked_at else before
        return _Placed(number, operation, self._heard(operation, number))

    def _role(self, number: int) -> str:
        return self._turns[number - 1].role

    def _add_messages(self, operation: Operation) -> list[int]:
        """Add the messages that are new, and return the numbers of all: a memory may be given some again."""
        known = self._overlap(operation.messages)
        numbers = []
        for place, message in enumerate(operation.messages):
            number = self._message_ids.get(message.id or "") or (known[place] if place < len(known) else 0)
            if not number:
                number = self._add_turn(message, operation.session, operation.at)
            numbers.append(number)
        return numbers

    def _overlap(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Return the numbers of the last turns, if the messages begin with them."""
        for length in range(min(len(messages), len(self._turns)), 0, -1):
            if self._turns[-length].text != messages[0].text:
                continue
            last = self._turns[-length:]
            if all(
                turn.role == message.role and turn.text == message.text
                for turn, message in zip(last, messages, strict=False)
            ):
                return [turn.number for turn in last]
        return []

    def _place_alone(self) -> None:
        """Make a turn of every operation."""
        for operation in self._operations:
            texts = operation.given or [item.text for item in operation.items]
            words = operation.query or "; ".join(texts) or ", ".join(operation.removed)
            text = f"{operation.call}: {words}" if words and operation.kind != "list" else operation.call
            message = ChatMessage("other", text, label=operation.memory)
            number = self._add_turn(message, operation.session, operation.at)
            self._placed.append(_Placed(number, operation, (self._turns[number - 1].id,)))

    def _add_turn(self, message: ChatMessage, session: str | None, at: float) -> int:
        said_at = message.at.timestamp() if message.at else at
        number = len(self._turns) + 1
        id_ = str(number)
        self._turns.append(
            Turn(
                id=id_,
                number=number,
                session=self._session(session, said_at),
                role=message.role,
                speaker=message.label,
                text=message.text,
            )
        )
        self._numbers_by_words[normalised(message.text)].append(number)
        if message.id:
            self._message_ids[message.id] = number
        return number

    def _session(self, named: str | None, at: float) -> int:
        """Return the number of a session by its id; without one, a long silence begins a new session."""
        silent = at - self._last_at > DEFAULT_LOG_OPTIONS.session_gap * 3600
        self._last_at = max(self._last_at, at)
        current = self._sessions[-1] if self._sessions else None
        if current is not None and (current.id == named if named else not silent and current.id.isdigit()):
            return current.number
        number = len(self._sessions) + 1
        date = datetime.fromtimestamp(at, UTC).replace(tzinfo=None, microsecond=0)
        self._sessions.append(Session(number=number, id=named or str(number), date=date))
        return number


def _call_of(operation: Operation, path: Path) -> Call:
    returned = operation.messages[-1:] if operation.messages[-1].role == "assistant" else ()
    given = operation.messages[: len(operation.messages) - len(returned)]
    at = datetime.fromtimestamp(operation.at, UTC)
    return Call(operation.session or "", at, f"{operation.at:020.6f}", given, returned, Place(path, operation.note))


class _Transcript:
    """Messages of a session that are no turns yet."""

    def __init__(self, messages: Iterable[ChatMessage]) -> None:
        self._rest = deque((_words(message), message) for message in messages)
        self._numbers = Counter(words for words, _ in self._rest)

    def up_to(self, last: ChatMessage) -> list[ChatMessage]:
        """Take the messages up to one that says the same as ``last``; none if no message does."""
        wanted = _words(last)
        taken: list[ChatMessage] = []
        while self._numbers[wanted] > 0:
            words, message = self._rest.popleft()
            self._numbers[words] -= 1
            taken.append(message)
            if words == wanted:
                break
        return taken


def _words(message: ChatMessage) -> tuple[str, str]:
    return message.role, normalised(message.text)


_WRITING = frozenset({"write", "chat", "state"})
_LOOKS_BACK = 64
"""Turns: how far back a message is looked for that a memory was given."""


class _Memories:
    """The events of each memory of a conversation, and the items that are known to be stored."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.names: dict[str, None] = {}
        self.prompts: dict[int, str] = {}
        """The prompts of the agent's model, by the turn that it replied with."""
        self._held: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
        self._sources: dict[tuple[str, str, str], tuple[str, ...]] = {}
        self._words_of_turns: dict[str, str] = {}

    def events(self, placed: Sequence[_Placed]) -> Iterator[ReplayEvent]:
        """Yield the events of operations; those of one turn in their order."""
        silent = {op.memory for _, op, _ in placed if op.is_silent and op.kind in _WRITING}
        for turn in self._conversation.turns:
            yield TurnPlayed(conversation=self._conversation.id, turn=turn.number)
        read: dict[tuple[str, int], list[tuple[Operation, tuple[Hit, ...]]]] = defaultdict(list)
        for number, operation, turns in _as_shown(placed):
            if operation.kind == "message":
                continue
            if operation.is_of_model:
                self.prompts[number] = operation.prompt
                continue
            if operation.memory not in self.names:
                self.names[operation.memory] = None
                yield self._opened(operation.memory, is_known=operation.memory not in silent)
            yield from self._operated(number, operation, turns)
            if operation.kind in ("read", "get") and operation.error is None:
                read[operation.memory, number].append((operation, self._hits(operation)))
        for (memory, number), reads in read.items():
            yield self._perceived(memory, number, reads)

    def _opened(self, memory: str, *, is_known: bool) -> ReplayEvent:
        library = BY_NAME.get(memory)
        description = (library and library.description) or MemoryDescription()
        description = description.model_copy(update={"is_known": is_known})
        return ConversationOpened(conversation=self._conversation.id, turn=0, backend=memory, memory=description)

    def _operated(self, number: int, operation: Operation, turns: tuple[str, ...]) -> Iterator[ReplayEvent]:
        at = {"conversation": self._conversation.id, "turn": number, "backend": operation.memory}
        if operation.error is not None:
            is_read = operation.kind in ("read", "get", "list")
            yield StoreOperated(**at, operation=self._command(operation, None, turns))
            sentence = f"{operation.call}: {operation.error}"
            yield BackendFailed(**at, phase="perceive" if is_read else "observe", error=sentence)
            return
        match operation.kind:
            case "write" | "chat" | "state":
                if operation.state is not None:
                    change = WriteChange(value=operation.state)
                    yield StoreOperated(**at, operation=self._command(operation, change, turns))
                for place, items in _by_place(operation):
                    points = self._stored(operation.memory, place, items, turns)
                    yield StoreOperated(**at, operation=self._command(operation, points, turns, place))
                if operation.removed:
                    yield StoreOperated(**at, operation=self._removed(operation, turns))
                if operation.is_silent:
                    yield StoreOperated(**at, operation=self._command(operation, None, turns))
                yield Observed(**at, turns=turns, ms=operation.ms)
            case "remove" if not operation.removed:
                # Which items are gone is unknown: later reads tell.
                yield StoreOperated(**at, operation=self._command(operation, None, turns))
            case "remove" | "clear":
                yield StoreOperated(**at, operation=self._removed(operation, turns))
            case "list":
                yield from (StoreOperated(**at, operation=each) for each in self._listed(operation))
            case _:
                yield from (StoreOperated(**at, operation=each) for each in self._found(operation))

    def _command(
        self, operation: Operation, change: Any, turns: tuple[str, ...], place: str | None = None
    ) -> MemoryOperation:
        return MemoryOperation(
            store=operation.memory,
            command=operation.call,
            key=place or operation.place or operation.memory,
            change=change,
            ms=round(operation.ms, 3),
            phase="perceive" if operation.kind in ("read", "get", "list") else "observe",
            actor="agent",
            turns=turns,
            error=operation.error,
        )

    def _stored(self, memory: str, place: str, items: Sequence[Item], turns: tuple[str, ...]) -> UpsertChange:
        key = place or memory
        held = self._held[memory, key]
        points = []
        for item in items:
            points.append(StoredPoint(id=item.id, payload=item.payload, replaced=held.get(item.id)))
            held[item.id] = item.payload
            known = self._sources.get((memory, key, item.id), ())
            self._sources[memory, key, item.id] = tuple(dict.fromkeys((*known, *turns)))
        return UpsertChange(points=tuple(points))

    def _removed(self, operation: Operation, turns: tuple[str, ...]) -> MemoryOperation:
        """Return the removal of items by their ids, wherever they lie; without ids, of all."""
        keys = [key for memory, key in self._held if memory == operation.memory]
        key = operation.place or next(
            (key for key in keys if any(id_ in self._held[operation.memory, key] for id_ in operation.removed)),
            keys[0] if len(keys) == 1 else operation.memory,
        )
        held = self._held[operation.memory, key]
        ids = operation.removed or tuple(held)
        for id_ in ids:
            held.pop(id_, None)
        return self._command(operation, RemoveChange(count=len(ids), ids=operation.removed), turns, key)

    def _found(self, operation: Operation) -> Iterator[MemoryOperation]:
        """Yield what a read shows that was not known, and the read."""
        yield from self._seen(operation)
        change: Any = ReadChange(found=bool(operation.items), size=sum(len(item.text) for item in operation.items))
        if operation.query and all(item.score is not None for item in operation.items):
            found = tuple(
                FoundPoint(id=item.id, rank=rank, score=finite_score(item.score) or 0.0)
                for rank, item in enumerate(operation.items, start=1)
            )
            stored = sum(len(held) for (memory, _), held in self._held.items() if memory == operation.memory)
            change = SearchChange(query=operation.query, limit=len(found), found=found, stored=stored)
        yield self._command(operation, change, ())

    def _listed(self, operation: Operation) -> Iterator[MemoryOperation]:
        yield from self._seen(operation)
        yield self._command(operation, ReadChange(found=bool(operation.items), size=len(operation.items)), ())

    def _seen(self, operation: Operation) -> Iterator[MemoryOperation]:
        """Yield the writing of items whose text was not known: they are of before the recording, or were changed.

        An id that stands for several texts of one result names what they were cut from, and changes nothing.
        """
        for place, items in _by_place(operation):
            key = place or operation.memory
            held, times = self._held[operation.memory, key], Counter(item.id for item in items)
            news = [
                item
                for item in items
                if item.id not in held or (times[item.id] == 1 and held[item.id].get("content") != item.text)
            ]
            if news:
                stored = self._stored(operation.memory, key, news, ())
                yield self._command(replace(operation, call=_SEEN), stored, (), key)

    def _hits(self, operation: Operation) -> tuple[Hit, ...]:
        return tuple(self._hit(operation, rank, item) for rank, item in enumerate(operation.items, start=1))

    def _hit(self, operation: Operation, rank: int, item: Item) -> Hit:
        key = item.place or operation.place or operation.memory
        sources = self._sources.get((operation.memory, key, item.id), ())
        turns = self._conversation.turns_by_id
        said = f" {normalised(item.text)} " if sources else ""
        verbatim = tuple(turn for turn in sources if turn in turns and self._words(turns[turn]) in said)
        return Hit(
            id=item.id,
            store=operation.memory,
            place=key,
            rank=rank,
            score=item.score,
            text=item.text,
            turns=verbatim,
            sources=() if verbatim else sources,
            channels={},
            tokens=_tokens(item.text),
        )

    def _words(self, turn: Turn) -> str:
        """Return the words of a turn between spaces; what no text has if it has none."""
        words = self._words_of_turns.get(turn.id)
        if words is None:
            said = normalised(turn.text)
            words = self._words_of_turns[turn.id] = f" {said} " if said else _IN_NO_TEXT
        return words

    def _perceived(self, memory: str, number: int, reads: Sequence[tuple[Operation, tuple[Hit, ...]]]) -> Perceived:
        """Return all that was read at a turn as one read path: what several reads found, in their order."""
        hits: dict[tuple[str, str], Hit] = {}
        for _, found in reads:
            for hit in found:
                hits.setdefault((hit.place, hit.id), hit)
        ranked = tuple(
            hit if hit.rank == rank else hit.model_copy(update={"rank": rank})
            for rank, hit in enumerate(hits.values(), start=1)
        )
        return Perceived(
            conversation=self._conversation.id,
            turn=number,
            backend=memory,
            hits=ranked,
            why_empty="not_recorded" if not ranked and any(each.is_silent for each, _ in reads) else None,
            cut=(),
            tokens=sum(hit.tokens for hit in ranked),
            ms=sum(operation.ms for operation, _ in reads),
        )


_SEEN: Final = "seen by a read"
"""The command of an item that a read showed, and whose write was not recorded."""


def _as_shown(placed: Sequence[_Placed]) -> list[_Placed]:
    """Return operations in which a write that returned only an id stored what the next read of that id shows."""
    shown: dict[tuple[str, str, str], str] = {}
    found: list[_Placed] = []
    for each in reversed(placed):
        operation = each.operation
        if operation.error is None and operation.kind in _WRITING:
            items = tuple(
                replace(item, text=text) if text is not None and item.is_assumed else item
                for item in operation.items
                for text in [shown.pop(_key_of(operation, item), None)]
            )
            each = each._replace(operation=replace(operation, items=items))
        elif operation.error is None:
            shown |= {_key_of(operation, item): item.text for item in operation.items}
        found.append(each)
    return found[::-1]


def _key_of(operation: Operation, item: Item) -> tuple[str, str, str]:
    return operation.memory, item.place or operation.place, item.id


def _by_place(operation: Operation) -> Iterator[tuple[str, list[Item]]]:
    places: dict[str, list[Item]] = defaultdict(list)
    for item in operation.items:
        places[item.place or operation.place].append(item)
    yield from places.items()


_IN_NO_TEXT: Final = "\n"
"""Occurs in no normalised text."""


def _tokens(text: str) -> int:
    """Return about how many tokens a text has: nobody knows which model will read it."""
    return (len(text) + 3) // 4
