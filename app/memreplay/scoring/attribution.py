"""Which stage lost the fact: says of each answer why it was wrong, or what a right one rested on.

No model is asked and no text is judged: everything follows from recorded events, by looking up turn ids. Of the
labels of a wrong answer the first that applies holds, in the order of :data:`LABELS`; where several evidence turns
are missing, the one that was lost at the earliest stage decides.

A right answer is ``grounded`` where all evidence stood in the prompt word for word, or what was distilled from the
missing turns stood there and holds the expected answer. Otherwise it is ``guessed`` where the model is right
without any memory too, and ``lucky`` where it is not. Where the model was not asked without memory the two cannot
be told apart: it is ``guessed``, and the sentence says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal, get_args

from memory_backends.controls import CLOSED_BOOK
from memreplay.conversations.models import Frozen, Question
from memreplay.engine.events import QuestionAsked
from memreplay.grading import Score
from memreplay.llm import AGENT_MODEL
from memreplay.scoring.evidence_trail import (
    Loss,
    LostAt,
    Trail,
    trail_of,
    turns_distilled_in_prompt,
    turns_in_part_in_prompt,
    turns_in_prompt,
)
from memreplay.scoring.kept import MemoryHistory, Provenance
from memreplay.text import occurs_in
from memreplay.timeline.timeline import Answer

Label = Literal[
    "error",
    "unparsed",
    "refused",
    "key_suspect",
    "no_evidence",
    "not_written",
    "not_retrieved",
    "cut",
    "stale",
    "false_attribution",
    "misread",
    "grounded",
    "guessed",
    "lucky",
]
LABELS: tuple[Label, ...] = get_args(Label)
"""In the order in which they are tried: those of wrong answers, then those of right ones."""

_STAGES: tuple[LostAt | None, ...] = get_args(LostAt)


class Attribution(Frozen):
    """Why an answer was wrong, or what a right one rested on.

    ``label`` is None where nothing is known that would tell. ``loss`` says for ``not_written`` how the turn came to
    be stored nowhere. ``detail`` is a sentence. ``ranks`` maps each evidence turn that was not in the prompt to its
    1-based rank in each retrieval channel, as far down as the memory keeps record.
    """

    label: Label | None
    detail: str
    loss: Loss | None = None
    ranks: Mapping[str, Mapping[str, int]] = {}


class Attributor:
    """Attributes the answers of one conversation.

    ``suspect_keys`` maps the ids of questions whose published answer is doubted to the reason. What the model says
    without memory is looked up when it is first needed: of a replay that goes on, make a new one when it has got
    more answers.
    """

    def __init__(self, history: MemoryHistory, suspect_keys: Mapping[str, str] | None = None) -> None:
        self._history = history
        self._suspect_keys = suspect_keys or {}
        self._questions = {question.id: question for question in history.conversation.questions}
        self._provenance: dict[tuple[str, int], Provenance] = {}

    def attribute(self, answer: Answer) -> Attribution | None:
        """The attribution of an answer; None where it is not scored yet."""
        question = self._questions.get(answer.asked.question_id)
        if answer.scored is None or question is None:
            return None
        score = answer.scored.score
        if score.outcome == "correct":
            return self._right(question, answer.asked)
        return self._wrong(question, answer, score)

    def trails(self, answer: Answer) -> list[Trail]:
        """The way of each evidence turn of an answered question; empty where none is named."""
        question = self._questions.get(answer.asked.question_id)
        return [] if question is None else self._trails(question, answer.asked)

    def closed_book_is_right(self, asked: QuestionAsked) -> bool | None:
        """Whether the same model answers the question without any memory; None where it was not asked."""
        return self._closed_book.get((asked.model, asked.question_id))

    @cached_property
    def _closed_book(self) -> Mapping[tuple[str, str], bool]:
        """By model and question, whether the first answer without memory that is no error is right."""
        right: dict[tuple[str, str], bool] = {}
        for answer in self._history.answers():
            of, scored = answer.asked, answer.scored
            if of.backend != CLOSED_BOOK or of.by_hand or scored is None or scored.score.outcome == "error":
                continue
            right.setdefault((of.model, of.question_id), scored.score.outcome == "correct")
        return right

    # ---- wrong answers -------------------------------------------------------------------------------------

    def _wrong(self, question: Question, answer: Answer, score: Score) -> Attribution:
        match score.outcome:
            case "error":
                reason = answer.received.reply.error if answer.received is not None else None
                return Attribution(label="error", detail=reason or "There is no reply.")
            case "unparsed":
                return Attribution(label="unparsed", detail="No answer could be read from the reply.")
            case "refused":
                return Attribution(label="refused", detail="The provider refused to answer.")
            case _:
                pass
        if question.id in self._suspect_keys:
            return Attribution(label="key_suspect", detail=self._suspect_keys[question.id])
        if question.abstain:
            return self._took_the_bait(question, answer.asked)
        if not question.evidence or question.evidence_role != "supports":
            return Attribution(label="no_evidence", detail="The dataset names no turns that hold the answer.")
        return self._lost(question, answer.asked) or self._in_the_prompt(question, answer.asked, score)

    def _lost(self, question: Question, asked: QuestionAsked) -> Attribution | None:
        """Where the evidence was lost on its way into the prompt; None where all of it arrived."""
        trails = self._trails(question, asked)
        missing = [trail for trail in trails if trail.lost_at is not None]
        if not missing:
            return None
        if self._is_out_of_sight(asked):
            return Attribution(label=None, detail="What this memory gave to the model cannot be seen.")
        first = min(missing, key=lambda trail: _STAGES.index(trail.lost_at))
        return Attribution(
            label=first.lost_at,
            loss=first.loss,
            detail=" ".join(trail.sentence for trail in missing),
            ranks={trail.turn: trail.ranks for trail in missing if trail.ranks},
        )

    def _in_the_prompt(self, question: Question, asked: QuestionAsked, score: Score) -> Attribution:
        """All evidence was there: an outdated value was preferred, or it was misread."""
        said = score.predicted or ""
        evidence = frozenset(question.evidence)
        for backend in self._history.backends:
            for old in self._provenance_at(backend, asked.turn).supersessions:
                concerns = not evidence.isdisjoint(old.new_turns | old.old_turns)
                if concerns and occurs_in(old.old_value, said) and not occurs_in(old.old_value, question.expected):
                    since = ", ".join(sorted(old.new_turns)) or "a later turn"
                    return Attribution(
                        label="stale",
                        detail=f"It answered “{old.old_value}”, which turn {since} took the place of.",
                    )
        return Attribution(label="misread", detail="All evidence stood in the prompt, and the answer is another.")

    def _took_the_bait(self, question: Question, asked: QuestionAsked) -> Attribution:
        given = turns_in_prompt(asked)
        bait = [turn for turn in question.evidence if turn in given]
        if bait:
            detail = f"The answer was never said; what tempted stood in the prompt (turn {', '.join(bait)})."
        else:
            detail = "The answer was never said, and nothing that tempts stood in the prompt."
        return Attribution(label="false_attribution", detail=detail)

    # ---- right answers -------------------------------------------------------------------------------------

    def _right(self, question: Question, asked: QuestionAsked) -> Attribution:
        missing = frozenset(question.evidence) - turns_in_prompt(asked)
        if question.evidence and not missing:
            what = "the turns that tempt" if question.abstain else "all evidence"
            return Attribution(label="grounded", detail=f"{what.capitalize()} stood in the prompt.")
        why = f"Turn {', '.join(sorted(missing))} was not in the prompt" if missing else "No evidence is named"
        distilled = missing & turns_distilled_in_prompt(asked)
        if distilled:
            why += f" ({self._instead_of(distilled, asked)} was)"
        if missing and distilled == missing and _holds_the_answer(question, asked, missing):
            return Attribution(label="grounded", detail=f"{why}, and it holds the answer.")
        unaided = self.closed_book_is_right(asked)
        if unaided:
            return Attribution(label="guessed", detail=f"{why}; the model is right without any memory too.")
        if not question.evidence or self._is_out_of_sight(asked):
            return Attribution(label=None, detail=f"{why}: what the answer rests on cannot be told.")
        if unaided is None:
            return Attribution(
                label="guessed",
                detail=f"{why}; guessed or lucky: the model was not asked without memory, which would tell.",
            )
        return Attribution(label="lucky", detail=f"{why}; without any memory the model is wrong.")

    def _instead_of(self, turns: frozenset[str], asked: QuestionAsked) -> str:
        """What stood in the prompt of turns that did not stand there whole."""
        in_part = turns & turns_in_part_in_prompt(asked, self._provenance_at(asked.backend, asked.turn))
        said = (("a part of turn", in_part), ("a fact distilled from turn", turns - in_part))
        return " and ".join(f"{what} {', '.join(sorted(which))}" for what, which in said if which)

    # ---- what both need ------------------------------------------------------------------------------------

    def _trails(self, question: Question, asked: QuestionAsked) -> list[Trail]:
        provenance = self._provenance_at(asked.backend, asked.turn)
        turns_by_id = self._history.conversation.turns_by_id
        return [
            trail_of(turn, turns_by_id.get(turn), asked, provenance) for turn in dict.fromkeys(question.evidence)
        ]

    def _is_out_of_sight(self, asked: QuestionAsked) -> bool:
        """Whether neither writes nor hits are on record, or an agent has answered by itself."""
        if asked.model == AGENT_MODEL:
            return True
        if asked.backend == CLOSED_BOOK or asked.hits or asked.missed or asked.cut:
            return False
        return not self._provenance_at(asked.backend, asked.turn).is_traced

    def _provenance_at(self, backend: str, turn: int) -> Provenance:
        """Folded once: what happened up to an ask does not change after it."""
        known = self._provenance.get((backend, turn))
        if known is None:
            positions = range(turn + 1)
            events = (event for position in positions for event in self._history.events_at(backend, position))
            known = self._provenance[backend, turn] = Provenance(events)
        return known


def _holds_the_answer(question: Question, asked: QuestionAsked, turns: frozenset[str]) -> bool:
    """Whether something in the prompt that was distilled from these turns says the expected answer."""
    given = (hit.text for hit in asked.hits if hit.in_prompt and not turns.isdisjoint(hit.sources))
    return any(occurs_in(question.expected, text) for text in given)
