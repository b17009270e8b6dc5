"""Judgements of recorded answers by further judges and rubrics: on disk before they are used."""

from __future__ import annotations

from dataclasses import dataclass

from memreplay.engine.events import AskEvent
from memreplay.errors import UsageError
from memreplay.llm.judging import Judgement
from memreplay.recording.counterfactuals import ExclusiveStore
from memreplay.recording.reader import Recording, judgement_in
from memreplay.recording.run_rows import reporting_write_errors

Ask = tuple[str, str, str, int]
"""Backend, model, question id and repeat of an answer."""


@dataclass(frozen=True)
class JudgePair:
    """A judge and the rubric that it was given. ``str(pair)`` is how ``--judged-by`` names it."""

    judge: str
    rubric: str

    def __str__(self) -> str:
        return f"{self.judge}@{self.rubric}"


def ask_of(event: AskEvent) -> Ask:
    return event.backend, event.model, event.question_id, event.repeat


def pairs_in(recording: Recording, run_id: str) -> list[JudgePair]:
    """Return the pairs that judged answers of a run, in the order in which they began."""
    return [JudgePair(*row) for row in recording.rejudging_pairs(run_id)]


def named_pair(recording: Recording, run_id: str, name: str) -> JudgePair:
    """Return the pair that a user means: ``judge@rubric``, or the judge alone where it has one rubric.

    Raises:
        UsageError: there is none, or there are several.
    """
    pairs = pairs_in(recording, run_id)
    fit = [pair for pair in pairs if name in (str(pair), pair.judge)]
    if len(fit) == 1:
        return fit[0]
    known = ", ".join(map(str, pairs)) or "none: run memreplay rejudge first"
    raise UsageError(
        f"--judged-by {name}: {'several fit' if fit else 'it judged no answer of this run'}; known: {known}"
    )


def judgements_of(recording: Recording, run_id: str, conversation_id: str, pair: JudgePair) -> dict[Ask, Judgement]:
    """Return what a pair said of the answers in a conversation.

    Raises:
        RecordingError: a judgement is damaged.
    """
    rows = recording.rejudgement_rows(run_id, conversation_id, pair.judge, pair.rubric)
    return {
        (backend, model, question_id, repeat): judgement_in(body, recording.path, question_id)
        for backend, model, question_id, repeat, body in rows
    }


class RejudgementStore(ExclusiveStore):
    """Writes judgements into a recording."""

    def add(self, run_id: str, conversation_id: str, pair: JudgePair, ask: Ask, judgement: Judgement) -> None:
        """Store a judgement; it is on disk when this returns. It replaces an earlier one without a verdict.

        Raises:
            RecordingError: the file cannot be written.
        """
        key = self.recording.conversation_key(run_id, conversation_id)
        with reporting_write_errors(self._path):
            self._db.execute(
                "insert or replace into rejudgements"
                " (conversation, backend, model, question_id, repeat, judge, rubric, body)"
                " values (?, ?, ?, ?, ?, ?, ?, ?)",
                [key, *ask, pair.judge, pair.rubric, judgement.model_dump_json(exclude={"prompt"})],
            )
