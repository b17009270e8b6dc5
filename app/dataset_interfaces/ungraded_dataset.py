"""A dataset of which only the definitions are there: its tests are run and not graded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.dataset_interfaces.dataset import DatasetInterface
from app.dataset_interfaces.examples import TestExample
from app.dataset_interfaces.ungraded import Ungraded


@dataclass
class UngradedDataset(DatasetInterface):
    """Stands in for a class that is not here."""

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """None: only what has been defined can be run."""
        return []

    def create_example(self, **kwargs: Any) -> TestExample:
        """A test without a callback: nobody is here to be called."""
        return super().create_example(**{**kwargs, "uses_callback": False})

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: Any
    ) -> tuple[float, float, list[str]]:
        """Never possible."""
        raise Ungraded(f"There is no class here for the dataset {self.name}, so that its answers cannot be graded")
