"""Import a finished GoodAI run: its messages, when each test began, waited and ended, and its scores.

The run folder has ``master_log.jsonl``, a result ``{dataset}/{id}_0.json`` for each test, and ``runstats.json``.
The shipped dataset of the same name computes each score again, unless that needs a judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
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
from memreplay.goodai.master_log import EventType, LogEvent, MasterLog, read_master_log
from memreplay.goodai.rescoring import Rescored, questions_and_responses, recorded_test, rescore
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


class _Statistics(BaseModel):
    """``runstats.json``."""

    total_tokens: int | None = None
    agent_tokens: int | None = None
    agent_costs_usd: float | None = None
    managing_costs_usd: float | None = None
    duration: float | None = None


def import_goodai_run(folder: Path, recording: Path) -> int:
    """Add a run to a recording, which is created if it does not exist. Returns the number of tests.

    Raises:
        MemreplayError: the folder holds no finished run, one of its files is invalid, or the recording cannot be
            written.
    """
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.")
    if not (folder / LOG).is_file():
        raise DatasetError(folder, "", f"holds no {LOG}", "the folder of a finished GoodAI run")
    log = read_master_log(folder / LOG)
    if not log:
        raise DatasetError(folder / LOG, "", "is empty", "the log of a run")
    run = _ImportedRun(folder, log)
    events = list(run.events())
    settings = {
        "backend": [run.agent],
        "model": [_MODEL],
        "imported_from": "GoodAI LTM benchmark",
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
