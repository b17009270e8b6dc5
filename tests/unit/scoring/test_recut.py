"""The recorded candidates at other limits: what a duel says of them is what a fork with these limits does."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memreplay
from memory_backends.base import Cut, Excerpt, Hit
from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.conversations.registry import load
from memreplay.engine.events import QuestionAsked
from memreplay.llm.tokens import token_counter
from memreplay.paths import demo_recordings
from memreplay.recording.reader import Recording
from memreplay.runtime.reasking import Reasking
from memreplay.runtime.recorded import lineage_of, settings_of_run
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.evidence_trail import LostAt
from memreplay.scoring.recut import Limits, Ranking, way_in
from memreplay.settings import read_settings
from memreplay.timeline.timeline import Answer


def hit(rank: int, turn: str, score: float | None = None, *, in_prompt: bool = True, text: str = "") -> Hit:
    return Hit(
        id=f"h{rank}", store="qdrant", place="p", rank=rank, score=score, text=text, turns=(turn,),
        tokens=words(text), in_prompt=in_prompt,
    )  # fmt: skip


def conversation() -> Conversation:
    turns = tuple(
        Turn(id=f"t{n}", number=n, session=1, role="user", speaker=None, text=" ".join(["word"] * n))
        for n in range(1, 8)
    )
    return Conversation(id="c", dataset="c", sessions=(Session(number=1, id="1"),), turns=turns, questions=())


def asked(**changed: Any) -> QuestionAsked:
    """Three hits of eight words, of which two fit into a budget of twenty, and three candidates below them."""
    text = "User: " + " ".join(["word"] * 7)
    given: dict[str, Any] = {
        "hits": (hit(1, "t1", 0.9, text=text), hit(2, "t2", 0.8, text=text),
                 hit(3, "t3", 0.7, text=text, in_prompt=False)),
        "missed": tuple(hit(n, f"t{n}", 1 - n / 10, in_prompt=False) for n in (4, 5, 6)),
        "cut": (), "context_tokens": 16,
    }  # fmt: skip
    return QuestionAsked(
        conversation="c", turn=7, backend="rag", model="m", question_id="q", prompt=(), recall_ms=1,
        **given | changed,
    )  # fmt: skip


def words(text: str) -> int:
    return len(text.split())


def ranking(event: QuestionAsked | None = None, **settings: Any) -> Ranking:
    return Ranking(conversation(), event or asked(), {"top_k": 3, "context_tokens": 20, **settings}, words)


def inside(found: Ranking, hits: int, tokens: int) -> set[str]:
    cut = found.cut(Limits(hits, tokens))
    assert cut is not None
    return set(cut.inside)


def test_the_rank_and_score_gap_of_evidence_below_the_cut_are_those_to_the_last_hit() -> None:
    found = ranking()
    below, absent, cut = (found.placed(turn) for turn in ("t5", "t9", "t3"))
    assert (below.rank, below.below) == (5, 2)
    assert below.gap is not None and abs(below.gap - 0.2) < 1e-9
    assert absent.rank is None
    assert (cut.rank, cut.below) == (3, 0)


def test_hits_and_tokens_limit_together() -> None:
    found = ranking()
    assert found.filling == "whole_hits"
    assert found.limits == (3, 20)
    assert inside(found, 3, 20) == {"h1", "h2"}
    assert inside(found, 5, 20) == {"h1", "h2"}, "more hits do not let in what the budget of the run leaves out"
    assert inside(found, 5, 30) == {"h1", "h2", "h3", "h4"}, "what does not fit is left out for what does"
    assert inside(found, 1, 1000) == {"h1"}
    assert inside(found, 0, 1000) == set()


def test_a_ranking_that_its_limits_do_not_explain_is_an_estimate() -> None:
    excerpts = (Excerpt(turn="t1", rank=1, start=0, end=4),)
    composed = asked(hits=(*(one.model_copy(update={"excerpts": excerpts}) for one in asked().hits),))
    assert ranking(composed).is_estimated
    assert ranking(asked(context_tokens=15)).is_estimated
    assert ranking(top_k=5).is_estimated, "it returned fewer hits than it could, though there were candidates"


def test_a_log_is_cut_to_its_last_turns() -> None:
    lines = [f"User: {' '.join(['word'] * n)}\n" for n in range(1, 8)]
    log = Hit(
        id="log", store="redis", place="log", rank=1, score=None, text="".join(lines[5:]), turns=("t6", "t7"),
        tokens=15,
    )  # fmt: skip
    cut = Cut(place="log", turns=("t1", "t2", "t3", "t4", "t5"), tokens=20)
    found = ranking(asked(hits=(log,), missed=(), cut=(cut,), context_tokens=15))
    assert found.filling == "end_of_log" and not found.is_ranked
    wider = found.cut(Limits(3, 27))
    assert wider is not None
    assert wider.asked.hits[0].turns == ("t4", "t5", "t6", "t7")
    assert wider.asked.hits[0].text == "".join(lines[3:])
    assert wider.asked.cut[0].turns == ("t1", "t2", "t3")
    nothing = found.cut(Limits(3, 1))
    assert nothing is not None and not nothing.asked.hits and nothing.asked.context_tokens == 0


def test_of_what_no_ranking_is_recorded_nothing_is_said() -> None:
    assert ranking(asked(hits=(), missed=(), context_tokens=10)).cut(Limits(5, 100)) is None


def test_the_way_in_names_the_hits_and_then_the_tokens_that_it_takes() -> None:
    def lost_at(event: QuestionAsked) -> LostAt | None:
        held = [one.in_prompt for one in event.hits if "t5" in one.turns]
        return "not_retrieved" if not held else None if any(held) else "cut"

    found = ranking()
    way = way_in(found, found.limits, lost_at)
    assert way is not None
    assert (way.limits, way.lost_at, way.needed) == ((5, 20), "cut", 35)
    assert way.enough == 256
    plenty = way_in(found, Limits(3, 100), lost_at)
    assert plenty is not None and (plenty.limits, plenty.lost_at) == ((5, 100), None)
    assert way_in(found, Limits(5, 100), lost_at) is None


# ---- a recut against the memory itself ---------------------------------------------------------------------


def outcome(attributor: Attributor, event: QuestionAsked) -> tuple[LostAt | None, int, list[tuple[str, ...]]]:
    """Return the stage that loses the answer, the tokens, and the turns of the hits in the prompt."""
    turns = sorted(one.turns for one in event.hits if one.in_prompt)
    return attributor.lost_at(event), event.context_tokens, turns


async def differences(path: Path, tokens: tuple[int, ...], most: int) -> tuple[int, list[str]]:
    """Compare recuts of a recording with what its memories, filled again, return. Number of comparisons, faults."""
    compared, faults = 0, []
    with closing(Recording.open(path)) as recording:
        run = recording.run()
        settings = settings_of_run(run.settings, read_settings(), path, lambda found: True)
        again = Reasking(settings, run.id, warnings.warn, lineage_of(recording, run))
        try:
            for id_ in recording.conversation_ids(run.id):
                timeline = recording.timeline(run.id, id_)
                attributor = Attributor(timeline)
                async with again.rebuilding(timeline.conversation) as memory_of:
                    for answer, found in exact(
                        list(timeline.answers())[:most], timeline.conversation, run.settings
                    ):
                        question = timeline.question(answer.asked.question_id)
                        assert question is not None
                        for limits in limits_around(found.limits, tokens):
                            recalled = await memory_of(answer.asked.backend).recall(
                                question.text, *limits, answer.asked.model, answer.asked.turn
                            )
                            assert not isinstance(recalled, str)
                            cut = found.cut(limits)
                            assert cut is not None
                            forked = answer.asked.model_copy(
                                update={
                                    "hits": recalled.hits,
                                    "missed": recalled.missed,
                                    "cut": recalled.cut,
                                    "context_tokens": recalled.tokens,
                                }
                            )
                            said, done = outcome(attributor, cut.asked), outcome(attributor, forked)
                            compared += 1
                            if said != done:
                                name = f"{answer.asked.backend} {question.id} at {limits}"
                                faults.append(f"{name}: a recut says {said[:2]}, a fork does {done[:2]}")
        finally:
            await again.close()
    return compared, faults


def exact(
    answers: list[Answer], conversation: Conversation, settings: Mapping[str, Any]
) -> Iterator[tuple[Answer, Ranking]]:
    for answer in answers:
        if answer.asked.backend not in CONTROLS:
            found = Ranking(conversation, answer.asked, settings, token_counter(answer.asked.model))
            if found.filling in ("whole_hits", "end_of_log"):
                yield answer, found


def limits_around(run: Limits, tokens: tuple[int, ...]) -> list[Limits]:
    return [Limits(hits, budget) for hits in (1, run.hits, run.hits + 4) for budget in (*tokens, run.tokens)]


async def test_what_a_recut_says_of_a_dated_conversation_is_what_a_fork_does(
    shared_data: Path, tmp_path: Path
) -> None:
    file = shared_data / "locomo" / "locomo10_dev.json"
    if not file.is_file():
        pytest.skip("no LoCoMo conversation is beside the project")
    path = tmp_path / "run.sqlite3"
    whole = next(iter(load([str(file)])))
    part = whole.model_copy(update={"questions": whole.questions[:5]})
    with await memreplay.arun(part, ["rag:keyword", "full_context"], recording=path, top_k=5, context_tokens=1024):
        pass
    compared, faults = await differences(path, (256, 4096, 16384), 20)
    assert compared == 5 * 2 * 12
    assert faults == []


@pytest.mark.parametrize("path", [*demo_recordings()], ids=lambda path: path.stem)
async def test_what_a_recut_says_of_the_shipped_demos_is_what_a_fork_does(path: Path) -> None:
    compared, faults = await differences(path, (100, 256, 1024), 60)
    assert compared >= 60
    assert faults == []
