"""The writing model's part in a turn that is not in a memory's stores: the cause in one word, and a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from memory_backends.stores.trace import Extraction, ModelCall
from memreplay.grading.read import without_reasoning
from memreplay.scoring.holding import Answerable, Piece
from memreplay.text import shortened, with_semicolons

WriterCause = Literal[
    "not_called", "failed", "cut", "unreadable", "kept_nothing", "removed_by_update", "not_stored", "kept_other"
]
"""Reasons why the writer's work holds nothing of a turn.

``not_called``: it was not asked about this exchange. ``failed``: there is no reply. ``cut``: the limit of tokens
cut the reply. ``unreadable``: the reply was not of the form asked for. ``kept_nothing``: it named no fact.
``removed_by_update``: it named the fact, and the library's update step deleted or merged it. ``not_stored``: it
named the fact, and the library stored none. ``kept_other``: it named something else.
"""

CAUSES: Final[Mapping[WriterCause, str]] = {
    "not_called": "the writer was not called",
    "failed": "the writer's call failed",
    "cut": "the writer's reply was cut by its limit",
    "unreadable": "the writer's reply could not be read",
    "kept_nothing": "the writer kept nothing",
    "removed_by_update": "the library's update step deleted or merged it",
    "not_stored": "the writer named it, and the library did not store it",
    "kept_other": "the writer kept something else",
}
"""Words for each cause, for screens and counts."""

_LONGEST_SHOWN = 160
"""Characters of what a writer kept instead."""


@dataclass(frozen=True)
class MadeCall:
    """A call of the writer at a position; ``turns`` are those it was made for."""

    at: int
    turns: tuple[str, ...]
    call: ModelCall | Extraction

    @property
    def facts(self) -> tuple[str, ...]:
        """Return the texts in its reply."""
        return facts_of(self.call)


@dataclass(frozen=True)
class Finding:
    """The cause, a sentence about it, and the position of the call that it is about, if there is one."""

    cause: WriterCause
    sentence: str
    at: int | None = None


def facts_of(call: ModelCall | Extraction) -> tuple[str, ...]:
    """Return the texts in a reply that can be read, each once."""
    return tuple(dict.fromkeys(_texts_of(call)))


def _texts_of(call: ModelCall | Extraction) -> Iterator[str]:
    """Yield the texts in a reply that can be read, without those of names, numbers and the like in it."""
    for source in (call.reply, call.wanted):
        parsed = _parsed(source)
        if parsed is not None:
            yield from _sentences(parsed)


def _parsed(text: str | None) -> Any:
    if not text:
        return None
    plain = without_reasoning(text)
    starts = [place for mark in "{[" if (place := plain.find(mark)) >= 0]
    ends = max(plain.rfind("}"), plain.rfind("]"))
    for part in (text, plain[min(starts, default=0) : ends + 1]):
        try:
            return json.loads(part, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


_NO_FACTS = frozenset({"id", "event", "role", "type", "name", "slot", "turn", "attributed_to", "justification"})


def _sentences(value: Any, name: str = "") -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                yield from _sentences(inner, str(key))
        case list():
            for inner in value:
                yield from _sentences(inner, name)
        case str() if name == "arguments":
            yield from _sentences(_parsed(value))
        case str() if value.strip() and name not in _NO_FACTS:
            yield value.strip()
        case _:
            pass


def finding_of(turn: str, answerable: Answerable, calls: Sequence[MadeCall]) -> Finding | None:
    """Return what the writer made of a turn that is not stored; None of a memory that has no writer.

    ``calls`` are all that the memory made until it was asked.
    """
    if not calls:
        return None
    made = [each for each in calls if turn in each.turns]
    if not made:
        return Finding("not_called", f"The writer was not called for the exchange of turn {turn}.")
    found = _cause_of(turn, answerable, made)
    return None if found is None else Finding(*found, at=made[0].at)


def _cause_of(turn: str, answerable: Answerable, made: Sequence[MadeCall]) -> tuple[WriterCause, str] | None:
    """Return the cause, and a sentence, from the calls for one exchange."""
    model = made[0].call.model
    reply = f"The reply of the writer {model} to turn {turn}"
    for call in (each.call for each in made):
        if call.failed:
            return "failed", f"The writer {model} failed on turn {turn}: {call.error}."
        if call.cut_at is not None and call.read != "parsed":
            return "cut", f"{reply} was cut by its limit of {call.cut_at:,} tokens."
        if call.read == "rejected":
            return "unreadable", f"{reply} could not be read: {call.rejected}."
    if not any(each.call.messages for each in made):
        return None  # a recording of an earlier format has no texts
    named = [answerable.part_held_by(turn, _pieces(each, turn)) for each in made]
    if any(named):
        what = f"The writer {model} named it in call {named.index(True) + 1} for turn {turn}"
        if len(made) == 1:
            return "not_stored", f"{what}, and the library did not store it."
        step = f"the library's update step, call {len(made)}{_decision(made[-1])}"
        return "removed_by_update", f"{what}; after {step}, it is not stored."
    facts = [fact for each in made for fact in each.facts]
    if not facts:
        return "kept_nothing", f"The writer {model} was called for turn {turn} and kept nothing."
    shown = shortened(with_semicolons(facts), _LONGEST_SHOWN)
    return "kept_other", f"The writer {model} kept something else of turn {turn}: “{shown}”."


def update_in(calls: Sequence[MadeCall]) -> Finding | None:
    """Return the update step that removed or rewrote what was stored: the last call at the position of that."""
    if not calls or not calls[-1].call.messages:
        return None
    last = calls[-1]
    return Finding(
        "removed_by_update",
        f"The writer {last.call.model} decided so at turn {last.at}, in call {len(calls)} of {len(calls)}"
        f"{_decision(last)}.",
        last.at,
    )


def reading_of(call: ModelCall | Extraction) -> tuple[str, bool | None]:
    """Return how a reply was read, in words, and whether it could be: None where it could, with reservations."""
    if call.failed:
        return "failed", False
    if call.cut_at is not None:
        return f"cut at {call.cut_at:,} tokens", False
    match call.read:
        case "rejected":
            return "could not be read", False
        case "repaired":
            return "read without what is around its JSON", None
        case "parsed":
            return ("read", True) if facts_of(call) else ("read: it names no fact", None)
        case _:
            return ("a text", True) if call.messages or call.reply or call.wanted else ("not recorded", None)


def kept_nothing(call: ModelCall | Extraction) -> bool:
    """Return whether a reply was read and names no fact."""
    return call.read in ("parsed", "repaired") and not facts_of(call)


def _pieces(made: MadeCall, turn: str) -> list[Piece]:
    return [Piece(fact, frozenset([turn])) for fact in made.facts]


def _decision(made: MadeCall) -> str:
    """Return what an update step decided on each memory, where its reply says so."""
    parsed = _parsed(made.call.reply)
    entries = parsed.get("memory") if isinstance(parsed, dict) else None
    said = [
        f"{each.get('event')} “{each.get('text')}”"
        for each in (entries if isinstance(entries, list) else ())
        if isinstance(each, dict) and each.get("event")
    ]
    return f" ({shortened('; '.join(said), _LONGEST_SHOWN)})" if said else ""
