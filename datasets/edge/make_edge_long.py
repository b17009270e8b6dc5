"""Write ``edge-long.json``: one conversation of 420 turns, a year of a community garden.

What is planted, and at which turn, stands in ``garden_facts.toml``. Between the plants the year is filled from
``garden_scenes.toml``: matters that come up once, in their season, some of which are come back to a few days later.
Members, openers and asides are dealt like cards, so that none returns before all of its kind were used. The same
material and seed give the same bytes on every machine: chance comes from ``random.Random.random`` alone, whose
sequence Python guarantees.

    python make_edge_long.py            writes edge-long.json beside this file
    python make_edge_long.py --check    exit code 1 if the shipped file is not what would be written
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, TypeVar

TURNS = 420
SEED = 20240311
HERE = Path(__file__).resolve().parent
TARGET = HERE / "edge-long.json"

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
FOLLOW_UP_AFTER = range(2, 8)
"""Exchanges after which a matter is taken up again."""
REST = 9
"""Exchanges for which a scene is left alone after a matter of it came up."""
OPENER_CHANCE, ASIDE_CHANCE, CLOSER_CHANCE = 0.26, 0.12, 0.05

Item = TypeVar("Item")
Material = Mapping[str, Any]

_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")
_NUMBERS = re.compile(r"(\d+)\.\.(\d+)")
_NAMED = re.compile(r"\$(who|other|plot)|\d|£")


class Chance:
    """Draws that are the same in every version of Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        """A whole number from 0 to ``bound`` - 1."""
        return int(self._random.random() * bound)

    def happens(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random.random() < probability

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in a random order."""
        ranked = [(self._random.random(), item) for item in items]
        return [item for _, item in sorted(ranked, key=lambda pair: pair[0])]


class Deck(list[Item]):
    """Cards to be dealt one after another; when all are dealt they are shuffled again."""

    def __init__(self, cards: Sequence[Item], chance: Chance) -> None:
        super().__init__()
        self._cards = cards
        self._chance = chance

    def deal(self) -> Item:
        """The next card."""
        if not self:
            self.extend(self._chance.shuffled(self._cards))
        return self.pop()


@dataclass(frozen=True)
class Exchange:
    """What the user says and what the assistant answers, before slots are filled."""

    said: str
    answer: str


@dataclass(frozen=True)
class Matter:
    """Something that comes up once, in one of its months (1 to 12), and how it went on where that is told."""

    scene: str
    months: frozenset[int]
    exchange: Exchange
    later: Exchange | None

    def months_left(self, month: int) -> int:
        """How many of its months are not over in ``month``."""
        return sum(1 for own in self.months if own >= month)


class Year:
    """The exchanges between the plants, in order."""

    def __init__(self, material: Material, chance: Chance) -> None:
        self._chance = chance
        self._matters = [_matter(scene, matter) for scene in material["scene"] for matter in scene["matter"]]
        self._last: dict[str, int] = {}
        self._members: Deck[tuple[str, int]] = Deck([tuple(member) for member in material["members"]], chance)
        self._openers: Deck[str] = Deck(material["openers"], chance)
        self._asides: Deck[str] = Deck(material["asides"], chance)
        self._closers: Deck[str] = Deck(material["closers"], chance)
        self._due: list[tuple[int, Exchange, dict[str, str]]] = []

    def turns(self, number: int, exchanges: int) -> list[dict[str, Any]]:
        """User and assistant turn of an exchange (``number`` from 0, of ``exchanges`` in the year)."""
        month = number * 12 // exchanges + 1
        if self._due and self._due[0][0] <= number:
            _, exchange, slots = self._due.pop(0)
            said, answer = exchange.said, exchange.answer
        else:
            exchange, slots = self._new_matter(number, month)
            said, answer = self._opened(exchange.said), self._closed(exchange.answer)
        slots = slots | {"month": MONTHS[month - 1]}
        turn: dict[str, Any] = {"role": "user", "content": self._filled(self._with_aside(said), slots)}
        if _NAMED.search(exchange.said):
            turn["metadata"] = _metadata("fact", "low")
        return [turn, {"role": "assistant", "content": self._filled(answer, slots)}]

    def _new_matter(self, number: int, month: int) -> tuple[Exchange, dict[str, str]]:
        """The matter whose season ends first, of those that may come up now."""
        now = [
            matter
            for matter in self._chance.shuffled(self._matters)
            if month in matter.months and number - self._last.get(matter.scene, -REST) >= REST
        ]
        matter = min(now, key=lambda matter: matter.months_left(month))
        self._matters.remove(matter)
        self._last[matter.scene] = number
        (who, plot), (other, _) = self._members.deal(), self._members.deal()
        slots = {"who": who, "plot": "plot " + str(plot), "other": other}
        if matter.later:
            after = FOLLOW_UP_AFTER[self._chance.below(len(FOLLOW_UP_AFTER))]
            self._due.append((number + after, matter.later, slots))
            self._due.sort(key=lambda due: due[0])
        return matter.exchange, slots

    def _opened(self, said: str) -> str:
        return self._openers.deal() + " " + said if self._chance.happens(OPENER_CHANCE) else said

    def _with_aside(self, said: str) -> str:
        if not self._chance.happens(ASIDE_CHANCE):
            return said
        return said + ("\n\n" if self._chance.happens(0.5) else " ") + self._asides.deal()

    def _closed(self, advice: str) -> str:
        return advice + " " + self._closers.deal() if self._chance.happens(CLOSER_CHANCE) else advice

    def _filled(self, text: str, slots: Mapping[str, str]) -> str:
        return Template(_ALTERNATIVES.sub(self._one_of, text)).substitute(slots)

    def _one_of(self, alternatives: re.Match[str]) -> str:
        if numbers := _NUMBERS.fullmatch(alternatives[1]):
            first, last = int(numbers[1]), int(numbers[2])
            return str(first + self._chance.below(last - first + 1))
        options = alternatives[1].split("|")
        return options[self._chance.below(len(options))]


def _matter(scene: Material, matter: Material) -> Matter:
    return Matter(
        scene=scene["name"],
        months=frozenset(matter.get("months", scene["months"])),
        exchange=Exchange(matter["said"], matter["answer"]),
        later=Exchange(matter["later"], matter["later_answer"]) if "later" in matter else None,
    )


def conversation(facts: Material, scenes: Material) -> dict[str, Any]:
    """The whole TestConversation."""
    year = Year(scenes, Chance(SEED))
    plants = {plant["turn"]: plant for plant in facts["plant"]}
    turns: list[dict[str, Any]] = []
    while len(turns) < TURNS:
        plant = plants.get(len(turns) + 1)
        turns += _planted(plant) if plant else year.turns(len(turns) // 2, TURNS // 2)
    questions = [_question(question, plants[question["turn"]]) for question in facts["question"]]
    for question in facts["question"]:
        _refuse_echoes(question, turns)
    return {key: facts[key] for key in ("id", "language", "tags")} | {"turns": turns, "recallQuestions": questions}


def _planted(plant: Material) -> list[dict[str, Any]]:
    user: dict[str, Any] = {"role": "user", "content": plant["user"]}
    if "about" in plant:
        user["metadata"] = _metadata(plant["about"], plant["salience"])
    return [user, {"role": "assistant", "content": plant["assistant"]}]


def _metadata(about: str, salience: str) -> dict[str, Any]:
    return {"containsKeyInfo": True, "keyInfoType": about, "salienceLevel": salience}


def _question(question: Material, plant: Material) -> dict[str, Any]:
    return {
        "question": question["question"],
        "expectedAnswer": question["answer"],
        "expectedEntities": question["entities"],
        "infoLocation": "early" if plant["turn"] <= 4 else "middle" if plant["turn"] <= 8 else "recent",
        "salienceLevel": plant["salience"],
    }


def _refuse_echoes(question: Material, turns: Sequence[Mapping[str, Any]]) -> None:
    """An answer stands in its own turn and in no other, or where it was planted would say nothing."""
    whole_word = re.compile(r"(?<!\w)" + re.escape(question["answer"]) + r"(?!\w)", re.IGNORECASE)
    found = [number for number, turn in enumerate(turns, start=1) if whole_word.search(turn["content"])]
    turn = question["turn"]
    if found != [turn]:
        raise SystemExit(f'"{question["answer"]}" should stand in turn {turn} only, and stands in {found}.')


def written() -> bytes:
    """The bytes of the file."""
    facts, scenes = (_read(HERE / name) for name in ("garden_facts.toml", "garden_scenes.toml"))
    return (json.dumps(conversation(facts, scenes), ensure_ascii=False, indent=2) + "\n").encode()


def _read(path: Path) -> Material:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _write(data: bytes) -> int:
    TARGET.write_bytes(data)
    print(f"{TARGET.name} written, {TURNS} turns.")
    return 0


def _check(data: bytes) -> int:
    same = TARGET.is_file() and TARGET.read_bytes() == data
    print(f"{TARGET.name} is " + ("what this script makes." if same else "not what this script makes."))
    return 0 if same else 1


def main() -> int:
    """Write the file or check it; the exit code."""
    parser = argparse.ArgumentParser(description="Write edge-long.json, a conversation of 420 turns.")
    parser.add_argument("--check", action="store_true", help="compare the shipped file instead of writing it")
    act: Callable[[bytes], int] = _check if parser.parse_args().check else _write
    return act(written())


if __name__ == "__main__":
    sys.exit(main())
