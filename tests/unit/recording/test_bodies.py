"""What is stored of an event is that event, compressed or not, and every version reads what this one wrote."""

from __future__ import annotations

import hashlib

import pytest

from memreplay.engine.events import AskEvent, BackendFailed, ReplayEvent
from memreplay.errors import RecordingError
from memreplay.recording.bodies import DICTIONARY, LONG_BODY, packed, unpacked


@pytest.mark.parametrize("length", [0, LONG_BODY - 120, LONG_BODY, 5000])
def test_an_event_comes_back_as_it_was(length: int) -> None:
    sentence = ('{"$": "x"} \x1b[31m 日本 \\u0000 ' * length)[:length]
    event = BackendFailed(conversation="c", turn=1, backend="b", phase="open", error=sentence)
    texts: dict[str, str] = {}
    body = packed(event, texts.__setitem__)
    assert unpacked(body, texts.__getitem__) == event


def test_long_bodies_are_compressed_and_asks_are_not(events: list[ReplayEvent]) -> None:
    texts: dict[str, str] = {}
    for event in events:
        body = packed(event, texts.__setitem__)
        assert unpacked(body, texts.__getitem__) == event
        if isinstance(event, AskEvent):
            assert isinstance(body, str)
        elif len(event.model_dump_json()) > 2 * LONG_BODY and event.kind != "store_operated":
            assert isinstance(body, bytes)


def test_the_dictionary_is_part_of_the_format() -> None:
    """Changing it makes every recording unreadable: it takes a new version of the format."""
    digest = hashlib.blake2b(DICTIONARY, digest_size=8).hexdigest()
    assert digest == "ba68400a07bed182"


def test_a_damaged_body_is_told_in_one_sentence() -> None:
    with pytest.raises(RecordingError, match="damaged"):
        unpacked(b"not zlib", str)
