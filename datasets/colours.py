"""The favourite colour changes, and the last one counts. The smallest example of a dataset with a fixed script."""

from __future__ import annotations

from dataclasses import dataclass

from memreplay.goodai.interface import DatasetInterface, TestExample

COLOURS = (
    "Amber", "Black", "Coral", "Crimson", "Gold", "Indigo", "Ivory", "Lavender",
    "Maroon", "Mint", "Navy", "Orange", "Peach", "Silver", "Teal", "Turquoise",
)  # fmt: skip

STATEMENTS = (
    "These days my favourite colour is {colour}.",
    "{colour} is the colour that I like best.",
    "I have a new favourite colour: {colour}.",
    "If you asked me for my favourite colour, I would say {colour}.",
)


@dataclass
class ColourDataset(DatasetInterface):
    """One point if the reply contains the last colour, ignoring case."""

    name: str = "Colours"
    description: str = "Tell the agent one favourite colour after another, then ask which it is."
    question: str = "What is my favourite colour?"
    colour_changes: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate tests that mention no colour twice."""
        return [self._example() for _ in range(num_examples)]

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: list[str]
    ) -> tuple[int, int, list[str]]:
        """Score 1 or 0 of 1."""
        colour = expected_answers[0].lower()
        if colour in responses[-1].lower():
            return 1, 1, [f'"{colour}" is in the response.']
        return 0, 1, [f'"{colour}" is not in the response.']

    def _example(self) -> TestExample:
        colours = self.random.sample(COLOURS, self.colour_changes)
        script = [self.random.choice(STATEMENTS).replace("{colour}", colour) for colour in colours]
        return TestExample(
            dataset_generator=self,
            script=[*script, self.question],
            is_question=[False] * len(script) + [True],
            expected_responses=[colours[-1]],
        )
