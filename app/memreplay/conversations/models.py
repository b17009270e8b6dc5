"""Conversations of turns in sessions, and the questions about them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date as Day
from datetime import datetime
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from memory_backends.base import Exchange, Message
from memory_backends.storable import StorableText

Role = Literal["user", "assistant"]
TurnRole = Role | Literal["other"]
"""``other`` is what nobody says to the other, such as a system prompt or a tool call: it is shown to the user, and
never given to a memory."""
Salience = Literal["high", "medium", "low"]
InfoLocation = Literal["early", "middle", "recent"]
KeyInfoType = Literal["identity", "preference", "fact", "instruction"]
QuestionKind = Literal["choice", "recall"]
EvidenceRole = Literal["supports", "tempting"]

LONGEST_TURN = 2**20
"""Characters of a message, at most: two books. Time and memory grow faster than its length."""

LONGEST_OPENING = 200
"""Characters of the first words in a list."""

TurnText = Annotated[str, Field(max_length=LONGEST_TURN)]
"""The text of a turn in a dataset file."""

NOT_ANSWERABLE = "Not answerable"

UNTYPED = "recall"
"""The type of a question whose file names none."""


class Frozen(BaseModel):
    """A value object: immutable, and strict about its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class KeyInfo(Frozen):
    """The metadata of a TestConversation turn with testable information."""

    contains_key_info: bool
    key_info_type: KeyInfoType | None = None
    salience: Salience | None = None


class Turn(Frozen):
    """One message.

    ``id`` is the dataset's id ("D1:3") if it has one, else the 1-based turn number as text. ``number`` is the
    1-based position in the whole conversation, ``session`` the number of its session. ``speaker`` is the name if
    the dataset has named speakers; ``text`` does not repeat it. ``is_edited``: its words were changed by hand, so
    that what the dataset expects of it was said in others.
    """

    id: str
    number: int
    session: int
    role: TurnRole
    speaker: StorableText | None
    text: StorableText
    key_info: KeyInfo | None = None
    is_edited: bool = False

    @model_serializer(mode="wrap")
    def _as_before(self, fields_of: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave ``is_edited`` out of a turn that is not: digests of conversations stay as they were recorded."""
        fields: dict[str, object] = fields_of(self)
        if not self.is_edited:
            fields.pop("is_edited", None)
        return fields


class Session(Frozen):
    """A session of the conversation. ``summary`` is shown to the user and never given to a memory."""

    number: int
    id: str
    date: datetime | None = None
    summary: str | None = None


class Question(Frozen):
    """A recall question, or a multiple-choice one (then ``choices`` and ``correct_index`` are set).

    ``type`` is the dataset's own name for what kind of question it is; ``other_type`` the second name, where two
    are in use (LoCoMo and LoCoMo-MC10 name the same categories differently). ``abstain`` marks a question whose
    right answer is that it was never said, and ``suggested`` the wrong answer that its dataset offers.
    ``evidence`` are turn ids, as published. ``supersedes`` are values that were right earlier in the conversation
    and are no longer.
    """

    id: str
    kind: QuestionKind
    type: str
    text: str
    expected: str
    expected_entities: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    correct_index: int | None = None
    other_type: str | None = None
    info_location: InfoLocation | None = None
    salience: Salience | None = None
    category: str | None = None
    abstain: bool = False
    evidence: tuple[str, ...] = ()
    evidence_role: EvidenceRole | None = None
    supersedes: tuple[str, ...] = ()
    suggested: str | None = None

    @property
    def expects_a_rubric(self) -> bool:
        """Return whether ``expected`` describes a good reply, as LongMemEval's questions of preference do."""
        return self.kind == "recall" and self.type == "single-session-preference"


class Conversation(Frozen):
    """A conversation with its questions.

    ``dataset`` is the id of the dataset (a file's stem); ``language`` is a BCP 47 tag. ``conversing`` marks tests
    in which the agent answers, so turns and sessions are created during the run: ``end`` and ``can_be_replayed``
    say what follows from it.
    """

    id: StorableText
    dataset: StorableText
    sessions: tuple[Session, ...]
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    language: str | None = None
    tags: tuple[str, ...] = ()
    conversing: bool = False
    title: str | None = Field(default=None, exclude=True)
    """The file's name for it: shown in lists, and neither recorded nor compared."""

    @property
    def date(self) -> datetime | None:
        """Return when it began."""
        return next((session.date for session in self.sessions if session.date is not None), None)

    @property
    def opening(self) -> str:
        """Return the first words of the user, or of the assistant if the user says nothing, on one line."""
        spoken = [turn for turn in self.turns if turn.role != "other" and turn.text.strip()]
        first = next((turn for turn in spoken if turn.role == "user"), spoken[0] if spoken else None)
        return " ".join(first.text[:LONGEST_OPENING].split()) if first else ""

    @property
    def end(self) -> int | None:
        """Return the number of the last turn; None while replies decide whether another one follows."""
        return None if self.conversing else len(self.turns)

    @property
    def can_be_replayed(self) -> bool:
        """Return whether other memories can hear the same conversation: to be compared, asked, or forked.

        In tests each reply decides what is said next.
        """
        return not self.conversing

    @cached_property
    def sessions_by_number(self) -> dict[int, Session]:
        return {session.number: session for session in self.sessions}

    @cached_property
    def turns_by_id(self) -> dict[str, Turn]:
        return {turn.id: turn for turn in self.turns}

    @cached_property
    def days_by_session(self) -> dict[int, Day]:
        """Return the date of each session that has one."""
        return {session.number: session.date.date() for session in self.sessions if session.date is not None}

    def date_of(self, turn: Turn) -> datetime | None:
        """Return the date of the turn's session."""
        session = self.sessions_by_number.get(turn.session)
        return session.date if session else None

    def label_of(self, turn: Turn) -> str:
        """Return the label of the turn in a log: the speaker's name, else ``User`` or ``AI``."""
        return turn.speaker or {"user": "User", "assistant": "AI", "other": "Other"}[turn.role]


def message_of(conversation: Conversation, turn: Turn) -> Message:
    """Return what the user or the assistant says as a message, with its label and the date of its session."""
    assert turn.role != "other"
    return Message(
        turn_id=turn.id,
        turn_number=turn.number,
        session=turn.session,
        role=turn.role,
        label=conversation.label_of(turn),
        text=turn.text,
        said_at=conversation.date_of(turn),
    )


def exchanges_of(conversation: Conversation, ends: Collection[int] = ()) -> tuple[Exchange, ...]:
    """Split the conversation into exchanges; every turn of user and assistant belongs to exactly one.

    An exchange begins at the start of a session and when the user speaks after the assistant. So consecutive turns
    of one role stay together, and a leading assistant turn or trailing user turn of a session forms its own
    exchange. One that ended at a turn in ``ends`` was complete before a branch departed there: what follows in the
    branch does not continue it.
    """
    groups: list[list[Message]] = []
    previous: Turn | None = None
    for turn in conversation.turns:
        if turn.role == "other":
            continue
        begins = (
            previous is None
            or previous.session != turn.session
            or previous.number in ends
            or (previous.role == "assistant" and turn.role == "user")
        )
        if begins:
            groups.append([])
        groups[-1].append(message_of(conversation, turn))
        previous = turn
    return tuple(Exchange(messages=tuple(group)) for group in groups)
