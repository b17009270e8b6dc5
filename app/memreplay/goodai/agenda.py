"""Decides which of the tests that run side by side acts next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import floor

from memreplay.errors import UsageError
from memreplay.goodai.actions import WaitAction
from memreplay.goodai.dataset import RunConfig, TestExample, dataset_key
from memreplay.goodai.evaluation import Evaluation


@dataclass
class RunningTest:
    """The state of a started test: what was said, and the token count and time that it waits for."""

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
        """Start waiting, after ``tokens`` were said in the run."""
        # GoodAI's published run subtracts the last reply a second time, so its waits end that much earlier.
        share = floor(self.example.dataset_generator.memory_span * action.percentage_finished / 100)
        self.wait_tokens = max(tokens + action.tokens, self.example.start_token + share if share else 0)
        self.wait_until = now + action.time if action.time else None

    def tokens_missing(self, tokens: int) -> int:
        """Return how many more tokens must be said."""
        return max(self.wait_tokens - tokens, 0)

    def is_early(self, now: datetime) -> bool:
        """Return whether the time it waits for has not come."""
        return self.wait_until is not None and self.wait_until > now

    def is_ready(self, tokens: int, now: datetime) -> bool:
        return not self.tokens_missing(tokens) and not self.is_early(now)

    def give_up(self, reason: str) -> None:
        """End without a score; only the first reason is kept."""
        self.ungraded = self.ungraded or reason
        self.example.finished = True

    def distance(self) -> tuple[int, int]:
        """Tokens and characters between the first message and the last question."""
        if self.after_first is None or self.at_last_question is None:
            return 0, 0
        (tokens, characters), (later_tokens, later_characters) = self.after_first, self.at_last_question
        return max(later_tokens - tokens, 0), max(later_characters - characters, 0)


_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Resume:
    """Continue a test whose wait is over."""

    test: RunningTest


@dataclass(frozen=True)
class Start:
    """Begin a new test."""

    example: TestExample


@dataclass(frozen=True)
class JumpTo:
    """Set the clock forward: nothing can continue earlier."""

    moment: datetime


@dataclass(frozen=True)
class Fill:
    """Say this many tokens of filler: then the first test can continue."""

    tokens: int


Decision = Resume | Start | JumpTo | Fill


class Agenda:
    """The tests that have not ended, and the rules on which of them may overlap."""

    def __init__(self, tests: Iterable[TestExample], config: RunConfig) -> None:
        self._config = config
        self._incompatible = [frozenset(map(dataset_key, group)) for group in config.incompatibilities]
        self.pending = sorted(tests, key=_sort_key)
        self.running: list[RunningTest] = []
        ids = [example.unique_id for example in self.pending]
        for test_id in ids:
            if ids.count(test_id) > 1:
                raise UsageError(f"Two tests have the id {test_id!r}: each needs a unique id")

    def begin(self, example: TestExample) -> RunningTest:
        self.pending.remove(example)
        test = RunningTest(example)
        self.running.append(test)
        return test

    def end(self, test: RunningTest) -> None:
        self.running.remove(test)

    def decide(self, tokens: int, now: datetime) -> Decision | None:
        """Return what to do next, after ``tokens`` were said; None when all tests have ended.

        Prefers a test whose wait is over (the one that waited for the fewest tokens), then a test that may begin,
        then a jump to the next awaited time, then filler.
        """
        ready = [test for test in self.running if test.is_ready(tokens, now)]
        if ready:
            return Resume(min(ready, key=lambda test: test.wait_tokens))
        for example in self.pending:
            if self._may_begin(example):
                return Start(example)
        moments = [
            test.wait_until for test in self.running if test.wait_until is not None and test.wait_until > now
        ]
        if moments:
            return JumpTo(min(moments))
        missing = [test.tokens_missing(tokens) for test in self.running]
        return Fill(min(missing)) if missing else None

    def _may_begin(self, example: TestExample) -> bool:
        others: Sequence[TestExample] = [test.example for test in self.running]
        if others and self._config.isolated:
            return False
        return all(self._may_overlap(example, other) for other in others)

    def _may_overlap(self, first: TestExample, second: TestExample) -> bool:
        if not (first.can_be_interleaved and second.can_be_interleaved):
            return False
        pair = {dataset_key(first.dataset_name), dataset_key(second.dataset_name)}
        return len(pair) == 2 and not any(pair <= group for group in self._incompatible)


def _sort_key(example: TestExample) -> tuple[str, list[str | tuple[int, str]], str]:
    """Sorts by dataset, then by id in natural order."""
    parts: list[str | tuple[int, str]] = [
        (int(part), part) if index % 2 else part for index, part in enumerate(_DIGITS.split(example.example_id))
    ]
    return example.dataset_name, parts, example.example_id
