"""Models that converse and judge, and what runs of tests leave that can be compared."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.stubs.openai_server import Answer, Received, answer

STUB = ("--model", "openai/stub")


def without_times_and_ids(results: dict[str, Any]) -> dict[str, Any]:
    for key in ("id", "started_at", "finished_at"):
        del results["run"][key]
    for backend in results["backends"].values():
        del backend["latency_ms"]
        backend["writing"] = backend["writing"] and {**backend["writing"], "ms": 0}
    for row in results["questions"]:
        del row["ms"]
    return results


def last_colour(received: Received) -> Answer:
    """Says the last colour that stands before the user's message, as a model would that reads its memory."""
    remembered, asked = received.body["messages"]
    if not asked["content"].startswith("What"):
        return answer("Noted.", completion_tokens=2)
    said = [part.split(".")[0] for part in remembered["content"].split("favourite colour is ")[1:]]
    return answer(f"It is {said[-1]}." if said else "I do not know.", completion_tokens=4)


def judging(received: Received) -> Answer:
    """Finds every answer right; as the agent it says where the key lies."""
    if "checklist" in received.prompt:
        entries = json.loads(received.body["messages"][1]["content"])
        found = [{"question_nr": place, "checklist": ["yes", "no", "no"]} for place, _ in enumerate(entries, 1)]
        return answer(json.dumps(found))
    return answer("In a drawer.")


def paid(recording: Path) -> list[tuple[int, str]]:
    with sqlite3.connect(recording) as db:
        return db.execute("select key, body from events where kind = 'agent_replied' order by key").fetchall()
