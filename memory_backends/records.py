"""The data dictionary (DD-01, DD-02, DD-03): every stored object, with its key or collection and its fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

WorkspaceStatus = Literal["active", "resolved", "cancelled"]

RAG_COLLECTION = "goodai_ltm_full_history"
VERBATIM_COLLECTION = "hybrid_verbatim"
KNOWLEDGE_COLLECTION = "hybrid_knowledge"


def iso_utc(moment: datetime) -> str:
    """ISO 8601 with milliseconds and ``Z``, as the data dictionary writes it. A naive time is taken as UTC."""
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp = Annotated[datetime, PlainSerializer(iso_utc, return_type=str, when_used="json")]


class Record(BaseModel):
    """A stored object. Unknown fields are refused, nulls are written out."""

    model_config = ConfigDict(extra="forbid")


def _now() -> datetime:
    return datetime.now(UTC)


class PersonalMemoryState(Record):
    """DD-01: the private, transient state of one agent. Redis, a JSON string at ``personal_state:{agent_id}``.

    ``last_updated`` is the real time unless it is given.
    """

    agent_id: str
    current_task_id: str | None = None
    scratchpad: dict[str, Any] = Field(default_factory=dict)
    promotion_candidates: dict[str, Any] = Field(default_factory=dict)
    last_updated: Timestamp = Field(default_factory=_now)

    @staticmethod
    def key(agent_id: str) -> str:
        """Return where it is stored."""
        return f"personal_state:{agent_id}"


class SharedWorkspaceState(Record):
    """DD-01: the whiteboard of one event. Redis, a JSON string at ``shared_state:{event_id}``.

    Unless they are given, ``event_id`` is a new UUID, an event is ``active``, and both times are the real time.
    """

    event_id: str = Field(default_factory=lambda: str(uuid4()))
    status: WorkspaceStatus = "active"
    shared_data: dict[str, Any] = Field(default_factory=dict)
    participating_agents: list[str] = Field(default_factory=list)
    created_at: Timestamp = Field(default_factory=_now)
    last_updated: Timestamp = Field(default_factory=_now)

    @staticmethod
    def key(event_id: str) -> str:
        """Return where it is stored."""
        return f"shared_state:{event_id}"

    @staticmethod
    def channel(event_id: str) -> str:
        """Return where every update is published."""
        return f"channel:shared_state:{event_id}"


class QdrantDocument(Record):
    """DD-02: one exchange. A point of ``goodai_ltm_full_history`` (and, for hybrid, of ``hybrid_verbatim``).

    ``turn_number`` is the 1-based sequential index of the exchange, which the dictionary calls a turn. ``turns``,
    our addition, are the ids of the messages in it.
    """

    id: str
    content: str
    turn_number: int
    turns: list[str]
    timestamp: Timestamp


class KnowledgeDocument(Record):
    """DD-01: a promoted fact. A point of ``hybrid_knowledge``.

    ``content`` is what was said, with its speaker; ``slot`` and ``value`` what it says of whom. ``sources`` are
    turns that say it: all, or of many the first and the latest; ``accesses`` is how often it was said again. The
    fact holds from ``valid_from`` on; one that was corrected stays stored, with ``valid_to`` and the id of the fact
    that took its place.
    """

    kind: Literal["fact"] = "fact"
    id: str
    content: str
    slot: str | None
    value: str | None
    said_by: str
    sources: list[str]
    confidence: float
    significance: float
    factors: dict[str, float]
    justification: str
    accesses: int
    created_at: Timestamp
    valid_from: Timestamp
    valid_to: Timestamp | None = None
    superseded_by: str | None = None


class ArchivedWorkspace(Record):
    """DD-01: the shared workspace of an event that is over. A point of ``hybrid_knowledge``."""

    kind: Literal["archive"] = "archive"
    id: str
    content: str
    workspace: SharedWorkspaceState
    archived_at: Timestamp


class ConversationHistoryLog(Record):
    """DD-03: the whole history as one text. Redis, a plain string at ``full_history:{conversation_id}``."""

    raw_text: str

    @staticmethod
    def key(conversation_id: str) -> str:
        """Return where it is stored."""
        return f"full_history:{conversation_id}"


class BenchmarkTurnPayload(Record):
    """DD-02, DD-03: what a benchmark runner sends for one turn. Never stored."""

    history: str
    message: str
