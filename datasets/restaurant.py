"""An evening at a restaurant, with the agent as the guest. An example of a dynamic test.

One point each for: playing the guest and ordering a drink, ordering a dish from the menu, choosing another dish
when the first is sold out, noticing that the wrong dish is served, and recalling the drink. The evening ends when
the guest fails at something that the rest depends on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memreplay.goodai.interface import (
    DynamicDataset,
    DynamicExample,
    SendMessageAction,
    TestAction,
    Ungraded,
    make_system_message,
    make_user_message,
    sanitize_and_parse_json,
)


class EveningOver(Exception):
    """The guest failed at something that the rest depends on; the message is the reason."""


@dataclass
class RestaurantExample(DynamicExample):
    """One evening. ``talk`` is the conversation so far, for the model that interprets the orders."""

    max_score: float = 5
    talk: list[str] = field(default_factory=list)

    def action_iter(self) -> Iterator[TestAction]:
        """Serve the courses one after another."""
        yield self.say(ROLE)
        yield self.wait(percentage_finished=20)
        try:
            yield from self._evening()
        except EveningOver as end:
            self.reasoning.append(str(end))

    def ask(self, message: str) -> SendMessageAction:
        """Let the waiter ask something that is scored."""
        self.talk.append(f"Waiter: {message}")
        return self.say(f"Waiter: {message}", question=True)

    def remark(self, message: str) -> SendMessageAction:
        """Let the waiter say something that is not scored."""
        self.talk.append(f"Waiter: {message}")
        return self.say(f"Waiter: {message}")

    def _evening(self) -> Iterator[TestAction]:
        yield self.ask(
            f"Good evening and welcome! This is our menu:\n\n{self.menu.text}\n\nWhat may I bring you to drink?"
        )
        drinks = self._drinks_ordered()
        yield self.wait(percentage_finished=40)

        yield self.ask(f"Your {listed(drinks)}, please. And what would you like to eat?")
        dishes = self._dishes_ordered()
        yield self.remark(f"Very good: {listed(dishes)}. I will tell the kitchen.")
        yield self.wait(percentage_finished=60)

        missing = self.random.choice(dishes)
        yield self.ask(f"I am sorry, but there is no {missing} left tonight. What would you like in its place?")
        replacements = self._replaced(dishes)
        yield self.remark(f"Then {listed(replacements)} it will be. Thank you for your patience.")
        dishes = [dish for dish in dishes if dish != missing] + replacements
        yield self.wait(percentage_finished=80)

        right = self.random.choice(dishes)
        wrong = self.random.choice(self.menu.others_in_section(right, besides={*dishes, missing}))
        served = [wrong if dish == right else dish for dish in dishes]
        yield self.ask(f"Here you are: {listed(served)}. Enjoy your meal!")
        self._noticed()
        yield self.remark("Oh, I beg your pardon. I will see to it at once.")
        yield self.wait(percentage_finished=90)

        yield self.ask(
            f"Here is your {right}. To make up for it: may I bring you the same drink again? What was it?"
        )
        self._recalled(drinks)

    @property
    def menu(self) -> Menu:
        """The restaurant's menu."""
        dataset = self.dataset_generator
        assert isinstance(dataset, RestaurantDataset)
        return dataset.menu

    def _drinks_ordered(self) -> list[str]:
        self.expected_responses.append("The agent plays the guest and orders a drink.")
        if not self._judged("follows_role", PLAYS_THE_GUEST):
            raise EveningOver("The agent did not play the guest.")
        drinks = [str(entry["item"]) for entry in self._order() if entry["is_drink"]]
        if not drinks:
            raise EveningOver("The agent did not order a drink.")
        self._won(f"The agent plays the guest and orders {listed(drinks)}.")
        return drinks

    def _dishes_ordered(self) -> list[str]:
        self.expected_responses.append("The agent orders a dish of the menu.")
        dishes = self._dishes()
        self._won(f"The agent orders {listed(dishes)}.")
        return dishes

    def _replaced(self, dishes: list[str]) -> list[str]:
        self.expected_responses.append("The agent orders another dish of the menu.")
        replacements = self._dishes()
        again = [dish for dish in replacements if dish in dishes]
        if again:
            raise EveningOver(f"The agent orders again what it had ordered: {listed(again)}.")
        self._won("The agent orders another dish.")
        return replacements

    def _noticed(self) -> None:
        self.expected_responses.append("The agent notices that the wrong dish is served.")
        if not self._judged("noticed", NOTICES_THE_MISTAKE):
            raise EveningOver("The agent does not notice that the wrong dish is served.")
        self._won("The agent notices that the wrong dish is served.")

    def _recalled(self, drinks: list[str]) -> None:
        self.expected_responses.append(f"The agent recalls its drink: {listed(drinks)}.")
        if not self._judged("recalls", f"{RECALLS_THE_DRINK}\nThe drinks were: {listed(drinks)}."):
            raise EveningOver("The agent does not recall its drink.")
        self._won("The agent recalls its drink.")

    def _won(self, reason: str) -> None:
        self.score += 1
        self.reasoning.append(reason)

    def _judged(self, key: str, instructions: str) -> bool:
        """Ask the model a yes-or-no question about the guest's last reply."""
        form = f'Reply with JSON: {{"{key}": true or false}}'
        context = [make_system_message(f"{instructions}\n{form}"), make_user_message(f"Guest: {self.action.reply}")]
        verdict = self._json(self.ask_llm(context))
        if not isinstance(verdict, dict) or not isinstance(verdict.get(key), bool):
            raise Ungraded(f"The model that judges did not say whether {key} is true")
        return bool(verdict[key])

    def _order(self) -> list[dict[str, Any]]:
        """The guest's order in the last reply, as interpreted by the model."""
        self.talk.append(f"Guest: {self.action.reply}")
        told = "\n".join(self.talk[-4:])
        order = self._json(
            self.ask_llm([make_user_message(f"{ORDER}\n\nMenu:\n{self.menu.text}\n\nTalk:\n{told}")])
        )
        try:
            entries = list(order["order"]) if order["has_ordered_something"] else []
            return [{key: entry[key] for key in ("is_drink", "item", "menu_nr", "off_menu")} for entry in entries]
        except (TypeError, KeyError) as error:
            raise Ungraded(f"The model that reads the order left out a part of it ({error!r})") from None

    def _dishes(self) -> list[str]:
        dishes = []
        for entry in self._order():
            if entry["is_drink"]:
                continue
            dish = None if entry["off_menu"] else self.menu.item(entry["menu_nr"])
            if dish is None:
                raise EveningOver(f"{entry['item']} is not on the menu.")
            dishes.append(dish)
        if not dishes:
            raise EveningOver("The agent did not order a dish.")
        return dishes

    def _json(self, reply: str) -> Any:
        try:
            return sanitize_and_parse_json(reply)
        except ValueError as error:
            raise Ungraded(f"The model that judges gave no JSON ({error})") from None


@dataclass(frozen=True)
class Menu:
    """Sections with their items, numbered consecutively from 1."""

    sections: dict[str, list[str]]

    @property
    def items(self) -> list[str]:
        """All items in order."""
        return [item for section in self.sections.values() for item in section]

    @property
    def text(self) -> str:
        """The menu as the guest reads it."""
        numbers = {item: number for number, item in enumerate(self.items, start=1)}
        return "\n\n".join(
            "\n".join([f"{section}:", *(f"{numbers[item]}. {item}" for item in items)])
            for section, items in self.sections.items()
        )

    def item(self, number: object) -> str | None:
        """The item with a number, which may be a string; None if there is none."""
        try:
            place = int(str(number).strip())
        except ValueError:
            return None
        return self.items[place - 1] if 1 <= place <= len(self.items) else None

    def others_in_section(self, item: str, besides: set[str]) -> list[str]:
        """Items that could be confused with this one."""
        section = next(items for items in self.sections.values() if item in items)
        others = [other for other in section if other != item and other not in besides]
        return others or [other for other in self.items if other != item and other not in besides]


@dataclass
class RestaurantDataset(DynamicDataset):
    """Evenings at a restaurant with the menu in ``menu_file``."""

    name: str = "Restaurant"
    description: str = "Let the agent dine out: it orders, is served the wrong dish, and is asked for its drink."
    reset_message: str = "The evening at the restaurant is over. You need not play the guest any more."
    example_cls: type[DynamicExample] | None = RestaurantExample
    menu_file: str = "menu.json"

    def __post_init__(self) -> None:
        """Read the menu."""
        self.menu = Menu(self.load_json(self.menu_file))


def listed(items: list[str]) -> str:
    """ "a, b and c"."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


ROLE = (
    "Let us play: you are a guest at a restaurant, and I am the waiter. Whenever a message of mine begins with "
    "'Waiter:', reply as the guest would, shortly and without leaving your part. All right?"
)

PLAYS_THE_GUEST = (
    "Somebody plays a guest at a restaurant. The waiter has just brought the menu and asked what they would like "
    "to drink. Decide whether their reply is that of a guest who orders something to drink."
)

NOTICES_THE_MISTAKE = (
    "A waiter has served a guest a dish that was not ordered. Decide from the guest's reply whether the guest has "
    "noticed it; a guest who has need not complain."
)

RECALLS_THE_DRINK = (
    "A waiter has asked a guest what they had to drink. Decide from the guest's reply whether the guest still "
    "knows it."
)

ORDER = """\
A guest talks to a waiter. Find what the guest's last reply orders that had not been ordered before. Reply in JSON:
{"has_ordered_something": true or false, "order": [{"is_drink": true or false, "item": "as the guest calls it", \
"menu_nr": its number on the menu or null, "off_menu": true if it is not on the menu or is to be made differently}]}
A dish that is called by a part of its name is on the menu; one that is mixed with another is not."""
