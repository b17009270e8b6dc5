"""The shared state of a run (clock, token count, log), and how the log of an interrupted run is replayed."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from memreplay.dataset_interfaces.filler import count_tokens
from memreplay.dataset_interfaces.language_model import NO_MODEL, LanguageModel, LLMReply, LLMRequest
from memreplay.dataset_interfaces.master_log import EventSink, EventType, LogEvent, MasterLog
from memreplay.dataset_interfaces.steps import AgentReply, LlmAsked
from memreplay.errors import UsageError

_REPLIES = {EventType.RESPONSE_MESSAGE, EventType.RESPONSE_FILL}


class Journal:
    """The events of an interrupted run that have not been replayed yet; empty for a new run."""

    def __init__(self, events: Iterable[LogEvent] = ()) -> None:
        self._events: deque[LogEvent] = deque()
        self._model_replies: defaultdict[str, deque[LLMReply]] = defaultdict(deque)
        for event in events:
            if event.type is EventType.LLM_CALL:
                data = event.data
                reply = LLMReply(data["response"], data.get("cost_usd"), data.get("error"))
                self._model_replies[event.test_id].append(reply)
            else:
                self._events.append(event)

    def matches(self, event: LogEvent) -> bool:
        """Whether this is the next recorded event, which is then consumed.

        Raises :class:`UsageError` if the log has a different event here: it is from other tests.
        """
        if not self._events:
            return False
        known = self._events[0]
        if (known.type, known.test_id, known.data) != (event.type, event.test_id, event.data):
            raise UsageError(
                f"The log to resume from does not fit these tests: it has {_shown(known)} where this run has "
                f"{_shown(event)}"
            )
        self._events.popleft()
        return True

    def agent_reply(self) -> AgentReply | None:
        """The recorded reply to the message that was just matched."""
        if not self._events or self._events[0].type not in _REPLIES:
            return None
        data = self._events[0].data
        return AgentReply(str(data["message"]), data.get("error"))

    def model_reply(self, test_id: str) -> LLMReply | None:
        """The recorded reply to the test's next model call."""
        replies = self._model_replies[test_id]
        return replies.popleft() if replies else None


def _shown(event: LogEvent) -> str:
    said = str(event.data.get("message", ""))
    return f"{event.type.name} of {event.test_id or 'no test'}" + (f" ({said[:40]!r})" if said else "")


HALF_EXCHANGE = timedelta(seconds=5)
"""The simulated duration of a message, and of a reply."""


class RunRecord:
    """The state that all tests of a run share."""

    def __init__(self, start: datetime, journal: Journal, sink: EventSink | None) -> None:
        self.log = MasterLog()
        self.now = start
        self.tokens = 0
        self.characters = 0
        self.journal = journal
        self._sink = sink

    def add(self, kind: EventType, test_id: str = "", **data: Any) -> None:
        """Log an event, and pass it to the sink unless an interrupted run already did."""
        event = LogEvent(kind, self.now, test_id, data)
        known = kind is not EventType.LLM_CALL and self.journal.matches(event)
        self.log.append(event)
        if not known:
            self._emit(event)

    def add_reused(self, kind: EventType, test_id: str, **data: Any) -> None:
        """Log an event that an interrupted run already passed to the sink."""
        self.log.append(LogEvent(kind, self.now, test_id, data))

    def count(self, text: str) -> None:
        """Count the tokens of a message and advance the clock."""
        self.tokens += count_tokens(text)
        self.characters += len(text)
        self.now += HALF_EXCHANGE

    def _emit(self, event: LogEvent) -> None:
        if self._sink is not None:
            self._sink(event)


class LoggedModel:
    """Logs the model calls of datasets, and answers them from the log of an interrupted run as long as it lasts.

    ``asked`` are the calls that have not been yielded yet; ``test_id`` is the calling test.
    """

    def __init__(self, model: LanguageModel | None, record: RunRecord) -> None:
        self._model = model
        self._record = record
        self.test_id = ""
        self.asked: list[LlmAsked] = []

    def __call__(self, request: LLMRequest) -> LLMReply:
        """Call the model. The reply or error is logged before it is used."""
        known = self._record.journal.model_reply(self.test_id)
        reply = known or self._ask(request)
        failure = {} if reply.error is None else {"error": reply.error}
        add = self._record.add_reused if known else self._record.add
        add(EventType.LLM_CALL, self.test_id, response=reply.text, cost_usd=reply.cost_usd, **failure)
        self.asked.append(
            LlmAsked(self.test_id, request.model, reply.text, reply.error, reply.cost_usd, known is not None)
        )
        return reply

    def _ask(self, request: LLMRequest) -> LLMReply:
        if self._model is None:
            return LLMReply(None, error=NO_MODEL)
        return self._model(request)
