"""Places in a town, each located relative to the previous one; the question asks for the way from first to last."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from memreplay.goodai.interface import (
    DatasetInterface,
    LLMContext,
    TestExample,
    Ungraded,
    make_user_message,
    sanitize_and_parse_json,
)

PLACES = (
    "Aquarium", "Bakery", "Chapel", "Clock Tower", "Concert Hall", "Fire Station", "Harbour",
    "Market Square", "Mill", "Observatory", "Skating Rink", "Tea House", "Theatre", "Zoo",
)  # fmt: skip

STEPS = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
DISTANCES = (1, 2, 3, 4)

STATEMENTS = (
    "{place} lies {distance} km {direction} of {origin}.",
    "Go {distance} km {direction} from {origin} and you are at {place}.",
    "In my town, {place} is {distance} km to the {direction} of {origin}.",
)

_EXPECTED_MOVE = re.compile(r"go (\d+)\s*km (north|south|east|west)", re.IGNORECASE)
_MOVE = re.compile(
    r"(?P<distance>\d+)\s*(?:km|kilomet(?:er|re)s?)\b[\s,]*(?:to the |due )?(?P<after>north|south|east|west)\b"
    r"|\b(?P<before>north|south|east|west)(?:wards?)?"
    r"[\s,]*(?:for |by )?(?P<then>\d+)\s*(?:km|kilomet(?:er|re)s?)\b",
    re.IGNORECASE,
)
_DIRECTION = re.compile(r"\b(?:north|south|east|west)", re.IGNORECASE)

FORM = '[{"kilometers": 2, "direction": "west"}, ...]'

Move = tuple[int, str]
"""Kilometres and direction."""


@dataclass
class LocationsDirectionsDataset(DatasetInterface):
    """One point if the directions in the response lead to the last place.

    Directions in a plain form are parsed here; others are converted by a model.
    """

    name: str = "Locations Directions"
    description: str = "Tell the agent where places lie from one another, then ask for the way through them."
    question: str = (
        "By what you know of my town: how do I get from {origin} to {place} by way of all places between?"
    )
    reset_message: str = "Please forget all the places that I have told you about."
    known_locations: int = 6

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate tests with ``known_locations`` places each."""
        return [self._example() for _ in range(num_examples)]

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: list[str]
    ) -> tuple[int, int, list[str]]:
        """Score 1 or 0 of 1."""
        expected = [(int(distance), way.lower()) for distance, way in _EXPECTED_MOVE.findall(expected_answers[0])]
        if not _DIRECTION.search(responses[0]):
            return 0, 1, ["The response gives no directions."]
        moves = plain_moves(responses[0]) or self._moves_by_model(responses[0])
        if _destination(moves) == _destination(expected):
            return 1, 1, ["The directions lead to the expected place."]
        return 0, 1, ["The directions do not lead to the expected place."]

    def _moves_by_model(self, response: str) -> list[Move]:
        request = f"Put the directions in this text into JSON of the form {FORM}\n\nText:\n{response}"
        context: LLMContext = [make_user_message(request)]
        reply = self.ask_llm(context)
        try:
            moves = [
                (int(move["kilometers"]), str(move["direction"]).lower()) for move in sanitize_and_parse_json(reply)
            ]
        except (ValueError, TypeError, KeyError) as error:
            raise Ungraded(f"The directions could not be put into form ({error!r})") from None
        unknown = {way for _, way in moves} - set(STEPS)
        if unknown:
            raise Ungraded(
                f"The directions were put into a form that cannot be followed ({', '.join(sorted(unknown))})"
            )
        return moves

    def _example(self) -> TestExample:
        places = self.random.sample(PLACES, self.known_locations)
        script, way = [f"In the middle of my town there is the {places[0]}."], []
        for origin, place in pairwise(places):
            distance, direction = self.random.choice(DISTANCES), self.random.choice(list(STEPS)).capitalize()
            parts = {
                "place": f"The {place}",
                "origin": f"the {origin}",
                "distance": str(distance),
                "direction": direction,
            }
            script.append(_filled(self.random.choice(STATEMENTS), parts))
            way.append(f"From {origin}, go {distance}km {direction} to {place}.")
        question = _filled(self.question, {"origin": f"the {places[0]}", "place": f"the {places[-1]}"})
        return TestExample(
            dataset_generator=self,
            script=[*script, question],
            is_question=[False] * len(script) + [True],
            expected_responses=["\n".join(way)],
        )


def plain_moves(response: str) -> list[Move]:
    """Parse directions such as "2 km north" or "north for 2 km"; empty if any direction has another form."""
    found = list(_MOVE.finditer(response))
    if len(found) != len(_DIRECTION.findall(response)):
        return []
    return [
        (int(match["distance"] or match["then"]), str(match["after"] or match["before"]).lower()) for match in found
    ]


def _destination(moves: list[Move]) -> tuple[int, int]:
    """Kilometres east and north of the start."""
    steps = [(distance, STEPS[direction]) for distance, direction in moves]
    return sum(distance * east for distance, (east, _) in steps), sum(
        distance * north for distance, (_, north) in steps
    )


def _filled(statement: str, parts: dict[str, str]) -> str:
    for name, text in parts.items():
        statement = statement.replace(f"{{{name}}}", text)
    return statement[0].upper() + statement[1:]
