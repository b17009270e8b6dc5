"""Questions that a model drafted about a conversation, and what a human decided about them.

The file of drafts only grows: each line is one JSON object. The first one names the conversation; the others say
what was drafted from a part of it, or what was decided. So a decision costs one short line, and none is lost.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from memory_backends.storable import StorableText
from memreplay.conversations.formats.test_conversation_fields import QuestionType
from memreplay.conversations.models import Conversation, Frozen, Question, Turn
from memreplay.errors import DatasetError, UsageError
from memreplay.files import read_text
from memreplay.text import normalised, occurs_in

Decision = Literal["open", "accepted", "rejected"]
Drop = Literal[
    "is not a question with its answer and evidence",
    "names a turn that is not in this part",
    "quotes what the turn does not say",
    "gives its answer away",
    "was asked before",
]
"""Why a draft is dropped before a human sees it; completes “1 draft …”."""

CHARACTERS_OF_A_PART = 6000
"""Characters of the texts that one call reads, about 1,500 tokens."""

ANSWER_IN_OTHER_WORDS = "the answer does not stand in its evidence word for word"


class Quote(Frozen):
    """Words of a turn, by the turn's id."""

    turn: str
    quote: StorableText


class DraftedQuestion(Frozen):
    """``id`` is the part's number and the draft's in it; ``outdated`` are values that were right earlier."""

    id: str
    question: Annotated[StorableText, Field(min_length=1)]
    answer: Annotated[StorableText, Field(min_length=1)]
    type: QuestionType
    evidence: Annotated[tuple[Quote, ...], Field(min_length=1)]
    outdated: tuple[StorableText, ...] = ()
    decision: Decision = "open"


class _Head(Frozen):
    kind: Literal["drafts"] = "drafts"
    version: Literal[1] = 1
    conversation: str
    digest: str


class DraftedPart(Frozen):
    """The result of one call: the drafts, how many were dropped and why, and the cost; None if unknown."""

    kind: Literal["part"] = "part"
    number: int
    first: str
    last: str
    model: str
    drafts: tuple[DraftedQuestion, ...]
    dropped: dict[Drop, int] = {}
    tokens: int = 0
    cost_usd: float | None = None


class _Decided(Frozen):
    kind: Literal["decided"] = "decided"
    id: str
    decision: Decision
    question: Annotated[StorableText, Field(min_length=1)]
    answer: Annotated[StorableText, Field(min_length=1)]


_LINE: TypeAdapter[_Head | DraftedPart | _Decided] = TypeAdapter(
    Annotated[_Head | DraftedPart | _Decided, Field(discriminator="kind")]
)
_EXPECTED = "a line that memreplay datasets draft wrote"


class DraftBook:
    """The drafts about one conversation and the file that keeps them. The file is made by the first change."""

    def __init__(self, path: Path, conversation: Conversation) -> None:
        """Raises DatasetError for a damaged file, and UsageError for the file of another conversation."""
        self.path, self.conversation = path, conversation
        self.parts: dict[tuple[str, str], DraftedPart] = {}
        self._drafts: dict[str, DraftedQuestion] = {}
        self._head = _Head(conversation=conversation.id, digest=_digest(conversation))
        self.exists = path.exists()
        if self.exists:
            self._read()

    @property
    def drafts(self) -> list[DraftedQuestion]:
        """Return all drafts, in the order of the conversation."""
        return sorted(self._drafts.values(), key=lambda draft: tuple(map(int, draft.id.split("."))))

    def with_decision(self, decision: Decision) -> list[DraftedQuestion]:
        return [draft for draft in self.drafts if draft.decision == decision]

    @property
    def dropped(self) -> Counter[str]:
        return sum((Counter[str](part.dropped) for part in self.parts.values()), Counter[str]())

    def is_done(self, part: Sequence[Turn]) -> bool:
        """Return whether the questions about a part have been drafted."""
        return (part[0].id, part[-1].id) in self.parts

    def add(self, part: DraftedPart) -> None:
        """Keep what a part brought, without what other parts ask already."""
        asked = {normalised(draft.question) for draft in self._drafts.values()}
        new = tuple(draft for draft in part.drafts if normalised(draft.question) not in asked)
        again: dict[Drop, int] = {"was asked before": len(part.drafts) - len(new)}
        dropped = Counter[Drop](part.dropped) + Counter[Drop](again)
        self._take(part.model_copy(update={"drafts": new, "dropped": dict(dropped)}), write=True)

    def change(
        self,
        draft_id: str,
        *,
        decision: Decision | None = None,
        question: str | None = None,
        answer: str | None = None,
    ) -> DraftedQuestion:
        """Decide about a draft, or word it anew; returns what it is now."""
        draft = self._drafts[draft_id]
        decided = _Decided(
            id=draft_id,
            decision=decision or draft.decision,
            question=question or draft.question,
            answer=answer or draft.answer,
        )
        self._take(decided, write=True)
        return self._drafts[draft_id]

    def doubt(self, draft: DraftedQuestion) -> str | None:
        """Return why a human should look at a draft before it is accepted."""
        return None if stands_in_evidence(draft, self.conversation) else ANSWER_IN_OTHER_WORDS

    def with_questions(self) -> Conversation:
        """Return the conversation with the accepted questions after its own."""
        found = self.conversation
        new = tuple(_as_question(draft, found) for draft in self.with_decision("accepted"))
        return found.model_copy(update={"questions": found.questions + new})

    # ---- the file ------------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            text = read_text(self.path)
        except (OSError, ValueError) as error:
            raise DatasetError(self.path, "", f"cannot be read: {error}", _EXPECTED) from None
        *lines, torn = text.split("\n")
        if torn:
            # The end of a line that was being written when the program was killed.
            self._cut(len(text.encode()) - len(torn.encode()))
        for number, line in enumerate(lines, start=1):
            try:
                read = _LINE.validate_json(line)
                if (number == 1) != isinstance(read, _Head):
                    raise ValueError("out of place")
                self._take(read, write=False)
            except (ValidationError, ValueError, KeyError):
                raise DatasetError(self.path, f"line {number}", "is not a line of drafts", _EXPECTED) from None
        self.exists = bool(lines)

    def _cut(self, size: int) -> None:
        with self.path.open("r+b") as file:
            file.truncate(size)

    def _take(self, read: _Head | DraftedPart | _Decided, *, write: bool) -> None:
        if write:
            self._write(read)
        match read:
            case _Head():
                if (read.conversation, read.digest) != (self._head.conversation, self._head.digest):
                    raise UsageError(
                        f"{self.path}: holds drafts about another conversation, or about another version of this"
                        " one; choose another --output"
                    )
            case DraftedPart():
                self.parts[read.first, read.last] = read
                self._drafts |= {draft.id: draft for draft in read.drafts}
            case _Decided():
                self._drafts[read.id] = self._drafts[read.id].model_copy(
                    update={"decision": read.decision, "question": read.question, "answer": read.answer}
                )

    def _write(self, entry: DraftedPart | _Decided | _Head) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                if not self.exists:
                    file.write(self._head.model_dump_json() + "\n")
                file.write(entry.model_dump_json() + "\n")
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be written: {error.strerror}") from error
        self.exists = True


def parts_of(conversation: Conversation) -> list[tuple[Turn, ...]]:
    """Return what is said, in parts of whole exchanges for one call each. If half full, a part ends with its
    session.
    """
    return list(_parts(conversation))


def _parts(conversation: Conversation) -> Iterator[tuple[Turn, ...]]:
    part: list[Turn] = []
    size = 0
    for turn in conversation.turns:
        if turn.role == "other":
            continue
        length = min(len(turn.text), CHARACTERS_OF_A_PART)
        full = size + length > CHARACTERS_OF_A_PART and turn.role == "user"
        next_session = part and turn.session != part[-1].session and size > CHARACTERS_OF_A_PART // 2
        if part and (full or next_session or size > 2 * CHARACTERS_OF_A_PART):
            yield tuple(part)
            part, size = [], 0
        part.append(turn)
        size += length
    if part:
        yield tuple(part)


def stands_in(words: str, text: str) -> bool:
    """Return whether words stand in a text, apart from case, accents, punctuation and white space."""
    return occurs_in(words, text) or (bool(words.strip()) and words.strip() in text)


def stands_in_evidence(draft: DraftedQuestion, conversation: Conversation) -> bool:
    turns = conversation.turns_by_id
    return any(stands_in(draft.answer, turns[each.turn].text) for each in draft.evidence if each.turn in turns)


def _as_question(draft: DraftedQuestion, conversation: Conversation) -> Question:
    return Question(
        id=f"{conversation.id}-draft-{draft.id}",
        kind="recall",
        type=draft.type,
        text=draft.question,
        expected=draft.answer,
        expected_entities=(draft.answer,) if stands_in_evidence(draft, conversation) else (),
        evidence=tuple(dict.fromkeys(each.turn for each in draft.evidence)),
        evidence_role="supports",
        supersedes=draft.outdated,
    )


def _digest(conversation: Conversation) -> str:
    said = [(turn.id, turn.role, turn.text) for turn in conversation.turns]
    return sha256(json.dumps(said).encode()).hexdigest()
