"""What happens in a run of tests between two messages, as events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from memreplay.dataset_interfaces.steps import Step, TestBegins, TestEnded, TestWaits, TimeJumps
from memreplay.engine.events import ClockSet, ReplayEvent, TestBegan, TestScored, TestWaited


class TestNotes:
    """Makes the events of one conversation, one memory and one model."""

    __test__ = False

    def __init__(self, conversation: str, backend: str, model: str) -> None:
        self._of = {"conversation": conversation, "backend": backend}
        self._model = model

    def of(self, step: Step, turn: int, session: int) -> Iterator[ReplayEvent]:
        """The event of a step, if it is one to be told; ``session`` is the number of the present session."""
        at: dict[str, Any] = {**self._of, "turn": turn}
        match step:
            case TestBegins():
                yield TestBegan(**at, test_id=step.test_id, dataset=step.dataset, description=step.description)
            case TestWaits():
                yield TestWaited(**at, test_id=step.test_id, tokens=step.tokens, until=step.until)
            case TimeJumps():
                yield ClockSet(**at, before=step.before, after=step.after, session=session + 1)
            case TestEnded():
                yield TestScored(
                    **at,
                    model=self._model,
                    test_id=step.test_id,
                    dataset=step.dataset,
                    score=step.score,
                    max_score=step.max_score,
                    reasoning=step.reasoning,
                    ungraded=step.ungraded,
                    questions=step.questions,
                    responses=step.responses,
                    expected=shown_expectation(step.expected_responses),
                    distance_tokens=step.tokens,
                )
            case _:
                pass


def shown_expectation(expected: Any) -> str:
    """What a test expects, for a reader: a text as it is, texts a line each, anything else as JSON."""
    match expected:
        case None:
            return ""
        case str():
            return expected
        case list() if all(isinstance(entry, str) for entry in expected):
            return "\n".join(expected)
    return json.dumps(expected, ensure_ascii=False, default=str)
