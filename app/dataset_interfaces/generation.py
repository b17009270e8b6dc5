"""What happens around every ``generate_examples``: a fresh seed, a default count, and ids."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.dataset_interfaces.dataset import DatasetInterface
    from app.dataset_interfaces.examples import TestExample

DEFAULT_EXAMPLES = 3
"""How many examples a dataset makes when it is not told how many."""


def reproducible(generate: Callable[..., list[TestExample]]) -> Callable[..., list[TestExample]]:
    """Wrap a dataset's own ``generate_examples``, whether it takes a count or not.

    ``random`` is seeded with the dataset's seed before the outermost call, so that generating twice gives the same.
    Examples that have no id get their place as one: "0", "1", …
    """
    takes_count = len(inspect.signature(generate).parameters) > 1

    @functools.wraps(generate)
    def generate_examples(
        self: DatasetInterface, num_examples: int | None = None, **options: Any
    ) -> list[TestExample]:
        arguments = (DEFAULT_EXAMPLES if num_examples is None else num_examples,) if takes_count else ()
        if self.__dict__.get("_is_generating"):
            return generate(self, *arguments, **options)
        self.random = Random(self.seed)
        self.__dict__["_is_generating"] = True
        try:
            examples = list(generate(self, *arguments, **options))[:num_examples]
        finally:
            del self.__dict__["_is_generating"]
        for place, example in enumerate(examples):
            example.identify(self, example.example_id or str(place))
        return examples

    return generate_examples
