"""One answer of a published run, whatever file it was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from memreplay.llm.judging import Verdict
from memreplay.text import normalised


@dataclass(frozen=True)
class PublishedAnswer:
    """One question in a results file. A field is None where the file does not say.

    ``sample`` names the conversation by id or 0-based number, ``asked_at`` is the day that the reader was told it
    is. ``memories`` are the texts that memory gave to the model, in the file's order; ``turn_ids`` name the turns
    that it gave, where the file has no texts. ``judgement`` is the verdict of the harness's own judge and
    ``judge_reason`` what it said. ``place`` is where in the file it stands.
    """

    place: str
    question: str
    question_id: str | None = None
    sample: str | None = None
    category: str | None = None
    asked_at: str | None = None
    expected: str | None = None
    answer: str | None = None
    error: str | None = None
    memories: tuple[str, ...] | None = None
    turn_ids: tuple[str, ...] | None = None
    context_tokens: int | None = None
    recall_ms: float | None = None
    answer_ms: float | None = None
    judgement: Verdict | None = None
    judge_reason: str | None = None

    def filled(self, other: PublishedAnswer) -> PublishedAnswer:
        """Return the answer with what another file of the same run says of it besides."""
        missing = {
            name: value
            for name, value in vars(other).items()
            if value is not None and getattr(self, name) is None and name != "place"
        }
        return replace(self, **missing)


@dataclass(frozen=True)
class PublishedRun:
    """The answers of one run. ``problems`` name every row that could not be read, and why.

    ``judge`` is the model that gave the judgements, as the file names it; ``accuracy`` the share of right answers
    that the file states. ``unused`` are the fields of rows that nothing is made of, and in how many rows they
    stand; ``notes`` say how the file was read.
    """

    path: Path
    format: str
    system: str
    model: str
    judge: str
    answers: tuple[PublishedAnswer, ...]
    problems: tuple[str, ...] = ()
    accuracy: float | None = None
    unused: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=())

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return how the file was read and what in its rows was not used, as sentences without a full stop."""
        if not self.unused:
            return self.notes
        named = ", ".join(f"{name} ({count:,})" for name, count in list(self.unused.items())[:_MOST_NAMED])
        more = len(self.unused) - _MOST_NAMED
        rest = f" and {more:,} more" if more > 0 else ""
        return (*self.notes, f"fields of its rows that nothing is made of: {named}{rest}")


_MOST_NAMED = 20


def merged(runs: Sequence[PublishedRun]) -> PublishedRun:
    """Return one run of several files about the same answers: each says what the others leave out."""
    first, *rest = runs
    answers: dict[tuple[str, ...], PublishedAnswer] = {}
    extra: list[PublishedAnswer] = []
    counts: dict[tuple[str, ...], int] = {}
    for number, run in enumerate((first, *rest)):
        counts.clear()
        for answer in run.answers:
            key = (*_key(answer), str(counts.setdefault(_key(answer), 0)))
            counts[_key(answer)] += 1
            if key in answers:
                answers[key] = answers[key].filled(answer)
            elif number and not answer.question:
                extra.append(answer)
            else:
                answers[key] = answer
    lost = [f"{each.place}: belongs to no answer of {first.path.name}" for each in extra]
    return replace(
        first,
        judge=next((run.judge for run in runs if any(each.judgement for each in run.answers)), first.judge),
        accuracy=next((run.accuracy for run in runs if run.accuracy is not None), None),
        answers=tuple(answers.values()),
        problems=(*(problem for run in runs for problem in run.problems), *lost),
        unused={name: count for run in runs for name, count in run.unused.items()},
        notes=(*first.notes, f"read together: {', '.join(run.path.name for run in runs)}"),
    )


def _key(answer: PublishedAnswer) -> tuple[str, ...]:
    if answer.question_id is not None:
        return (answer.question_id,)
    return answer.sample or "", normalised(answer.question)
