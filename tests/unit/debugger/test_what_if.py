"""A recorded context under one change at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from memory_backends.base import Hit
from memory_backends.controls import OracleBackend
from memreplay.conversations.models import Conversation, Question, Session, Turn, exchanges_of
from memreplay.debugger.what_if import Case, changed_prompt, joined, units_of
from memreplay.engine.events import QuestionAsked
from memreplay.llm.prompts import NO_HISTORY, build_request, context_of
from memreplay.scoring.holding import Piece
from memreplay.scoring.verdicts import FROM_MEMORY, INTERVENTIONS, Intervention
from tests.stubs.memory import count_words, namespace

SAID = (
    ("user", "My cat is called Mina."),
    ("assistant", "What a lovely name for a cat."),
    ("user", "The deadline was the first of May."),
    ("assistant", "I will keep the first of May in mind."),
    ("user", "The deadline moved, it is the ninth of June now."),
    ("assistant", "Noted, and good luck with it."),
)
TALK = Conversation(
    id="talk",
    dataset="talk",
    sessions=(Session(number=1, id="s1"),),
    turns=tuple(
        Turn(id=str(number), number=number, session=1, role=role, speaker=None, text=text)  # type: ignore[arg-type]
        for number, (role, text) in enumerate(SAID, start=1)
    ),
    questions=(),
)
QUESTION = Question(
    id="q",
    kind="recall",
    type="recent",
    text="When is the deadline?",
    expected="ninth of June",
    evidence=("5",),
    evidence_role="supports",
)


def exchange(rank: int, *turns: str, in_prompt: bool = True) -> Hit:
    """A hit as ``rag`` gives it."""
    lines = [f"{'User' if int(turn) % 2 else 'AI'}: {TALK.turns_by_id[turn].text}" for turn in turns]
    return Hit(
        id=f"h{rank}",
        store="s",
        place="p",
        rank=rank,
        score=1.0,
        text="\n".join(lines),
        turns=turns,
        in_prompt=in_prompt,
    )


def case(
    *hits: Hit,
    context: str | None = None,
    question: Question = QUESTION,
    outdated: tuple[str, ...] = (),
    stored: tuple[Piece, ...] = (),
) -> Case:
    shown = [hit for hit in sorted(hits, key=lambda hit: hit.turns) if hit.in_prompt]
    given = "\n\n".join(hit.text for hit in shown) if context is None else context
    asked = QuestionAsked(
        conversation="talk",
        turn=6,
        backend="rag",
        model="m",
        question_id="q",
        hits=hits,
        cut=(),
        context_tokens=count_words(given),
        prompt=build_request(question, given, "m", None).messages,
        recall_ms=0.0,
    )
    return Case(question, TALK, asked, outdated, stored, count_words)


def under(change: Intervention, of: Case) -> str | None:
    prompt = changed_prompt(change, of)
    return None if prompt is None else context_of(prompt)


FIRST, SECOND, THIRD = exchange(1, "1", "2"), exchange(2, "3", "4"), exchange(3, "5", "6")
EVIDENCE = "User: The deadline moved, it is the ninth of June now."


def log() -> Case:
    """The whole conversation as one hit, as ``full_context`` gives it."""
    text = "".join(f"{'User' if turn.role == 'user' else 'AI'}: {turn.text}\n" for turn in TALK.turns)
    return case(
        Hit(id="log", store="s", place="log", rank=1, score=None, text=text, turns=("1", "2", "3", "4", "5", "6")),
        context=text,
    )


@pytest.mark.parametrize("made", [case(FIRST, THIRD), case(THIRD, SECOND, FIRST), log()])
def test_a_context_that_was_taken_apart_is_put_together_as_it_was(made: Case) -> None:
    units = units_of(made.context, made.asked.hits, TALK)
    assert units is not None
    assert joined(units) == made.context.rstrip("\n")


def test_missing_evidence_is_added_where_it_was_said() -> None:
    lost = case(FIRST, exchange(2, "6"))
    added = under("evidence_added", lost)
    assert added is not None
    assert added.index("Mina") < added.index(EVIDENCE) < added.index("Noted, and good luck")
    first, last = under("evidence_first", lost), under("evidence_last", lost)
    assert first is not None and last is not None
    assert first.startswith(EVIDENCE) and "Mina" in first
    assert last.index("Mina") < last.index(EVIDENCE)


def test_replacing_takes_out_the_lowest_ranked_text_that_holds_no_evidence() -> None:
    replaced = under("evidence_replacing", case(SECOND, FIRST.model_copy(update={"rank": 3})))
    assert replaced is not None
    assert EVIDENCE in replaced and "first of May" in replaced and "Mina" not in replaced


@pytest.mark.parametrize("made", [case(FIRST, exchange(2, "5"), exchange(3, "6")), log()])
def test_evidence_in_the_prompt_changes_place_and_nothing_is_lost(made: Case) -> None:
    for change in ("evidence_first", "evidence_last"):
        moved = under(change, made)
        assert moved is not None
        assert sorted(moved.split()) == sorted(made.context.split())
        place = moved.index(EVIDENCE) / len(moved)
        assert place < 0.1 if change == "evidence_first" else place > 0.5
    assert under("evidence_added", made) is under("evidence_replacing", made) is None


def test_distractors_are_the_hits_without_evidence_and_of_an_abstention_the_bait() -> None:
    assert under("distractors_removed", case(FIRST, SECOND, THIRD)) == THIRD.text
    never_said = QUESTION.model_copy(update={"abstain": True, "evidence_role": "tempting", "evidence": ("1",)})
    kept = under("distractors_removed", case(FIRST, THIRD, question=never_said))
    assert kept == THIRD.text
    assert under("evidence_only", case(FIRST, question=never_said)) is None


def test_only_lines_with_nothing_but_an_outdated_value_go() -> None:
    kept = under("current_value_only", case(SECOND, THIRD, outdated=("first of May",)))
    assert kept is not None and "May" not in kept and EVIDENCE in kept
    assert under("current_value_only", case(THIRD, outdated=("first of May",))) is None


def test_without_any_memory_the_prompt_says_so() -> None:
    prompt = changed_prompt("closed_book", case(FIRST))
    assert prompt is not None and prompt[0].segments[1] == NO_HISTORY
    assert changed_prompt("closed_book", case()) is None


def test_what_is_stored_of_the_evidence_stands_alone_in_the_order_of_the_conversation() -> None:
    stored = (Piece("The deadline moved.", frozenset("5")), Piece("It was in May.", frozenset("3")))
    both = QUESTION.model_copy(update={"evidence": ("3", "5")})
    shown = under("stored_only", case(FIRST, question=both, stored=stored))
    assert shown == "It was in May.\n\nThe deadline moved."
    unlinked = (*stored, Piece("The ninth of June.", frozenset()))
    shown = under("stored_only", case(FIRST, question=both, stored=unlinked))
    assert shown == "The ninth of June.\n\nIt was in May.\n\nThe deadline moved."
    assert under("stored_only", case(FIRST)) is None, "nothing is stored of it"
    assert under("stored_only", case(FIRST, THIRD, stored=stored)) is None, "the prompt has the evidence itself"


async def test_the_evidence_alone_is_what_the_oracle_gives() -> None:
    both = QUESTION.model_copy(update={"evidence": ("5", "1")})
    oracle = OracleBackend({both.text: both.evidence}, count_words)
    await oracle.open(namespace("oracle"))
    for each in exchanges_of(TALK):
        await oracle.observe(each)
    given = await oracle.recall(both.text, 10, 1000)
    assert under("evidence_only", case(FIRST, question=both)) == given.context


def test_a_context_that_names_no_hits_gains_evidence_and_is_not_rearranged() -> None:
    opaque = case(context="Something about a cat.")
    added = under("evidence_added", opaque)
    assert added == f"Something about a cat.\n\n{EVIDENCE}"
    assert under("evidence_first", opaque) is under("distractors_removed", opaque) is None


def test_only_the_control_may_leave_the_prompt_as_it_was() -> None:
    for made in (case(THIRD), case(FIRST, THIRD), log(), case(context="no hits"), case()):
        for change in INTERVENTIONS:
            if change not in FROM_MEMORY:
                prompt = changed_prompt(change, made)
                assert prompt is None or (prompt == made.asked.prompt) == (change == "unchanged")


def test_dates_stand_once_above_the_messages_of_a_session() -> None:
    sessions = (Session(number=1, id="s1", date=datetime(2023, 5, 8, 13, 56)),)
    talk = Conversation(id="talk", dataset="talk", sessions=sessions, turns=TALK.turns, questions=())
    text = "[8 May 2023, 13:56]\n" + log().context
    whole = replace(case(log().asked.hits[0].model_copy(update={"text": text}), context=text), conversation=talk)
    assert whole.units is not None and joined(whole.units) == text.rstrip("\n")
    first = under("evidence_first", whole)
    assert first is not None and first.startswith(
        f"[8 May 2023, 13:56]\n{EVIDENCE}\n\n[8 May 2023, 13:56]\nUser: My"
    )
