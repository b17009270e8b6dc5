"""How turns become messages and exchanges."""

from __future__ import annotations

from datetime import datetime

import pytest

from memreplay.conversations.models import Conversation, Session, Turn, exchanges_of, message_of

ROLES = {"u": "user", "a": "assistant"}


def conversation_of(*sessions: str, dated: bool = False, names: dict[str, str] | None = None) -> Conversation:
    """Sessions written as roles: ``"uau"`` is a user turn, an assistant turn, a user turn."""
    turns: list[Turn] = []
    for session, letters in enumerate(sessions, start=1):
        for letter in letters:
            number = len(turns) + 1
            turns.append(
                Turn.model_validate(
                    {
                        "id": f"t{number}",
                        "number": number,
                        "session": session,
                        "role": ROLES[letter],
                        "speaker": (names or {}).get(letter),
                        "text": f"text {number}",
                    }
                )
            )
    return Conversation(
        id="c",
        dataset="d",
        sessions=tuple(
            Session(number=n, id=str(n), date=datetime(2023, 5, n) if dated else None)
            for n in range(1, len(sessions) + 1)
        ),
        turns=tuple(turns),
        questions=(),
    )


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        (("uaua",), [(1, 2), (3, 4)]),
        (("uuaaua",), [(1, 2, 3, 4), (5, 6)]),
        (("aua",), [(1,), (2, 3)]),
        (("aaua",), [(1, 2), (3, 4)]),
        (("uau",), [(1, 2), (3,)]),
        (("uauu",), [(1, 2), (3, 4)]),
        (("u", "a"), [(1,), (2,)]),
        (("ua", "au"), [(1, 2), (3,), (4,)]),
        (("uu",), [(1, 2)]),
    ],
)
def test_exchanges_are_cut_where_the_user_speaks_again_and_where_a_session_ends(
    sessions: tuple[str, ...], expected: list[tuple[int, ...]]
) -> None:
    exchanges = exchanges_of(conversation_of(*sessions))
    assert [tuple(message.turn_number for message in exchange.messages) for exchange in exchanges] == expected


def test_an_exchange_bears_the_number_and_session_of_its_last_turn() -> None:
    exchange = exchanges_of(conversation_of("ua", "uaa"))[1]
    assert (exchange.turn_number, exchange.session, exchange.turn_ids) == (5, 2, ("t3", "t4", "t5"))


def test_messages_are_labelled_user_and_ai_where_nobody_has_a_name() -> None:
    assert exchanges_of(conversation_of("ua"))[0].text == "User: text 1\nAI: text 2"


def test_messages_are_labelled_with_names_where_there_are_names() -> None:
    conversation = conversation_of("ua", names={"u": "Vera", "a": "Tom"})
    assert exchanges_of(conversation)[0].text == "Vera: text 1\nTom: text 2"


def test_a_message_bears_the_date_of_its_session_and_none_where_there_is_none() -> None:
    dated, undated = conversation_of("u", "u", dated=True), conversation_of("u")
    assert message_of(dated, dated.turns[1]).said_at == datetime(2023, 5, 2)
    assert message_of(undated, undated.turns[0]).said_at is None
