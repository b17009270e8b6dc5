"""The agent must add a saying to its n-th reply from now. An example of a test that a callback scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memreplay.goodai.evaluation import standardise
from memreplay.goodai.interface import CallBackTestExample, DatasetInterface, RunView, TestExample

SAYINGS = (
    ("A lamp that is lit for one guest gives light to all.", "Odalys Brandt"),
    ("Count the bridges you have crossed and not the rivers.", "Teodor Vance"),
    ("The slow gardener also eats in autumn.", "Mirela Okoye"),
    ("No map is as wide as the road it shows.", "Casimir Holt"),
    ("Keep one window open for the song you do not know.", "Ingrid Salles"),
    ("Whoever mends the net has half caught the fish.", "Bartos Lindqvist"),
    ("A question well carried weighs less than a ready answer.", "Amaru Petrov"),
    ("Even the tallest tower began with somebody kneeling.", "Noor Whitfield"),
)

EARLIEST, LATEST = 2, 8
_ORDINALS = {2: "2nd", 3: "3rd"}


@dataclass
class ProspectiveMemoryDataset(DatasetInterface):
    """One point if the n-th reply, and none before it, contains the saying, ignoring punctuation and case.

    ``expected_responses`` is ``[(saying, author, n)]``; the reply to the instruction itself is number 1.
    """

    name: str = "Prospective Memory"
    description: str = "Give the agent a saying, then ask it to add the saying to its n-th reply."
    reset_message: str = "You no longer need to add a saying to any reply."
    uses_callback: bool = True

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate tests with one saying each."""
        sayings = [self.random.choice(SAYINGS) for _ in range(num_examples)]
        return [self._example(saying, author) for saying, author in sayings]

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: list[Any]
    ) -> tuple[int, int, list[str]]:
        """Not used: a callback scores the tests."""
        raise NotImplementedError("This dataset is scored by its callback")

    def continual_evaluation_callback(
        self, scheduler: RunView, example: TestExample, task_log: list[str]
    ) -> tuple[int, int, list[str], bool]:
        """Wait for the n-th reply, then score the test."""
        saying, _, number = example.expected_responses[0]
        # Not the last line: GoodAI's benchmark appends the reset message to the script.
        instruction = example.script[example.is_question.index(True)]
        replies = _replies_since(instruction, task_log)
        if len(replies) < number:
            return 0, 1, [f"Reply {number} is still to come."], False
        example.finished = True
        cited = [place for place, reply in enumerate(replies, start=1) if standardise(saying) in standardise(reply)]
        if number not in cited:
            return 0, 1, ["The saying is not where it should be."], True
        if len(cited) > 1:
            return 0, 1, ["The saying is in other replies too."], True
        return 1, 1, ["The saying is in the right place."], True

    def _example(self, saying: str, author: str) -> TestExample:
        number = self.random.randint(EARLIEST, LATEST)
        instruction = (
            f"When you reply to the messages that follow, whatever they are about, add the saying by {author} to "
            f"your {_ORDINALS.get(number, f'{number}th')} reply. The reply to this message is the first."
        )
        return CallBackTestExample(
            dataset_generator=self,
            script=[f"'{saying}' - {author}", instruction],
            is_question=[False, True],
            expected_responses=[(saying, author, number)],
            uses_callback=True,
        )


def _replies_since(instruction: str, task_log: list[str]) -> list[str]:
    """The agent's replies since the instruction was last given."""
    given = max(
        (place for place, entry in enumerate(task_log) if entry.endswith(instruction)), default=len(task_log)
    )
    return task_log[given + 1 :: 2]
