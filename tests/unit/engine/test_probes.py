"""A question asked by hand is answered from memory as it stood at the position, and changes nothing."""

from __future__ import annotations

import asyncio

import pytest

from memreplay.engine.events import AnswerScored, QuestionAsked, ReplayEvent, ReplyReceived
from memreplay.engine.probes import Probe, typed_question
from memreplay.engine.session import ReplaySession
from memreplay.timeline.timeline import Timeline
from tests.stubs.answering import ScriptedAnswerer
from tests.unit.conftest import NAMES, PLAN, Played, answerer, memory


def side(played: Played, emit: list[ReplayEvent], scripted: ScriptedAnswerer | None = None) -> Probe:
    return Probe(played.conversation, memory, scripted or answerer(), PLAN, emit.append)


@pytest.mark.parametrize("position", [3, 6])
async def test_it_recalls_what_the_session_itself_would_have_recalled_there(played: Played, position: int) -> None:
    question = played.conversation.questions[0]
    direct: list[ReplayEvent] = []
    session = ReplaySession(
        played.conversation, {name: memory(name) for name in NAMES}, answerer(), PLAN, direct.append
    )
    await session.open()
    for _ in range(position):
        await session.step()
    for name in NAMES:
        await session.ask(question, name, "m", by_hand=True)
    by_hand: list[ReplayEvent] = []
    beside = side(played, by_hand)
    await beside.ask_at(9, question, NAMES)
    await beside.ask_at(position, question, NAMES)
    await beside.close()

    def recalled(events: list[ReplayEvent]) -> list[tuple[object, ...]]:
        asked = [event for event in events if isinstance(event, QuestionAsked) and event.turn == position]
        return [
            (e.backend, [(h.turns, h.sources, h.text, h.rank) for h in e.hits], e.context_tokens) for e in asked
        ]

    assert recalled(by_hand) == recalled(direct)
    assert len(recalled(by_hand)) == len(NAMES)


async def test_only_the_ask_is_emitted_and_it_is_marked(played: Played) -> None:
    emitted: list[ReplayEvent] = []
    beside = side(played, emitted)
    await beside.ask_at(4, played.conversation.questions[0], ["rag"])
    assert [type(event) for event in emitted] == [QuestionAsked, ReplyReceived, AnswerScored]
    assert all(event.by_hand and event.turn == 4 for event in emitted if isinstance(event, QuestionAsked))
    timeline = Timeline(played.conversation, [*played.events, *emitted])
    before = Timeline(played.conversation, played.events)
    for name in NAMES:
        assert timeline.snapshot_at(name, timeline.reached) == before.snapshot_at(name, before.reached)
    (answer,) = [answer for answer in timeline.answers() if answer.asked.by_hand]
    assert answer.scored is not None


async def test_a_typed_question_keeps_its_text_and_is_not_scored(played: Played) -> None:
    emitted: list[ReplayEvent] = []
    question = typed_question("Where is [bold]the cat[/]? {0} %s")
    await side(played, emitted).ask_at(2, question, ["full_context"])
    asked, received = emitted
    assert isinstance(asked, QuestionAsked)
    assert isinstance(received, ReplyReceived)
    assert asked.typed == question.text
    assert question.text in asked.prompt[0].content
    assert typed_question(question.text) == question


async def test_going_on_plays_only_what_is_new(played: Played) -> None:
    told: list[tuple[str, int, int]] = []
    beside = side(played, [])
    for position in (2, 5, 3):
        await beside.ask_at(
            position, played.conversation.questions[0], ["rag"], progress=lambda *at: told.append(at)
        )
    assert [at for _, at, _ in told] == [1, 2, 3, 4, 5, 1, 2, 3]


async def test_a_cancelled_ask_leaves_the_side_session_usable(played: Played) -> None:
    emitted: list[ReplayEvent] = []
    beside = side(played, emitted)
    started = asyncio.Event()
    asking = asyncio.create_task(
        beside.ask_at(8, played.conversation.questions[0], ["hybrid"], progress=lambda *_: started.set())
    )
    await started.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert emitted == []
    await beside.ask_at(2, played.conversation.questions[0], ["hybrid"])
    assert len(emitted) == 3
    await beside.close()
