"""Jokes told hours apart; the question identifies one by how long ago it was told. A temporal test."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from memreplay.goodai.interface import DatasetInterface, TestExample, WaitCreator

JOKES = (
    "I bought a book on patience, but I could not wait to finish it.",
    "My clock and I have split up. It was only a matter of time.",
    "The bakery closed because nobody could make enough dough.",
    "I told my plants a secret, and it grew on them.",
    "The mountain climber left his job because he had peaked.",
    "A snail bought a fast car and painted an S on it, to make people say: look at that S-car go.",
    "I tried to organise a hide-and-seek club, but good members are hard to find.",
    "The library is my favourite place; there is a great story on every floor.",
    "My umbrella and I have a lot in common: we both fold under pressure.",
)

LAST_AT = 90.0


@dataclass
class JokesDataset(DatasetInterface):
    """One point if the response quotes the joke verbatim, or the judge recognises it."""

    name: str = "Jokes"
    description: str = "Tell the agent jokes some hours apart, then ask which was told at a certain time."
    jokes_told: int = 3
    minutes_low: int = 60
    minutes_high: int = 180

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate tests that tell no joke twice."""
        return [self._example() for _ in range(num_examples)]

    def create_question(self, example: TestExample, statement_times: list[datetime], time_now: datetime) -> str:
        """Ask by the elapsed time, to the minute."""
        told = statement_times[example.script.index(example.expected_responses[0])]
        return f"Which joke did I tell you about {_duration(time_now - told)} ago?"

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: list[str]
    ) -> tuple[float, float, list[str]]:
        """Score 1 or 0 of 1."""
        if expected_answers[0] in responses[0]:
            return 1, 1, ["The response quotes the right joke."]
        return self.evaluate_correct_gpt(questions, responses, expected_answers)

    def _example(self) -> TestExample:
        jokes = self.random.sample(JOKES, self.jokes_told)
        waits = [
            WaitCreator.create_wait(
                time=timedelta(minutes=self.random.randint(self.minutes_low, self.minutes_high)),
                percentage_finished=(place + 1) * LAST_AT / len(jokes),
            )
            for place in range(len(jokes))
        ]
        return TestExample(
            dataset_generator=self,
            script=jokes,
            is_question=[False] * len(jokes) + [True],
            waits=[*waits, WaitCreator.create_wait()],
            expected_responses=[self.random.choice(jokes)],
            is_temporal=True,
        )


def _duration(passed: timedelta) -> str:
    hours, minutes = divmod(int(passed.total_seconds()) // 60, 60)
    parts = [f"{hours} hours"] if hours else []
    return " ".join([*parts, f"{minutes} minutes"])
