"""A search finds what looking everywhere finds, whatever the case and the accents; text is never a pattern."""

from __future__ import annotations

import pytest

from memory_backends.text import folded
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.debugger.search import SearchIndex
from memreplay.timeline.timeline import Timeline


@pytest.fixture(scope="module")
def index(timeline: Timeline) -> SearchIndex:
    index = SearchIndex(timeline)
    steps = 0
    while not index.catch_up(3):
        steps += 1
    assert steps > 3
    return index


@pytest.mark.parametrize("text", ["VerneMQ", "GRÀCIA", "gracia", "the ", "listening", ".", "["])
def test_messages_states_and_prompts_are_found_where_they_stand(
    timeline: Timeline, index: SearchIndex, text: str
) -> None:
    wanted = folded(text)
    found = list(index.find(text))
    assert found == sorted(found, key=lambda match: match.turn)
    said = {turn.number for turn in timeline.conversation.turns if wanted in folded(turn.text)}
    assert {match.turn for match in found if match.where == "message"} == said
    sent = {
        (answer.asked.backend, answer.asked.question_id)
        for answer in timeline.answers()
        if any(wanted in folded(segment) for message in answer.asked.prompt for segment in message.segments)
    }
    assert {(match.backend, match.place) for match in found if match.where == "prompt"} == sent


def test_a_hit_is_found_by_the_words_of_the_turns_it_holds(timeline: Timeline, index: SearchIndex) -> None:
    found = {(match.backend, match.turn) for match in index.find("vernemq") if match.where == "hit"}
    expected = set()
    for backend in ("hybrid", "rag"):
        for turn in range(timeline.reached + 1):
            perceived = timeline.perceived_at(backend, turn)
            if (
                perceived
                and perceived.turn == turn
                and any("vernemq" in hit.text.casefold() for hit in perceived.hits)
            ):
                expected.add((backend, turn))
    assert expected
    assert {one for one in found if one[1] < timeline.last_turn} == expected


def test_matches_are_walked_from_any_position(index: SearchIndex) -> None:
    found = index.find("status")
    turns = sorted({match.turn for match in found})
    assert len(turns) > 1
    cursor, walked = -1, []
    while (match := found.next_match(cursor)) is not None:
        walked.append(match.turn)
        cursor = match.turn
    assert walked == turns
    while (match := found.previous_match(cursor)) is not None:
        cursor = match.turn
    assert cursor == turns[0]
    assert all(match.turn == turns[0] for match in found.at(turns[0]))


def test_nothing_is_found_for_a_blank_text(index: SearchIndex) -> None:
    assert not len(index.find("  "))
    assert index.find("").next_match(0) is None


def test_hostile_text_is_looked_for_as_it_is() -> None:
    text = "a[bold]b\x1b[31m.*(\\ {0} %s 日本 ﬁn"
    turn = Turn(id="1", number=1, session=1, role="user", speaker=None, text=text)
    conversation = Conversation(
        id="c", dataset="c", sessions=(Session(number=1, id="1"),), turns=(turn,), questions=()
    )
    index = SearchIndex(Timeline(conversation))
    for part in ("[bold]", "\x1b[31m", ".*(\\", "{0} %s", "日本", "FIN"):
        assert len(index.find(part)) == 1
    assert not len(index.find("a.*b"))


def test_a_text_near_the_cursor_is_known_before_the_rest_is_read(timeline: Timeline, index: SearchIndex) -> None:
    middle = timeline.last_turn // 2
    outward = SearchIndex(timeline)
    assert not outward.catch_up(2, near=middle)
    assert outward.has_read(middle, middle + 1)
    assert not outward.has_read(middle, middle + 2) and not outward.has_read(0, middle)
    near = [match for match in index.find("the ") if middle <= match.turn <= middle + 1]
    assert near and [match for match in outward.find("the ") if middle <= match.turn <= middle + 1] == near
    while not outward.catch_up(5):
        pass
    assert outward.has_read(0, timeline.reached)
    whole = outward.find("the ")
    assert set(whole) == set(index.find("the "))
    assert [whole[whole.number_of(match) or 0] for match in near] == near
