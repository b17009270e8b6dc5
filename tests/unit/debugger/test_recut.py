"""The recorded candidates at another cut: what would have been in, and how far below the cut the evidence was."""

from __future__ import annotations

from memory_backends.base import Hit
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.debugger.recut import candidates_of, recut
from memreplay.engine.events import QuestionAsked


def hit(rank: int, turn: str, score: float | None = None, *, tokens: int = 10, in_prompt: bool = True) -> Hit:
    return Hit(
        id=f"h{rank}", store="qdrant", place="p", rank=rank, score=score, text="x" if tokens else "", turns=(turn,),
        tokens=tokens, in_prompt=in_prompt,
    )  # fmt: skip


def conversation() -> Conversation:
    turns = tuple(
        Turn(id=f"t{n}", number=n, session=1, role="user", speaker=None, text=" ".join(["word"] * n))
        for n in range(1, 8)
    )
    return Conversation(id="c", dataset="c", sessions=(Session(number=1, id="1"),), turns=turns, questions=())


def asked() -> QuestionAsked:
    return QuestionAsked(
        conversation="c", turn=7, backend="rag", model="m", question_id="q", context_tokens=20, prompt=(),
        recall_ms=1,
        hits=(hit(1, "t1", 0.9), hit(2, "t2", 0.8), hit(3, "t3", 0.7, in_prompt=False)), cut=(),
        missed=tuple(hit(n, f"t{n}", 1 - n / 10, tokens=0, in_prompt=False) for n in (4, 5, 6)),
    )  # fmt: skip


def words(text: str) -> int:
    return len(text.split())


def test_the_rank_and_score_gap_of_evidence_below_the_cut_are_those_to_the_last_hit() -> None:
    found = recut(candidates_of(conversation(), asked(), words), ["t5", "t9", "t3", "t1"])
    below, absent, no_room, inside = found.placements
    assert below.candidate is not None and below.candidate.rank == 5
    assert (below.below, below.inside) == (2, False)
    assert below.gap is not None and abs(below.gap - 0.2) < 1e-9
    assert absent.candidate is None
    assert (no_room.below, no_room.inside) == (0, False)
    assert inside.inside
    assert found.inside == {1, 2}


def test_more_hits_let_in_what_ranked_below_the_cut_and_fewer_take_it_out() -> None:
    candidates = candidates_of(conversation(), asked(), words)
    assert recut(candidates, ["t5"], more=1).placements[0].inside is False
    assert recut(candidates, ["t5"], more=2).placements[0].inside is True
    assert recut(candidates, ["t2"], more=-2).placements[0].inside is False
    assert recut(candidates, ["t2"], more=-9).inside == frozenset()


def test_a_budget_leaves_out_what_does_not_fit_and_smaller_ones_after_it_still_may() -> None:
    candidates = candidates_of(conversation(), asked(), words)
    assert [each.tokens for each in candidates] == [10, 10, 10, 5, 6, 7], (
        "speaker and words of a turn below the cut"
    )
    assert recut(candidates, [], more=3, context_tokens=37).inside == {1, 2, 3, 4}
    assert recut(candidates, [], more=3, context_tokens=26).inside == {1, 2, 4}
    assert recut(candidates, [], context_tokens=30).inside == {1, 2, 3}
