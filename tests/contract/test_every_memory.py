"""What every memory promises, whatever its architecture and wherever its stores are.

The rules are those that ``memreplay check-backend`` tries. To hold a new memory to them, add its name to
``REMEMBERING``.
"""

from __future__ import annotations

from datetime import datetime

import pytest

from memory_backends.base import MemoryBackend
from memory_backends.contract import PROMISES, Rule, Subject
from memory_backends.contract.trial import HOSTILE_TALK, QUESTION, TALK, contents
from memory_backends.controls import CONTROLS
from memory_backends.stores.trace import MemoryOperation
from tests.stubs.memory import exchange, namespace, play

REMEMBERING = ("hybrid", "rag", "rag:keyword", "rag:fused", "full_context")
EVERY_MEMORY = (*REMEMBERING, *sorted(CONTROLS))

FOR_WHAT_REMEMBERS = ("finds", "cuts", "perceives", "verbatim")

DATED_TALK = [
    exchange(1, "I went to the support group yesterday.", "How was it?", 1, datetime(2023, 5, 8, 13, 56)),
    exchange(2, "It was moving.", "I am glad.", 1, datetime(2023, 5, 8, 13, 56)),
    exchange(3, "I work at Nimbus Labs now.", "Congratulations!", 2, datetime(2023, 5, 25, 9, 5)),
]


@pytest.mark.parametrize("name", EVERY_MEMORY)
@pytest.mark.parametrize("rule", PROMISES, ids=lambda rule: rule.name)
async def test_every_promise_is_kept(make, name: str, rule: Rule) -> None:
    if name in CONTROLS and rule.name in FOR_WHAT_REMEMBERS:
        pytest.skip("a control remembers nothing, or only what is asked for")
    await rule.holds(Subject(name, lambda clock: make(name, clock=clock)))


@pytest.mark.parametrize("name", EVERY_MEMORY)
class TestEveryMemory:
    def test_is_one(self, make, name):
        backend = make(name)
        assert isinstance(backend, MemoryBackend)
        assert backend.name == name

    async def test_what_it_stores_is_its_own_conversation_alone(self, make, name):
        mine, theirs, alone = make(name), make(name), make(name)
        await mine.open(namespace(name, "mine"))
        await theirs.open(namespace(name, "theirs"))
        await alone.open(namespace(name, "alone"))
        await play(mine, TALK[:2])
        await play(theirs, TALK[2:])
        await play(mine, TALK[2:3])
        await play(alone, TALK[:3])
        assert _texts(await mine.snapshot()) == _texts(await alone.snapshot())


@pytest.mark.parametrize("name", REMEMBERING)
class TestMemoriesThatRemember:
    async def test_dates_stand_over_what_was_said_on_them(self, make, name):
        backend = make(name)
        await backend.open(namespace(name))
        await play(backend, DATED_TALK)
        context = (
            await backend.recall("Who went to the support group, and who works at Nimbus?", 10, 1000)
        ).context
        assert "[8 May 2023, 13:56]\nUser: I went to the support group" in context
        assert "[25 May 2023, 09:05]\nUser: I work at Nimbus" in context

    async def test_hostile_text_is_stored_byte_for_byte(self, make, name):
        backend = make(name)
        await backend.open(namespace(name))
        await play(backend, HOSTILE_TALK)
        stored = _texts(await backend.snapshot())
        for each in HOSTILE_TALK:
            assert any(each.text in text for text in stored)

    async def test_every_command_says_on_whose_account_it_was(self, make, name):
        backend = make(name)
        await backend.open(namespace(name))
        backend.trace.drain()
        await backend.observe(TALK[0])
        await backend.settle()
        observed = [entry for entry in backend.trace.drain() if isinstance(entry, MemoryOperation)]
        assert observed
        assert {entry.phase for entry in observed} <= {"observe", "consolidate"}
        assert {entry.turns for entry in observed} == {TALK[0].turn_ids}
        await backend.perceive(exchange(2, "I am Marta, and I work.", "You said so.").messages[0], 5, 1000)
        perceived = [entry for entry in backend.trace.drain() if isinstance(entry, MemoryOperation)]
        assert {(entry.phase, entry.turns) for entry in perceived} == {("perceive", ("3",))}
        await backend.recall(QUESTION, 5, 1000)
        recalled = [entry for entry in backend.trace.drain() if isinstance(entry, MemoryOperation)]
        assert {entry.phase for entry in recalled} == {"recall"}
        assert all(entry.ms >= 0 and entry.actor for entry in [*observed, *perceived, *recalled])


def _texts(snapshot):
    """Every text that a snapshot holds: logs, and the contents of points."""
    values, points = contents(snapshot)
    texts = [value for value in values.values() if isinstance(value, str)]
    return texts + sorted(payload["content"] for held in points.values() for payload in held.values())
