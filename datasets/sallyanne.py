"""A thing is moved while somebody is away: where will they look for it? A theory-of-mind test."""

from __future__ import annotations

from dataclasses import dataclass

from memreplay.goodai.interface import DatasetInterface, TestExample, sanitize_and_parse_json

PEOPLE = ("Agnes", "Bruno", "Clara", "Dario", "Edith", "Felix", "Hanna", "Igor", "Julia", "Karim")
ROOMS = ("cellar", "garage", "greenhouse", "hallway", "kitchen", "library", "studio", "workshop")
THINGS = ("candle", "hammer", "kettle", "lantern", "notebook", "scarf", "violin", "whistle")
BOXES = ("barrel", "basket", "cupboard", "hamper", "sack", "suitcase", "trunk", "wardrobe")

OPENING = (
    "There is a series on TV tonight. I will tell you what happens in it, and when it is over I will ask you "
    "about it. All right?"
)
FORM = 'Reply in JSON with a single word as the answer, like this: {"answer": "word"}'


@dataclass
class SallyAnneDataset(DatasetInterface):
    """One point if the response is JSON whose ``answer`` is exactly the expected word."""

    name: str = "SallyAnne"
    description: str = "Tell the agent what happens on TV, then ask where somebody believes a thing to be."
    reset_message: str = ""
    question_type: str = "theory_of_mind"

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate tests in which the person asked about randomly did or did not see the thing being moved."""
        return [self._example() for _ in range(num_examples)]

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: list[str]
    ) -> tuple[int, int, list[str]]:
        """Score 1 or 0 of 1."""
        try:
            given = sanitize_and_parse_json(responses[0])
        except ValueError:
            return 0, 1, ["The response is not JSON."]
        if isinstance(given, dict) and str(given.get("answer")).lower() == expected_answers[0].lower():
            return 1, 1, [f"{expected_answers[0]!r} is the right answer."]
        return 0, 1, [f"{given!r} is not the right answer."]

    def _example(self) -> TestExample:
        mover, other = self.random.sample(PEOPLE, 2)
        room, elsewhere = self.random.sample(ROOMS, 2)
        thing = self.random.choice(THINGS)
        first, second = self.random.sample(BOXES, 2)
        leaves, moves = f"{other} left the {room}.", f"{mover} moved the {thing} to the {second}."
        sees_it = self.random.random() < 0.5
        scenes = [
            f"{mover} entered the {room}.",
            f"{other} entered the {room}.",
            f"The {thing} is in the {first}.",
            *([moves, leaves] if sees_it else [leaves, moves]),
            f"{other} entered the {elsewhere}.",
        ]
        question = f"The series is over. Where will {other} look for the {thing}?\n{FORM}"
        script = [OPENING, *(f"(On TV) {scene}" for scene in scenes), question]
        return TestExample(
            dataset_generator=self,
            script=script,
            is_question=[False] * (len(script) - 1) + [True],
            expected_responses=[second if sees_it else first],
        )
