"""What all steps of a run share: clock, transcript, log; and how an interrupted run's log is replayed."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from memreplay.dataset_interfaces.filler import count_tokens
from memreplay.dataset_interfaces.language_model import LanguageModel, LLMReply, LLMRequest
from memreplay.dataset_interfaces.master_log import EventSink, EventType, LogEvent, MasterLog
from memreplay.dataset_interfaces.steps import AgentReply, LlmAsked
from memreplay.errors import UsageError

_REPLIES = {EventType.RESPONSE_MESSAGE, EventType.RESPONSE_FILL}


class Journal:
    """What is known of a run before it starts: nothing, or all that happened until it was interrupted."""

    def __init__(self, events: Iterable[LogEvent] = ()) -> None:
        self._happened: deque[LogEvent] = deque()
        self._judged: defaultdict[str, deque[LLMReply]] = defaultdict(deque)
        for event in events:
            if event.type is EventType.LLM_CALL:
                data = event.data
                reply = LLMReply(data["response"], data.get("cost_usd"), data.get("error"))
                self._judged[event.test_id].append(reply)
            else:
                self._happened.append(event)

    def matches(self, event: LogEvent) -> bool:
        """Whether this has happened before; it is then crossed off.

        Raises :class:`UsageError` where something else happened at this point: the log is of other tests.
        """
        if not self._happened:
            return False
        known = self._happened[0]
        if (known.type, known.test_id, known.data) != (event.type, event.test_id, event.data):
            raise UsageError(
                f"The log to resume from does not fit these tests: it has {_shown(known)} where this run has "
                f"{_shown(event)}"
            )
        self._happened.popleft()
        return True

    def agent_reply(self) -> AgentReply | None:
        """The reply to the message that has just been matched."""
        if not self._happened or self._happened[0].type not in _REPLIES:
            return None
        data = self._happened[0].data
        return AgentReply(str(data["message"]), data.get("error"))

    def model_reply(self, test_id: str) -> LLMReply | None:
        """The reply to the test's next call of a model."""
        replies = self._judged[test_id]
        return replies.popleft() if replies else None


def _shown(event: LogEvent) -> str:
    said = str(event.data.get("message", ""))
    return f"{event.type.name} of {event.test_id or 'no test'}" + (f" ({said[:40]!r})" if said else "")


HALF_EXCHANGE = timedelta(seconds=5)
"""What a message takes on the simulated clock, and again what its reply takes."""


class RunRecord:
    """The state of a run that is not one test's: it only ever grows."""

    def __init__(self, start: datetime, journal: Journal, sink: EventSink | None) -> None:
        self.log = MasterLog()
        self.now = start
        self.tokens = 0
        self.characters = 0
        self.journal = journal
        self._sink = sink

    def add(self, kind: EventType, test_id: str = "", **data: Any) -> None:
        """Log what has happened; it is handed on unless an interrupted run has done that."""
        event = LogEvent(kind, self.now, test_id, data)
        known = kind is not EventType.LLM_CALL and self.journal.matches(event)
        self.log.append(event)
        if not known:
            self._hand_on(event)

    def add_reused(self, kind: EventType, test_id: str, **data: Any) -> None:
        """Log what an interrupted run has handed on."""
        self.log.append(LogEvent(kind, self.now, test_id, data))

    def count(self, text: str) -> None:
        """Something was said; the clock moves on."""
        self.tokens += count_tokens(text)
        self.characters += len(text)
        self.now += HALF_EXCHANGE

    def _hand_on(self, event: LogEvent) -> None:
        if self._sink is not None:
            self._sink(event)


class LoggedModel:
    """The model that datasets ask: it answers from the log of an interrupted run as long as that lasts.

    ``asked`` holds the calls that have not been shown yet; ``test_id`` is the test that is asking.
    """

    def __init__(self, model: LanguageModel | None, record: RunRecord) -> None:
        self._model = model
        self._record = record
        self.test_id = ""
        self.asked: list[LlmAsked] = []

    def __call__(self, request: LLMRequest) -> LLMReply:
        """Ask. The reply, or that there was none, is in the log before anything else happens with it."""
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
            return LLMReply(None, error="no model is set for judging")
        return self._model(request)
