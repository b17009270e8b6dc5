"""The log of a run: its lines, how it is read, and a run that goes on from it."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest

from memreplay.errors import DatasetError, UsageError
from memreplay.goodai.actions import AgentReply, LlmAsked, Say, TestEnded
from memreplay.goodai.language_model import LLMReply
from memreplay.goodai.master_log import EventType, LogEvent, read_master_log
from memreplay.goodai.scheduler import AsyncSteps, Scheduler, on_loop
from tests.unit.goodai.driving import Lines, judge, run
from tests.unit.goodai.test_written_from_the_guide import HaggleDataset, with_span


def offering(say):
    return "I offer 40."


def test_a_log_survives_being_written_and_read(tmp_path):
    done = run(
        Lines(lines=("Zürich is [bold]nice[/]\n{0}", "Is it?"), waits=((0, 7, 0), (0, 0, 0))).generate_examples(1)
    )
    path = tmp_path / "master_log.jsonl"
    path.write_text("".join(f"{event.to_json()}\n" for event in done.events), encoding="utf-8")

    assert read_master_log(path) == done.events


def test_a_line_that_was_being_written_is_left_out(tmp_path):
    line = LogEvent(EventType.BEGIN, datetime(2024, 1, 1), "A - 0", {"tokens": 0}).to_json()
    path = tmp_path / "master_log.jsonl"
    for torn in ("", line[: len(line) // 2], "{}"):
        path.write_text(f"{line}\n{torn}")
        assert len(read_master_log(path)) == 1


@pytest.mark.parametrize(
    "line", ["nonsense", '{"type": 99, "timestamp": 0, "test_id": "", "data": {}}', "[]", '{"type": 1}']
)
def test_a_broken_line_is_refused_with_its_number(tmp_path, line):
    path = tmp_path / "master_log.jsonl"
    path.write_text(f"\n{line}\n")

    with pytest.raises(DatasetError, match="line 2"):
        read_master_log(path)


def test_a_resumed_dynamic_test_pays_for_no_model_twice():
    made = lambda: with_span(HaggleDataset()).generate_examples(1)  # noqa: E731
    whole = run(made(), agent=offering, model=judge("yes", cost=0.5))
    part = run(made(), agent=offering, model=judge("yes", cost=0.5), questions=2)

    def never(request):
        raise AssertionError("asked again")

    rest = run(made(), agent=offering, model=never, known=part.events)

    assert rest.ended == whole.ended
    assert [call.reused for call in rest.of(LlmAsked)] == [True]
    assert part.events + rest.events == whole.events
    assert rest.scheduler.test_managing_costs_usd == 0.5


def test_a_judge_that_failed_is_part_of_the_log():
    made = lambda: with_span(HaggleDataset()).generate_examples(1)  # noqa: E731
    failed = run(made(), agent=offering, model=lambda request: LLMReply(None, error="down"))

    again = run(made(), agent=offering, model=judge("yes"), known=failed.events)

    assert failed.ended["Haggling - 0"].ungraded == "The judge model gave no reply: down"
    assert again.ended == failed.ended


def test_a_failed_reply_of_the_agent_is_part_of_the_log():
    events = []
    steps = Scheduler(Lines().generate_examples(1), on_event=events.append).steps()
    reply = None
    for _ in range(4):
        step = steps.send(reply)
        reply = AgentReply("", "down") if isinstance(step, Say) else None

    resumed = run(Lines().generate_examples(1), known=events)

    assert resumed.ended["Lines - 0"].ungraded == "The agent gave no reply: down"


def test_a_log_of_other_tests_is_refused():
    events = run(Lines().generate_examples(1)).events

    with pytest.raises(UsageError, match="does not fit"):
        run(Lines(lines=("Another line.", "What is the code?")).generate_examples(1), known=events)


async def test_a_run_is_driven_from_a_loop_on_which_models_answer():
    asked = []

    async def ask(request):
        await asyncio.sleep(0)
        asked.append(request.model)
        return LLMReply("yes")

    model = on_loop(ask, asyncio.get_running_loop())
    steps = AsyncSteps(Scheduler(with_span(HaggleDataset()).generate_examples(1), language_model=model))
    reply, ends = None, []
    while (step := await steps.next(reply)) is not None:
        reply = AgentReply("40") if isinstance(step, Say) else None
        ends += [step] if isinstance(step, TestEnded) else []

    assert [end.score for end in ends] == [1.0]
    assert asked == ["gpt-3.5-turbo"]
