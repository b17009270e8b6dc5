"""What a judge of stages reads of a wrong answer, and the verdict that follows from what it says.

The rules see only words, so they miss what a text lets its reader infer. A model is asked whether the prompt gives
the expected answer, and if not, whether what memory stored does. It is not asked what provenance knows: evidence
that stands somewhere word for word is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory_backends.retrieval.keyword import KeywordIndex
from memory_backends.retrieval.rendering import BETWEEN_HITS, under_date
from memreplay.conversations.models import Conversation, Question, message_of
from memreplay.llm.judging import Judgement, Stage
from memreplay.scoring.evidence_trail import Stages
from memreplay.scoring.holding import Answerable, Piece
from memreplay.scoring.verdicts import Label

JUDGED: Final[frozenset[Label]] = frozenset(
    {"no_evidence", "not_written", "not_retrieved", "cut", "stale", "abstained", "misread"}
)
"""Verdicts of the rules on which a judge is asked."""
_READER: Final[frozenset[Label]] = frozenset({"stale", "abstained", "misread"})

_MOST_STORED: Final = 8_000
"""Characters of stored texts that a judge reads, besides those of the evidence turns."""


@dataclass(frozen=True)
class StageCase:
    """A wrong answer for a judge of stages: the evidence turns under their dates, and the notes by stage.

    In place of notes stands True where all evidence is there word for word, False where there is no text, and None
    where it cannot be seen.
    """

    question: Question
    said: tuple[str, ...]
    notes: Mapping[Stage, str | bool | None]

    def to_ask(self, judged: Mapping[Stage, Judgement]) -> Stage | None:
        """Return the stage to ask about next; None where all is known."""
        prompt = _answer("prompt", self, judged)
        if isinstance(self.notes["prompt"], str) and prompt is None:
            return "prompt"
        asks = prompt is False and isinstance(self.notes["stored"], str)
        return "stored" if asks and _answer("stored", self, judged) is None else None


def _answer(stage: Stage, case: StageCase, judged: Mapping[Stage, Judgement]) -> bool | None:
    """Return whether the notes of a stage give the answer; None where it is not known."""
    notes = case.notes[stage]
    if not isinstance(notes, str):
        return notes
    verdict = judged[stage].verdict if stage in judged else None
    return None if verdict is None else verdict == "right"


def stage_case(answerable: Answerable, stages: Stages, conversation: Conversation) -> StageCase:
    """Return what a judge reads of an answer."""
    known = [answerable.turns[turn] for turn in answerable.evidence if turn in answerable.turns]
    messages = [message_of(conversation, turn) for turn in known if turn.role != "other"]
    return StageCase(
        answerable.question,
        tuple(under_date(message.line, message.said_at) for message in messages),
        {"prompt": _prompt(answerable, stages), "stored": _stored(answerable, stages, conversation)},
    )


def _are_told(answerable: Answerable, pieces: Sequence[Piece]) -> bool:
    return bool(answerable.evidence) and all(answerable.is_told(turn, pieces) for turn in answerable.evidence)


def _prompt(answerable: Answerable, stages: Stages) -> str | bool:
    if _are_told(answerable, stages.in_prompt):
        return True
    texts = [piece.text for piece in stages.in_prompt if piece.text.strip()]
    # The prompt has the dates that stand over the texts; of a run that was imported it may not be recorded.
    is_recorded = all(text in stages.context for text in texts)
    return bool(texts) and (stages.context if is_recorded else BETWEEN_HITS.join(texts))


def _stored(answerable: Answerable, stages: Stages, conversation: Conversation) -> str | bool | None:
    if stages.stores_out_of_sight:
        return None
    pieces = stages.memory.stored
    if _are_told(answerable, pieces):
        return True
    return stored_text(_nearest(answerable, pieces), conversation) or False


def _nearest(answerable: Answerable, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the texts of the evidence turns, and of the others those nearest to the answer by their words."""
    own = [piece for piece in pieces if not piece.turns.isdisjoint(answerable.evidence)]
    yield from own
    others = [piece for piece in pieces if piece.text and piece not in own]
    if not others:
        return
    index = KeywordIndex()
    for piece in others:
        index.add(0, piece.text)
    question = answerable.question
    said = [answerable.turns[turn].text for turn in answerable.evidence if turn in answerable.turns]
    scores = index.scores(" ".join([question.text, question.expected, *said]), reach=0)
    left = _MOST_STORED
    for place in (-scores).argsort(kind="stable"):
        left -= len(others[place].text)
        if left < 0:
            return
        yield others[place]


def stored_text(pieces: Iterable[Piece], conversation: Conversation) -> str:
    """Return stored texts as they would stand in a prompt: in the order of the conversation, under their dates;
    those of unknown turns first.
    """
    turns = conversation.turns_by_id
    placed: list[tuple[int, str]] = []
    for piece in pieces:
        said = sorted((turns[turn] for turn in piece.turns if turn in turns), key=lambda turn: turn.number)
        if piece.text:
            said_at = message_of(conversation, said[-1]).said_at if said and piece.is_dated else None
            placed.append((said[-1].number if said else 0, under_date(piece.text, said_at)))
    return BETWEEN_HITS.join(text for _, text in sorted(placed, key=lambda each: each[0]))


def verdict_of_judge(
    by_rules: Label, case: StageCase, judged: Mapping[Stage, Judgement], *, abstains: bool, was_cut: bool
) -> Label | None:
    """Return the verdict on a wrong answer by a judge of stages; None where it did not say enough.

    ``abstains``: the reply says that it was never said. ``was_cut``: the budget cut some of the evidence. What a
    judge is not asked stays as the rules have it: whether the reply is outdated, and where the budget cut.
    """
    prompt, stored = (_answer(stage, case, judged) for stage in ("prompt", "stored"))
    if prompt is None:
        return None
    if prompt:
        return by_rules if by_rules in _READER else "abstained" if abstains else "misread"
    if case.notes["stored"] is None:
        return "not_visible"
    if stored is None:
        return None
    if stored:
        return by_rules if by_rules in ("not_retrieved", "cut") else "cut" if was_cut else "not_retrieved"
    return by_rules if by_rules == "no_evidence" else "not_written"
