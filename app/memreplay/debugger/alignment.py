"""Align two recordings, or two architectures of one, by turn and by question."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memreplay.conversations.models import Conversation, Question
from memreplay.timeline.timeline import Answer, Timeline


@dataclass(frozen=True)
class Contender:
    """The source of an answer: the index of its recording (0 or 1), its backend and its model."""

    side: int
    backend: str
    model: str


@dataclass(frozen=True)
class AlignedQuestion:
    """A question of one or both recordings with all its scheduled, scored answers.

    ``disagreement`` is in 0..1; see :func:`disagreement`.
    """

    question: Question
    answers: Mapping[Contender, Answer]
    disagreement: float


class TurnAlignment:
    """Maps turns of one conversation to those of another with the same text and speaker, in order.

    A position without a match maps like the last matching turn before it.
    """

    def __init__(self, left: Conversation, right: Conversation) -> None:
        pairs = _same_turns(left, right)
        self._to_right = _filled(len(left.turns), dict(pairs), len(right.turns))
        self.paired = len(pairs)

    def to_right(self, position: int) -> int:
        """The position in the right conversation for one in the left."""
        return self._to_right[max(0, min(position, len(self._to_right) - 1))]


def align_questions(*timelines: Timeline) -> list[AlignedQuestion]:
    """The questions of one or two recordings, by falling disagreement, then in the order of the dataset.

    Questions are the same if their text, choices and expected answer are.
    """
    questions: dict[tuple[str, str, tuple[str, ...]], Question] = {}
    answers: dict[tuple[str, str, tuple[str, ...]], dict[Contender, Answer]] = defaultdict(dict)
    for side, timeline in enumerate(timelines):
        by_id = {question.id: question for question in timeline.conversation.questions}
        for question in by_id.values():
            questions.setdefault(_identity(question), question)
        order = {backend: place for place, backend in enumerate(timeline.backends)}
        for answer in sorted(timeline.answers(), key=lambda one: order[one.asked.backend]):
            question_asked = by_id.get(answer.asked.question_id)
            if question_asked is None or answer.scored is None or answer.asked.by_hand:
                continue
            contender = Contender(side, answer.asked.backend, answer.asked.model)
            answers[_identity(question_asked)][contender] = answer
    aligned = [
        AlignedQuestion(question, dict(answers[identity]), disagreement(answers[identity].values()))
        for identity, question in questions.items()
        if identity in answers
    ]
    return sorted(aligned, key=lambda one: -one.disagreement)


def disagreement(answers: Iterable[Answer]) -> float:
    """The share of pairs of answers in which exactly one is right; errors do not count."""
    scores = [answer.scored.score for answer in answers if answer.scored is not None]
    right = sum(score.outcome == "correct" for score in scores)
    wrong = sum(score.outcome not in ("correct", "error") for score in scores)
    pairs = (right + wrong) * (right + wrong - 1) / 2
    return right * wrong / pairs if pairs else 0.0


def _identity(question: Question) -> tuple[str, str, tuple[str, ...]]:
    return question.text, question.expected, question.choices


def _same_turns(left: Conversation, right: Conversation) -> list[tuple[int, int]]:
    """Pairs of numbers of equal turns, both increasing."""
    waiting: dict[tuple[str, str], deque[int]] = defaultdict(deque)
    for turn in right.turns:
        waiting[right.label_of(turn), turn.text].append(turn.number)
    candidates: list[tuple[int, int]] = []
    for turn in left.turns:
        same = waiting.get((left.label_of(turn), turn.text))
        if same:
            candidates.append((turn.number, same.popleft()))
    return _longest_rising(candidates)


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of pairs whose second numbers rise (patience sorting)."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, number) in enumerate(pairs):
        low, high = 0, len(tops)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if tops[middle] < number else (low, middle)
        before.append(ends[low - 1] if low else -1)
        tops[low : low + 1] = [number]
        ends[low : low + 1] = [index]
    chosen: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]


def _filled(turns: int, known: Mapping[int, int], other_turns: int) -> list[int]:
    """The other side's position for each position from 0 to one past the last turn."""
    positions, last = [0], 0
    for number in range(1, turns + 1):
        last = known.get(number, last)
        positions.append(last)
    return [*positions, other_turns + 1]
