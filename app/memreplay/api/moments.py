"""What a memory held, retrieved and gave to the model at a turn of a recorded conversation.

Jupyter shows it as plain tables. Conversations are data: all text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_backends.base import Hit, Snapshot
from memreplay.conversations.models import Conversation, Turn
from memreplay.errors import UsageError
from memreplay.grading import Outcome
from memreplay.recording.bodies import reporting_damage
from memreplay.scoring.attribution import Attribution, Attributor
from memreplay.timeline.timeline import Answer, Timeline

if TYPE_CHECKING:
    import pandas


_MOST_CHARACTERS = 300
_MOST_ROWS = 60


def table_html(headings: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> str:
    """A table of at most 60 rows; longer cells are cut."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:_MOST_ROWS])
    left_out = len(rows) - _MOST_ROWS
    more = f"<p>{left_out:,} more rows</p>" if left_out > 0 else ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    match value:
        case None:
            text = "–"
        case float():
            text = f"{value:.3f}"
        case _:
            text = str(value)
    if len(text) > _MOST_CHARACTERS:
        text = text[: _MOST_CHARACTERS - 1] + "…"
    return f"<td style='text-align:left'>{escape(text)}</td>"


def data_frame(rows: Iterable[dict[str, Any]]) -> pandas.DataFrame:
    """A pandas data frame with a row for each.

    Raises:
        UsageError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise UsageError("to_pandas() needs pandas: pip install pandas") from None
    return pandas.DataFrame(list(rows))


@dataclass(frozen=True)
class AskedQuestion:
    """A question that was put to one memory through one model, and what came of it.

    ``reply``, ``outcome`` and ``why`` are None where the run ended before. ``why.label`` names the stage that lost
    the fact, ``why.detail`` says what happened to it.
    """

    id: str
    text: str
    model: str
    repeat: int
    hits: tuple[Hit, ...]
    prompt: str
    reply: str | None
    error: str | None
    outcome: Outcome | None
    why: Attribution | None

    def _repr_html_(self) -> str:
        why = f"{self.why.label}: {self.why.detail}" if self.why is not None else None
        fields = (("question", self.text), ("reply", self.reply), ("outcome", self.outcome), ("why", why))
        return table_html(("", self.id), fields)


class MemoryAt:
    """One memory at one turn.

    ``questions`` are those that were asked of it there. ``hits``, ``prompt`` and ``why`` are about the question
    that was chosen, or the only one asked there; without any, ``hits`` are what the turn's read path returned.
    """

    def __init__(
        self,
        timeline: Timeline,
        attributor: Attributor,
        backend: str,
        turn: int,
        question: str | None,
        path: Path,
    ) -> None:
        self.backend = backend
        self.turn = turn
        self._timeline = timeline
        self._attributor = attributor
        self._chosen = question
        self._path = path

    @cached_property
    def snapshot(self) -> Snapshot:
        """All that its stores held, by the label of the store."""
        with reporting_damage(self._path):
            return self._timeline.snapshot_at(self.backend, self.turn)

    @property
    def state(self) -> dict[str, Any]:
        """The values under its keys: a text is a log, anything else a JSON state."""
        return {key: value for values in self.snapshot.values.values() for key, value in values.items()}

    @property
    def points(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The payloads of its points, by collection and id."""
        collections = (each for found in self.snapshot.points.values() for each in found.items())
        return {name: {id_: dict(payload) for id_, payload in points.items()} for name, points in collections}

    @cached_property
    def questions(self) -> tuple[AskedQuestion, ...]:
        """The questions that were asked of it at this turn, in order."""
        with reporting_damage(self._path):
            return tuple(
                self._question(answer)
                for answer in self._timeline.answers()
                if answer.asked.backend == self.backend
                and answer.asked.turn == self.turn
                and self._chosen in (None, answer.asked.question_id)
            )

    def _question(self, answer: Answer) -> AskedQuestion:
        asked, received, scored = answer.asked, answer.received, answer.scored
        known = {question.id: question.text for question in self._timeline.conversation.questions}
        return AskedQuestion(
            id=asked.question_id,
            text=asked.typed or known.get(asked.question_id, ""),
            model=asked.model,
            repeat=asked.repeat,
            hits=asked.hits,
            prompt="\n\n".join(f"{message.role}: {message.content}" for message in asked.prompt),
            reply=received.reply.text if received is not None else None,
            error=answer.error,
            outcome=scored.score.outcome if scored is not None else None,
            why=self._attributor.attribute(answer),
        )

    def _the_question(self) -> AskedQuestion | None:
        if len(self.questions) > 1:
            names = ", ".join(
                dict.fromkeys(f"{one.id}" + (f" ({one.model})" if one.model else "") for one in self.questions)
            )
            raise UsageError(
                f"several questions were asked of {self.backend} at turn {self.turn}: {names}; choose one with"
                " at(question=ID), or go through .questions"
            )
        return self.questions[0] if self.questions else None

    @property
    def hits(self) -> tuple[Hit, ...] | None:
        """What it retrieved. None where nothing was asked, and the read path of ordinary turns is not on record."""
        asked = self._the_question()
        if asked is not None:
            return asked.hits
        with reporting_damage(self._path):
            perceived = self._timeline.perceived_at(self.backend, self.turn)
        return perceived.hits if perceived is not None and perceived.turn == self.turn else None

    @property
    def prompt(self) -> str | None:
        """The prompt as it was sent; None where nothing was asked."""
        asked = self._the_question()
        return asked.prompt if asked is not None else None

    @property
    def why(self) -> Attribution | None:
        """The stage that lost the fact, or what a right answer rests on; None where nothing was asked."""
        asked = self._the_question()
        return asked.why if asked is not None else None

    def __repr__(self) -> str:
        return f"<{self.backend} at turn {self.turn}: {len(self.state)} keys, {len(self.questions)} questions>"

    def _repr_html_(self) -> str:
        held = [("state", key, value) for key, value in self.state.items()]
        held += [
            ("point", f"{name}/{id_}", payload)
            for name, points in self.points.items()
            for id_, payload in points.items()
        ]
        return table_html(("", "key", "value"), held, f"{self.backend} at turn {self.turn}")


class Moment(Mapping[str, MemoryAt]):
    """All memories at one turn, by backend."""

    def __init__(
        self, timeline: Timeline, attributor: Attributor, turn: int, question: str | None, path: Path
    ) -> None:
        self.turn = turn
        self._memories = {
            name: MemoryAt(timeline, attributor, name, turn, question, path) for name in timeline.backends
        }

    def __getitem__(self, backend: str) -> MemoryAt:
        if backend not in self._memories:
            raise UsageError(f"no memory named {backend} was run; there are {', '.join(self._memories)}")
        return self._memories[backend]

    def __iter__(self) -> Iterator[str]:
        return iter(self._memories)

    def __len__(self) -> int:
        return len(self._memories)


class RecordedConversation:
    """A conversation of a recorded run, at any of its turns."""

    def __init__(self, timeline: Timeline, path: Path) -> None:
        self._timeline = timeline
        self._path = path
        self._attributor = Attributor(timeline)

    @property
    def conversation(self) -> Conversation:
        """Its sessions, turns and questions."""
        return self._timeline.conversation

    @property
    def turns(self) -> tuple[Turn, ...]:
        return self.conversation.turns

    @property
    def backends(self) -> tuple[str, ...]:
        """The memories that were run on it."""
        return tuple(self._timeline.backends)

    def at(self, turn: int | None = None, question: str | None = None) -> Moment:
        """Its memories after a turn (1-based; 0 is before the first).

        Without a turn, where the question was asked; without either, at the end.

        Raises:
            UsageError: it has no such turn or question.
        """
        last = self._timeline.last_turn
        if question is not None:
            with reporting_damage(self._path):
                asked = [each.asked for each in self._timeline.answers() if each.asked.question_id == question]
            asked_at = sorted({each.turn for each in asked})
            if not asked_at:
                raise UsageError(f"no question {question} was asked in {self.conversation.id}")
            turn = asked_at[-1] if turn is None else turn
        turn = last if turn is None else turn
        if not 0 <= turn <= last:
            raise UsageError(f"{self.conversation.id} has no turn {turn}; expected 0 to {last}")
        return Moment(self._timeline, self._attributor, turn, question, self._path)

    def __repr__(self) -> str:
        return f"<{self.conversation.id}: {len(self.turns)} turns, {', '.join(self.backends)}>"

    def _repr_html_(self) -> str:
        rows = [(turn.number, self.conversation.label_of(turn), turn.text) for turn in self.turns]
        return table_html(("turn", "speaker", "text"), rows, self.conversation.id)
