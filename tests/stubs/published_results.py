"""A small dataset in LoCoMo's shape, and results about it in the shapes of other harnesses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TURNS = {
    "D1:1": ("Ann", "I went to the pottery class with my sister yesterday."),
    "D1:2": ("Ben", "Great! What did you make there, a bowl or a cup?"),
    "D1:3": ("Ann", "A small blue bowl for my kitchen table."),
    "D2:1": ("Ann", "My sister moved from Norway to Lisbon last spring."),
    "D2:2": ("Ben", "How nice, is she happy with her new flat?"),
}
QUESTIONS: list[dict[str, Any]] = [
    {
        "question": "When did Ann go to the pottery class?",
        "answer": "3 May 2023",
        "category": 2,
        "evidence": ["D1:1"],
    },
    {"question": "What did Ann make?", "answer": "a blue bowl", "category": 4, "evidence": ["D1:3"]},
    {"question": "Where did Ann's sister move from?", "answer": "Norway", "category": 4, "evidence": ["D2:1"]},
    {
        "question": "Who moved, and what did Ann make?",
        "answer": "her sister; a blue bowl",
        "category": 1,
        "evidence": ["D1:3", "D2:1"],
    },
]


def said(*turns: str) -> str:
    """Return turns as a harness puts them into a context: JSON, without dates."""
    return json.dumps([{"speaker": TURNS[turn][0], "dia_id": turn, "text": TURNS[turn][1]} for turn in turns])


def locomo(path: Path) -> Path:
    """Write the dataset."""
    sample = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Ben",
            **{
                f"session_{number}": [
                    {"speaker": name, "dia_id": turn, "text": text}
                    for turn, (name, text) in TURNS.items()
                    if turn.startswith(f"D{number}:")
                ]
                for number in (1, 2)
            },
            "session_1_date_time": "1:56 pm on 4 May, 2023",
            "session_2_date_time": "9:00 am on 12 June, 2023",
        },
        "qa": QUESTIONS,
    }
    path.write_text(json.dumps([sample]))
    return path


def amb_row(number: int, answer: str, context: str, correct: bool, **more: Any) -> dict[str, Any]:
    asked = QUESTIONS[number]
    return {
        "query_id": f"conv-1_q{number}",
        "query": asked["question"],
        "answer": answer,
        "reasoning": "thought",
        "context": context,
        "context_tokens": 40,
        "retrieve_time_ms": 12.5,
        "gold_answers": [asked["answer"]],
        "correct": correct,
        "judge_reason": "as I see it",
        "meta": {"sample_id": "conv-1", "category": "temporal" if asked["category"] == 2 else "single-hop"},
        **more,
    }


def amb(*rows: Any) -> dict[str, Any]:
    return {
        "dataset": "locomo",
        "memory_provider": "shelf",
        "run_name": "shelf",
        "answer_llm": "maker:reader-1",
        "judge_llm": "maker:judge-1",
        "accuracy": 0.5,
        "results": list(rows),
    }
