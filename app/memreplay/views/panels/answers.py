"""The answers so far: by question, summed up per system, and the failure label of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

from memreplay.conversations.models import Conversation, Question
from memreplay.engine.answers import CUTOFFS
from memreplay.grading import Outcome
from memreplay.llm import AGENT_MODEL, EXTRACTIVE_MODEL
from memreplay.scoring.verdicts import VERDICTS, Label, Standing
from memreplay.timeline.timeline import Answer, AskKey, Timeline
from memreplay.views.panels import View, lines_view, placeholder
from memreplay.views.subjects import AnswerSubject
from memreplay.views.text import Line, Span, Tone, line, one_line

SIGNS: Final[dict[Outcome, tuple[str, Tone]]] = {
    "correct": ("✓", "good"),
    "wrong": ("✗", "bad"),
    "unparsed": ("?", "warn"),
    "refused": ("⊘", "warn"),
    "error": ("!", "bad"),
}
ANSWER_LEGEND: Final = "✓ right  ✗ wrong  ? unparsed  ⊘ refused  ! error  … pending  • ungraded  – none"
EVIDENCE_LEGEND: Final = "evidence ✓ all of it was in the prompt  ✗ some of it was missing"

_TONES: Final[Mapping[Standing, Tone]] = {"sound": "good", "doubtful": "warn", "lost": "bad"}


def label_tone(label: Label) -> Tone:
    """Return the tone of a verdict. It stands out: which stage lost the fact is what the user looks for."""
    return _TONES[VERDICTS[label].standing]


def stage_chip(label: Label) -> tuple[str, Tone]:
    """Return the letter of a verdict, in a tone that fills its cell unless the answer is soundly right."""
    tones: Mapping[Standing, Tone] = {"sound": "good", "doubtful": "doubt", "lost": "lost"}
    return VERDICTS[label].letter, tones[VERDICTS[label].standing]


@dataclass(frozen=True)
class System:
    """An architecture with the model that reads its context; together they answer a question."""

    backend: str
    model: str


@dataclass(frozen=True, eq=False)
class ListedQuestion:
    """A question of a conversation. Ids may repeat across conversations, so each equals only itself."""

    conversation: str
    question: Question


class Attributed(NamedTuple):
    """The failure label of an answer, and whether it is uncertain."""

    label: Label
    is_uncertain: bool


Labels = Mapping[tuple[str, AskKey], Attributed]
"""The failure label of each attributed answer, by :func:`place_of`."""


_ROWS_OF_A_QUESTION: Final = 2

_LARGEST_CUTOFF: Final = max(CUTOFFS)


class AnswersTable:
    """Scheduled answers by question and system, of one or more conversations.

    ``backends`` are all architectures, in display order. ``top_k`` is the run's limit of hits: recall is measured
    at ``cutoff``, which is never more. Of a question that was repeated, a cell shows the last answer; scores count
    all of them.
    """

    def __init__(
        self,
        questions: Sequence[ListedQuestion],
        answers: Iterable[Answer],
        backends: Sequence[str],
        top_k: int | None = None,
    ) -> None:
        self.cutoff = min(_LARGEST_CUTOFF, top_k or _LARGEST_CUTOFF)
        self.questions = tuple(questions)
        self._repeats: dict[tuple[str, str, System], list[Answer]] = defaultdict(list)
        for answer in answers:
            if not answer.asked.by_hand:
                place = (answer.asked.conversation, answer.asked.question_id, _system_of(answer))
                self._repeats[place].append(answer)
        order = {backend: index for index, backend in enumerate(backends)}
        asked = {system for *_, system in self._repeats}
        self.systems = sorted(asked, key=lambda system: (order[system.backend], system.model))

    @classmethod
    def until(cls, timeline: Timeline, cursor: int, top_k: int | None = None) -> AnswersTable:
        """Return the answers of one conversation, up to a position."""
        given = (answer for answer in timeline.answers() if answer.asked.turn <= cursor)
        return cls(listed_questions(timeline.conversation), given, timeline.backends, top_k)

    def __len__(self) -> int:
        return len(self._repeats)

    def repeats(self, listed: ListedQuestion, system: System) -> Sequence[Answer]:
        """Return all answers of a system to a question: several if it was repeated, none if it was not asked."""
        return self._repeats.get((listed.conversation, listed.question.id, system), ())

    def answer(self, listed: ListedQuestion, system: System) -> Answer | None:
        """Return the answer that is shown."""
        repeats = self.repeats(listed, system)
        return repeats[-1] if repeats else None

    @cached_property
    def by_choice(self) -> frozenset[tuple[str, str]]:
        """Return conversation and id of the multiple-choice questions, which lists mark with ``≡``; none where no
        recall question stands beside them. Both kinds often have the same words.
        """
        found = {(listed.conversation, listed.question.id) for listed in self.questions if listed.question.choices}
        return frozenset(found if len(found) < len(self.questions) else ())

    @property
    def has_repeats(self) -> bool:
        """Return whether any question was asked several times of the same system."""
        return any(len(repeats) > 1 for repeats in self._repeats.values())

    def all_answers(self) -> Iterable[Answer]:
        return chain.from_iterable(self._repeats.values())

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(system.model for system in self.systems))

    def name_of(self, system: System) -> str:
        """Return the architecture, with the model if there are several."""
        several = len(set(self.models) - {AGENT_MODEL}) > 1
        return one_line(f"{system.backend}@{system.model}" if several else system.backend)


def listed_questions(conversation: Conversation) -> list[ListedQuestion]:
    return [ListedQuestion(conversation.id, question) for question in conversation.questions]


def _system_of(answer: Answer) -> System:
    return System(answer.asked.backend, answer.asked.model)


def reader_label(model: str) -> str:
    """Return the model name; the embedded reader is labelled as no language model."""
    name = one_line(model)
    return f"{name}, an embedded reader and not a language model" if model == EXTRACTIVE_MODEL else name


def sign_of(answer: Answer | None) -> Span:
    """Return the one-cell sign of an answer."""
    if answer is None:
        return Span("–", "dim")
    if answer.scored is None:
        return Span("•" if answer.received is not None else "…", "dim")
    sign, tone = SIGNS[answer.scored.score.outcome]
    return Span(sign, tone)


def stage_sign(answer: Answer | None, label: Label | None) -> tuple[str, Tone]:
    """Return the letter of an answer: its stage if it is attributed, else its outcome."""
    if label is not None and answer is not None:
        return stage_chip(label)
    sign = sign_of(answer)
    return sign.text, "lost" if sign.tone == "bad" else "doubt" if sign.tone == "warn" else sign.tone


def head_lines(question: Question, answer: Answer | None, label: Label | None = None) -> list[Line]:
    """Return what a page about a question is about: the question, expected and given answer, and the verdict."""
    lines = [line(Span(one_line(question.text), "strong"), most=_ROWS_OF_A_QUESTION)]
    expected = [Span("expected  ", "dim"), Span(one_line(question.expected), "value")] if question.expected else []
    if answer is None:
        return [*lines, line(*expected, most=1)] if expected else lines
    said = answer.scored.score.predicted if answer.scored is not None else None
    if said is None and answer.received is not None:
        said = answer.received.reply.text
    sign = sign_of(answer)
    given = [
        Span("  →  " if expected else "", "dim"),
        sign,
        Span(f" {one_line(said or answer.error or '–')}", sign.tone),
    ]
    lines.append(line(*expected, *given, most=_ROWS_OF_A_QUESTION))
    if label is not None:
        letter, chip = stage_chip(label)
        name = label.replace("_", " ")
        lines.append(
            line(Span(f" {letter} {name} ", chip), Span(f"  {VERDICTS[label].words}", label_tone(label)), most=1)
        )
    return lines


def letters_legend(labels: Labels) -> str:
    """Return the meanings of the letters that occur in a matrix, the most frequent first."""
    counts = Counter(each.label for each in labels.values())
    used = [label for label, _ in counts.most_common() if VERDICTS[label].standing != "sound"]
    parts = [f"{VERDICTS[label].letter} {label.replace('_', ' ')}" for label in used]
    if not parts:
        return "✓ right  ✗ wrong  ? unparsed  ⊘ refused  ! error  – none"
    doubt = ["~ uncertain"] if any(each.is_uncertain for each in labels.values()) else []
    return "  ".join([*parts, *doubt, "✓ right"])


def answers_view(timeline: Timeline, cursor: int) -> View:
    """Return the small panel beside the conversation: one line per question, one sign per system."""
    table = AnswersTable.until(timeline, cursor)
    by_hand = _by_hand_lines(timeline, cursor)
    if not len(table):
        waiting = placeholder("the questions are asked after the last turn")
        return lines_view("answers", [*waiting, *by_hand] if by_hand else waiting)
    lines = []
    for number, listed in enumerate(table.questions, start=1):
        asked = [answer for system in table.systems if (answer := table.answer(listed, system)) is not None]
        signs = [sign_of(table.answer(listed, system)) for system in table.systems]
        kind = "≡ " if (listed.conversation, listed.question.id) in table.by_choice else ""
        lines.append(_answered(signs, Span(f"{number}. {kind}", "dim"), listed.question.text, asked))
    return lines_view("answers", [*lines, *by_hand], note=" ".join(map(table.name_of, table.systems)))


def _by_hand_lines(timeline: Timeline, cursor: int) -> list[Line]:
    """Return one line per question asked by hand up to the position."""
    groups: dict[tuple[int, str], list[Answer]] = {}
    for answer in timeline.answers():
        if answer.asked.by_hand and answer.asked.turn <= cursor:
            groups.setdefault((answer.asked.turn, answer.asked.question_id), []).append(answer)
    lines = []
    for (turn, question_id), answers in groups.items():
        question = timeline.question(question_id)
        text = question.text if question is not None else answers[0].asked.typed or ""
        lines.append(
            _answered([sign_of(one) for one in answers], Span(f"by hand, turn {turn} ", "warn"), text, answers)
        )
    return lines


def _answered(signs: Sequence[Span], label: Span, text: str, asked: Sequence[Answer]) -> Line:
    """Return a question with its signs. It leads to the explanation of the first answer that is not right."""
    spaced = [part for sign in signs for part in (sign, Span(" "))]
    about = AnswerSubject(key_of(_first_to_explain(asked))) if asked else None
    return line(*spaced, label, one_line(text), hang=2 * len(signs), most=2, about=about)


def _first_to_explain(answers: Sequence[Answer]) -> Answer:
    """Return the first answer that is not right, else the first."""
    return next(filter(is_wrong, answers), answers[0])


def is_wrong(answer: Answer | None) -> bool:
    """Return whether an answer was scored as anything but correct; False while it is pending."""
    return answer is not None and answer.scored is not None and answer.scored.score.outcome != "correct"


def key_of(answer: Answer) -> AskKey:
    """Identifies an answer within its conversation."""
    asked = answer.asked
    return AskKey(asked.backend, asked.model, asked.question_id, asked.repeat, asked.turn, asked.by_hand)


def place_of(answer: Answer) -> tuple[str, AskKey]:
    """Identifies an answer within its run: conversation and key."""
    return answer.asked.conversation, key_of(answer)
