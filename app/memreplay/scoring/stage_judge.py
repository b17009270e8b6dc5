"""Texts of a wrong answer that a judge of stages reads, and the verdict that follows from what it says.

The rules see only words, so they miss what a text lets its reader infer. A model is asked whether the prompt gives
the expected answer, and if not, whether what memory stored does. It is not asked what provenance knows: evidence
that stands somewhere word for word is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import wrap
from typing import Final

from memory_backends.retrieval.keyword import KeywordIndex
from memory_backends.retrieval.rendering import BETWEEN_HITS, under_date
from memory_backends.text import sentences_of
from memreplay.conversations.models import Conversation, message_of
from memreplay.llm.judging import Judgement, Stage
from memreplay.scoring.evidence_trail import Stages
from memreplay.scoring.holding import Answerable, Piece
from memreplay.scoring.verdicts import Label

JUDGED: Final[frozenset[Label]] = frozenset(
    {"no_evidence", "not_written", "not_retrieved", "cut", "stale", "abstained", "misread"}
)
"""Verdicts of the rules on which a judge is asked."""

_MOST_STORED: Final = 8_000
"""Characters of stored texts that a judge reads, besides those of the evidence turns."""
_LONG: Final = 1_000
"""Characters from which on a stored text is read by its sentences."""


@dataclass(frozen=True)
class StageCase:
    """A wrong answer for a judge of stages."""

    answerable: Answerable
    stages: Stages
    conversation: Conversation

    @cached_property
    def known(self) -> Mapping[Stage, bool | None]:
        """Return of the stages that no judge is asked about whether they give the answer: True where all evidence
        is there word for word, False where there is no text, None where it cannot be seen.
        """
        found: dict[Stage, bool | None] = {}
        texts: Mapping[Stage, Sequence[Piece]] = {
            "prompt": self.stages.in_prompt,
            "stored": self.stages.memory.stored,
        }
        for stage, pieces in texts.items():
            if stage == "stored" and self.stages.stores_out_of_sight:
                found[stage] = None
            elif self._are_told(pieces):
                found[stage] = True
            elif not any(piece.text.strip() for piece in pieces):
                found[stage] = False
        return found

    def _are_told(self, pieces: Sequence[Piece]) -> bool:
        evidence = self.answerable.evidence
        return bool(evidence) and all(self.answerable.is_told(turn, pieces) for turn in evidence)

    def to_ask(self, judged: Mapping[Stage, Judgement]) -> Stage | None:
        """Return the stage to ask about next; None where all is known."""
        prompt = self.answer("prompt", judged)
        if "prompt" not in self.known and prompt is None:
            return "prompt"
        asks = prompt is False and "stored" not in self.known
        return "stored" if asks and self.answer("stored", judged) is None else None

    def answer(self, stage: Stage, judged: Mapping[Stage, Judgement]) -> bool | None:
        """Return whether a stage gives the answer; None where it is not known."""
        if stage in self.known:
            return self.known[stage]
        verdict = judged[stage].verdict if stage in judged else None
        return None if verdict is None else verdict == "right"

    @property
    def said(self) -> Sequence[str]:
        """Return the evidence turns under their dates."""
        known = [self.answerable.turns[turn] for turn in self.answerable.evidence if turn in self.answerable.turns]
        messages = [message_of(self.conversation, turn) for turn in known if turn.role != "other"]
        return [under_date(message.line, message.said_at) for message in messages]

    def notes(self, stage: Stage) -> str:
        """Return the texts of a stage: the prompt without the question, or what memory stored of the answer."""
        if stage == "stored":
            return stored_text(_nearest(self.answerable, self.stages.memory.stored), self.conversation)
        texts = [piece.text for piece in self.stages.in_prompt if piece.text.strip()]
        # The prompt has the dates that stand over the texts; of a run that was imported it may not be recorded.
        is_recorded = all(text in self.stages.context for text in texts)
        return self.stages.context if is_recorded else BETWEEN_HITS.join(texts)


def _nearest(answerable: Answerable, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the texts of the evidence turns, and of the others those nearest to the answer by their words. A long
    text is read by its sentences.
    """
    parts = [part for piece in pieces for part in _parts_of(piece)]
    short = {piece for piece in pieces if len(piece.text) <= _LONG}
    own = [part for part in parts if part in short and not part.turns.isdisjoint(answerable.evidence)]
    yield from own
    others = [part for part in parts if part.text and part not in own]
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
        if len(others[place].text) <= left:
            left -= len(others[place].text)
            yield others[place]


def _parts_of(piece: Piece) -> Iterator[Piece]:
    """Yield a text, or its sentences where it is long: a whole memory file, a log."""
    if len(piece.text) <= _LONG:
        yield piece
    else:
        for sentence in sentences_of(piece.text):
            yield from (replace(piece, text=part) for part in wrap(sentence, _LONG))


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
    by_rules: Label,
    case: StageCase,
    judged: Mapping[Stage, Judgement],
    *,
    abstains: bool,
    is_outdated: bool,
    was_cut: bool,
) -> Label | None:
    """Return the verdict on a wrong answer by a judge of stages; None where it did not say enough.

    ``abstains``: the reply says that it was never said. ``is_outdated``: it gives a value that was replaced.
    ``was_cut``: the budget cut some of the evidence. A judge is asked for none of these.
    """
    prompt, stored = case.answer("prompt", judged), case.answer("stored", judged)
    if prompt is None:
        return None
    if prompt:
        return "stale" if is_outdated else "abstained" if abstains else "misread"
    if stored is None:
        return "not_visible" if "stored" in case.known else None
    if stored:
        return by_rules if by_rules in ("not_retrieved", "cut") else "cut" if was_cut else "not_retrieved"
    return by_rules if by_rules == "no_evidence" else "not_written"
