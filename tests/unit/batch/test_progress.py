"""What the progress display of a batch shows."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from memreplay.batch.progress import BatchProgress, PlainProgress, TableProgress, Tally, duration
from memreplay.engine.events import AnswerScored, ReplyReceived
from memreplay.grading import Outcome, RetrievalScore, Score
from memreplay.llm.model import Reply
from memreplay.numbers import dollars


def answered(
    progress: BatchProgress,
    place: int,
    outcome: Outcome,
    reply: Reply,
    *,
    backend: str = "rag",
    resumed: bool = False,
) -> None:
    ask = {"conversation": "c", "turn": 1, "backend": backend, "model": "m", "question_id": f"q{place}"}
    received = ReplyReceived(**ask, reply=reply)
    scored = AnswerScored(**ask, score=Score(outcome=outcome, score=1.0), retrieval=RetrievalScore())
    if resumed:
        progress.add_recorded(received, scored)
    else:
        progress.observe(received)
        progress.observe(scored)


def shown(progress: TableProgress) -> str:
    out = StringIO()
    Console(file=out, width=110).print(progress)
    return out.getvalue()


def test_the_table_has_a_row_a_backend_with_right_so_far_errors_and_cost() -> None:
    progress = TableProgress({("rag", "m"): 4, ("[bold]odd", "m"): 4})
    answered(progress, 0, "correct", Reply(text="1", cost_usd=0.25))
    answered(progress, 1, "wrong", Reply(text="1", cost_usd=0.25))
    answered(progress, 2, "error", Reply(text=None, error="down"))
    row = next(line for line in shown(progress).splitlines() if line.strip().startswith("rag"))
    assert "3/4" in row and "1 right (50.0 %)" in row and "$0.500" in row
    assert "[bold]odd" in shown(progress)


def test_what_other_runs_paid_is_not_paid_again_and_what_this_run_paid_before_is_counted() -> None:
    progress = TableProgress({("rag", "m"): 3})
    answered(progress, 0, "correct", Reply(text="1", cost_usd=0.25), resumed=True)
    answered(progress, 1, "correct", Reply(text="1", cost_usd=5.0, reused=True))
    whole = progress.overall
    assert (whole.cost, whole.asked, whole.reused, whole.resumed) == ("$0.250", 0, 1, 1)


def test_an_unknown_price_is_not_nothing() -> None:
    tally = Tally(2)
    tally.add("correct", Reply(text="1", cost_usd=None), resumed=False)
    assert tally.cost == "unknown"
    tally.add("correct", Reply(text="1", cost_usd=0.5), resumed=False)
    assert tally.cost == "$0.500+"


def test_a_price_that_is_next_to_nothing_is_not_shown_as_nothing() -> None:
    assert [dollars(amount) for amount in (None, 0.0, 0.0000412, 0.0123, 0.9996, 1234.5)] == [
        "–",
        "$0",
        "$0.0000412",
        "$0.0123",
        "$1.000",
        "$1,234.50",
    ]


def test_the_rate_is_of_this_process_alone() -> None:
    tally = Tally(100, done=60, resumed=50)
    assert tally.rate(5.0) == 2.0
    assert [duration(seconds) for seconds in (45, 200, 3900)] == ["45 s", "3:20", "1:05:00"]


def test_no_time_left_is_shown_until_there_is_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("memreplay.batch.progress.monotonic", lambda: clock[0])
    progress = TableProgress({("rag", "m"): 12})
    answered(progress, 0, "correct", Reply(text="1"), resumed=True)
    clock[0] = 190.0
    answered(progress, 1, "correct", Reply(text="1"))
    clock[0] = 190.1
    assert progress.time_left(progress.overall) == "–"
    lines = StringIO()
    answered(PlainProgress({("rag", "m"): 1}, lines), 0, "correct", Reply(text="1", cost_usd=0.0))
    assert lines.getvalue().startswith("1/1 ($0): rag 1/1, "), "a second is too short for a rate"
    clock[0] = 195.0
    assert progress.time_left(progress.overall) == "50 s"
