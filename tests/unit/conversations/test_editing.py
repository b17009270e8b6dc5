"""Messages edited by hand."""

from __future__ import annotations

import pytest

from memreplay.conversations.editing import MessageEdit, edited_conversation
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.errors import UsageError

TALK = Conversation(
    id="talk",
    dataset="talk",
    sessions=(Session(number=1, id="s1"), Session(number=2, id="s2")),
    turns=tuple(
        Turn(
            id=f"t{n}",
            number=n,
            session=1 + n // 3,
            role="user" if n % 2 else "assistant",
            speaker=None,
            text=f"said {n}",
        )
        for n in range(1, 5)
    ),
    questions=(),
)


def test_turns_keep_their_ids_and_are_numbered_anew() -> None:
    edits = (
        MessageEdit(turn=2),
        MessageEdit(turn=3, text="other words"),
        MessageEdit(turn=3, text="one more", role="user"),
        MessageEdit(turn=3, text="and another", role="assistant"),
    )
    edited = edited_conversation(TALK, 1, edits)
    assert [(turn.id, turn.number, turn.text) for turn in edited.turns] == [
        ("t1", 1, "said 1"),
        ("t3", 2, "other words"),
        ("t3+1", 3, "one more"),
        ("t3+2", 4, "and another"),
        ("t4", 5, "said 4"),
    ]
    assert [turn.session for turn in edited.turns] == [1, 2, 2, 2, 2]
    assert set(edited.turns_by_id) == {"t1", "t3", "t3+1", "t3+2", "t4"}
    assert [turn.text for turn in TALK.turns] == [f"said {n}" for n in range(1, 5)]


def test_only_a_turn_whose_words_were_changed_is_recorded_as_edited() -> None:
    edited = edited_conversation(TALK, 1, (MessageEdit(turn=3, text="other words"),))
    fields = {turn.id: turn.model_dump() for turn in edited.turns}
    assert [id_ for id_, its in fields.items() if "is_edited" in its] == ["t3"]
    assert Conversation.model_validate_json(edited.model_dump_json()) == edited


def test_a_message_may_be_inserted_right_after_the_departure_or_before_everything() -> None:
    assert edited_conversation(TALK, 4, [MessageEdit(turn=4, text="bye", role="user")]).turns[-1].text == "bye"
    assert edited_conversation(TALK, 0, [MessageEdit(turn=0, text="hello", role="user")]).turns[0].text == "hello"


@pytest.mark.parametrize(
    "edit", [MessageEdit(turn=2, text="x"), MessageEdit(turn=5), MessageEdit(turn=1, text="x", role="user")]
)
def test_what_was_played_before_the_departure_stays(edit: MessageEdit) -> None:
    with pytest.raises(UsageError, match="departs after turn 2"):
        edited_conversation(TALK, 2, [edit])
