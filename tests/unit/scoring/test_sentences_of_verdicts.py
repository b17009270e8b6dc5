"""What a verdict says of a prompt is true of that prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from memory_backends.base import Hit
from memreplay.conversations.models import Question, Turn
from memreplay.conversations.registry import load
from memreplay.engine.events import QuestionAsked
from memreplay.recording.reader import Recording
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.evidence_trail import Stages, Trail, trail_of
from memreplay.scoring.holding import Answerable
from memreplay.scoring.stored import StoredMemory
from tests.unit.scoring.samples import hit
from tests.unit.scoring.sentences import false_sentences

SHIPPED = sorted((Path(__file__).parents[3] / "recordings").rglob("*.sqlite3"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_no_sentence_of_a_shipped_verdict_is_false(path: Path) -> None:
    with closing(Recording.open(path)) as recording:
        run = recording.run()
        for conversation in recording.conversation_ids(run.id):
            timeline = recording.timeline(run.id, conversation)
            attributor = Attributor(timeline)
            assert [
                false for one in timeline.answers() for false in false_sentences(timeline, attributor, one)
            ] == []


def _trail(question: Question, turns: Mapping[str, Turn], turn: str, hits: Sequence[Hit]) -> Trail:
    asked = QuestionAsked(
        conversation="c",
        turn=len(turns),
        backend="b",
        model="m",
        question_id=question.id,
        hits=tuple(hits),
        cut=(),
        context_tokens=1,
        prompt=(),
        recall_ms=0.0,
    )
    return trail_of(turn, Answerable(question, turns), Stages(asked, StoredMemory([]), turns))


@pytest.mark.shared_data
def test_no_turn_of_locomo_is_lost_that_stands_in_a_longer_text(shared_data: Path) -> None:
    lost = []
    for conversation in load([str(shared_data / "locomo" / "locomo10_dev.json")]):
        turns = conversation.turns_by_id
        for question in conversation.questions:
            named = [turn for turn in question.evidence if turn in turns and question.evidence_role == "supports"]
            text = "\n".join(f"Then: {turns[turn].text} So it was." for turn in named)
            hits = [hit(1, sources=tuple(named), text=text)]
            trails = [_trail(question, turns, turn, hits) for turn in named]
            lost += [trail.sentence for trail in trails if trail.lost_at is not None]
    assert lost == []


@pytest.mark.parametrize("quoted", ["She would love to join, and getting to Bath is easy.", "£4,935 less £4,480."])
def test_a_quoted_sentence_or_an_exact_amount_is_no_lost_turn(quoted: str) -> None:
    said = "We had tea at four. She would love to join, and getting to Bath is easy. It costs £4,480. And joining!"
    turn = Turn(id="1", number=1, session=1, role="user", speaker=None, text=said)
    is_amount = "£" in quoted
    expected = "£4,480" if is_amount else "Joining the choir, getting to Bath"
    question = Question(
        id="q", kind="recall", type="t", text="What?", expected=expected, evidence=("1",), evidence_role="supports"
    )
    sources = () if is_amount else ("1",)
    assert _trail(question, {"1": turn}, "1", [hit(1, sources=sources, text=quoted)]).lost_at is None
