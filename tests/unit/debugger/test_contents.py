"""What a memory holds at a position, item by item."""

from __future__ import annotations

from typing import Any

from memory_backends.stores.trace import AppendChange, Change, MemoryOperation, RemoveChange, WriteChange
from memory_backends.stores.trace import StoredPoint as Point
from memory_backends.stores.trace import UpsertChange as Upsert
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.debugger.contents import MemoryContents, changes_between, main_text
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.engine.events import StoreOperated
from memreplay.timeline.event_store import MemoryArchive
from memreplay.timeline.timeline import Timeline
from tests.tables import failing


class CountingArchive(MemoryArchive):
    """An archive that counts the events it is asked for."""

    loaded = 0

    def event(self, ref: int) -> Any:
        self.loaded += 1
        return super().event(ref)


def memory(*changes: tuple[int, str, Change]) -> tuple[Timeline, CountingArchive]:
    """A memory to which these changes happened: position, key or collection, and what changed."""
    turns = tuple(
        Turn(id=f"D1:{number}", number=number, session=1, role="user", speaker=None, text=f"I said {number}.")
        for number in range(1, 10)
    )
    archive = CountingArchive()
    timeline = Timeline(
        Conversation(id="c", dataset="d", sessions=(Session(number=1, id="s"),), turns=turns, questions=()),
        archive=archive,
    )
    for turn, key, change in changes:
        operation = MemoryOperation(
            store="shelf", command="PUT", key=key, change=change, ms=0.1, phase="observe", actor="a",
            turns=(f"D1:{turn}",),
        )  # fmt: skip
        timeline.append(StoreOperated(conversation="c", turn=turn, backend="m", operation=operation))
    return timeline, archive


def upsert(*points: tuple[str, dict[str, Any]]) -> Upsert:
    return Upsert(points=tuple(Point(id=id_, payload=payload) for id_, payload in points))


def contents_of(timeline: Timeline) -> MemoryContents:
    return MemoryContents(timeline, "m", RetrievalIndex(timeline))


def test_points_are_held_from_their_first_write_until_they_are_removed() -> None:
    timeline, _ = memory(
        (1, "notes", upsert(("a", {"content": "one"}), ("b", {"content": "two"}))),
        (3, "notes", upsert(("a", {"content": "one again"}))),
        (4, "notes", RemoveChange(count=1, ids=("b",))),
        (5, "notes", upsert(("b", {"content": "two anew"}))),
        (6, "notes", RemoveChange(count=2, ids=("a", "b"))),
    )
    contents = contents_of(timeline)

    def held(turn: int) -> list[tuple[str, int, int, str]]:
        return [(one.id, one.since, one.turn, contents.point(one).text) for one in contents.held_at(turn)]

    assert held(0) == []
    assert held(2) == [("a", 1, 1, "one"), ("b", 1, 1, "two")]
    assert held(3) == [("a", 1, 3, "one again"), ("b", 1, 1, "two")]
    assert held(4) == [("a", 1, 3, "one again")]
    assert held(5) == [("a", 1, 3, "one again"), ("b", 5, 5, "two anew")]
    assert held(6) == []


def test_the_list_agrees_with_the_folded_stores() -> None:
    def check(turn: int) -> None:
        """Also where a collection was emptied at once."""
        timeline, _ = memory(
            (1, "notes", upsert(("a", {"n": 1}), ("b", {"n": 2}))),
            (2, "log", AppendChange(offset=0, text="hello\n")),
            (3, "notes", RemoveChange(count=2, ids=("a", "b"))),
            (4, "notes", upsert(("c", {"n": 3}), ("a", {"n": 4}))),
            (5, "state", WriteChange(value={"x": 1})),
            (6, "state", RemoveChange(count=1)),
            (7, "log", RemoveChange(count=1)),
            (8, "log", AppendChange(offset=0, text="new\n")),
            (9, "notes", upsert(("a", {"n": 5}))),
        )
        contents, snapshot = contents_of(timeline), timeline.snapshot_at("m", turn)
        held = contents.held_at(turn)
        points = {one.id: contents.point(one).payload for one in held if one.kind == "point"}
        assert points == snapshot.points.get("shelf", {}).get("notes", {})
        assert {one.place for one in held if one.kind != "point"} == set(snapshot.values.get("shelf", {}))

    assert failing(range(10), check) == []


def test_listing_and_comparing_positions_load_no_point() -> None:
    timeline, archive = memory(*((turn, "notes", upsert((f"p{turn}", {"n": turn}))) for turn in range(1, 9)))
    contents = contents_of(timeline)
    before, archive.loaded = archive.loaded, 0
    earlier, now = contents.held_at(3), contents.held_at(8)
    changes = changes_between(earlier, now)
    assert archive.loaded == 0 <= before
    assert changes == {("notes", f"p{turn}"): "+" for turn in range(4, 9)}
    assert changes_between(now, earlier) == {("notes", f"p{turn}"): "−" for turn in range(4, 9)}


def test_a_point_knows_its_sources_and_which_of_them_it_holds_verbatim() -> None:
    timeline, _ = memory(
        (
            1,
            "notes",
            upsert(("a", {"content": "User: I said 1.", "id": "longer-than-what-it-says"})),
        ),
        (3, "notes", upsert(("b", {"content": "a fact", "sources": ["D1:1", "D1:2"]}))),
        (4, "notes", upsert(("c", {"weight": 2, "sources": ["a leaflet"]}))),
    )
    contents = contents_of(timeline)
    first, second, third = (contents.point(one) for one in contents.held_at(4))
    assert (first.sources, first.verbatim, first.text) == (("D1:1",), ("D1:1",), "User: I said 1.")
    assert (second.sources, second.verbatim) == (("D1:1", "D1:2"), ())
    assert third.sources == ("D1:4",), "names that are no turns are not taken for turns"
    assert main_text({"weight": 2}) == '{"weight": 2}'
    assert contents.turns_at(3) == {"D1:1", "D1:2"}
