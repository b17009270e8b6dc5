"""Three people hint at a place, a time and a thing; the agent must combine and understand the hints."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memreplay.goodai.interface import DatasetInterface, TestExample

SENDERS = (
    "Mr. Alder", "Dr. Brisk", "Captain Crane", "Ms. Dove", "Professor Elm",
    "Sister Finch", "Colonel Grebe", "Lady Heron", "Inspector Ibis", "Agent Jay",
)  # fmt: skip

Hint = tuple[str, list[str]]
"""A hint, and the words any of which shows that it was understood."""

PLACES: tuple[Hint, ...] = (
    ("We meet where books may be taken home for free.", ["library"]),
    ("We meet where planes come down to rest.", ["airport", "airfield", "runway"]),
    ("We meet where bread is born before sunrise.", ["bakery"]),
    ("We meet where the lions sleep behind glass.", ["zoo"]),
    ("We meet where ships are guided by a turning light.", ["lighthouse"]),
)
TIMES: tuple[Hint, ...] = (
    ("The hour is when both hands of the clock point straight up in daylight.", ["noon", "midday", "12"]),
    ("The hour is when one day hands over to the next.", ["midnight"]),
    ("The hour is when the first rooster calls.", ["dawn", "sunrise", "daybreak"]),
    ("The hour is when the sun touches the hills in the west.", ["sunset", "dusk", "evening"]),
)
THINGS: tuple[Hint, ...] = (
    ("Bring what keeps the rain from your head.", ["umbrella"]),
    ("Bring what makes far things near to the eye.", ["binoculars", "telescope", "spyglass"]),
    ("Bring what shows north in any weather.", ["compass"]),
    ("Bring what brings light without a socket.", ["torch", "flashlight", "lantern", "candle"]),
)


@dataclass
class SpyMeetingDataset(DatasetInterface):
    """A third for each hint if the response contains one of its words as a whole word, ignoring case."""

    name: str = "Spy Meeting"
    description: str = "Give the agent three riddling messages, then ask where and when to meet and what to bring."
    question: str = (
        "From the messages that you were given: as exactly as you can, where and when is the meeting, and what "
        "do you have to bring?"
    )

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate tests with three hints each, in random order from random senders."""
        return [self._example() for _ in range(num_examples)]

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: list[list[str]]
    ) -> tuple[int, int, list[str]]:
        """Score one point per hint."""
        found = [any(_says(responses[0], word) for word in words) for words in expected_answers]
        reasons = [
            f"{'Understood' if understood else 'Not understood'}: {' or '.join(words)}."
            for understood, words in zip(found, expected_answers, strict=True)
        ]
        return sum(found), len(expected_answers), reasons

    def _example(self) -> TestExample:
        senders = self.random.sample(SENDERS, 3)
        hints = [self.random.choice(hints) for hints in (PLACES, TIMES, THINGS)]
        self.random.shuffle(hints)
        opening = f"Three people will send you a message each: {senders[0]}, {senders[1]} and {senders[2]}."
        speaking = self.random.sample(senders, 3)
        messages = [f"{sender}: {text}" for sender, (text, _) in zip(speaking, hints, strict=True)]
        return TestExample(
            dataset_generator=self,
            script=[opening, *messages, self.question],
            is_question=[False] * 4 + [True],
            expected_responses=[words for _, words in hints],
        )


def _says(response: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", response, re.IGNORECASE) is not None
