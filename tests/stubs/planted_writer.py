"""A conversation of facts, and a writing model that loses each of them in another way."""

from __future__ import annotations

import json
from pathlib import Path

from tests.stubs.openai_server import Answer, Received, answer

FACTS = {
    "key": ("My spare key is with Mrs Quillan at number fourteen.", "Who has the spare key?", "Mrs Quillan"),
    "boat": ("The boat is moored at Pilchard Quay this season.", "Where is the boat moored?", "Pilchard Quay"),
    "rent": ("My landlord Mr Oduya wants the rent on time.", "Who is the landlord?", "Mr Oduya"),
    "dish": ("Cook me khinkali on Saturday, please.", "Which dish does the user want?", "khinkali"),
    "work": ("I survey lighthouses for the Orrin trust.", "Whom does the user work for?", "the Orrin trust"),
}
"""What the user says, the question about it, and the answer."""


def written_down(folder: Path) -> Path:
    turns: list[dict[str, str]] = []
    questions = []
    for said, question, expected in FACTS.values():
        questions.append({"question": question, "expectedAnswer": expected, "evidence": [f"D1:{len(turns) + 1}"]})
        turns += [{"role": "user", "content": said}, {"role": "assistant", "content": "I see."}]
    asked = [{**each, "type": "single_fact", "expectedEntities": [each["expectedAnswer"]]} for each in questions]
    session = {"date": "2024-02-05T10:00:00", "turns": turns}
    talk = {"id": "talk", "language": "en", "tags": [], "sessions": [session], "recallQuestions": asked}
    path = folder / "talk.json"
    path.write_text(json.dumps(talk))
    return path


def kept(*texts: str) -> Answer:
    return answer(json.dumps({"memory": [{"id": str(id_), "text": text} for id_, text in enumerate(texts)]}))


REPLIES = {
    "key": answer('{"memory": []}'),
    "boat": answer("Sure! Here is what I noticed: the boat."),
    "rent": answer('{"memory": [{"id": "0", "text": "User has', finish_reason="length"),
    "dish": kept("User likes to eat on Saturdays.", "User is free then."),
    "work": answer(json.dumps({"memory": [{"id": "0", "fact": "User works for the Orrin trust"}]})),
}
"""What the writer makes of each."""


def behaves(received: Received) -> Answer:
    if "## New Messages" not in received.prompt:
        return answer("The conversation does not say.")
    new = received.body["messages"][-1]["content"].partition("## New Messages")[2]
    return next(REPLIES[name] for name, (said, _, _) in FACTS.items() if said in new)
