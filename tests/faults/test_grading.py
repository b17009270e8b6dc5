"""Whatever a model replies, every grader says something of it, and soon."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from random import Random
from time import thread_time
from typing import Any, Final

import pytest

from memreplay.conversations.models import Conversation, Question
from memreplay.conversations.registry import load, shipped_datasets
from memreplay.engine.answers import score_as_shown
from memreplay.engine.events import QuestionAsked
from memreplay.grading.failures import is_grading_failure
from memreplay.grading.judge import is_abstention, score_recall
from memreplay.grading.match import contains
from memreplay.grading.veto import asserted
from memreplay.llm.judging import verdict_in
from memreplay.llm.model import Reply
from memreplay.llm.prompts import KINDS
from memreplay.scoring.answer_key import AnswerKey, Correction
from memreplay.scoring.holding import Answerable, Piece
from memreplay.scoring.locomo_metric import locomo_f1
from tests.faults.effort import examples
from tests.faults.odd_replies import odd_replies, texts_about

PARTS: Final = 4
REPLIES: Final = 160
"""In each part, to as many questions drawn at random; each reply takes eight calls or nine."""
LONGEST_CALL: Final = 1.0
"""Seconds of the processor."""


@dataclass
class Calls:
    """Counts the calls, and collects what they raise: once for each place that raises."""

    made: Counter[str] = field(default_factory=Counter)
    raised: dict[str, str] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)

    def __call__(self, name: str, act: Callable[[], Any], about: object) -> None:
        self.made[name] += 1
        began = thread_time()
        try:
            act()
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} in {place.name}, {Path(place.filename).name}:{place.lineno}"
            self.raised.setdefault(kind, f"{kind}, by {name}: {error!s:.80}: {about!r:.400}")
        if (took := thread_time() - began) > LONGEST_CALL:
            self.slow[f"{name}: {about!r:.400}"] = took


def graders(
    question: Question, conversation: Conversation, reply: str, random: Random
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What grades a reply, or looks for its answer in a text."""
    expected, received = question.expected, Reply(text=reply)
    yield question.kind, partial(KINDS[question.kind].score, question, reply)
    if question.kind == "choice":
        yield "recall", partial(score_recall, question.model_copy(update={"kind": "recall"}), reply)
    yield "LoCoMo's metric", partial(locomo_f1, random.randint(1, 5), expected, reply)
    yield "judge", partial(_verdict, reply.replace(expected, random.choice(("yes", "no", "The reply is right"))))
    yield (
        "answer key",
        partial(_adjusted, question, received, random.choice((expected, question.text, reply[:1000]))),
    )
    yield "abstention", partial(is_abstention, reply)
    yield "contains", partial(contains, expected, reply)
    yield "asserted", partial(asserted, expected, reply)
    held = Answerable(question, conversation.turns_by_id)
    yield "held", partial(held.held_by, [Piece(reply, frozenset(), frozenset())])


def _verdict(text: str) -> None:
    _, problem = verdict_in(Reply(text=text), "plain")
    assert not is_grading_failure(problem), problem


def _adjusted(question: Question, reply: Reply, answer: str) -> None:
    asked = QuestionAsked(
        conversation="c", turn=1, backend="b", model="m", question_id=question.id,
        hits=(), cut=(), context_tokens=0, prompt=(), recall_ms=1.0,
    )  # fmt: skip
    key = AnswerKey(Path("key.json"), {question.id: Correction(reason="It is wrong.", answer=answer)})
    key.adjusted(question, asked, reply, score_as_shown(question, (), reply))


def _oddly_expected(question: Question, random: Random) -> Question:
    """The question with an odd answer, which a dataset may have too."""
    (expected,) = odd_replies([question.expected], 1, random)
    if question.kind == "choice":
        choices = [expected[:200] if random.random() < 0.3 else each for each in question.choices]
        return question.model_copy(update={"choices": tuple(choices)})
    (entity,) = odd_replies(question.expected.split() or ["and"], 1, random)
    return question.model_copy(
        update={
            "expected": expected[:300] or "and",
            "expected_entities": (*question.expected_entities, entity[:50] or "."),
            "supersedes": (entity[:50] or "but",),
        }
    )


@cache
def _loaded(*files: Path) -> Sequence[Conversation]:
    return tuple(load(list(map(str, files))))


def _graded(conversations: Sequence[Conversation], seed: str) -> Calls:
    random = Random(seed)
    asked = [(question, each) for each in conversations for question in each.questions]
    calls = Calls()
    for _ in range(examples(REPLIES)):
        question, conversation = random.choice(asked)
        if random.random() < 0.25:
            question = _oddly_expected(question, random)
        for reply in odd_replies(texts_about(question), 1, random):
            for name, act in graders(question, conversation, reply, random):
                calls(name, act, (question.expected, reply))
    return calls


def _check(calls: Calls) -> None:
    print(f"{calls.made.total():,} calls: {dict(calls.made)}")
    listed = "\n".join(calls.raised.values())
    assert not calls.raised, f"{len(calls.raised)} kinds of exceptions:\n{listed}"
    assert not calls.slow, calls.slow


@pytest.mark.parametrize("part", range(PARTS))
def test_a_reply_of_any_form_to_a_shipped_question_is_graded(part: int) -> None:
    _check(_graded(_loaded(*(entry.path for entry in shipped_datasets())), f"shipped {part}"))


@pytest.mark.shared_data
@pytest.mark.parametrize("part", range(PARTS))
def test_a_reply_of_any_form_to_a_question_of_locomo_is_graded(shared_data: Path, part: int) -> None:
    files = (shared_data / "locomo" / name for name in ("locomo10_dev.json", "mc10_dev.jsonl"))
    _check(_graded(_loaded(*files), f"locomo {part}"))
