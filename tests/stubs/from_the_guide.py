"""Three datasets by somebody who had GoodAI's guide to their interfaces, and knew nothing of this program."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from memreplay.goodai.interface import (
    DatasetInterface,
    DynamicDataset,
    DynamicExample,
    TestExample,
    WaitCreator,
)

ROOMS = {"lamp": "attic", "piano": "hall", "ladder": "cellar"}


class Inventory(DatasetInterface):
    """Static: where things stand, asked one by one; a point each."""

    def __init__(self, things: int = 2, **others: Any) -> None:
        super().__init__(name="Inventory", description="Where things stand.", **others)
        self.things = things

    def generate_examples(self) -> list[TestExample]:
        chosen = self.random.sample(sorted(ROOMS), self.things)
        told = [f"The {thing} stands in the {ROOMS[thing]}." for thing in chosen]
        asked = [f"Where does the {thing} stand?" for thing in chosen]
        waits = [WaitCreator.create_wait(tokens=20) for _ in told]
        waits += [WaitCreator.create_wait(percentage_finished=60, time=timedelta(days=1, hours=2)), {}]
        return [
            TestExample(
                dataset_generator=self,
                script=told + asked,
                is_question=[False] * len(told) + [True] * len(asked),
                waits=waits,
                expected_responses=[ROOMS[thing] for thing in chosen],
            )
        ]

    def evaluate_correct(self, questions, responses, expected_answers):
        right = [room in said for room, said in zip(expected_answers, responses, strict=True)]
        return sum(right), len(questions), ["named" if it else "not named" for it in right]


class Farewell(DatasetInterface):
    """Callback: the agent is to say goodbye in its second reply from now on."""

    def __init__(self, **others: Any) -> None:
        super().__init__(name="Farewell", description="Say goodbye later.", uses_callback=True, **others)

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return [
            TestExample(
                dataset_generator=self,
                script=["The next time but one that you speak to me, end with goodbye."],
                is_question=[True],
                expected_responses="goodbye",
                uses_callback=True,
            )
            for _ in range(num_examples)
        ]

    def evaluate_correct(self, questions, responses, expected_answers):
        raise AssertionError("the callback is called in lieu of this")

    def continual_evaluation_callback(self, scheduler, example, task_log):
        asked = max(place for place, entry in enumerate(task_log) if example.script[0] in entry)
        replies = [entry for entry in task_log[asked:] if entry.startswith("Agent")]
        if len(replies) < 3:
            return 0, 1, ["the reply is still to come"], False
        example.finished = True
        said = example.expected_responses in replies[2]
        return int(said), 1, [f"the reply was {replies[2]!r}"], True


class Guess(DynamicExample):
    """Dynamic: the agent thinks of an animal; a model tells whether it is one, then the agent must still know."""

    max_score = 2

    def action_iter(self):
        yield self.say("Think of an animal, and tell me which.", question=True)
        animal = self.action.reply
        verdict = self.ask_llm([{"role": "user", "content": f"Is this an animal: {animal}? Say yes or no."}])
        if "yes" in verdict.lower():
            self.score += 1
            self.reasoning.append("It is an animal.")
        yield self.wait(tokens=60, time=timedelta(minutes=5))
        yield self.say("Which animal was it?", question=True)
        if self.action.reply == animal:
            self.score += 1
            self.reasoning.append("It was the same.")


class Animals(DynamicDataset):
    def __init__(self, **others: Any) -> None:
        super().__init__(name="Animals", description="Think of an animal.", example_cls=Guess, **others)
