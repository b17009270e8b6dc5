"""How far a batch has come, on standard error: on a terminal a table, elsewhere a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from memreplay.engine.events import AgentReplied, AnswerScored, AskEvent, ReplayEvent, ReplyReceived, TestScored
from memreplay.grading import Outcome
from memreplay.llm import AGENT_MODEL
from memreplay.llm.model import Reply
from memreplay.scoring.rows import outcome_of_test
from memreplay.scoring.statistics import wilson_interval
from memreplay.text import dollars


@dataclass
class Tally:
    """The answers of one backend through one model.

    ``carried`` of ``done`` were given before this process began, ``asked`` in it and ``reused`` by other runs.
    ``paid_usd`` is what the run paid, without what other runs paid; ``unpriced`` counts paid replies whose price
    is unknown.
    """

    total: int
    done: int = 0
    carried: int = 0
    correct: int = 0
    errors: int = 0
    asked: int = 0
    reused: int = 0
    paid_usd: float = 0.0
    unpriced: int = 0

    def add(self, outcome: Outcome, reply: Reply, *, carried: bool) -> None:
        """Count an answer."""
        self.count(outcome, carried=carried)
        self.pay(reply, carried=carried)

    def count(self, outcome: Outcome, *, carried: bool) -> None:
        """Count what came out, apart from what it took."""
        self.done += 1
        self.carried += carried
        self.correct += outcome == "correct"
        self.errors += outcome == "error"

    def pay(self, reply: Reply, *, carried: bool) -> None:
        """Count a reply: a test takes several."""
        self.reused += reply.reused
        if not carried and not reply.reused:
            self.asked += 1
        if reply.error is None and not reply.reused:
            self.paid_usd += reply.cost_usd or 0.0
            self.unpriced += reply.cost_usd is None

    @property
    def right(self) -> str:
        """The share that is right so far, with its 95 % interval."""
        graded = self.done - self.errors
        interval = wilson_interval(self.correct, graded)
        if interval is None:
            return "–"
        low, high = (100 * bound for bound in interval)
        return f"{100 * self.correct / graded:.1f} % ({low:.0f}–{high:.0f})"

    @property
    def cost(self) -> str:
        """What was paid; a plus says that the price of some replies is unknown."""
        if self.unpriced and not self.paid_usd:
            return "unknown"
        return dollars(self.paid_usd) + ("+" if self.unpriced else "")

    def rate(self, seconds: float) -> float:
        """Answers a second of this process."""
        return (self.done - self.carried) / seconds if seconds > 0 else 0.0


def spoken(seconds: float) -> str:
    """A duration, to read at a glance: ``45 s``, ``3:20``, ``1:05:00``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


_SECONDS_BETWEEN_LINES = 10.0
_REFRESHES_A_SECOND = 2.0


class BatchProgress:
    """Counts what happens, by backend, or by backend and model where there are several.

    ``totals`` maps each backend and model to the number of its asks.
    """

    def __init__(self, totals: Mapping[tuple[str, str], int]) -> None:
        self._several_models = len({model for _, model in totals} - {AGENT_MODEL}) > 1
        self._began: float | None = None
        self._replies: dict[tuple[str, str, str, int], ReplyReceived] = {}
        self.tallies = {self._name(*key): Tally(total) for key, total in totals.items()}

    def ingested(self, conversation: str, seconds: float) -> None:
        """A conversation was taken in."""

    def saw(self, event: ReplayEvent) -> None:
        """Take in what happened."""
        if isinstance(event, ReplyReceived):
            self._replies[_ask(event)] = event
        elif isinstance(event, AnswerScored):
            self._add(self._replies.pop(_ask(event)), event, carried=False)

    def carried_over(self, received: ReplyReceived, scored: AnswerScored) -> None:
        """An answer stood in the recording already."""
        self._add(received, scored, carried=True)

    def tested(self, event: ReplayEvent, *, carried: bool) -> None:
        """Take in what happened in a run of tests."""
        match event:
            case AgentReplied():
                self.tallies[self._name(event.backend, event.model)].pay(event.reply, carried=carried)
            case TestScored():
                tally = self.tallies[self._name(event.backend, event.model)]
                tally.count(outcome_of_test(event), carried=carried)
                self._begin(carried=carried)
                self._counted()
            case _:
                pass

    def kept(self, event: ReplayEvent) -> None:
        """A reply of a run of tests stood in the recording already."""
        if isinstance(event, AgentReplied):
            self.tallies[self._name(event.backend, event.model)].pay(event.reply, carried=True)

    @property
    def overall(self) -> Tally:
        """All backends and models together."""
        together = Tally(0)
        for tally in self.tallies.values():
            for name in vars(together):
                setattr(together, name, getattr(together, name) + getattr(tally, name))
        return together

    @property
    def seconds(self) -> float:
        """Time since the first answer that was asked for now: before it, memory was only taking in.

        None counts in the first second: no rate can be told by then.
        """
        passed = 0.0 if self._began is None else monotonic() - self._began
        return passed if passed >= 1.0 else 0.0

    def time_left(self, tally: Tally) -> str:
        """Time until all is done, at the rate so far."""
        rate = tally.rate(self.seconds)
        return spoken((tally.total - tally.done) / rate) if rate else "–"

    def _add(self, received: ReplyReceived, scored: AnswerScored, *, carried: bool) -> None:
        tally = self.tallies[self._name(scored.backend, scored.model)]
        tally.add(scored.score.outcome, received.reply, carried=carried)
        self._begin(carried=carried)
        self._counted()

    def _begin(self, *, carried: bool) -> None:
        if self._began is None and not carried:
            self._began = monotonic()

    def _counted(self) -> None:
        """One more is done."""

    def _name(self, backend: str, model: str) -> str:
        return f"{backend}@{model}" if self._several_models else backend


class PlainProgress(BatchProgress):
    """A line every ten seconds, and one a conversation."""

    def __init__(self, totals: Mapping[tuple[str, str], int], stream: TextIO) -> None:
        super().__init__(totals)
        self._stream, self._last = stream, monotonic()

    def ingested(self, conversation: str, seconds: float) -> None:
        """A conversation was taken in."""
        self._say(f"{conversation}: taken in, {seconds:.1f} s")

    def _counted(self) -> None:
        all_done = all(tally.done >= tally.total for tally in self.tallies.values())
        if all_done or monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = monotonic()
            self._say(self._line())

    def _line(self) -> str:
        whole = self.overall
        rate = f"{whole.rate(self.seconds):.1f}/s, {self.time_left(whole)} left, {whole.cost}"
        parts = [
            f"{name} {tally.done}/{tally.total} {tally.right}" + (f" {tally.errors} errors" if tally.errors else "")
            for name, tally in self.tallies.items()
        ]
        return f"{whole.done}/{whole.total} ({rate}): " + "; ".join(parts)

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class TableProgress(BatchProgress):
    """A table that is drawn again twice a second."""

    def __init__(self, totals: Mapping[tuple[str, str], int]) -> None:
        super().__init__(totals)
        self._note = ""

    def ingested(self, conversation: str, seconds: float) -> None:
        """A conversation was taken in."""
        self._note = f"{conversation} taken in, {seconds:.1f} s"

    def __rich__(self) -> RenderableType:
        """The table as it stands."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("backend")
        for heading in ("done", "right so far (95 %)", "errors", "cost", "rate", "left"):
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
        return Group(table, Text(self._note))


@contextmanager
def shown_progress(totals: Mapping[tuple[str, str], int]) -> Iterator[BatchProgress]:
    """Progress as fits where standard error goes."""
    if not sys.stderr.isatty():
        yield PlainProgress(totals, sys.stderr)
        return
    progress = TableProgress(totals)
    console = Console(stderr=True)
    with Live(progress, console=console, refresh_per_second=_REFRESHES_A_SECOND, redirect_stdout=False):
        yield progress


def _ask(event: AskEvent) -> tuple[str, str, str, int]:
    # Ids of questions are not shared by conversations that are asked about at the same time, but may be by others.
    return event.backend, event.model, f"{event.conversation}/{event.question_id}", event.repeat
