"""What is stored of an event is that event, as JSON text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_backends.base import ChannelScore, Cut, Hit
from memory_backends.stores.trace import FoundPoint, MemoryOperation, SearchChange
from memreplay.engine.events import BackendEvent, BackendFailed, QuestionAsked, ReplayEvent, StoreOperated
from memreplay.errors import RecordingError
from memreplay.llm.model import PromptMessage
from memreplay.recording.bodies import LONG_TEXT, EventRow, ask_from_row, event_from_row, event_to_json


class Kept:
    """What bodies refer to, in memory."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.parts: list[dict[str, Any]] = []

    def text(self, digest: str, /) -> str:
        return self.texts[digest]

    def part(self, number: int, /) -> dict[str, Any]:
        return self.parts[number]

    raw_part = part

    def odd_number(self, field: str, /) -> None:
        raise AssertionError(field)

    def share(self, part: dict[str, Any]) -> int:
        if part not in self.parts:
            self.parts.append(part)
        return self.parts.index(part)

    def row(self, event: ReplayEvent) -> EventRow:
        backend = event.backend if isinstance(event, BackendEvent) else None
        body = event_to_json(event, self.texts.__setitem__, self.share)
        return EventRow(event.conversation, backend, event.turn, event.kind, body)


@pytest.mark.parametrize("length", [0, LONG_TEXT - 1, LONG_TEXT, 5000])
def test_an_event_comes_back_as_it_was(length: int) -> None:
    sentence = ('{"$": "x"} \x1b[31m 日本 \\u0000 ' * length)[:length]
    event = BackendFailed(conversation="c", turn=1, backend="b", phase="open", error=sentence)
    kept = Kept()
    assert event_from_row(kept.row(event), kept) == event


def test_bodies_are_json_text_without_what_the_columns_say(events: list[ReplayEvent]) -> None:
    kept = Kept()
    for event in events:
        row = kept.row(event)
        assert json.loads(row.body).keys() <= type(event).model_fields.keys() - set(EventRow._fields)
        assert event_from_row(row, kept) == event


def test_a_body_of_an_older_format_has_every_field_and_is_read(events: list[ReplayEvent]) -> None:
    kept = Kept()
    for event in events:
        older = kept.row(event)._replace(body=json.dumps(event.model_dump(mode="json")))
        assert event_from_row(older, kept) == event


_SCORES = st.floats(0, 1) | st.just(0.5)
_IDS = st.sampled_from(["a", "b", "$", "x" * LONG_TEXT])
_CHANNELS = st.dictionaries(
    st.sampled_from(["dense", "keyword", "speaker"]),
    st.builds(ChannelScore, rank=st.integers(1, 4), score=_SCORES),
)
_HITS = st.lists(
    st.builds(
        Hit,
        id=_IDS,
        store=st.just("s"),
        place=_IDS,
        rank=st.integers(1, 4),
        score=_SCORES | st.none(),
        text=st.sampled_from(["", "short", "long " * LONG_TEXT, "other " * LONG_TEXT]),
        turns=st.lists(_IDS, max_size=2).map(tuple),
        channels=_CHANNELS,
        tokens=st.integers(0, 3),
        in_prompt=st.booleans(),
    ),
    max_size=4,
).map(tuple)


@given(
    _HITS,
    _HITS,
    st.lists(st.builds(Cut, place=_IDS, turns=st.lists(_IDS).map(tuple), tokens=st.integers(0, 3))).map(tuple),
    st.lists(st.sampled_from(["", "short", "long " * LONG_TEXT, "\n\n"]), max_size=5),
)
def test_candidates_and_cuts_and_contexts_come_back(
    hits: tuple[Hit, ...], missed: tuple[Hit, ...], cut: tuple[Cut, ...], context: list[str]
) -> None:
    asked = QuestionAsked(
        conversation="c",
        turn=1,
        backend="b",
        model="m",
        question_id="q",
        hits=hits,
        missed=missed,
        cut=cut,
        context_tokens=1,
        prompt=(PromptMessage(role="user", segments=("Read:", "".join(context), "Answer.")),),
        recall_ms=1.0,
    )
    kept = Kept()
    read = event_from_row(kept.row(asked), kept)
    assert read == asked
    assert isinstance(read, QuestionAsked)
    for before, after in zip((*hits, *missed), (*read.hits, *read.missed), strict=True):
        assert list(before.channels) == list(after.channels), "channels are shown in their order"


@given(st.lists(st.builds(FoundPoint, id=_IDS, rank=st.integers(1, 4), score=_SCORES)).map(tuple))
def test_what_a_search_found_comes_back(found: tuple[FoundPoint, ...]) -> None:
    change = SearchChange(query="q", limit=4, found=found, stored=9)
    operation = MemoryOperation(
        store="s", command="search", key="k", change=change, ms=0.5, phase="recall", actor="a", error=None
    )
    event = StoreOperated(conversation="c", turn=1, backend="b", operation=operation)
    kept = Kept()
    assert event_from_row(kept.row(event), kept) == event


def test_what_questions_have_in_common_is_stored_once() -> None:
    hits = tuple(
        Hit(id=str(rank), store="s", place="p", rank=rank, score=1 / rank, text=f"{rank} " * LONG_TEXT)
        for rank in range(1, 11)
    )
    context = "\n\n".join(hit.text for hit in hits)
    asked = QuestionAsked(
        conversation="c",
        turn=1,
        backend="b",
        model="m",
        question_id="q",
        hits=hits,
        cut=(),
        context_tokens=1,
        prompt=(PromptMessage(role="user", segments=("Read:", context, "Answer.")),),
        recall_ms=1.0,
    )
    kept = Kept()
    first = kept.row(asked)
    parts, texts = len(kept.parts), sum(map(len, kept.texts.values()))
    assert texts == sum(len(hit.text) for hit in hits), "the context is made of the texts of the hits"
    second = kept.row(asked.model_copy(update={"question_id": "other"}))
    assert (len(kept.parts), sum(map(len, kept.texts.values()))) == (parts, texts)
    assert len(first.body) < len(context) and len(second.body) < 1200


def test_an_ask_can_be_read_without_what_memory_gave_and_without_its_texts(events: list[ReplayEvent]) -> None:
    (asked,) = (event for event in events if isinstance(event, QuestionAsked))
    kept = Kept()
    read = ask_from_row(kept.row(asked), Kept())
    (message,) = asked.prompt
    expected = {"hits": (), "prompt": (message.model_copy(update={"segments": ()}),)}
    assert kept.texts and read == asked.model_copy(update=expected)


@pytest.mark.parametrize("body", ["not JSON", "{}", "[]", '{"operation": 5}', '{"hits": {"part": [7]}}'])
def test_a_damaged_body_is_reported_in_one_sentence(body: str) -> None:
    for read in (event_from_row, ask_from_row):
        with pytest.raises(RecordingError, match="damaged") as reported:
            read(EventRow("c", "b", 1, "store_operated", body), Kept())
        assert "\n" not in str(reported.value)
