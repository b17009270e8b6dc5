"""Which turns an item comes from, where the memory itself says nothing of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from memory_backends.base import Hit, Recall, Snapshot
from memory_backends.contract.trial import WordEmbedder, count_words, exchange
from memory_backends.metering import ChatMessage, MeteredChat
from memory_backends.plugins import adapted
from memory_backends.resources import Resources
from memory_backends.snapshots import Provenance
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import ModelCall
from tests.stubs.memory import TickingClock, namespace

JOB, MOVE, CAT = (
    exchange(1, "I work at Nimbus Labs.", "Noted."),
    exchange(2, "I moved to Bilbao for it.", "Lovely city."),
    exchange(3, "My cat Tofu died last week.", "I am sorry."),
)


def hit(text: str, id_: str = "?", place: str = "memories") -> Hit:
    return Hit(id=id_, store="lib", place=place, rank=1, score=None, text=text)


def sources(known: Provenance, found: Hit) -> tuple[str, ...]:
    return known.completed(Recall(hits=(found,))).hits[0].sources


def points(**texts: str) -> Snapshot:
    return Snapshot(points={"lib": {"memories": {id_: {"memory": text} for id_, text in texts.items()}}})


def test_a_new_item_comes_from_the_exchange_and_a_changed_one_also_from_where_it_came_before() -> None:
    known = Provenance()
    known.note(points(a="Works at Nimbus Labs"), ("1", "2"))
    known.note(points(a="Works at Nimbus Labs in Bilbao", b="Lives in Bilbao"), ("3", "4"))
    assert sources(known, hit("anything", "a")) == ("1", "2", "3", "4")
    assert sources(known, hit("anything", "b")) == ("3", "4")


def test_what_is_merged_into_another_item_keeps_its_sources() -> None:
    known = Provenance()
    known.note(points(a="Works at Nimbus Labs", b="Owns a boat"), ("1", "2"))
    known.note(points(b="Owns a boat", c="Lives in Bilbao and works at Nimbus Labs"), ("3", "4"))
    assert sources(known, hit("anything", "c")) == ("1", "2", "3", "4")
    known.note(points(c="Lives in Bilbao and works at Nimbus Labs", d="Sold everything"), ("5", "6"))
    assert sources(known, hit("anything", "d")) == ("5", "6"), "nothing of the boat is in it"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Works at Nimbus Labs", ("1", "2")), ("Fact: works at Nimbus Labs.", ("1", "2")), ("Has a dog", ())],
)
def test_a_hit_under_an_unknown_id_is_found_by_its_text(text: str, expected: tuple[str, ...]) -> None:
    known = Provenance()
    known.note(points(a="Works at Nimbus Labs", b="Moved to Bilbao"), ("1", "2"))
    assert sources(known, hit(text, "other", "elsewhere")) == expected


@pytest.mark.parametrize("kept_as", ["list", "log", "fields"])
def test_texts_in_a_state_keep_their_sources_when_others_before_them_go(kept_as: str) -> None:
    def held(*texts: str) -> Snapshot:
        shapes: dict[str, Any] = {
            "list": list(texts),
            "log": "\n".join(texts),
            "fields": {text[:5]: text for text in texts},
        }
        return Snapshot(values={"lib": {"facts": shapes[kept_as]}})

    known = Provenance()
    known.note(held("Owns a red boat", "Works at Nimbus Labs"), ("1", "2"))
    known.note(held("Works at Nimbus Labs", "Moved to Bilbao"), ("3", "4"))
    assert sources(known, hit("Works at Nimbus Labs")) == ("1", "2")
    assert sources(known, hit("Moved to Bilbao")) == ("3", "4")


def test_a_hit_that_quotes_a_turn_names_it_and_what_a_memory_says_itself_stands() -> None:
    known = Provenance()
    known.heard(JOB)
    known.note(points(a="User: I work at Nimbus Labs."), JOB.turn_ids)
    quoted = known.completed(Recall(hits=(hit("User: I work at Nimbus Labs.", "a"),))).hits[0]
    assert (quoted.turns, quoted.sources) == (("1",), ())
    own = hit("Works at Nimbus Labs", "a").model_copy(update={"sources": ("9",)})
    assert sources(known, own) == ("9",)


def test_words_that_were_said_twice_are_quoted_of_the_turn_that_the_item_comes_from() -> None:
    known = Provenance()
    table = exchange(1, "A table at Lou's?", "Booked for two people.")
    boat = exchange(2, "And a boat?", "Booked for two people.")
    for said, held in ((table, points(a=table.text)), (boat, points(a=table.text, b=boat.text))):
        known.heard(said)
        known.note(held, said.turn_ids)
    assert known.completed(Recall(hits=(hit(boat.text, "b"),))).hits[0].turns == boat.turn_ids


def test_a_saved_state_is_continued() -> None:
    known, again = Provenance(), Provenance()
    known.note(points(a="Works at Nimbus Labs"), ("1", "2"))
    again.restore(json.loads(json.dumps(known.state())))
    again.note(points(a="Works at Nimbus Labs in Bilbao"), ("3", "4"))
    assert sources(again, hit("anything", "a")) == ("1", "2", "3", "4")


class Scripted:
    """A model that replies by the last line of what it is asked."""

    name = "scripted"

    def __init__(self, extracted: Mapping[str, Sequence[str]], revised: Mapping[str, Any]) -> None:
        self._extracted, self._revised = extracted, revised

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any], repeat: int
    ) -> tuple[ChatMessage | None, ModelCall]:
        asked = messages[-1]["content"]
        if asked.startswith("Revise: "):
            reply: Any = next((wanted for said, wanted in self._revised.items() if said in asked), {})
        else:
            new = asked.partition("New Messages")[2]
            facts = next((facts for said, facts in self._extracted.items() if said in new), [])
            reply = {"memory": [{"id": str(number), "text": text} for number, text in enumerate(facts)]}
        call = ModelCall(purpose="chat", model=self.name, prompt_tokens=50, completion_tokens=7, cost_usd=0.001)
        return ChatMessage(text=json.dumps(reply)), call


@pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed")
async def test_mem0_with_a_model_that_adds_rewrites_merges_and_deletes() -> None:
    from tests.stubs.revising_mem0 import RevisingMem0

    model = Scripted(
        {
            "Nimbus": ["User works at Nimbus Labs", "User likes tea"],
            "Bilbao": ["User lives in Bilbao"],
            "Tofu": ["User had a cat named Tofu"],
        },
        {
            "Bilbao": {
                "update": {"User lives in Bilbao": "User works at Nimbus Labs and lives in Bilbao"},
                "delete": ["User works at Nimbus Labs"],
            },
            "Tofu": {"update": {"User had a cat named Tofu": "User's cat Tofu died"}, "delete": ["User likes tea"]},
        },
    )
    resources = Resources(
        RedisConnection.embedded(),
        QdrantConnection.embedded(),
        WordEmbedder(),
        count_words,
        TickingClock(),
        chat=MeteredChat(model),
    )
    memory = adapted("mem0", RevisingMem0, resources)
    await memory.open(namespace("mem0"))
    for each in (JOB, MOVE, CAT):
        await memory.observe(each)

    held = [item["memory"] for item in (await memory.snapshot()).points["mem0"]["memories"].values()]
    assert sorted(held) == ["User works at Nimbus Labs and lives in Bilbao", "User's cat Tofu died"]
    found = {each.text: each for each in (await memory.recall("Where does the user work?", 5, 400)).hits}
    assert found["User works at Nimbus Labs and lives in Bilbao"].sources == ("1", "2", "3", "4")
    assert found["User's cat Tofu died"].sources == ("5", "6")
    calls = [entry for entry in memory.trace.drain() if isinstance(entry, ModelCall)]
    assert [(call.phase, call.turns) for call in calls] == [
        ("observe", each.turn_ids) for each in (JOB, MOVE, CAT) for _ in range(2)
    ]
    assert sum(call.prompt_tokens + call.completion_tokens for call in calls) == 6 * 57
