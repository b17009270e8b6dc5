"""Attribution: the stage that lost the fact of a wrong answer, or the ground of a right one.

A verdict follows from the dataset and from what was recorded of this one memory: whether what was stored,
retrieved and put in the prompt *holds the answer* (:mod:`memreplay.scoring.holding`). The same predicate serves
right and wrong answers. Where several evidence turns are missing, the earliest stage that lost one decides. No
model is asked, unless a judge is to say where wrong answers were lost (:mod:`memreplay.scoring.stage_judge`).

The verdict of a wrong answer is the first label of :data:`~memreplay.scoring.verdicts.WRONG` that applies. A right
answer is ``grounded`` where the prompt held the answer; else it is ``guessed`` where the same model is right
without any memory (the closed_book control), and ``lucky`` where it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Final

from memory_backends.controls import CLOSED_BOOK
from memory_backends.text import sentences_of
from memreplay.conversations.models import Frozen, Question
from memreplay.engine.events import QuestionAsked
from memreplay.grading import Score
from memreplay.grading.failures import GradingError, grading_one_answer
from memreplay.grading.judge import is_abstention
from memreplay.grading.match import contains
from memreplay.grading.read import AT, content_of, folded, same_token, tokens_of
from memreplay.grading.veto import asked_by, asserted
from memreplay.grading.vocabulary import DAY_NAMES
from memreplay.llm.model import Reply
from memreplay.scoring.doubt import Doubt, doubt_about, doubted
from memreplay.scoring.evidence_trail import STAGES, Loss, LostAt, Stages, Trail, lost_as_a_whole, trails_of
from memreplay.scoring.holding import Answerable, Piece
from memreplay.scoring.stage_judge import JUDGED, StageCase, verdict_of_judge
from memreplay.scoring.stored import MemoryHistory, StoredMemory
from memreplay.scoring.verdicts import VERDICTS, Label
from memreplay.scoring.writer import WriterCause
from memreplay.timeline.timeline import Answer


def _returned(answerable: Answerable, stages: Stages) -> str:
    """Return that memory returned the answer, and at which rank. What reached the model was not recorded."""
    given = [hit for hit in stages.asked.hits if hit.in_prompt]
    rank = next(
        (hit.rank for hit, text in zip(given, stages.in_prompt, strict=False) if answerable.held_by([text])), 0
    )
    placed = f" at rank {rank} of {len(given)}" if rank else ""
    return f"Memory returned the answer{placed}; the prompt that the model got was not recorded."


_NOT_RETURNED = "Memory did not return the answer; the prompt that the model got was not recorded."
_NOT_RECORDED = "What this memory heard, stored and gave to the model was not recorded."


class Attribution(Frozen):
    """Why an answer was wrong, or what a right one rested on.

    ``label`` is None for closed_book, which has no memory to lose anything, for right answers of which it was not
    recorded what they rest on, and where the rules failed, which ``detail`` says. ``loss`` says for ``not_written``
    how the fact was lost. ``detail`` is in words, ``doubt`` the reason for which the verdict is uncertain.
    ``ranks`` maps each evidence turn that was not in the prompt to its 1-based rank in each retrieval channel, as
    far down as the memory records them. ``writer`` says what the model that writes did, where a fact was never
    stored. Where ``judge``, a model, decided the stage, ``by_rules`` is what the rules say.
    """

    label: Label | None
    detail: str
    loss: Loss | None = None
    doubt: Doubt | None = None
    ranks: Mapping[str, Mapping[str, int]] = {}
    writer: WriterCause | None = None
    judge: str | None = None
    by_rules: Label | None = None


def _read_less(reply: Reply) -> str:
    return (
        f"The model's server counted {reply.usage.prompt:,} tokens of a prompt that has clearly more: it cut the"
        " prompt, and what it read is unknown. Give it a larger window, or use --context-tokens."
    )


def _by_judge(
    found: Attribution, label: Label, judge: str, doubt: Doubt | None
) -> tuple[Attribution, Doubt | None]:
    """Return the verdict of a judge of stages with that of the rules, and why it is uncertain.

    Where both agree, signs that the rules may have missed the stage no longer count. The grade may still be wrong.
    """
    update: dict[str, object] = {"judge": judge, "by_rules": found.label}
    if label == found.label:
        update["detail"] = f"{found.detail} {judge} agrees."
        return found.model_copy(update=update), doubt if doubt == "near_answer" else None
    assert found.label is not None
    words = VERDICTS[found.label].words
    update |= {
        "label": label,
        "loss": "distilled_away" if label == "not_written" else None,
        "ranks": {} if VERDICTS[label].fault == "reader" else found.ranks,
        "writer": None,
        "detail": f"{_JUDGED_AS[label].format(judge)} By the rules it was “{words}”. {found.detail}",
    }
    return found.model_copy(update=update), "second_opinion"


_GIVEN: Final = "By {}, the prompt gives the answer."
_STORED: Final = "By {}, the prompt does not give the answer, and what memory stored does."
_JUDGED_AS: Final[Mapping[Label, str]] = {
    "abstained": _GIVEN,
    "misread": _GIVEN,
    "stale": _GIVEN,
    "cut": _STORED,
    "not_retrieved": _STORED,
    "not_written": "By {}, neither the prompt nor what memory stored gives the answer.",
    "not_visible": "By {}, the prompt does not give the answer; what memory stored cannot be seen.",
}


_NO_VERDICT: Final = "No verdict: "


def without_verdict(error: GradingError) -> Attribution:
    """Return the attribution of an answer on which the rules failed. The answer keeps its score."""
    return Attribution(label=None, detail=f"{_NO_VERDICT}{error}")


def verdict_failure(detail: str | None) -> str | None:
    """Return why the rules failed on an answer, by the detail of its attribution; None where they did not."""
    return detail.removeprefix(_NO_VERDICT) if detail is not None and detail.startswith(_NO_VERDICT) else None


_CORRECTS: Final = re.compile(
    r"\b(?:actually|no longer|not\b[^.;]*\bany ?more|instead|after all|correction|i was wrong|in fact|now"
    r"|(?:chang|mov|switch|postpon|reschedul|delay)ed|put (?:back|off)|(?:pushed|brought|moved) (?:back|forward)"
    r"|(?:new|another) (?:date|day|time)|(?:nuev|otr)[oa] (?:fecha|dia|hora)|(?:pasad|movid)[oa]s? (?:al?|para)"
    r"|ya no|sino|al final|en realidad|mejor dicho|ahora|cambi\w+|(?:aplaz|retras|adelant|pospu?)\w+)\b"
)
"""Words of a turn that takes back what its speaker said earlier."""
_ASKS_OF_THE_PAST: Final = re.compile(r"\b(?:did|was|were|had)\b")
_SHORT_REPLY: Final = 3
"""Words. A longer reply is no value."""


def _values_of(said: str, question: Question) -> list[str]:
    """Return what a reply may give as the value: all of the kind of the answer, and a short reply as a whole."""
    if is_abstention(said):
        return []
    asked = tokens_of(question.text)
    names = asked_by(said).names
    wanted = [token for _, token in content_of(tokens_of(question.expected))]
    kinds, units = {token.kind for token in wanted}, {token.extra for token in wanted} | {""}
    new = [
        token
        for _, token in content_of(tokens_of(said))
        if ((token.kind in kinds and token.extra in units) or (token.extra == AT and "time" in kinds))
        and not any(same_token(one, token) for one in asked)
    ]
    written = said if len(said) == len(folded(said)) else folded(said)
    spans = [
        (token.start, token.end)
        for token in new
        if token.kind != "word"
        or token.text in DAY_NAMES
        or (token.text in names and written[token.start].isupper())
    ]
    if 0 < len(new) <= _SHORT_REPLY:
        spans.append((new[0].start, new[-1].end))
    return [written[start:end] for start, end in dict.fromkeys(spans)]


def _are_of_one_kind(value: str, expected: str) -> bool:
    """Return whether both are figures, dates or names, or the like of both."""
    kinds, wanted = ({token.kind for _, token in content_of(tokens_of(one))} for one in (value, expected))
    is_name = value[:1].isupper() or not DAY_NAMES.keys().isdisjoint(folded(value).split())
    return kinds == wanted and ("word" not in kinds or is_name)


def edited_evidence(answerable: Answerable) -> str:
    """Return that the expected answer is in doubt, since its evidence was edited by hand."""
    named = answerable.edited
    turns = f"turn {named[0]} is" if len(named) == 1 else f"turns {', '.join(named)} are"
    return (
        f"The edited {turns} evidence of {answerable.question.id}: its expected answer,"
        f" “{answerable.question.expected}”, is that of the old text"
    )


class Attributor:
    """Attributes the answers of one conversation.

    ``suspect_keys`` maps ids of questions whose published answer is doubted to the reason. The closed_book answers
    are read once: make a new attributor when a live replay has got more answers. ``by_hand`` are further questions
    by their ids.
    """

    def __init__(
        self,
        history: MemoryHistory,
        suspect_keys: Mapping[str, str] | None = None,
        by_hand: Mapping[str, Question] | None = None,
    ) -> None:
        self._history = history
        self._suspect_keys = suspect_keys or {}
        own = {question.id: question for question in history.conversation.questions}
        self._questions = {**(by_hand or {}), **own}
        self._memories: dict[tuple[str, int], StoredMemory] = {}
        self._latest: Answerable | None = None

    def answerable(self, question: Question) -> Answerable:
        """Return the question, to be looked for in texts. The same until another is asked for, since it remembers
        them.
        """
        if self._latest is None or self._latest.question is not question:
            conversation = self._history.conversation
            self._latest = Answerable(question, conversation.turns_by_id, conversation.days_by_session)
        return self._latest

    def attribute(self, answer: Answer) -> Attribution | None:
        """Return the attribution of an answer; None where it is not scored yet. Without a label where the rules
        fail.
        """
        question = self._questions.get(answer.asked.question_id)
        if answer.scored is None or question is None:
            return None
        try:
            with grading_one_answer():
                return self._attributed(question, answer, answer.scored.score)
        except GradingError as error:
            return without_verdict(error)

    def _attributed(self, question: Question, answer: Answer, score: Score) -> Attribution:
        if score.outcome == "correct":
            return self._right(question, answer.asked)
        wrong = self._wrong(question, answer, score)
        if answer.asked.backend == CLOSED_BOOK:
            return wrong.model_copy(update={"label": None})
        return wrong if wrong.label not in JUDGED else self._weighed(wrong, question, answer, score)

    def _weighed(self, found: Attribution, question: Question, answer: Answer, score: Score) -> Attribution:
        """Return a verdict of the rules with what a judge of stages says of it, and why it is uncertain."""
        answerable, stages, said = self.answerable(question), self.stages(answer.asked), score.predicted or ""
        doubt = doubt_about(found.label, answerable, stages, said) if answerable.evidence and found.label else None
        if answer.stages_judged and found.label is not None:
            case = StageCase(answerable, stages, self._history.conversation)
            cut = {turn for part in stages.asked.cut for turn in part.turns}
            cut |= {turn for hit in stages.asked.hits if not hit.in_prompt for turn in hit.turns}
            label = verdict_of_judge(
                found.label,
                case,
                answer.stages_judged,
                abstains=is_abstention(said),
                is_outdated=bool(self._outdated_reply(question, stages, score)),
                was_cut=not cut.isdisjoint(answerable.evidence),
            )
            if label is not None:
                found, doubt = _by_judge(found, label, next(iter(answer.stages_judged.values())).judge, doubt)
        detail = found.detail if doubt is None else f"{found.detail} {doubted(doubt)}"
        return found.model_copy(update={"doubt": doubt, "detail": detail})

    def stage_case(self, answer: Answer) -> StageCase | None:
        """Return what a judge of stages reads of a wrong answer; None of one of which the rules alone can tell.

        Raises:
            GradingError: the rules fail on it.
        """
        question = self._questions.get(answer.asked.question_id)
        if question is None or answer.scored is None or answer.scored.score.outcome == "correct":
            return None
        with grading_one_answer():
            if answer.asked.backend == CLOSED_BOOK:
                return None
            if self._wrong(question, answer, answer.scored.score).label not in JUDGED:
                return None
            return StageCase(self.answerable(question), self.stages(answer.asked), self._history.conversation)

    def trails(self, answer: Answer) -> list[Trail]:
        """Return how far each evidence turn of a question came; empty where none is named, and for closed_book."""
        question = self._questions.get(answer.asked.question_id)
        if question is None or answer.asked.backend == CLOSED_BOOK:
            return []
        stages = self.stages(answer.asked)
        return [] if stages.are_not_recorded else self._trails(question, stages)

    def is_in_prompt(self, asked: QuestionAsked) -> bool:
        """Return whether the prompt of a question asked like this holds the answer.

        Raises:
            GradingError: the rules fail on it.
        """
        with grading_one_answer():
            answerable = self.answerable(self._questions[asked.question_id])
            return answerable.held_by(self.stages(asked).in_prompt)

    def lost_at(self, asked: QuestionAsked) -> LostAt | None:
        """Return the stage that loses the answer to a question asked like this; None where the prompt holds it.

        Raises:
            GradingError: the rules fail on it.
        """
        question = self._questions[asked.question_id]
        with grading_one_answer():
            answerable, stages = self.answerable(question), self.stages(asked)
            if answerable.held_by(stages.in_prompt):
                return None
            if not answerable.evidence:
                return lost_as_a_whole(answerable, stages)
            return min((trail.lost_at for trail in self._missing(answerable, stages)), key=STAGES.index)

    def closed_book_is_right(self, asked: QuestionAsked) -> bool | None:
        """Return whether the same model answers the question without any memory; None where it was not asked."""
        return self._closed_book.get((asked.model, asked.question_id))

    def outdated_values(self, answer: Answer) -> tuple[str, ...]:
        """Return values that no longer held when a question was asked, by the dataset, by the memory's own account
        or because the reply gives what its speaker took back.
        """
        question = self._questions.get(answer.asked.question_id)
        if question is None:
            return ()
        said = (answer.scored.score.predicted if answer.scored is not None else None) or ""
        replaced = self._replaced(question, self.stages(answer.asked).memory)
        known = chain(self._superseded(question), replaced, self._taken_back(question, said))
        return tuple(dict.fromkeys(old for old, _ in known))

    def stored_of_evidence(self, answer: Answer) -> list[Piece]:
        """Return the texts that memory held of the evidence turns when it was asked, and others with the answer.

        Raises:
            GradingError: the rules fail on it.
        """
        question = self._questions.get(answer.asked.question_id)
        if question is None or question.abstain:
            return []
        answerable, stored = self.answerable(question), self.stages(answer.asked).memory.stored
        with grading_one_answer():
            return [
                piece
                for piece in stored
                if not piece.turns.isdisjoint(answerable.evidence) or answerable.held_by([piece])
            ]

    @cached_property
    def _closed_book(self) -> Mapping[tuple[str, str], bool]:
        """Return, by model and question, whether the first answer without memory that is not an error is right."""
        right: dict[tuple[str, str], bool] = {}
        for answer in self._history.answers():
            asked, scored = answer.asked, answer.scored
            if asked.backend != CLOSED_BOOK or asked.by_hand or scored is None or scored.score.outcome == "error":
                continue
            right.setdefault((asked.model, asked.question_id), scored.score.outcome == "correct")
        return right

    # ---- wrong answers -------------------------------------------------------------------------------------

    def _wrong(self, question: Question, answer: Answer, score: Score) -> Attribution:
        asked = answer.asked
        match score.outcome:
            case "error":
                reason = answer.received.reply.error if answer.received is not None else None
                if reason and answer.received is not None and answer.received.reply.cut_at is not None:
                    return Attribution(label="cut_reply", detail=reason)
                reason = reason or score.problem
                if reason is None and (judgement := answer.judgement) is not None:
                    return Attribution(label="error", detail=f"Not graded: {judgement.problem}.")
                return Attribution(label="error", detail=reason or "There is no reply.")
            case "unparsed":
                return Attribution(label="unparsed", detail="No answer could be read from the reply.")
            case "refused":
                return Attribution(label="refused", detail="The provider refused to answer.")
            case _:
                pass
        if answer.received is not None and answer.received.reply.read_less:
            return Attribution(label="prompt_cut", detail=_read_less(answer.received.reply))
        if question.id in self._suspect_keys:
            return Attribution(label="key_suspect", detail=self._suspect_keys[question.id])
        if asked.backend == CLOSED_BOOK:
            return Attribution(label=None, detail="closed_book has no memory: nothing was lost.")
        stages = self.stages(asked)
        if question.abstain:
            return self._false_attribution(question, stages, score)
        answerable = self.answerable(question)
        if answerable.edited:
            return Attribution(label="key_suspect", detail=f"{edited_evidence(answerable)}.")
        if answerable.held_by(stages.in_prompt):
            if not asked.prompt:
                return Attribution(label="not_visible", detail=_returned(answerable, stages))
            return self._reader_failed(answerable, stages, score)
        if stages.are_not_recorded:
            return Attribution(label="not_visible", detail=_NOT_RECORDED)
        return self._lost(answerable, stages, score)

    def _lost(self, answerable: Answerable, stages: Stages, score: Score) -> Attribution:
        if not answerable.evidence:
            match lost_as_a_whole(answerable, stages):
                case "cut":
                    return Attribution(label="cut", detail="The answer was retrieved, and the budget cut it.")
                case "not_retrieved":
                    return Attribution(label="not_retrieved", detail="The answer was stored and not retrieved.")
                case _:
                    tempts = ", ".join(answerable.question.evidence)
                    only = f" It names only what tempts to a wrong answer ({tempts})." if tempts else ""
                    return Attribution(
                        label="no_evidence", detail=f"The dataset names no turns that support the answer.{only}"
                    )
        missing = self._missing(answerable, stages)
        first = min(missing, key=lambda trail: STAGES.index(trail.lost_at))
        outdated = self._outdated_reply(answerable.question, stages, score)
        return Attribution(
            label=first.lost_at,
            loss=first.loss,
            writer=None if first.writer is None else first.writer.cause,
            detail=" ".join([*(trail.sentence for trail in missing), *outdated]),
            ranks={trail.turn: trail.ranks for trail in missing if trail.ranks},
        )

    def _reader_failed(self, answerable: Answerable, stages: Stages, score: Score) -> Attribution:
        """Return why a reply is wrong although the prompt held the answer: it prefers an outdated value, abstains
        or misreads it.
        """
        given = frozenset[str]().union(*(piece.turns | piece.verbatim for piece in stages.in_prompt))
        missing = [turn for turn in answerable.evidence if turn not in given] if given else []
        rest = f" Nothing in it comes from turn {', '.join(missing)} of the evidence." if missing else ""
        for sentence in self._outdated_reply(answerable.question, stages, score):
            return Attribution(label="stale", detail=sentence + rest)
        if is_abstention(score.predicted or ""):
            return Attribution(
                label="abstained",
                detail=f"The prompt held the answer, and the model said that it was not there.{rest}",
            )
        return Attribution(label="misread", detail=f"The prompt held the answer, and the model gave another.{rest}")

    def _outdated_reply(self, question: Question, stages: Stages, score: Score) -> list[str]:
        """Return a sentence that the reply gives an outdated value; nothing where it gives none."""
        said = score.predicted or ""
        given = _values_of(said, question)
        by_memory = (
            pair for pair in self._replaced(question, stages.memory) if any(contains(pair[0], one) for one in given)
        )
        known = chain(self._superseded(question), by_memory, self._taken_back(question, said))
        replies = (pair for pair in known if self._prefers(pair[0], said, question))
        return [f"It answered “{old}”, which {since} replaced." for old, since in islice(replies, 1)]

    def _taken_back(self, question: Question, said: str) -> Iterator[tuple[str, str]]:
        """Values of a reply that who said them took back, in a turn of the evidence or before it, and where."""
        answerable, values = self.answerable(question), _values_of(said, question)
        for turn in map(answerable.turns.get, answerable.evidence):
            if turn is None or not answerable.is_said(turn.id, turn.text):
                continue
            own = [sentence for sentence in sentences_of(turn.text) if answerable.is_said(turn.id, sentence)]
            before = [
                one.text
                for one in answerable.turns.values()
                if (one.role, one.speaker) == (turn.role, turn.speaker) and one.number < turn.number
            ]
            says_so = _CORRECTS.search(folded(turn.text)) is not None
            for value in values:
                rejected = {asserted(value, sentence)[1] for sentence in own}
                was_said = any(contains(value, text) and answerable.is_about(text) for text in before)
                if (
                    "superseded" in rejected
                    or ("denied" in rejected and (says_so or was_said))
                    or (says_so and was_said)
                    or self._is_said_anew(value, answerable, own, before)
                ):
                    yield value, f"turn {turn.id}"
        yield from answerable.moved_times(said, _CORRECTS)

    @staticmethod
    def _is_said_anew(value: str, answerable: Answerable, own: Sequence[str], before: Sequence[str]) -> bool:
        """Return whether a sentence said of all that is asked, but with this value, what a later one says with the
        expected value. What is only asked of the past may have happened several times.
        """
        question = answerable.question
        if _ASKS_OF_THE_PAST.search(folded(question.text)) or not _are_of_one_kind(value, question.expected):
            return False
        topics = [answerable.asked_in(sentence) for sentence in own]
        earlier = (sentence for text in before for sentence in sentences_of(text) if contains(value, sentence))
        return any(
            topic and answerable.is_about(sentence, 1 / 2) and topic <= answerable.asked_in(sentence)
            for sentence in earlier
            for topic in topics
        )

    @staticmethod
    def _prefers(old: str, said: str, question: Question) -> bool:
        """Return whether a reply gives an outdated value, and the current one at most as what it was before."""
        if not contains(old, said) or contains(old, question.expected):
            return False
        if not contains(question.expected, said) or contains(question.expected, old):
            return True
        gives_old, _ = asserted(old, said, question.text)
        gives_current, _ = asserted(question.expected, said, question.text)
        return gives_old and not gives_current

    @staticmethod
    def _superseded(question: Question) -> Iterator[tuple[str, str]]:
        """Values that no longer hold by the dataset, and what replaced each."""
        return ((value, "a later turn") for value in question.supersedes)

    @staticmethod
    def _replaced(question: Question, memory: StoredMemory) -> Iterator[tuple[str, str]]:
        """Yield values that the memory itself replaced, with the turns that replaced them; words of a text that it
        rewrote.
        """
        evidence = frozenset(question.evidence)
        for old in memory.supersessions:
            if not evidence.isdisjoint(old.new_turns | old.old_turns):
                turns = ", ".join(sorted(old.new_turns))
                for value in old.values:
                    if not contains(value, question.text):
                        yield value, f"turn {turns}" if turns else "a later turn"

    def _false_attribution(self, question: Question, stages: Stages, score: Score) -> Attribution:
        if is_abstention(score.predicted or ""):
            detail = "The reply says that it was never said, and was not accepted."
            return Attribution(label="false_attribution", detail=detail)
        answerable = Answerable(
            question.model_copy(update={"evidence_role": "supports"}), self._history.conversation.turns_by_id
        )
        bait = [turn for turn in question.evidence if answerable.is_verbatim(turn, stages.in_prompt)]
        if bait:
            detail = f"The answer was never said; the prompt held the turn that tempts ({', '.join(bait)})."
        else:
            detail = "The answer was never said, and the prompt held no turn that tempts."
        return Attribution(label="false_attribution", detail=detail)

    # ---- right answers -------------------------------------------------------------------------------------

    def _right(self, question: Question, asked: QuestionAsked) -> Attribution:
        if asked.backend == CLOSED_BOOK:
            return Attribution(label=None, detail="closed_book has no memory: the model is right without any.")
        if question.abstain:
            return Attribution(label="correct_abstention", detail="It was never said, and the model says so.")
        stages = self.stages(asked)
        if self.answerable(question).held_by(stages.in_prompt):
            if not asked.prompt:
                return Attribution(label=None, detail=_returned(self.answerable(question), stages))
            return Attribution(label="grounded", detail="The prompt held the answer.")
        if stages.are_not_recorded:
            return Attribution(label=None, detail=_NOT_RECORDED)
        if not asked.prompt:
            return Attribution(label=None, detail=_NOT_RETURNED)
        unaided = self.closed_book_is_right(asked)
        why = "The prompt did not hold the answer"
        if unaided:
            return Attribution(label="guessed", detail=f"{why}; the model is right without any memory too.")
        if unaided is None:
            return Attribution(
                label="guessed",
                detail=f"{why}; guessed or lucky: the model was not asked without memory, which would tell.",
            )
        return Attribution(label="lucky", detail=f"{why}; without any memory the model is wrong.")

    # ---- what both need ------------------------------------------------------------------------------------

    def stages(self, asked: QuestionAsked) -> Stages:
        """Return what an answer was read from. Stored items are folded once per position, up to its question."""
        place = (asked.backend, asked.turn)
        if place not in self._memories:
            memory = self._memories[place] = StoredMemory(self._history.kept_until(asked.backend, asked.turn))
            memory.name_sources(asked.backend, self._history.answers())
        return Stages(asked, self._memories[place], self._history.conversation.turns_by_id)

    def _missing(self, answerable: Answerable, stages: Stages) -> list[Trail]:
        """Return the trails of the turns whose part of the answer is not in the prompt."""
        trails = trails_of(answerable, answerable.needed, stages)
        return [trail for trail in trails if trail.lost_at is not None]

    def _trails(self, question: Question, stages: Stages) -> list[Trail]:
        return trails_of(self.answerable(question), dict.fromkeys(question.evidence), stages)
