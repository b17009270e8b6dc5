"""Datasets whose tests are written, and whose answers are judged, by a model."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memreplay.errors import DatasetError, UsageError
from memreplay.goodai.dataset import DatasetInterface, TestExample
from memreplay.goodai.evaluation import Ungraded, sanitize_and_parse_json
from memreplay.goodai.language_model import GPT_CHEAPEST, LLMRequest, make_system_message, make_user_message

_PARTS = ("content", "question", "answer")
_TOKENS_OF_AN_EXAMPLE = 2048
_ROLE = "You invent material for tests of memory."


@dataclass
class GPTGenerated(DatasetInterface, ABC):
    """Set ``generation_file``: JSON with one prompt each for ``content``, ``question`` and ``answer``.

    The optional ``generated_file`` is a JSON list of examples that were generated earlier, each with the lists
    ``content``, ``question`` and ``answer``. They are used first, so a dataset that ships them needs no model. Both
    are paths, or names in the folder ``data`` next to the dataset's file.
    """

    generation_file: str | Path | None = None
    generated_file: str | Path | None = None
    temperature: float = 1.0
    generation_model: str = GPT_CHEAPEST
    max_attempts: int = 10

    def __post_init__(self) -> None:
        if self.generation_file is None:
            raise UsageError(f"The dataset {self.name} needs a generation_file to generate its tests from")

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate tests that state all facts in the first line and then ask about each of them."""
        written = self._shipped()[:num_examples]
        written += [self._generated() for _ in range(num_examples - len(written))]
        return [self._example(parts) for parts in written]

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: Any
    ) -> tuple[float, float, list[str]]:
        """Let the judge score the answers."""
        return self.evaluate_correct_gpt(questions, responses, expected_answers)

    def _example(self, parts: dict[str, list[str]]) -> TestExample:
        return self.create_example(
            script=["\n".join(parts["content"]), *parts["question"]],
            is_question=[False] + [True] * len(parts["question"]),
            expected_responses=parts["answer"],
            uses_callback=self.uses_callback,
        )

    def _shipped(self) -> list[dict[str, list[str]]]:
        if self.generated_file is None:
            return []
        entries = self.load_json(self.generated_file)
        if not isinstance(entries, list) or not all(map(_is_complete, entries)):
            path = self.data_path / self.generated_file
            raise DatasetError(
                path, "", "is not a list of generated examples", f"the lists {', '.join(_PARTS)} in each"
            )
        return entries

    def _generated(self) -> dict[str, list[str]]:
        context = (make_system_message(_ROLE), make_user_message(self._prompt()))
        request = LLMRequest(context, self.generation_model, self.temperature, _TOKENS_OF_AN_EXAMPLE)
        attempts = 0
        while attempts < self.max_attempts:
            try:
                text, was_kept = self.llm_reply(request)
                # What an earlier run could not use either must not stand in the way of asking again.
                attempts += not was_kept
                parts = sanitize_and_parse_json(text)
            except Ungraded as error:
                raise UsageError(f"The tests of {self.name} cannot be generated. {error}") from None
            except ValueError:
                continue
            if _is_complete(parts):
                return {part: list(parts[part]) for part in _PARTS}
        raise UsageError(
            f"The tests of {self.name} could not be generated: {self.max_attempts} replies were not the JSON that"
            " was asked for; name another model with --judge"
        )

    def _prompt(self) -> str:
        wishes = self.load_json(str(self.generation_file))
        missing = [part for part in _PARTS if not isinstance(wishes, dict) or not isinstance(wishes.get(part), str)]
        if missing:
            path = self.data_path / str(self.generation_file)
            raise DatasetError(path, f"/{missing[0]}", "is missing", "a prompt for content, question and answer")
        lines = [f"{part.capitalize()}: {wishes[part]}" for part in _PARTS]
        form = '{"content": ["…"], "question": ["…"], "answer": ["…"]}'
        return "\n".join(["Write the three parts of a test.", *lines, f"Reply with JSON of this form: {form}"])


def _is_complete(parts: Any) -> bool:
    """Return whether there are three lists of strings, with an answer for each question."""
    if not isinstance(parts, dict) or any(not isinstance(parts.get(part), list) for part in _PARTS):
        return False
    texts = [text for part in _PARTS for text in parts[part]]
    return all(isinstance(text, str) for text in texts) and 0 < len(parts["question"]) == len(parts["answer"])
