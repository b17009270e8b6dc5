"""An interrupted run's log, replayed: what was said is said again, and what was asked is not asked again.

That goes for failures too: what came after them rests on them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from app.dataset_interfaces.language_model import LLMReply
from app.dataset_interfaces.master_log import EventType, LogEvent
from app.dataset_interfaces.steps import AgentReply
from app.errors import UsageError

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
