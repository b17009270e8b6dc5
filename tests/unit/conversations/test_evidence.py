"""Which turns are taken for the evidence of a TestConversation question."""

from __future__ import annotations

import pytest

from memreplay.conversations.formats.test_conversation import derived_evidence
from memreplay.conversations.models import InfoLocation, KeyInfo, Turn


def turns_of(texts: dict[int, str], ordinary: frozenset[int] = frozenset()) -> list[Turn]:
    """Turns 1 to 12; those with a text given are key turns, but for the ordinary ones."""
    return [
        Turn(
            id=str(number),
            number=number,
            session=1,
            role="user" if number % 2 else "assistant",
            speaker=None,
            text=texts.get(number, "nothing"),
            key_info=KeyInfo(contains_key_info=number not in ordinary) if number in texts else None,
        )
        for number in range(1, 13)
    ]


@pytest.mark.parametrize(("location", "expected"), [("early", ("4",)), ("middle", ("5",)), ("recent", ("9",))])
def test_evidence_lies_in_the_band_of_the_question(location: InfoLocation, expected: tuple[str, ...]) -> None:
    turns = turns_of({4: "Ida", 5: "Ida", 9: "Ida"})
    assert derived_evidence(turns, location, ["Ida"]) == expected


def test_the_later_of_several_turns_that_hold_the_same_entity_is_taken() -> None:
    assert derived_evidence(turns_of({1: "Ida", 3: "ida!"}), "early", ["Ida"]) == ("3",)


def test_one_turn_that_holds_all_is_preferred_to_later_ones_that_hold_a_part_each() -> None:
    turns = turns_of({1: "Ida and Bo", 2: "Ida", 3: "Bo"})
    assert derived_evidence(turns, "early", ["Ida", "Bo"]) == ("1",)


def test_several_turns_are_evidence_where_no_single_one_holds_all() -> None:
    turns = turns_of({1: "Ida and Bo", 2: "Bo and Cy", 3: "Cy", 4: "Ida"})
    assert derived_evidence(turns, "early", ["Ida", "Bo", "Cy"]) == ("2", "4")


def test_turns_that_are_not_marked_as_key_turns_are_no_evidence() -> None:
    assert derived_evidence(turns_of({1: "Ida", 3: "Ida"}, frozenset({3})), "early", ["Ida"]) == ("1",)


def test_where_no_turn_is_marked_every_turn_may_be_evidence() -> None:
    assert derived_evidence(turns_of({3: "Ida"}, frozenset({3})), "early", ["Ida"]) == ("3",)
    assert derived_evidence(turns_of({3: "Ida"}, frozenset({3})), "middle", ["Ida"]) == ()


def test_an_entity_that_no_turn_holds_does_not_hide_the_evidence_of_the_others() -> None:
    assert derived_evidence(turns_of({2: "Ida"}), "early", ["Ida", "Zoe"]) == ("2",)


def test_many_key_turns_and_entities_are_covered_quickly_and_in_order() -> None:
    names = [f"name{n}" for n in range(8)]
    texts = {n: " ".join(names[n % 8 : n % 8 + 2]) for n in range(9, 13)}
    long = [
        turn.model_copy(update={"number": turn.number + 12 * lap})
        for lap in range(1, 40)
        for turn in turns_of(texts)
    ]
    numbered = [turn.model_copy(update={"id": str(turn.number)}) for turn in long]
    evidence = derived_evidence(numbered, "recent", names)
    held = {word for turn in numbered if turn.id in evidence for word in turn.text.split()}
    assert held == {"name1", "name2", "name3", "name4", "name5"}
    assert [int(turn) for turn in evidence] == sorted(map(int, evidence))
    assert len(evidence) == 3
