"""Progress of a batch on standard error: a live table on a terminal, else a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TextIO

from rich import box
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from memory_backends.controls import can_be_retried
from memory_backends.stores.trace import ModelCall
from memreplay.engine.events import (
    AgentReplied,
    AnswerJudged,
    AnswerScored,
    AskEvent,
    ModelCalled,
    ReplayEvent,
    ReplyReceived,
    TestScored,
)
from memreplay.grading import Outcome
from memreplay.llm import AGENT_MODEL
from memreplay.llm.model import Reply
from memreplay.numbers import counted, dollars, share
from memreplay.printable import printable
from memreplay.rich_console import terminal_console
from memreplay.scoring.rows import outcome_of_test


@dataclass
class Tally:
    """The answers of one backend through one model.

    ``resumed`` of the ``done`` answers were recorded before this process started. No retry can mend
    ``lasting_errors`` of the ``errors``. ``asked`` counts its model calls, ``reused`` the replies that other runs
    paid for, ``unpriced`` paid replies with an unknown price. The cost of this run alone is ``paid_usd``.
    """

    total: int
    done: int = 0
    resumed: int = 0
    correct: int = 0
    errors: int = 0
    lasting_errors: int = 0
    asked: int = 0
    reused: int = 0
    paid_usd: float = 0.0
    unpriced: int = 0

    def add(self, outcome: Outcome, reply: Reply, *, resumed: bool) -> None:
        self.count_outcome(outcome, resumed=resumed)
        self.count_reply(reply, resumed=resumed)
        self.lasting_errors += reply.error is not None and not can_be_retried(reply.error)

    def count_outcome(self, outcome: Outcome, *, resumed: bool) -> None:
        self.done += 1
        self.resumed += resumed
        self.correct += outcome == "correct"
        self.errors += outcome == "error"

    def count_reply(self, reply: Reply, *, resumed: bool) -> None:
        """Count the cost of a reply; a test takes several."""
        self.reused += reply.reused
        if not resumed and not reply.reused:
            self.asked += 1
        if reply.was_billed and not reply.reused:
            self._count_cost(reply.cost_usd)

    def count_call(self, call: ModelCall) -> None:
        """Count a call that a memory made, unless another run paid for it. A failed one costs what it says."""
        if not call.reused:
            self.asked += 1
            self._count_cost(0.0 if call.error is not None and call.cost_usd is None else call.cost_usd)

    def _count_cost(self, usd: float | None) -> None:
        self.paid_usd += usd or 0.0
        self.unpriced += usd is None

    @property
    def right(self) -> str:
        """Return how many answers are right so far, and their share of the graded ones.

        There is no interval: that of the results is over conversations, of which few are over while a run goes on.
        """
        graded = self.done - self.errors
        return f"{self.correct} right ({share(self.correct / graded)})" if graded else "–"

    @property
    def cost(self) -> str:
        """Return the cost; a plus means that the price of some replies is unknown."""
        if self.unpriced and not self.paid_usd:
            return "unknown"
        return dollars(self.paid_usd) + ("+" if self.unpriced else "")

    def rate(self, seconds: float) -> float:
        """Return answers per second of this process."""
        return (self.done - self.resumed) / seconds if seconds > 0 else 0.0


def duration(seconds: float) -> str:
    """``45 s``, ``3:20``, ``1:05:00``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


_SECONDS_BETWEEN_LINES = 10.0
_REFRESHES_A_SECOND = 2.0


class BatchProgress:
    """Tallies by backend, or by backend and model if there are several models.

    ``totals`` maps each backend and model to the number of its asks.
    """

    def __init__(self, totals: Mapping[tuple[str, str], int]) -> None:
        self._several_models = len({model for _, model in totals} - {AGENT_MODEL}) > 1
        self._began: float | None = None
        self._replies: dict[tuple[str, str, str, int], ReplyReceived] = {}
        self.tallies = {self._name(*key): Tally(total) for key, total in totals.items()}
        self.judging = Tally(0)
        """The calls of the judge by this process; without a verdict they count as errors."""
        self.reading = Tally(0)
        """The calls of models by memories that read in this process: a reranker's, for one."""

    def ingested(self, conversation: str, seconds: float, kept: Sequence[str] = ()) -> None:
        """Note that all backends have ingested a conversation, ``kept`` of them in an earlier run."""

    def observe(self, event: ReplayEvent) -> None:
        if isinstance(event, ReplyReceived):
            self._replies[_ask(event)] = event
        elif isinstance(event, AnswerScored):
            self._add(self._replies.pop(_ask(event)), event, resumed=False)
        elif isinstance(event, ModelCalled):
            self._observe_call(event.call)
        else:
            self.observe_judging(event)

    def observe_judging(self, event: ReplayEvent) -> None:
        """Count a call of the judge."""
        if isinstance(event, AnswerJudged):
            self.judging.done += 1
            self.judging.errors += event.judgement.verdict is None
            self.judging.count_reply(event.judgement.reply, resumed=False)

    def _observe_call(self, call: ModelCall) -> None:
        if call.phase in ("perceive", "recall"):
            self.reading.count_call(call)

    def add_recorded(self, received: ReplyReceived, scored: AnswerScored) -> None:
        """Count an answer that is recorded already."""
        self._add(received, scored, resumed=True)

    def observe_test(self, event: ReplayEvent, *, resumed: bool) -> None:
        match event:
            case AgentReplied():
                self.tallies[self._name(event.backend, event.model)].count_reply(event.reply, resumed=resumed)
            case ModelCalled(call=call) if not resumed:
                self._observe_call(call)
            case TestScored():
                tally = self.tallies[self._name(event.backend, event.model)]
                tally.count_outcome(outcome_of_test(event), resumed=resumed)
                self._begin(resumed=resumed)
                self._on_answer()
            case _:
                pass

    def add_recorded_reply(self, event: ReplayEvent) -> None:
        """Count the cost of a reply that is recorded already, of a test that is not finished."""
        if isinstance(event, AgentReplied):
            self.tallies[self._name(event.backend, event.model)].count_reply(event.reply, resumed=True)

    def take_back(self, scored: AnswerScored) -> None:
        """Forget an answer of this process, which will be asked again. What it cost was paid all the same."""
        tally = self.tallies[self._name(scored.backend, scored.model)]
        tally.done -= 1
        tally.correct -= scored.score.outcome == "correct"
        tally.errors -= scored.score.outcome == "error"

    def waiting(self, sentence: str) -> None:
        """Show what the run waits for, about once a second; empty while replies arrive."""

    def at_work(self, workers: str, conversations: Mapping[str, float]) -> None:
        """Show the conversations that workers are playing, and for how many seconds, about once a second."""

    @property
    def overall(self) -> Tally:
        """Return all backends and models together."""
        together = Tally(0)
        for tally in self.tallies.values():
            for name in vars(together):
                setattr(together, name, getattr(together, name) + getattr(tally, name))
        return together

    @property
    def seconds(self) -> float:
        """Time since the first answer of this process; before it, memory was only ingesting.

        0 during the first second, which is too short for a rate.
        """
        passed = 0.0 if self._began is None else monotonic() - self._began
        return passed if passed >= 1.0 else 0.0

    def time_left(self, tally: Tally) -> str:
        """Estimated time until all is done."""
        rate = tally.rate(self.seconds)
        return duration((tally.total - tally.done) / rate) if rate else "–"

    def _add(self, received: ReplyReceived, scored: AnswerScored, *, resumed: bool) -> None:
        tally = self.tallies[self._name(scored.backend, scored.model)]
        tally.add(scored.score.outcome, received.reply, resumed=resumed)
        self._begin(resumed=resumed)
        self._on_answer()

    def _begin(self, *, resumed: bool) -> None:
        if self._began is None and not resumed:
            self._began = monotonic()

    def _on_answer(self) -> None:
        """Called after every answer."""

    def _name(self, backend: str, model: str) -> str:
        return f"{backend}@{model}" if self._several_models else backend


class PlainProgress(BatchProgress):
    """A line every ten seconds, and one per conversation."""

    def __init__(self, totals: Mapping[tuple[str, str], int], stream: TextIO) -> None:
        super().__init__(totals)
        self._stream, self._last = stream, monotonic()

    def waiting(self, sentence: str) -> None:
        if sentence and monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = monotonic()
            self._print(f"{self._line()}; {sentence}")

    def ingested(self, conversation: str, seconds: float, kept: Sequence[str] = ()) -> None:
        self._print(_ingested(conversation, seconds, kept))

    def at_work(self, workers: str, conversations: Mapping[str, float]) -> None:
        if conversations and monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = monotonic()
            self._print(f"{self._line()}; {_at_work(workers, conversations)}")

    def _on_answer(self) -> None:
        all_done = all(tally.done >= tally.total for tally in self.tallies.values())
        if all_done or monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = monotonic()
            self._print(self._line())

    def _line(self) -> str:
        whole = self.overall
        rate = f"{whole.rate(self.seconds):.1f}/s, {self.time_left(whole)} left, " if self.seconds else ""
        parts = [
            f"{name} {tally.done}/{tally.total}, {tally.right}"
            + (f" {counted(tally.errors, 'error')}" if tally.errors else "")
            for name, tally in self.tallies.items()
        ]
        return f"{whole.done}/{whole.total} ({rate}{whole.cost}): " + "; ".join(parts)

    def _print(self, line: str) -> None:
        print(printable(line), file=self._stream, flush=True)


class TableProgress(BatchProgress):
    """A table that is redrawn twice a second."""

    def __init__(self, totals: Mapping[tuple[str, str], int]) -> None:
        super().__init__(totals)
        self._note = self._waits_for = self._at_work = ""

    def ingested(self, conversation: str, seconds: float, kept: Sequence[str] = ()) -> None:
        self._note = _ingested(conversation, seconds, kept)

    def waiting(self, sentence: str) -> None:
        self._waits_for = sentence

    def at_work(self, workers: str, conversations: Mapping[str, float]) -> None:
        self._at_work = _at_work(workers, conversations)

    def __rich__(self) -> RenderableType:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("backend")
        for heading in ("done", "right so far", "errors", "cost", "rate", "left"):
            table.add_column(heading, justify="right")
        for name, tally in self.tallies.items():
            table.add_row(
                Text(name),
                f"{tally.done}/{tally.total}",
                tally.right,
                str(tally.errors),
                tally.cost,
                f"{tally.rate(self.seconds):.1f}/s",
                self.time_left(tally),
            )
        lines = [self._at_work, self._note, self._waits_for]
        return Group(table, *map(Text, lines))


@contextmanager
def shown_progress(totals: Mapping[tuple[str, str], int]) -> Iterator[BatchProgress]:
    """Show a table if standard error is a terminal, else lines."""
    if not sys.stderr.isatty():
        yield PlainProgress(totals, sys.stderr)
        return
    progress = TableProgress(totals)
    console = terminal_console(stderr=True)
    with Live(progress, console=console, refresh_per_second=_REFRESHES_A_SECOND, redirect_stdout=False):
        yield progress


def _ask(event: AskEvent) -> tuple[str, str, str, int]:
    # Conversations may use the same question ids.
    return event.backend, event.model, f"{event.conversation}/{event.question_id}", event.repeat


_MOST_SHOWN = 8


def _at_work(workers: str, conversations: Mapping[str, float]) -> str:
    """Return the workers with the conversations that they have played for longest, and since when."""
    longest = sorted(conversations.items(), key=lambda each: -each[1])
    shown = [f"{name} {duration(seconds)}" for name, seconds in longest[:_MOST_SHOWN]]
    more = len(longest) - len(shown)
    played = ", ".join(shown) + (f" and {more} more" if more else "") if shown else "idle"
    return f"{workers}: {played}"


def _ingested(conversation: str, seconds: float, kept: Sequence[str]) -> str:
    reused = f" ({', '.join(kept)} filled by an earlier run; --fresh fills anew)" if kept else ""
    return f"{conversation}: ingested in {seconds:.1f} s{reused}"
