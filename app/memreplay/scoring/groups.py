"""Groups of questions, and how many of their answers are right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args

from memreplay.conversations.models import Frozen, InfoLocation, Salience
from memreplay.grading import Outcome
from memreplay.scoring import BREAKDOWNS, By, without
from memreplay.scoring.question_row import Interval, QuestionRow
from memreplay.scoring.statistics import clustered_interval, mean, wilson_interval

Key = tuple[str, str, str]
"""Dataset, conversation and question id."""


class Graded(Protocol):
    """The parts of an answer that are counted and compared."""

    @property
    def backend(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def dataset(self) -> str: ...

    @property
    def conversation(self) -> str: ...

    @property
    def question_id(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def question(self) -> str: ...

    @property
    def evidence(self) -> tuple[str, ...]: ...

    @property
    def outcome(self) -> Outcome: ...


def key_of(row: Graded) -> Key:
    return row.dataset, row.conversation, row.question_id


class AskedOf(NamedTuple):
    """A question of a conversation, as far as it says which fact it asks for."""

    key: Key
    kind: str
    text: str
    evidence: Sequence[str]


def facts_among(questions: Iterable[AskedOf]) -> dict[Key, Key]:
    """Return the fact that each question asks for, under the dataset that asks for it first.

    Questions of a conversation with the same text and evidence ask for one fact. Without evidence only those do of
    which one is in words and the other has options: the same words can ask for another answer later. Two datasets
    that share such a fact have the same conversation, such as LoCoMo and LoCoMo-MC10.
    """
    questions = [*{one.key: one for one in questions}.values()]
    first: dict[tuple[str, ...], str] = {}
    home: dict[tuple[str, str], str] = {}
    for (dataset, conversation, _), _, text, evidence in questions:
        earlier = first.setdefault((conversation, text, *evidence), dataset) if evidence else dataset
        if earlier != dataset:
            home.setdefault((dataset, conversation), earlier)
    facts: dict[Key, Key] = {}
    asked: Counter[tuple[str, ...]] = Counter()
    for key, kind, text, evidence in questions:
        fact = home.get(key[:2], key[0]), key[1], "\0".join((text, *evidence))
        before = 0 if evidence else asked[kind, *fact]
        asked[kind, *fact] += 1
        facts[key] = (*fact[:2], f"{before}\0{fact[2]}")
    return facts


def facts_of(rows: Iterable[Graded]) -> dict[Key, Key]:
    """Return the fact that the question of each row asks for."""
    return facts_among(AskedOf(key_of(row), row.kind, row.question, row.evidence) for row in rows)


def shares_right(rows: Iterable[Graded]) -> dict[Key, float]:
    """Return, for each question, the share of its graded repeats that are right; leave out questions with errors
    only.
    """
    repeats: dict[Key, list[bool]] = defaultdict(list)
    for row in rows:
        if row.outcome != "error":
            repeats[key_of(row)].append(row.outcome == "correct")
    return {key: sum(right) / len(right) for key, right in repeats.items()}


InPrompt = Literal["answer_in_prompt", "evidence_in_prompt"]
"""The field of a row that says whether a prompt held the answer, or all evidence."""


def facts_in_prompt(rows: Iterable[QuestionRow], field: InPrompt) -> dict[Key, float]:
    """Return for each fact with evidence the share of its prompts, of repeats and of both kinds, that held it."""
    return by_fact(rows, attrgetter(field))


def by_fact(rows: Iterable[QuestionRow], figure_of: Callable[[QuestionRow], float | None]) -> dict[Key, float]:
    """Return the mean of a figure over the answers that ask for each fact, where it is known."""
    rows = list(rows)
    facts = facts_of(rows)
    figures: dict[Key, list[float]] = defaultdict(list)
    for row in rows:
        if (figure := figure_of(row)) is not None:
            figures[facts[key_of(row)]].append(float(figure))
    return {fact: sum(found) / len(found) for fact, found in figures.items()}


def share_of_facts(rows: Iterable[QuestionRow], field: InPrompt) -> float | None:
    """Return the mean over facts; None without facts."""
    return mean([*facts_in_prompt(rows, field).values()])


def by_conversation(shares: Mapping[Key, float], facts: Mapping[Key, Key]) -> list[tuple[float, int]]:
    """Return, for each conversation, the sum of its questions' shares, and their number.

    ``facts`` has what each question asks for; a key that it lacks is a fact itself. Where all shares are alike,
    each fact counts once, since nothing tells how far the questions about it differ.
    """
    if len({*shares.values()}) == 1:
        shares = {facts.get(key, key): share for key, share in shares.items()}
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for key, share in shares.items():
        found[facts.get(key, key)[:2]].append(share)
    return [(sum(its_shares), len(its_shares)) for its_shares in found.values()]


Rows = Sequence[QuestionRow]

Name = TypeVar("Name", bound=str | None)


class Group(Frozen):
    """A group of questions. ``accuracy`` is correct / graded.

    ``ci95`` is the Wilson interval over questions: repeats are collapsed to the mean of their question. Where
    questions ask for one fact in words and with options, it is over facts, as :func:`clustered_interval` has it; if
    all are right or all wrong, Wilson's over facts.
    """

    total: int
    graded: int
    correct: int
    accuracy: float | None
    ci95: Interval | None


class UncertainGrades(Frozen):
    """The number of uncertain grades, and the numbers of right answers if all of these were wrong or all right."""

    answers: int
    right: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.answers} uncertain: {self.right[0]} to {self.right[1]}"


def group_of(rows: Rows) -> Group:
    """Total, graded, correct, and the accuracy with its interval."""
    graded = len(rows) - count(rows, "error")
    correct = count(rows, "correct")
    return Group(
        total=len(rows),
        graded=graded,
        correct=correct,
        accuracy=correct / graded if graded else None,
        ci95=interval_over_questions(rows),
    )


def uncertain_of(graded: Iterable[tuple[Outcome, bool]]) -> UncertainGrades | None:
    """Return what outcomes, each with whether it is uncertain, leave open; None where all are certain."""
    counts = Counter(graded)
    accepted, rejected = counts["correct", True], counts["wrong", True]
    if not accepted and not rejected:
        return None
    certain = counts["correct", False]
    return UncertainGrades(answers=accepted + rejected, right=(certain, certain + accepted + rejected))


def interval_over_questions(rows: Rows) -> Interval | None:
    shares, facts = shares_right(rows), facts_of(rows)
    its_shares: dict[Key, list[float]] = defaultdict(list)
    for question, share in shares.items():
        its_shares[facts[question]].append(share)
    right = sum(shares.values())
    if 1 < len(its_shares) < len(shares) and 0 < right < len(shares):
        return clustered_interval([(sum(found), len(found)) for found in its_shares.values()])
    return wilson_interval(right / len(shares) * len(its_shares), len(its_shares)) if shares else None


def without_adversarial(rows: Rows) -> list[QuestionRow]:
    """Return the questions that have an answer: a reply that abstains is right on all others."""
    return [row for row in rows if not row.abstain]


def breakdown_of(rows: Rows) -> dict[By, dict[str, Group]]:
    """Groups of all questions, by each field that any of them has; those that do not have it are the last group."""
    found: dict[By, dict[str, Group]] = {}
    for by in BREAKDOWNS:
        values = {getattr(row, by) for row in rows} - {None}
        if values:
            groups = groups_of(rows, by, [*(_ORDERED.get(by) or sorted(values)), None])
            found[by] = {name or without(by): group for name, group in groups.items() if group.total}
    return found


_ORDERED: Mapping[By, Sequence[str]] = {"location": get_args(InfoLocation), "salience": get_args(Salience)}


def groups_of(rows: Rows, by: By, names: Iterable[Name]) -> dict[Name, Group]:
    """Group the rows by a field, in the order of ``names``; rows with no such name are in no group."""
    return {name: group_of([row for row in rows if getattr(row, by) == name]) for name in names}


def count(rows: Rows, outcome: Outcome) -> int:
    return sum(row.outcome == outcome for row in rows)


def mean_of(rows: Rows, field: str) -> float | None:
    """Return the mean of a numeric field over the rows that have it."""
    return mean([float(value) for row in rows if (value := getattr(row, field)) is not None])
