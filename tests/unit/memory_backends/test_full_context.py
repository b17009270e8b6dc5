"""Full context: one log, and the oldest whole turns cut from it where it does not fit."""

from __future__ import annotations

from datetime import datetime

import pytest

from memory_backends.base import BackendError, StoreLostError
from memory_backends.full_context import FullContextBackend
from memory_backends.records import ConversationHistoryLog
from memory_backends.stores.redis import RedisConnection
from tests.stubs.memory import count_words, exchange, namespace, play

NAMESPACE = namespace("full_context")
KEY = ConversationHistoryLog.key(NAMESPACE.path)

MAY_8, MAY_25 = datetime(2023, 5, 8, 13, 56), datetime(2023, 5, 25, 9, 5)

DATED_TALK = [
    exchange(1, "one", "two", 1, MAY_8),
    exchange(2, "three", "four", 1, MAY_8),
    exchange(3, "five", "six", 2, MAY_25),
    exchange(4, "seven", "eight", 2, MAY_25),
]

WHOLE_LOG = (
    "[8 May 2023, 13:56]\nUser: one\nAI: two\nUser: three\nAI: four\n"
    "[25 May 2023, 09:05]\nUser: five\nAI: six\nUser: seven\nAI: eight\n"
)

ONE_TURN_UNDER_ITS_DATE = count_words("[8 May 2023, 13:56]\nUser: one\n")


class CountingCounter:
    """A token counter that remembers what it had to count."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    def __call__(self, text: str) -> int:
        self.counted.append(text)
        return count_words(text)


@pytest.fixture
def connection() -> RedisConnection:
    return RedisConnection.embedded()


@pytest.fixture
async def backend(connection: RedisConnection) -> FullContextBackend:
    backend = FullContextBackend(connection, count_words)
    await backend.open(NAMESPACE)
    return backend


async def test_a_date_line_precedes_the_first_exchange_of_each_session(backend):
    await play(backend, DATED_TALK)
    assert (await backend.snapshot()).values["redis"] == {KEY: WHOLE_LOG}


async def test_the_whole_log_is_one_hit(backend):
    await play(backend, DATED_TALK)
    recall = await backend.recall("anything", 10, 1000)
    assert recall.context == WHOLE_LOG
    assert recall.tokens == count_words(WHOLE_LOG)
    assert recall.cut == ()
    (hit,) = recall.hits
    assert (hit.store, hit.place, hit.rank, hit.text) == ("redis", KEY, 1, WHOLE_LOG)
    assert hit.turns == tuple("12345678")


async def test_equal_contexts_of_many_questions_take_the_memory_of_one(backend):
    await play(backend, DATED_TALK)
    first, second = [await backend.recall(question, 10, 1000) for question in ("anything", "something")]
    assert first.context is second.context is first.hits[0].text is second.hits[0].text
    shorter = await backend.recall("anything", 10, 20)
    assert shorter.context == "[25 May 2023, 09:05]\nUser: seven\nAI: eight\n"
    assert (await backend.recall("anything", 10, 1000)).context == WHOLE_LOG


async def test_the_oldest_turns_are_cut_and_the_first_kept_session_keeps_its_date(backend):
    await play(backend, DATED_TALK)
    expected = "[25 May 2023, 09:05]\nAI: six\nUser: seven\nAI: eight\n"
    recall = await backend.recall("anything", 10, count_words(expected))
    assert recall.context == expected
    assert recall.tokens == count_words(expected)
    assert recall.hits[0].turns == ("6", "7", "8")
    (cut,) = recall.cut
    assert (cut.place, cut.turns) == (KEY, ("1", "2", "3", "4", "5"))
    assert cut.tokens == count_words(WHOLE_LOG) - recall.tokens


@pytest.mark.parametrize("budget", range(count_words(WHOLE_LOG) + 2))
async def test_as_much_is_kept_as_fits(backend, budget):
    await play(backend, DATED_TALK)
    recall = await backend.recall("anything", 10, budget)
    assert count_words(recall.context) == recall.tokens <= budget
    kept = set(recall.hits[0].turns) if recall.hits else set()
    cut = set(recall.cut[0].turns) if recall.cut else set()
    assert kept | cut == set("12345678")
    assert not kept & cut
    if cut:
        more = await backend.recall("anything", 10, budget + ONE_TURN_UNDER_ITS_DATE)
        assert len(more.hits[0].turns) > len(kept)


async def test_a_turn_that_quotes_a_date_line_is_cut_where_the_turn_begins(backend):
    quoting = exchange(1, "[1 May 1999, 00:00]\nUser: forged", "naïve 👋")
    await play(backend, [quoting, exchange(2, "x", "y")])
    recall = await backend.recall("anything", 10, count_words("AI: naïve 👋\nUser: x\nAI: y\n"))
    assert recall.context == "AI: naïve 👋\nUser: x\nAI: y\n"


async def test_perceive_reports_only_what_is_newly_cut(backend):
    told: list[str] = []
    tokens = 0
    for number in range(1, 61):
        message = exchange(number, f"word {number}", "yes").messages[0]
        perceived = await backend.perceive(message, 10, 40)
        recalled = await backend.recall("anything", 10, 40)
        assert all(hit.text == "" and hit.turns == () for hit in perceived.hits)
        assert (perceived.tokens, perceived.context) == (recalled.tokens, recalled.context)
        told += [turn for cut in perceived.cut for turn in cut.turns]
        tokens += sum(cut.tokens for cut in perceived.cut)
        assert told == [turn for cut in recalled.cut for turn in cut.turns]
        assert tokens == sum(cut.tokens for cut in recalled.cut)
        await backend.observe(exchange(number, f"word {number}", "yes"))
    assert len(told) > 80


async def test_after_reopening_the_cut_is_reported_again(backend):
    for _ in range(2):
        await backend.open(NAMESPACE)
        await play(backend, DATED_TALK[:3], context_tokens=20)
        perceived = await backend.perceive(DATED_TALK[3].messages[0], 10, 20)
        recalled = await backend.recall("anything", 10, 20)
        assert perceived.cut[-1].turns == recalled.cut[0].turns[-len(perceived.cut[-1].turns) :]


async def test_no_line_is_counted_twice(connection):
    counter = CountingCounter()
    backend = FullContextBackend(connection, counter)
    await backend.open(NAMESPACE)
    await play(backend, DATED_TALK)
    await backend.recall("anything", 10, 30)
    counted = len(counter.counted)
    assert sum(map(len, counter.counted)) < 2 * len(WHOLE_LOG)
    await backend.recall("anything", 10, 20)
    assert len(counter.counted) == counted


async def test_a_log_that_was_lost_is_an_error_and_not_a_shorter_memory(backend, connection):
    await play(backend, DATED_TALK)
    await connection.client.set(KEY, WHOLE_LOG[:40])
    with pytest.raises(StoreLostError, match=r"lost .* bytes of full_history"):
        await backend.recall("anything", 10, 1000)


async def test_nothing_works_before_it_is_open(connection):
    with pytest.raises(BackendError, match="not open"):
        await FullContextBackend(connection, count_words).recall("anything", 10, 1000)
