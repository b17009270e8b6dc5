"""Three datasets as somebody writes them who has read GoodAI's guide and nothing of our code."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import pytest

from memreplay.errors import UsageError
from memreplay.goodai.actions import CallbackDeregistered, CallbackRegistered, LlmAsked, Say, TestWaits
from memreplay.goodai.gpt_generated import GPTGenerated
from memreplay.goodai.interface import (
    CallBackTestExample,
    DatasetInterface,
    DynamicDataset,
    DynamicExample,
    TestExample,
)
from memreplay.goodai.sources import make_tests
from tests.unit.goodai.driving import judge, run


@dataclass
class PetDataset(DatasetInterface):
    name: str = "Pets"
    description: str = "Tell the agent about pets, ask for one."
    pets: int = 2

    def generate_examples(self, num_examples):
        examples = []
        for _ in range(num_examples):
            names = self.random.sample(["Fido", "Rex", "Luna", "Milo"], self.pets)
            script = [f"I have a dog called {name}." for name in names] + ["What is my first dog called?"]
            is_question = [False] * self.pets + [True]
            examples.append(
                TestExample(
                    dataset_generator=self, script=script, is_question=is_question, expected_responses=names[:1]
                )
            )
        return examples

    def evaluate_correct(self, questions, responses, expected_answers):
        if expected_answers[0] in responses[0]:
            return 1, 1, ["Named."]
        return 0, 1, ["Not named."]


@dataclass
class CountdownDataset(DatasetInterface):
    name: str = "Countdown"
    description: str = "Ask the agent to say a word in its third reply."
    uses_callback: bool = True

    def generate_examples(self, num_examples):
        return [
            CallBackTestExample(
                dataset_generator=self,
                script=["Say 'hooray' in reply number 3, this reply being number 1."],
                is_question=[True],
                expected_responses=["hooray"],
                uses_callback=True,
            )
            for _ in range(num_examples)
        ]

    def evaluate_correct(self, questions, responses, expected_answers):
        raise NotImplementedError

    def continual_evaluation_callback(self, scheduler, example, task_log):
        start = next(i for i, line in enumerate(task_log) if example.script[0] in line)
        replies = task_log[start + 1 :: 2]
        if len(replies) < 3:
            return 1, 1, ["Not yet"], False
        example.finished = True
        return int("hooray" in replies[2]), 1, ["Looked at the third reply."], True


@dataclass
class HaggleExample(DynamicExample):
    max_score: int = 2

    def action_iter(self):
        yield self.say("I sell carpets. This one costs 90.")
        yield self.wait(percentage_finished=50)
        yield self.say("What do you offer for the carpet?", question=True)
        offer = re.search(r"\d+", self.action.reply)
        if offer is None:
            self.reasoning.append("No offer.")
            return
        self.score += 1
        self.reasoning.append("An offer.")
        verdict = self.ask_llm([{"role": "user", "content": f"Is {offer[0]} less than 90? Say yes or no."}])
        self.score += verdict == "yes"
        yield self.wait(tokens=30)
        yield self.say(f"Sold for {offer[0]}!")


@dataclass
class HaggleDataset(DynamicDataset):
    name: str = "Haggling"
    description: str = "Bargain with the agent."
    example_cls: type = HaggleExample


@dataclass
class InventedFacts(GPTGenerated):
    name: str = "Invented"
    description: str = "Facts of a model."


@dataclass
class WithAPreamble(InventedFacts):
    """Changes the generated examples, as GoodAI's published delayed_recall.py does."""

    def generate_examples(self, num_examples):
        rnd = random.Random(self.seed)
        example_list = super().generate_examples(num_examples)
        for example in example_list:
            example.script.insert(0, "I am going to tell you facts.")
            example.is_question.insert(0, False)
            for i, (line, is_question) in enumerate(zip(example.script, example.is_question, strict=True)):
                if is_question:
                    example.script[i] = f"{rnd.choice(['One question.', 'Again:'])} {line}"
            example.waits = []
            example.default_waits()
        return example_list


def with_span(dataset):
    dataset.memory_span = 300
    return dataset


def test_a_static_dataset_is_scored_by_its_evaluate_correct():
    tests = with_span(PetDataset()).generate_examples(2)

    done = run(tests, agent=lambda say: f"It is {tests[0].expected_responses[0]}.").ended

    assert (done["Pets - 0"].score, done["Pets - 0"].reasoning) == (1.0, ("Named.",))
    assert done["Pets - 1"].questions == ("What is my first dog called?",)


def test_examples_are_made_with_and_without_a_count_and_are_the_same_each_time():
    dataset = with_span(PetDataset())

    assert len(dataset.generate_examples()) == 3
    assert [t.script for t in dataset.generate_examples(5)] == [
        t.script for t in dataset.generate_examples(num_examples=5)
    ]


def test_a_dataset_whose_generate_examples_takes_no_count_can_be_given_one():
    class OnlyTwo(PetDataset):
        def generate_examples(self):
            return super().generate_examples(2)

    assert len(OnlyTwo().generate_examples(1)) == 1
    assert len(OnlyTwo().generate_examples()) == 2


def test_a_callback_sees_fillers_too_and_ends_its_test():
    replies = iter(["one", "two", "hooray", "four"])
    done = run(with_span(CountdownDataset()).generate_examples(1), agent=lambda say: next(replies))

    assert done.ended["Countdown - 0"].score == 1.0
    assert [step.is_filling for step in done.of(Say)] == [False, True, True]
    assert len(done.of(CallbackRegistered)) == len(done.of(CallbackDeregistered)) == 1


def test_a_dynamic_test_reacts_to_replies_and_asks_a_model():
    tests = with_span(HaggleDataset()).generate_examples(1)

    done = run(tests, agent=lambda say: "I offer 40.", model=judge("yes", cost=0.25))

    assert done.ended["Haggling - 0"].score == 1.0
    assert [step.message for step in done.of(Say)][-1] == "Sold for 40!"
    assert tests[0].script == ["What do you offer for the carpet?"]
    assert [call.cost_usd for call in done.of(LlmAsked)] == [0.25]
    assert done.scheduler.test_managing_costs_usd == 0.25
    assert len(done.of(TestWaits)) == 2


GENERATED = '```json\n{"content": ["A", "B"], "question": ["a?", "b?"], "answer": ["x", "y"]}\n```'


@pytest.fixture
def prompt(tmp_path):
    path = tmp_path / "prompt.json"
    path.write_text('{"content": "Write facts.", "question": "Ask.", "answer": "Answer."}')
    return path


def test_a_generated_dataset_without_a_model_names_the_option(prompt):
    with pytest.raises(UsageError, match=r"Invented cannot be generated.* --judge MODEL"):
        make_tests(with_span(InventedFacts(generation_file=prompt)), 1)


def test_lines_can_be_added_to_generated_examples(prompt):
    dataset = with_span(WithAPreamble(generation_file=prompt))
    dataset.use_language_model(judge(GENERATED))

    (test,) = dataset.generate_examples(1)

    assert [wait.get("percentage_finished") for wait in test.waits] == [30, 60, 90, None]
    assert test.script[2].endswith(" a?") and test.number_of_questions == 2


def test_default_waits_keep_waits_that_fit_and_reject_others(prompt):
    (test,) = with_span(PetDataset()).generate_examples(1)
    test.waits = [{"tokens": 1}, {}, {}]
    test.default_waits()

    assert test.waits[0] == {"tokens": 1}

    test.script.append("Bye.")
    test.is_question.append(False)
    with pytest.raises(UsageError, match="4 lines and 3 waits"):
        test.default_waits()


def test_a_generated_dataset_writes_its_tests_with_a_model(prompt):
    dataset = with_span(InventedFacts(generation_file=prompt))
    dataset.use_language_model(judge(GENERATED))

    (test,) = dataset.generate_examples(1)

    assert (test.script, test.is_question, test.expected_responses) == (
        ["A\nB", "a?", "b?"],
        [False, True, True],
        ["x", "y"],
    )
