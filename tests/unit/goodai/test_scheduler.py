"""Whose turn it is, what is said while all wait, and what becomes of failures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from memreplay.errors import UsageError
from memreplay.goodai.actions import (
    AgentReply,
    Filler,
    FreshMemory,
    Say,
    TestBegins,
    TestEnded,
    TestWaits,
    TimeJumps,
)
from memreplay.goodai.dataset import RunConfig
from memreplay.goodai.interface import (
    CallBackTestExample,
    DynamicDataset,
    DynamicExample,
    SendMessageAction,
    TestFinishedAction,
    Ungraded,
)
from memreplay.goodai.master_log import count_tokens
from memreplay.goodai.scheduler import MOST_EXCHANGES_WATCHED, Scheduler
from tests.unit.goodai.driving import Lines, run
from tests.unit.goodai.test_written_from_the_guide import CountdownDataset, with_span


def overlapping(steps):
    """The pairs of tests that ran side by side."""
    running, pairs = [], set()
    for step in steps:
        if isinstance(step, TestBegins):
            pairs |= {frozenset((other, step.test_id)) for other in running}
            running.append(step.test_id)
        elif isinstance(step, TestEnded):
            running.remove(step.test_id)
    return pairs


def test_tests_of_different_datasets_run_side_by_side_and_those_of_one_do_not():
    tests = Lines(name="A").generate_examples(2) + Lines(name="B").generate_examples(1)

    pairs = overlapping(run(tests).steps)

    assert frozenset(("A - 0", "B - 0")) in pairs
    assert frozenset(("A - 0", "A - 1")) not in pairs


def test_incompatible_datasets_do_not_overlap_however_their_names_are_written():
    tests = Lines(name="Name List").generate_examples(1) + Lines(name="Names").generate_examples(1)
    config = RunConfig(incompatibilities=(frozenset({"name_list", "names"}),))

    assert overlapping(run(tests, config=config).steps) == set()


def test_a_test_that_may_not_be_interleaved_runs_alone():
    tests = Lines(name="A").generate_examples(1) + Lines(name="B", can_be_interleaved=False).generate_examples(1)

    assert overlapping(run(tests).steps) == set()


def test_isolated_tests_start_with_a_fresh_memory_and_never_overlap():
    tests = Lines(name="A").generate_examples(2) + Lines(name="B").generate_examples(1)

    done = run(tests, config=RunConfig(isolated=True))

    assert [step.test_id for step in done.of(FreshMemory)] == ["A - 0", "A - 1", "B - 0"]
    assert overlapping(done.steps) == set()


def test_ids_are_ordered_as_numbers():
    done = run(Lines(memory_span=0).generate_examples(11))

    assert [step.test_id for step in done.of(TestBegins)][-2:] == ["Lines - 9", "Lines - 10"]


def test_a_percentage_wait_counts_the_tokens_since_the_test_began():
    lines = ("The code is 7.", "What is the code?")
    done = run(Lines(lines=lines, waits=((0, 0, 50.0), (0, 0, 0.0)), memory_span=401).generate_examples(1))

    (wait,) = done.of(TestWaits)
    assert wait.tokens == 200 - count_tokens(lines[0]) - count_tokens("Noted.")


def test_what_is_missing_is_filled_with_trivia_whose_reply_is_supplied():
    done = run(Lines().generate_examples(1))

    assert len(done.of(Say)) == 2
    assert done.of(Filler)
    assert done.of(Filler)[0].reply.startswith("[")
    assert done.ended["Lines - 0"].tokens >= 300


def test_filler_never_exceeds_a_datasets_message_size_by_more_than_one_question():
    done = run(Lines(memory_span=3000, max_message_size=100).generate_examples(1))

    assert max(count_tokens(step.message) for step in done.of(Filler)) < 150


def test_a_wait_for_time_jumps_whole_days():
    three_days = timedelta(days=3, seconds=20)
    waits = ((0, int(three_days.total_seconds()), 0.0), (0, 0, 0.0))

    done = run(Lines(waits=waits).generate_examples(1))

    (jump,) = done.of(TimeJumps)
    first, question = done.of(Say)
    assert question.sent_at - first.sent_at >= three_days
    assert jump.after - jump.before <= three_days


def test_a_test_whose_wait_is_over_comes_before_a_new_one():
    tests = Lines(name="A", waits=((1, 0, 0.0), (0, 0, 0.0))).generate_examples(1)
    tests += Lines(name="B").generate_examples(1) + Lines(name="C").generate_examples(1)

    begun = [step.test_id for step in run(tests).steps if isinstance(step, TestBegins | TestEnded)]

    assert begun[:3] == ["A - 0", "B - 0", "A - 0"]


def test_the_agents_failure_leaves_its_test_ungraded_and_the_others_alone():
    tests = Lines(name="A", expected="Noted").generate_examples(1) + Lines(
        name="B", expected="Noted"
    ).generate_examples(1)
    steps = Scheduler(tests).steps()
    reply, ended = None, {}
    while True:
        try:
            step = steps.send(reply)
        except StopIteration:
            break
        reply = None
        if isinstance(step, Say):
            fails = step.test_id == "A - 0" and step.is_question
            reply = AgentReply("", "timed out") if fails else AgentReply("Noted.")
        elif isinstance(step, TestEnded):
            ended[step.test_id] = step

    assert (ended["A - 0"].score, ended["A - 0"].ungraded) == (None, "The agent gave no reply: timed out")
    assert ended["B - 0"].score == 1.0


def test_a_failure_in_a_datasets_code_ends_its_test_only():
    class Broken(Lines):
        def evaluate_correct(self, questions, responses, expected_answers):
            raise KeyError("nothing")

    ended = run(Broken(name="A").generate_examples(1) + Lines(name="B").generate_examples(1)).ended

    assert ended["A - 0"].score is None
    assert "KeyError" in ended["A - 0"].ungraded
    assert ended["B - 0"].score == 0.0


def test_a_dataset_can_say_that_it_cannot_grade():
    class Doubtful(Lines):
        def evaluate_correct(self, questions, responses, expected_answers):
            raise Ungraded("Nobody knows")

    assert run(Doubtful().generate_examples(1)).ended["Lines - 0"].ungraded == "Nobody knows"


def test_a_callback_that_never_ends_its_test_is_given_up():
    class Endless(CountdownDataset):
        def continual_evaluation_callback(self, scheduler, example, task_log):
            return 0, 1, ["Not yet"], False

    done = run(with_span(Endless()).generate_examples(1))

    assert done.ended["Countdown - 0"].score is None
    assert len(done.asked) == MOST_EXCHANGES_WATCHED


def test_an_example_with_a_callback_uses_it_by_default():
    class Forgetful(CountdownDataset):
        def generate_examples(self, num_examples):
            tests = super().generate_examples(num_examples)
            return [CallBackTestExample(script=test.script, is_question=[True]) for test in tests]

    done = run(with_span(Forgetful()).generate_examples(1))

    assert done.ended["Countdown - 0"].score == 0.0


def test_the_log_of_a_run_is_open_to_callbacks():
    seen = []

    class Curious(CountdownDataset):
        def continual_evaluation_callback(self, scheduler, example, task_log):
            seen.append(scheduler.master_log.messages(example.unique_id))
            return super().continual_evaluation_callback(scheduler, example, task_log)

    run(with_span(Curious()).generate_examples(1))

    assert [len(messages) for messages in seen] == [2, 2, 2]


def test_a_reset_message_follows_the_last_question():
    done = run(Lines(reset_message="Forget the code.").generate_examples(1))

    assert done.of(Say)[-1].message == "Forget the code."
    assert done.ended["Lines - 0"].responses == ("Noted.",)


def test_a_test_may_supply_a_reply_and_finish_early():
    @dataclass
    class Short(DynamicExample):
        max_score: float = 1

        def action_iter(self):
            yield SendMessageAction("Read this.", filler_response="Read.")
            self.score = 1
            yield TestFinishedAction()
            yield self.say("Never said.")

    @dataclass
    class Shorts(DynamicDataset):
        name: str = "Short"
        description: str = "Ends early."
        example_cls: type[DynamicExample] | None = Short

    done = run(Shorts().generate_examples(1))

    assert [step.reply for step in done.of(Filler)] == ["Read."]
    assert (done.asked, done.ended["Short - 0"].score) == ([], 1.0)


def test_two_tests_of_one_name_are_refused():
    with pytest.raises(UsageError, match="Lines - 0"):
        Scheduler(Lines().generate_examples(1) + Lines().generate_examples(1))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"is_question": [True]}, "2 lines and 1 entries"),
        ({"is_question": [False, False]}, "no question"),
        ({"waits": [{}]}, "2 lines and 1 waits"),
        ({"script": ["word " * 500, "What?"]}, "too long for a memory span of 400"),
    ],
)
def test_a_script_that_cannot_be_run_is_refused_in_a_sentence(changes, said):
    given = {"script": ["The code is 7.", "What is it?"], "is_question": [False, True], **changes}

    with pytest.raises(UsageError, match=said):
        Lines().create_example(**given)
