"""Facts about a made-up world, then questions about them. An example of tests written by a model.

Two tests are shipped and need no model; further ones are generated.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memreplay.goodai.gpt_generated import GPTGenerated
from memreplay.goodai.interface import TestExample

OPENING = "Here are some facts of a world that somebody has made up:\n\n"
INTRODUCTIONS = (
    "About the made-up world:",
    "Think of the made-up world again.",
    "Another question on the made-up world:",
)


@dataclass
class DelayedRecallDataset(GPTGenerated):
    """One point for each answer that the judge accepts."""

    name: str = "Delayed Recall"
    description: str = "Give the agent facts of a made-up world, and ask about each of them later."
    reset_message: str = "Please forget all the facts of the made-up world."
    generation_file: str | Path | None = "delayed_recall_prompt.json"
    generated_file: str | Path | None = "delayed_recall_examples.json"

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Add introductions to the generated facts and questions."""
        examples = super().generate_examples(num_examples)
        for example in examples:
            facts, *questions = example.script
            asked = [f"{self.random.choice(INTRODUCTIONS)} {question}" for question in questions]
            example.script[:] = [f"{OPENING}{facts}", *asked]
        return examples
