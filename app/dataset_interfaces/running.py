"""A test on its way, as the scheduler keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from math import floor

from app.dataset_interfaces.actions import WaitAction
from app.dataset_interfaces.examples import Evaluation, TestExample


@dataclass
class RunningTest:
    """What has been said in a test, and what it waits for: a number of tokens of the run, and a moment."""

    example: TestExample
    wait_tokens: int = 0
    wait_until: datetime | None = None
    questions: list[str] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)
    statement_times: list[datetime] = field(default_factory=list)
    after_first: tuple[int, int] | None = None
    at_last_question: tuple[int, int] | None = None
    watches: bool = False
    watched: int = 0
    evaluation: Evaluation | None = None
    idles: bool = False
    ungraded: str | None = None

    def wait(self, action: WaitAction, tokens: int, now: datetime) -> None:
        """Pause from now on, when ``tokens`` have been said in the run."""
        # GoodAI's published run takes the last reply off a second time, so that its waits end so much earlier.
        share = floor(self.example.dataset_generator.memory_span * action.percentage_finished / 100)
        self.wait_tokens = max(tokens + action.tokens, self.example.start_token + share if share else 0)
        self.wait_until = now + action.time if action.time else None

    def tokens_missing(self, tokens: int) -> int:
        """How many tokens must yet be said."""
        return max(self.wait_tokens - tokens, 0)

    def is_early(self, now: datetime) -> bool:
        """Whether its moment has not come."""
        return self.wait_until is not None and self.wait_until > now

    def is_ready(self, tokens: int, now: datetime) -> bool:
        """Whether it waits for nothing."""
        return not self.tokens_missing(tokens) and not self.is_early(now)

    def give_up(self, reason: str) -> None:
        """End without a score; the first reason counts."""
        self.ungraded = self.ungraded or reason
        self.example.finished = True

    def distance(self) -> tuple[int, int]:
        """Tokens and characters between the first message and the last question."""
        if self.after_first is None or self.at_last_question is None:
            return 0, 0
        (tokens, characters), (later_tokens, later_characters) = self.after_first, self.at_last_question
        return max(later_tokens - tokens, 0), max(later_characters - characters, 0)
