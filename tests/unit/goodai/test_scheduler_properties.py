"""What holds for any set of tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from memreplay.goodai.actions import Filler, LlmAsked, Say, TestBegins, TestEnded
from memreplay.goodai.dataset import RunConfig
from memreplay.goodai.master_log import EventType, count_tokens
from tests.unit.goodai.driving import Lines, run

waits = st.tuples(st.integers(0, 120), st.sampled_from([0, 60, 90_000]), st.sampled_from([0.0, 12.5, 70.0]))


@st.composite
def datasets(draw):
    """Datasets with one to three lines before their question, and any waits."""
    made = []
    for name in draw(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4, unique=True)):
        spoken = [f"{name} says number {place}." for place in range(draw(st.integers(1, 3)))]
        lines = (*spoken, "What did I say?")
        dataset = Lines(
            name=name,
            lines=lines,
            waits=tuple(draw(waits) for _ in lines),
            can_be_interleaved=draw(st.booleans()),
            reset_message=draw(st.sampled_from(["", "Forget it."])),
        )
        made.append((dataset, draw(st.integers(1, 3))))
    return made


configs = st.builds(
    RunConfig,
    isolated=st.booleans(),
    seed=st.integers(0, 5),
    incompatibilities=st.sampled_from([(), (frozenset("AB"),), (frozenset("ABC"), frozenset("CD"))]),
)


def examples_of(made):
    return [test for dataset, count in made for test in dataset.generate_examples(count)]


def unmarked(steps):
    """The steps without what tells a resumed run from one that never stopped."""
    return [
        replace(step, known=None)
        if isinstance(step, Say)
        else replace(step, reused=False)
        if isinstance(step, LlmAsked)
        else step
        for step in steps
    ]


@settings(max_examples=60, deadline=None)
@given(datasets(), configs)
def test_every_test_is_run_once_in_the_order_of_its_script(made, config):
    done = run(examples_of(made), config=config)

    for dataset, count in made:
        for place in range(count):
            said = [step.message for step in done.of(Say) if step.test_id == f"{dataset.name} - {place}"]
            assert said == [*dataset.lines, *([dataset.reset_message] if dataset.reset_message else [])]
    assert len(done.ended) == sum(count for _, count in made) == len(done.of(TestBegins))


@settings(max_examples=40, deadline=None)
@given(datasets(), configs)
def test_no_test_runs_beside_one_that_it_may_not_run_beside(made, config):
    alone = {dataset.name for dataset, _ in made if not dataset.can_be_interleaved}
    running: list[str] = []
    for step in run(examples_of(made), config=config).steps:
        if isinstance(step, TestBegins):
            for other in running:
                pair = {other, step.dataset}
                assert not config.isolated
                assert len(pair) == 2
                assert not pair & alone
                assert not any(pair <= group for group in config.incompatibilities)
            running.append(step.dataset)
        elif isinstance(step, TestEnded):
            running.remove(step.dataset)


@settings(max_examples=40, deadline=None)
@given(datasets(), configs)
def test_no_wait_is_cut_short(made, config):
    lines_of = {dataset.name: dataset for dataset, _ in made}
    heard: dict[str, tuple[int, int, datetime]] = {}
    tokens = 0
    for event in run(examples_of(made), config=config).events:
        if event.type is EventType.SEND_MESSAGE and event.test_id in heard:
            line, since, moment = heard[event.test_id]
            waits_of = lines_of[event.test_id[0]].waits
            if line + 1 < len(waits_of):
                wanted_tokens, wanted_seconds, _ = waits_of[line]
                assert tokens - since >= wanted_tokens
                assert event.timestamp - moment >= timedelta(seconds=wanted_seconds)
        if event.spoken():
            tokens += count_tokens(event.data["message"])
        if event.type is EventType.RESPONSE_MESSAGE:
            line = heard[event.test_id][0] + 1 if event.test_id in heard else 0
            heard[event.test_id] = (line, tokens, event.timestamp)


@settings(max_examples=40, deadline=None)
@given(datasets(), configs)
def test_the_same_tests_seed_and_replies_give_the_same_steps(made, config):
    assert run(examples_of(made), config=config).steps == run(examples_of(made), config=config).steps


@settings(max_examples=40, deadline=None)
@given(datasets(), configs, st.data())
def test_a_run_resumes_where_it_was_interrupted(made, config, data):
    whole = run(examples_of(made), config=config)
    asked = data.draw(st.integers(0, len(whole.asked)))
    part = run(examples_of(made), config=config, questions=asked)

    rest = run(examples_of(made), config=config, known=part.events)

    assert unmarked(rest.steps) == unmarked(whole.steps)
    assert part.events + rest.events == whole.events
    assert part.asked + rest.asked == whole.asked


def test_another_seed_draws_other_filler():
    drawn = {
        tuple(step.message for step in run(Lines().generate_examples(1), config=RunConfig(seed=seed)).of(Filler))
        for seed in (1, 2)
    }

    assert len(drawn) == 2
