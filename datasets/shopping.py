"""Items are added to and removed from a shopping list; the question asks for the final list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memreplay.goodai.interface import DatasetInterface, TestExample, sanitize_and_parse_json

ITEMS = (
    "Apple", "Banana", "Cucumber", "Flour", "Honey", "Lentils", "Mustard",
    "Noodles", "Onion", "Paper Towel", "Rice", "Shampoo", "Tomato", "Yoghurt",
)  # fmt: skip

ADDING = (
    "Put {amount} {item} on my shopping list, please.",
    "We are out of something: I need {amount} {item}.",
    "Could you note {amount} {item} for the next shopping trip?",
)

REMOVING = (
    "Take {amount} {item} off my shopping list again.",
    "I have found {amount} {item} at home, so please remove that many from the list.",
)

MOST_AT_ONCE = 3
REMOVALS = 1 / 6


@dataclass
class ShoppingDataset(DatasetInterface):
    """A third each for the items found, for their quantities, and for naming nothing else.

    The response must be a JSON list of objects with ``item`` and ``quantity``. An item is found if its name is part
    of a name in the response, so plurals count.
    """

    name: str = "Shopping"
    description: str = "Tell the agent to add things to a shopping list and to remove some, then ask for the list."
    question: str = (
        "What stands on my shopping list now? Reply with a JSON list of objects that have only the properties "
        "`item` and `quantity`, with one object for each kind of item."
    )
    reset_message: str = "The shopping is done. Please empty my shopping list."
    item_changes: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate tests with ``item_changes`` changes each; about one in six is a removal."""
        return [self._example() for _ in range(num_examples)]

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: list[tuple[str, int]]
    ) -> tuple[float, int, list[str]]:
        """Return a score up to 1, with missing and unexpected items and wrong quantities as reasons."""
        given = _listed(responses[0])
        if given is None:
            return 0, 1, ["The response is not a JSON list of items and quantities."]
        missing = dict(expected_answers)
        right, unexpected, reasons = 0, [], []
        for name, quantity in given:
            match = next((item for item, _ in expected_answers if item in name), None)
            if match is None:
                unexpected.append(name)
            elif match in missing:
                wanted = missing.pop(match)
                right += quantity == wanted
                reasons += [] if quantity == wanted else [f"{match}: {quantity} instead of {wanted}."]
        reasons += [f"Missing: {', '.join(missing)}."] if missing else []
        reasons += [f"Not expected: {', '.join(unexpected)}."] if unexpected else []
        expected = len(expected_answers)
        found_share = (expected - len(missing)) / expected if expected else 1
        quantity_share = right / expected if expected else 1
        score = (found_share + quantity_share + (not unexpected)) / 3
        return score, 1, reasons or ["All items and quantities are right."]

    def _example(self) -> TestExample:
        cart: dict[str, int] = {}
        script = [self._change(cart) for _ in range(self.item_changes)]
        return TestExample(
            dataset_generator=self,
            script=[*script, self.question],
            is_question=[False] * len(script) + [True],
            expected_responses=[(item.lower(), amount) for item, amount in cart.items()],
        )

    def _change(self, cart: dict[str, int]) -> str:
        """Change the cart, and return the message that says so."""
        if cart and self.random.random() < REMOVALS:
            item = self.random.choice(list(cart))
            amount = self.random.randint(1, cart[item])
            cart[item] -= amount
            if not cart[item]:
                del cart[item]
            return _said(self.random.choice(REMOVING), str(amount), item)
        item, amount = self.random.choice(ITEMS), self.random.randint(1, MOST_AT_ONCE)
        said = f"another {amount}" if item in cart else str(amount)
        cart[item] = cart.get(item, 0) + amount
        return _said(self.random.choice(ADDING), said, item)


def _said(statement: str, amount: str, item: str) -> str:
    return statement.replace("{amount}", amount).replace("{item}", item)


def _listed(response: str) -> list[tuple[str, int]] | None:
    """Lower-case names with their quantities; None if the response has another form."""
    try:
        entries: Any = sanitize_and_parse_json(response)
        return [(str(entry["item"]).lower(), int(entry["quantity"])) for entry in entries]
    except (ValueError, TypeError, KeyError):
        return None
