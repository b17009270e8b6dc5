"""How far a run has come, counted by backend and model."""

from __future__ import annotations

from dataclasses import dataclass

from app.answering.model import Reply
from app.prices import dollars
from app.scoring.outcomes import Outcome
from app.scoring.statistics import wilson_interval


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
