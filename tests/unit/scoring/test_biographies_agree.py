"""The biography of a fact and the verdict on an answer tell one story, in recorded runs and in generated ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memreplay.debugger.biography import Biography, biographies, memory_at_last
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.llm.model import Reply
from memreplay.recording.reader import Recording
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.evidence_trail import Trail
from memreplay.timeline.timeline import Answer, Timeline
from tests.unit.scoring.planted import played, question, real

RECORDINGS = Path(__file__).parents[3] / "recordings"
MEMORIES = ("full_context", "rag", "rag:keyword", "rag:fused", "hybrid")
SAID = (
    "My sister Ana moved to Lisbon, and she climbs.", "Lisbon is lovely.",
    "Correction: Ana lives in Porto now.", "Noted: Porto.",
    "On Friday we went fishing; the boat cost 450 euros.", "A good price.",
    "I never drink coffee, and I swim every Tuesday.", "I will remember.",
)  # fmt: skip


def stories(timeline: Timeline) -> Iterator[tuple[Answer, Trail, Biography]]:
    """For each answer, how far each of its evidence turns came, with the biography of that turn."""
    attributor, retrievals = Attributor(timeline), RetrievalIndex(timeline)
    questions = {asked.id: asked for asked in timeline.conversation.questions}
    memories = {backend: memory_at_last(timeline, backend) for backend in timeline.backends}
    for answer in timeline.answers():
        backend, asked = answer.asked.backend, questions.get(answer.asked.question_id)
        if asked is None or answer.asked.by_hand or asked.evidence_role != "supports" or backend == "oracle":
            continue
        lives = biographies(timeline, retrievals, backend, asked, memories[backend])
        by_turn = {life.turn_id: life for life in lives}
        for trail in attributor.trails(answer):
            yield answer, trail, by_turn[trail.turn]


def contradictions(answer: Answer, trail: Trail, life: Biography) -> list[str]:
    """What the two say differently. What another turn says too is in no biography of this one."""
    asked = answer.asked
    about = next(one for one in life.asked if (one.question_id, one.model) == (asked.question_id, asked.model))
    reach = about.retrieval.reach
    held = [
        item
        for item in life.stored
        if item.turn <= asked.turn
        and (item.superseded_at is None or item.superseded_at > asked.turn)
        and (item.removed_at is None or item.removed_at > asked.turn)
    ]
    by_other_words = any(
        words in trail.sentence
        for words in ("in other words", "words of another turn", "not in the prompt; the answer")
    )
    if by_other_words:
        return []
    checks = {
        "it was in the prompt": trail.lost_at is not None or reach == "in_prompt",
        "it was cut": trail.lost_at != "cut" or reach == "cut",
        "it was not retrieved": trail.lost_at not in ("not_retrieved", "not_written")
        or reach in ("missed", "not_found"),
        "it was stored": trail.lost_at == "not_written" or bool(held),
        "it was not written": trail.lost_at != "not_written" or all(item.form != "verbatim" for item in held),
    }
    return [claim for claim, agrees in checks.items() if not agrees]


@pytest.mark.parametrize("path", sorted(RECORDINGS.rglob("*.sqlite3")), ids=lambda path: path.stem)
def test_they_agree_on_every_answer_of_the_shipped_recordings(path: Path) -> None:
    compared = 0
    with closing(Recording.open(path)) as recording:
        for run in recording.runs():
            for conversation in recording.conversation_ids(run.id):
                for answer, trail, life in stories(recording.timeline(run.id, conversation)):
                    compared += 1
                    assert contradictions(answer, trail, life) == [], (
                        conversation,
                        answer.asked.question_id,
                        trail,
                    )
    assert compared


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    backend=st.sampled_from(MEMORIES),
    evidence=st.lists(st.sampled_from("12345678"), min_size=1, max_size=3, unique=True),
    expected=st.sampled_from(["Porto", "Lisbon", "climbing, fishing", "450 euros", "Friday", "coffee", "yes", "3"]),
    reply=st.sampled_from(["Porto", "Lisbon", "It was not mentioned.", "fishing"]),
    budget=st.sampled_from([0, 8, 20, 60, 1000]),
    top_k=st.sampled_from([1, 2, 10]),
)
def test_they_agree_whatever_is_asked_of_which_turns(
    backend: str, evidence: Sequence[str], expected: str, reply: str, budget: int, top_k: int
) -> None:
    asked = question("What did I say of Ana and the boat?", expected=expected, evidence=tuple(evidence))
    replies = {backend: Reply(text=reply)}
    timeline = asyncio.run(played(asked, real(backend), replies, said=SAID, budget=budget, top_k=top_k))
    found = list(stories(timeline))
    assert {trail.turn for _, trail, _ in found} == set(evidence)
    for answer, trail, life in found:
        assert contradictions(answer, trail, life) == [], (trail, life)
