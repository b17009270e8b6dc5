"""Small files of every format, written for the tests, as builders: each call gives fresh data to be spoilt."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def written(path: Path, data: Any) -> Path:
    """The data as a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


def written_lines(path: Path, rows: Iterable[Json]) -> Path:
    """The rows as a JSON Lines file."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def key_turn(role: str, content: str, salience: str = "high") -> Json:
    """A turn that holds testable information."""
    metadata = {"containsKeyInfo": True, "keyInfoType": "fact", "salienceLevel": salience}
    return {"role": role, "content": content, "metadata": metadata}


def recall_question(**changes: Any) -> Json:
    """A question on the early turns."""
    return {
        "question": "What is the boat called?",
        "expectedAnswer": "Petrel",
        "expectedEntities": ["Petrel"],
        "infoLocation": "early",
        "salienceLevel": "high",
    } | changes


def boat_conversation() -> Json:
    """Ten turns about a boat, whose mooring fee is corrected; three questions."""
    return {
        "id": "harbour-07",
        "language": "en",
        "tags": ["correction"],
        "turns": [
            key_turn("user", "My boat is called Petrel. She is small."),
            {"role": "assistant", "content": "A fine name."},
            {"role": "user", "content": "Thanks. [laughs] {0} %s"},
            {"role": "assistant", "content": "What do you pay for the mooring?"},
            key_turn("user", "They ask 340 a month.", "low"),
            {"role": "assistant", "content": "That is a lot."},
            key_turn("user", "Sorry, it is 1,340 a year, at Señora Núñez's quay.", "low"),
            {"role": "assistant", "content": "Much better."},
            key_turn("user", "We sail on Friday with Ida and Bo.", "medium"),
            {"role": "assistant", "content": "Fair winds."},
        ],
        "recallQuestions": [
            recall_question(),
            recall_question(
                question="What does the mooring cost a year?",
                expectedAnswer="1,340",
                expectedEntities=["1,340"],
                infoLocation="middle",
                salienceLevel="low",
            ),
            recall_question(
                question="Who comes along?",
                expectedAnswer="Ida and Bo",
                expectedEntities=["Ida", "Bo"],
                infoLocation="recent",
                salienceLevel="medium",
            ),
        ],
    }


def locomo_turn(dia_id: str, speaker: str, text: str, **more: Any) -> Json:
    """A message."""
    return {"speaker": speaker, "dia_id": dia_id, "text": text, **more}


def locomo_sample() -> Json:
    """Two gardeners in sessions 1, 2 and 10; session 11 has a date and no turns."""
    return {
        "qa": [
            {"question": "What did Vera plant?", "answer": "quinces", "evidence": ["D1:1"], "category": 4},
            {"question": "When did Tom fall?", "answer": 2021, "evidence": ["D2:2"], "category": 2},
            {
                "question": "What do both grow?",
                "answer": "beans",
                "evidence": ["D1:2; D2:1", "D:10:01", "D10:1"],
                "category": 1,
            },
            {"question": "Would Vera like figs?", "answer": "Yes", "evidence": [], "category": 3},
            {
                "question": "What did Tom say of the swan?",
                "adversarial_answer": "It bit him",
                "evidence": ["D2:1"],
                "category": 5,
            },
        ],
        "conversation": {
            "speaker_a": "Vera",
            "speaker_b": "Tom",
            "session_10_date_time": "12:05 am on 1 January, 2024",
            "session_10": [locomo_turn("D10:1", "Tom", "A new year of beans.")],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                locomo_turn("D1:1", "Vera", "I planted quinces.", blip_caption="a young tree", img_url=["x"]),
                locomo_turn("D1:2", "Tom", "I have beans."),
                locomo_turn("D1:3", "Tom", "And a bad back."),
            ],
            "session_2": [
                locomo_turn("D2:1", "Tom", "The beans are up."),
                locomo_turn("D2:2", "Vera", "You fell in 2021, mind your back."),
            ],
            "session_2_date_time": "9:00 am on 25 May, 2023",
            "session_11_date_time": "9:00 am on 2 January, 2024",
        },
        "session_summary": {"session_1_summary": "Vera planted quinces."},
        "event_summary": {},
        "observation": {},
        "sample_id": "garden-1",
    }


def mc10_haystack() -> Json:
    """The conversation of :func:`locomo_sample` as a row holds it, with its sessions out of order."""
    return {
        "num_sessions": 3,
        "haystack_session_ids": ["session_10", "session_1", "session_2"],
        "haystack_session_summaries": ["", "Vera planted quinces.", None],
        "haystack_session_datetimes": ["2024-01-01T00:05:00", "2023-05-08T13:56:00", "2023-05-25T09:00:00"],
        "haystack_sessions": [
            [{"role": "assistant", "content": "[TOM]: A new year of beans."}],
            [
                {"role": "user", "content": "[VERA]: I planted quinces."},
                {"role": "assistant", "content": "[TOM]: I have beans."},
                {"role": "assistant", "content": "[TOM]: And a bad back."},
            ],
            [
                {"role": "assistant", "content": "[TOM]: The beans are up."},
                {"role": "user", "content": "[VERA]: You fell in 2021, mind your back."},
            ],
        ],
    }


def mc10_row(number: int = 0, **changes: Any) -> Json:
    """A row; its number is that of the question in :func:`locomo_sample`, which it repeats."""
    asked = locomo_sample()["qa"][number]
    types = {1: "single_hop", 2: "multi_hop", 3: "temporal_reasoning", 4: "open_domain", 5: "adversarial"}
    answer = str(asked.get("answer", "Not answerable"))
    choices = [f"another {letter}" for letter in "abcdefghi"]
    choices.insert(number, answer)
    row = {
        "question_id": f"garden-1_q{number}",
        "question": asked["question"],
        "question_type": types[asked["category"]],
        "answer": answer,
        "correct_choice_index": number,
        "num_choices": 10,
        "choices": choices,
    }
    return row | mc10_haystack() | changes


def longmemeval_entry(**changes: Any) -> Json:
    """A question over two sessions, of which the second holds the answer."""
    entry: Json = {
        "question_id": "7a_1",
        "question_type": "multi-session",
        "question": "Where did I hang the hammock?",
        "answer": "on the fire escape",
        "question_date": "2023/06/01 (Thu) 09:30",
        "haystack_session_ids": ["s_9", "answer_1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/22 (Mon) 18:05"],
        "haystack_sessions": [
            [{"role": "user", "content": "Rain again."}, {"role": "assistant", "content": "Take a coat."}],
            [
                {"role": "user", "content": "I hung the hammock on the fire escape.", "has_answer": True},
                {"role": "assistant", "content": "Mind the neighbours.", "has_answer": False},
            ],
        ],
        "answer_session_ids": ["answer_1"],
    }
    return entry | changes
