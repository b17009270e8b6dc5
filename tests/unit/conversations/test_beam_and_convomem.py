"""Benchmarks whose files hold chats and questions about them: BEAM and ConvoMem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from tests.unit.conversations.samples import written

TURNS = [
    [
        {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "My boat is the Petrel."},
        {"role": "assistant", "id": 1, "content": "Noted."},
    ],
    [{"role": "user", "id": 2, "content": "She lies at Brill."}],
]
BATCHES = [
    {"batch_number": 1, "time_anchor": None, "turns": TURNS[:1]},
    {"batch_number": 2, "time_anchor": "April-01-2024", "turns": TURNS[1:]},
]
ASKED: dict[str, Any] = {
    "information_extraction": [{"question": "Which boat?", "answer": "The Petrel", "source_chat_ids": [0]}],
    "multi_session_reasoning": [
        {"question": "Where?", "answer": "At Brill", "source_chat_ids": {"first": [0], "second": [2, 9]}}
    ],
    "abstention": [{"question": "What colour?", "ideal_response": "It was not said."}],
    "summarization": [{"question": "Sum up."}],
}


def read(path: Path) -> tuple[Conversation, list[str]]:
    warnings: list[str] = []
    (conversation,) = load([str(path)], on_warning=warnings.append)
    return conversation, [warning.partition(": ")[2] for warning in warnings]


@pytest.mark.parametrize("form", ["files", "row"])
def test_a_chat_of_beam_has_its_questions_and_their_evidence(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "100K" / "7"
    if form == "files":
        path = written(folder / "chat.json", BATCHES)
        written(folder / "probing_questions" / "probing_questions.json", ASKED)
    else:
        row = {"conversation_id": "100K-7", "chat": TURNS, "probing_questions": repr(ASKED)}
        path = written(tmp_path / "rows.json", [row])
    conversation, warnings = read(path)
    assert conversation.id == "100K-7"
    assert [turn.session for turn in conversation.turns] == ([1, 1, 2])
    assert str(conversation.date) == "2024-03-15 00:00:00"
    found = [(each.type, each.expected, each.evidence, each.abstain) for each in conversation.questions]
    assert found == [
        ("information_extraction", "The Petrel", ("1",), False),
        ("multi_session_reasoning", "At Brill", ("1", "3"), False),
        ("abstention", "It was not said.", (), True),
    ]
    assert [warning.partition(" (first")[0] for warning in warnings] == [
        "1 piece of evidence names no turn",
        "1 question without a text or an answer is not asked",
    ]


def test_an_item_of_convomem_is_a_conversation_with_a_question(tmp_path: Path) -> None:
    said = [{"speaker": "User", "text": "My boat is the Petrel."}, {"speaker": "Assistant", "text": "Noted."}]
    item = {
        "question": "Which boat?",
        "answer": "The Petrel",
        "message_evidences": said[:1],
        "conversations": [{"id": "a", "messages": said}, {"id": "b", "messages": said[:1]}],
        "category": "Boats",
    }
    conversation, warnings = read(written(tmp_path / "items.json", {"evidence_items": [item]}))
    (question,) = conversation.questions
    assert [session.id for session in conversation.sessions] == ["a", "b"]
    assert [turn.role for turn in conversation.turns] == ["user", "assistant", "user"]
    assert (question.type, question.expected, question.evidence) == ("Boats", "The Petrel", ("3",))
    assert warnings == []
