"""Rescore a finished test from the log of its run, without an agent or a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memreplay.goodai.actions import SendMessageAction, TestFinishedAction
from memreplay.goodai.dataset import TestExample
from memreplay.goodai.dynamic import DynamicExample
from memreplay.goodai.evaluation import Evaluation, Ungraded, normalised_evaluation
from memreplay.goodai.language_model import LLMReply, LLMRequest
from memreplay.goodai.loading import create_dataset, shipped_dataset
from memreplay.goodai.master_log import EventType, LogEvent, MasterLog


def recorded_test(test_id: str, dataset_name: str, log: MasterLog, expected_responses: Any) -> TestExample | None:
    """Rebuild the test with the script that was sent; None if no shipped dataset has the name."""
    found = shipped_dataset(dataset_name)
    if found is None:
        return None
    events = list(log.of(test_id))
    said = [event for event in events if event.type is EventType.SEND_MESSAGE]
    dataset = create_dataset(found)
    dataset.name = dataset_name
    example = dataset.create_example(
        script=[str(event.data["message"]) for event in said],
        is_question=[bool(event.data.get("is_question")) for event in said],
        waits=[{} for _ in said],
        expected_responses=expected_responses,
        uses_callback=any(event.type is EventType.REGISTER_CALLBACK for event in events),
    )
    example.identify(dataset, test_id.removeprefix(f"{dataset_name} - "))
    return example


_REPLIES = (EventType.RESPONSE_MESSAGE, EventType.RESPONSE_FILL)


@dataclass(frozen=True)
class Rescored:
    """The new score, 0..1, or None and the reason why there is none in ``ungraded``."""

    score: float | None
    reasoning: tuple[str, ...] = ()
    ungraded: str | None = None


@dataclass(frozen=True)
class RecordedRun:
    """The recorded log as a callback sees it."""

    master_log: MasterLog


def rescore(example: TestExample, log: MasterLog) -> Rescored:
    """Score a test that has not begun from the log of its run.

    Model calls are answered from the log. If it has no reply (GoodAI's logs have only those of dynamic tests), the
    test is ungraded. A dynamic test runs with the recorded replies of the agent, whatever messages they answered.
    """
    events = list(log.of(example.unique_id))
    replies = iter([event.data["response"] for event in events if event.type is EventType.LLM_CALL])

    def recorded(request: LLMRequest) -> LLMReply:
        return LLMReply(next(replies, None), error=f"the log has no reply of {request.model}")

    example.dataset_generator.use_language_model(recorded)
    try:
        score, _, reasons = _evaluation(example, events, log)
    except Ungraded as error:
        return Rescored(None, ungraded=str(error))
    return Rescored(score, tuple(reasons))


def questions_and_responses(events: list[LogEvent]) -> tuple[list[str], list[str]]:
    """Return what one test asked, and what the agent replied."""
    asked = [event for event in events if event.data.get("is_question")]
    questions = [str(event.data["message"]) for event in asked if event.type is EventType.SEND_MESSAGE]
    responses = [str(event.data["message"]) for event in asked if event.type is EventType.RESPONSE_MESSAGE]
    return questions, responses


def _evaluation(example: TestExample, events: list[LogEvent], log: MasterLog) -> Evaluation:
    questions, responses = questions_and_responses(events)
    if isinstance(example, DynamicExample):
        return _rerun_dynamic(example, events)
    if not responses:
        raise Ungraded("The log has no reply to a question of this test")
    if example.uses_callback:
        return _rerun_callback(example, log)
    return example.evaluation_fn(questions, responses, example.expected_responses)


def _rerun_dynamic(example: DynamicExample, events: list[LogEvent]) -> Evaluation:
    replies = (str(event.data["message"]) for event in events if event.type is EventType.RESPONSE_MESSAGE)
    while not example.finished:
        action = example.step()
        if isinstance(action, TestFinishedAction):
            break
        if isinstance(action, SendMessageAction):
            reply = next(replies, None)
            if reply is None:
                raise Ungraded("The log has fewer replies than this test has messages")
            action.reply = reply
    return example.evaluate()


def _rerun_callback(example: TestExample, log: MasterLog) -> Evaluation:
    """Call the callback after each exchange until it ends the test."""
    run = RecordedRun(MasterLog())
    for event in _since_registered(example, log, run.master_log):
        run.master_log.append(event)
        if event.type not in _REPLIES:
            continue
        score, maximum, reasons, done = example.dataset_generator.continual_evaluation_callback(
            run, example, run.master_log.messages()
        )
        if done or example.finished:
            return normalised_evaluation(score, maximum, reasons)
    raise Ungraded("The log ends before the test's callback was done")


def _since_registered(example: TestExample, log: MasterLog, before: MasterLog) -> Iterator[LogEvent]:
    """Yield the events from the reply to the registering question on; append earlier ones to ``before``."""
    watching = False
    for place, event in enumerate(log.events):
        following = log.events[place + 1] if place + 1 < len(log.events) else None
        watching = watching or (
            following is not None
            and following.type is EventType.REGISTER_CALLBACK
            and following.test_id == example.unique_id
        )
        if watching:
            yield event
        else:
            before.append(event)
