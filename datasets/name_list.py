"""The user takes one name after another; the question asks for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from memreplay.goodai.interface import DatasetInterface, TestExample, sanitize_and_parse_json

NAMES = (
    "Adele", "Boris", "Camila", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ingrid", "Jonas", "Katya",
    "Leila", "Marta", "Nadia", "Oskar", "Petra", "Quentin", "Rosa", "Stefan", "Tamar", "Ugo", "Vera", "Wanda",
    "Yusuf", "Zoe",
)  # fmt: skip

STATEMENTS = (
    "From now on I am called {name}.",
    "Please address me as {name}.",
    "I have changed my name: it is {name}.",
    "{name} is my name today.",
)


@dataclass
class NameListDataset(DatasetInterface):
    """The number of names found, divided by the number of names expected or given, whichever is larger.

    The response must be a JSON list. Case and order are ignored, and every name counts once.
    """

    name: str = "NameList"
    description: str = "Tell the agent several names of the user in turn, then ask for all of them."
    question: str = "Which names have I told you so far? Reply with a JSON list of them."
    reset_message: str = (
        "Please forget every name that I have told you up to now. You do not know what I am called."
    )
    name_changes: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate tests that use no name twice."""
        return [self._example() for _ in range(num_examples)]

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: list[str]
    ) -> tuple[float, int, list[str]]:
        """Return a score up to 1, with the unexpected and missing names as reasons."""
        given = _names(responses[0])
        if given is None:
            return 0, 1, ["The response is not a JSON list of names."]
        missing = [name.lower() for name in expected_answers]
        reasons = []
        for name in given:
            if name in missing:
                missing.remove(name)
            else:
                reasons.append(f"{name} was not expected.")
        found = len(expected_answers) - len(missing)
        reasons.append(f"Missing: {', '.join(missing)}." if missing else "All expected names are in the response.")
        return found / max(len(expected_answers), len(given)), 1, reasons

    def _example(self) -> TestExample:
        names = self.random.sample(NAMES, self.name_changes)
        script = [self.random.choice(STATEMENTS).replace("{name}", name) for name in names]
        return TestExample(
            dataset_generator=self,
            script=[*script, self.question],
            is_question=[False] * len(script) + [True],
            expected_responses=names,
        )


def _names(response: str) -> list[str] | None:
    """The names in a response, in lower case; None if it is not a list of strings."""
    try:
        given = sanitize_and_parse_json(response)
    except ValueError:
        return None
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        return None
    return [name.lower() for name in given]
