"""What is stored of an event is that event, as JSON text."""

from __future__ import annotations

import json

import pytest

from memreplay.engine.events import BackendFailed, QuestionAsked, ReplayEvent
from memreplay.errors import RecordingError
from memreplay.recording.bodies import LONG_TEXT, ask_from_json, event_from_json, event_to_json


@pytest.mark.parametrize("length", [0, LONG_TEXT - 1, LONG_TEXT, 5000])
def test_an_event_comes_back_as_it_was(length: int) -> None:
    sentence = ('{"$": "x"} \x1b[31m 日本 \\u0000 ' * length)[:length]
    event = BackendFailed(conversation="c", turn=1, backend="b", phase="open", error=sentence)
    texts: dict[str, str] = {}
    body = event_to_json(event, texts.__setitem__)
    assert event_from_json(body, texts.__getitem__) == event


def test_bodies_are_json_text_with_every_field(events: list[ReplayEvent]) -> None:
    texts: dict[str, str] = {}
    for event in events:
        body = event_to_json(event, texts.__setitem__)
        assert json.loads(body).keys() == type(event).model_fields.keys()
        assert event_from_json(body, texts.__getitem__) == event


def test_an_ask_can_be_read_without_what_memory_gave_and_without_its_texts(events: list[ReplayEvent]) -> None:
    (asked,) = (event for event in events if isinstance(event, QuestionAsked))
    texts: dict[str, str] = {}
    read = ask_from_json(event_to_json(asked, texts.__setitem__), {}.__getitem__)
    (message,) = asked.prompt
    expected = {"hits": (), "prompt": (message.model_copy(update={"segments": ()}),)}
    assert texts and read == asked.model_copy(update=expected)


@pytest.mark.parametrize("body", ["not JSON", "{}", "[]"])
def test_a_damaged_body_is_reported_in_one_sentence(body: str) -> None:
    for read in (event_from_json, ask_from_json):
        with pytest.raises(RecordingError, match="damaged") as reported:
            read(body, str)
        assert "\n" not in str(reported.value)
