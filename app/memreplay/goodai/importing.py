"""Import a finished GoodAI run: its messages, when each test began, waited and ended, and its scores.

The run folder has ``master_log.jsonl``, a result ``{dataset}/{id}_0.json`` for each test, and ``runstats.json``.
Older runs have no log: the messages of each test are then taken from its result. The shipped dataset of the same
name computes each score again, without an agent, unless that needs a judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from memory_backends.storable import storable
from memreplay.conversations.json_files import read_json
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.conversations.validation_errors import Place, validated
from memreplay.engine.events import (
    BenchmarkModelAsked,
    ClockSet,
    ConversationClosed,
    ConversationOpened,
    MemoryCleared,
    MessagePart,
    MessageSaid,
    ReplayEvent,
    TestBegan,
    TestScored,
    TestWaited,
    shown_expectation,
)
from memreplay.errors import DatasetError, UsageError
from memreplay.goodai.actions import SendMessageAction, TestFinishedAction
from memreplay.goodai.dataset import DynamicExample, TestExample
from memreplay.goodai.evaluation import Evaluation, Ungraded, normalised_evaluation
from memreplay.goodai.language_model import LLMReply, LLMRequest
from memreplay.goodai.master_log import EventType, LogEvent, MasterLog, read_master_log
from memreplay.goodai.sources import create_dataset, shipped_dataset
from memreplay.recording.writer import RunRecorder, fingerprint

LOG = "master_log.jsonl"

_STATISTICS = "runstats.json"

_RESULT = "_0.json"

_MODEL = "recorded"
"""The run does not record the agent's model."""

_CLOCK_SET = timedelta(minutes=5)
"""A longer gap between two messages means that the simulated clock was set forward."""

_SAID: dict[EventType, MessagePart] = {
    EventType.SEND_MESSAGE: "script",
    EventType.SEND_FILL: "filler",
    EventType.RESPONSE_MESSAGE: "reply",
    EventType.RESPONSE_FILL: "reply",  # the log does not say whether the agent was asked for it
}


class _Wait(BaseModel):
    """The limits of a wait: seconds, at most a century, and tokens."""

    time: Annotated[float, Field(ge=0, le=3.2e9)] | None = None
    tokens: Annotated[int, Field(ge=0, le=10**9)] | None = None


class _Result(BaseModel):
    """The fields of a result file that the log lacks."""

    score: float
    max_score: float = Field(gt=0)
    reasoning: list[str] = Field(default_factory=list)
    tokens: int = 0
    expected_responses: Any = None


class _Conversed(BaseModel):
    """The messages in a result file."""

    task_log: list[str] = Field(default_factory=list)
    actual_responses: list[str] = Field(default_factory=list)


class _Statistics(BaseModel):
    """``runstats.json``."""

    total_tokens: int | None = None
    agent_tokens: int | None = None
    agent_costs_usd: float | None = None
    managing_costs_usd: float | None = None
    duration: float | None = None


def is_goodai_run(folder: Path) -> bool:
    """Return whether a folder holds a run: its log, or results of tests with the messages of each."""
    if (folder / LOG).is_file():
        return True
    result = next(folder.glob(f"*/*{_RESULT}"), None) if folder.is_dir() else None
    try:
        return result is not None and '"task_log"' in result.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def import_goodai_run(folder: Path, recording: Path) -> int:
    """Add a run to a recording, which is created if it does not exist. Returns the number of tests.

    Raises:
        MemreplayError: the folder holds no finished run, one of its files is invalid, or the recording cannot be
            written.
    """
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.")
    has_log = (folder / LOG).is_file()
    log = read_master_log(folder / LOG) if has_log else _log_of_results(folder)
    if not log:
        where, wanted = (folder / LOG, "the log of a run") if has_log else (folder, "the folder of a GoodAI run")
        raise DatasetError(where, "", "is empty" if has_log else f"holds no {LOG}, and no results", wanted)
    run = _ImportedRun(folder, log)
    events = list(run.events())
    settings = {
        "backend": [run.agent],
        "model": [_MODEL],
        "imported_from": "GoodAI LTM benchmark",
        **({} if has_log else {"imported_without": f"{LOG}: waits, filler and calls of the judge are unknown"}),
        **_statistics(folder / _STATISTICS),
    }
    recorder = RunRecorder.start(recording, settings, [run.conversation.dataset], fingerprint(settings))
    recorder.add_conversation(run.conversation)
    for event in events:
        recorder.record(event)
    recorder.finish("finished")
    return sum(isinstance(event, TestScored) for event in events)


def _statistics(path: Path) -> dict[str, Any]:
    return validated(_Statistics, read_json(path), Place(path)).model_dump() if path.is_file() else {}


_LINE = re.compile(r"(Test|Agent) \((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)\): (.*)", re.DOTALL)


def _log_of_results(folder: Path) -> list[LogEvent]:
    """Return the log of a run that kept none, from the messages that each result has of its own test.

    Raises:
        DatasetError: a result is invalid, or has no messages.
    """
    events: list[LogEvent] = []
    for path in sorted(folder.glob(f"*/*{_RESULT}")):
        if not path.resolve().is_relative_to(folder.resolve()):
            continue
        kept = validated(_Conversed, read_json(path), Place(path))
        test_id = f"{path.parent.name} - {path.name.removesuffix(_RESULT)}"
        said = [found for line in kept.task_log if (found := _LINE.fullmatch(line))]
        if not said:
            raise DatasetError(
                path,
                "/task_log",
                f"has no message, and the run has no {LOG}",
                "“Test (time): …” and “Agent (time): …”",
            )
        times = [datetime.fromisoformat(found[2]) for found in said]
        is_question, asked = [False] * len(said), [*kept.actual_responses]
        for place in range(len(said) - 1, 0, -1):
            if asked and said[place][1] == "Agent" and said[place][3] == asked[-1]:
                asked.pop()
                is_question[place - 1] = is_question[place] = True
        events.append(LogEvent(EventType.BEGIN, times[0], test_id, {}))
        for found, time, question in zip(said, times, is_question, strict=True):
            kind = EventType.SEND_MESSAGE if found[1] == "Test" else EventType.RESPONSE_MESSAGE
            data = {"message": found[3], "is_question": question}
            events.append(LogEvent(kind, time, test_id, data))
        events.append(LogEvent(EventType.END, times[-1], test_id, {}))
    return sorted(events, key=lambda event: event.timestamp)


class _ImportedRun:
    """Turns a log into events. The agent, which is the only backend, is named after the folder."""

    def __init__(self, folder: Path, log: list[LogEvent]) -> None:
        self.agent = storable(folder.resolve().name)
        self._folder, self._log = folder, MasterLog(log)
        first = Session(number=1, id="1", date=log[0].timestamp)
        self.conversation = Conversation(
            id=self.agent, dataset=self.agent, sessions=(first,), turns=(), questions=(), conversing=True
        )
        self._turn, self._session = 0, 1

    def events(self) -> Iterator[ReplayEvent]:
        yield ConversationOpened(**self._at())
        before = self._log.events[0].timestamp
        for event in self._log.events:
            if event.timestamp - before > _CLOCK_SET:
                self._session += 1
                yield ClockSet(**self._at(), before=before, after=event.timestamp, session=self._session)
            before = event.timestamp
            yield from self._of(event)
        end = {**self._at(), "turn": self._turn + 1}
        yield ConversationClosed(**end, status="resolved")

    def _of(self, event: LogEvent) -> Iterator[ReplayEvent]:
        data, test_id = event.data, event.test_id
        match event.type:
            case kind if kind in _SAID:
                yield self._message(event)
            case EventType.BEGIN:
                yield TestBegan(**self._at(), test_id=test_id, dataset=_dataset_of(test_id), description="")
            case EventType.WAIT:
                wait = validated(_Wait, data, Place(self._folder / LOG).at(f"the wait of {test_id}"))
                until = event.timestamp + timedelta(seconds=wait.time) if wait.time else None
                yield TestWaited(**self._at(), test_id=test_id, tokens=wait.tokens or 0, until=until)
            case EventType.SUITE_RESET:
                yield MemoryCleared(**self._at())
            case EventType.LLM_CALL:
                reply = str(data.get("response", ""))
                yield BenchmarkModelAsked(
                    **self._at(), test_id=test_id, model=None, reply=reply, error=None, cost_usd=None
                )
            case EventType.END:
                yield self._scored(test_id)
            case _:
                pass

    def _message(self, event: LogEvent) -> MessageSaid:
        self._turn += 1
        part = _SAID[event.type]
        if part == "script" and event.data.get("is_question"):
            part = "question"
        return MessageSaid(
            **self._at(),
            message=Turn(
                id=str(self._turn),
                number=self._turn,
                session=self._session,
                role="assistant" if part == "reply" else "user",
                speaker=None,
                text=str(event.data.get("message", "")),
            ),
            said_at=event.timestamp,
            part=part,
            test_id=event.test_id or None,
        )

    def _scored(self, test_id: str) -> TestScored:
        dataset = _dataset_of(test_id)
        path = self._folder / dataset / f"{test_id.removeprefix(dataset + ' - ')}{_RESULT}"
        if not path.resolve().is_relative_to(self._folder.resolve()) or not path.is_file():
            raise DatasetError(
                self._folder, "", f"has no result of the test {test_id}", f"{{dataset}}/{{id}}{_RESULT}"
            )
        result = validated(_Result, read_json(path), Place(path))
        again = self._rescored(test_id, dataset, result)
        questions, responses = questions_and_responses(list(self._log.of(test_id)))
        return TestScored(
            **self._at(),
            model=_MODEL,
            test_id=test_id,
            dataset=dataset,
            score=again.score,
            max_score=1,
            recorded_score=result.score / result.max_score,
            reasoning=tuple(again.reasoning or result.reasoning),
            ungraded=again.ungraded,
            questions=tuple(questions),
            responses=tuple(responses),
            expected=shown_expectation(result.expected_responses),
            distance_tokens=result.tokens,
        )

    def _rescored(self, test_id: str, dataset: str, result: _Result) -> Rescored:
        test = recorded_test(test_id, dataset, self._log, result.expected_responses)
        if test is None:
            return Rescored(None, ungraded=f"There is no class here for the dataset {dataset}")
        try:
            return rescore(test, self._log)
        except Exception as error:
            # The run may be of another version of the dataset; its own score still counts.
            return Rescored(None, ungraded=f"It cannot be scored again ({type(error).__name__}: {error})")

    def _at(self) -> dict[str, Any]:
        return {"conversation": self.conversation.id, "backend": self.agent, "turn": self._turn}


def _dataset_of(test_id: str) -> str:
    """Return the dataset in ``"{dataset} - {id}"``."""
    return test_id.rpartition(" - ")[0]


# ---- scoring again --------------------------------------------------------------------------------------------


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
