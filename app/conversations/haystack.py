"""The haystack of a LoCoMo-MC10 row: the sessions of its conversation, with their dates and summaries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from app.conversations.faults import Gathering, Place, entries, shown, validated
from app.conversations.locomo_evidence import count_by_session
from app.conversations.models import Role, Session, Turn

_NUMBER_AT_END = re.compile(r"(\d+)$")
_SPEAKER_PREFIX = re.compile(r"\[(?P<name>[^\[\]\n]{1,60})\]: ?")


class PublishedMessage(BaseModel):
    """A message. Where the speaker has a name, it stands before the text: ``[CAROLINE]: …``."""

    model_config = ConfigDict(strict=True)

    role: Role
    content: str


class PublishedHaystack(BaseModel):
    """Four lists, one entry a session in each."""

    model_config = ConfigDict(strict=True)

    haystack_session_ids: list[str]
    haystack_session_summaries: list[str | None]
    haystack_session_datetimes: list[str | None]
    haystack_sessions: list[list[PublishedMessage]]


@dataclass(frozen=True)
class Haystack:
    """Sessions in the order of their numbers, and their turns under 1-based numbers as ids."""

    sessions: tuple[Session, ...]
    turns: tuple[Turn, ...]

    def turns_by_session(self) -> dict[int, int]:
        """How many turns lie in each session that has any."""
        return count_by_session([turn.session for turn in self.turns])

    def turns_named_as_in_locomo(self) -> tuple[Turn, ...]:
        """The turns under LoCoMo's ids: the j-th of session i is ``Di:j``."""
        place_in_session: dict[int, int] = {}
        renamed = []
        for turn in self.turns:
            place_in_session[turn.session] = place_in_session.get(turn.session, 0) + 1
            turn_id = f"D{turn.session}:{place_in_session[turn.session]}"
            renamed.append(turn.model_copy(update={"id": turn_id}))
        return tuple(renamed)


def read_haystack(fields: Mapping[str, Any], place: Place) -> Haystack:
    """The haystack, checked: the four lists are of one length, and every session has a number of its own."""
    haystack = validated(PublishedHaystack, fields, place)
    _check_lengths(haystack, place)
    gathering = Gathering()
    order = _order_by_number(haystack.haystack_session_ids, place, gathering)
    sessions: list[Session] = []
    for number, index in order:
        with gathering.going_on():
            sessions.append(_session(haystack, number, index, place))
    said = [(number, message) for number, index in order for message in haystack.haystack_sessions[index]]
    if not any(haystack.haystack_sessions):
        gathering.add(place.at("haystack_sessions").fault("has no turns", "at least one session with a turn"))
    gathering.refuse()
    turns = tuple(_turn(count, number, message) for count, (number, message) in enumerate(said, start=1))
    return Haystack(sessions=tuple(sessions), turns=turns)


def _check_lengths(haystack: PublishedHaystack, place: Place) -> None:
    sessions = len(haystack.haystack_sessions)
    gathering = Gathering()
    for name in PublishedHaystack.model_fields:
        length = len(getattr(haystack, name))
        if length != sessions:
            wanted = f"{sessions}, one for each of haystack_sessions"
            gathering.add(place.at(name).fault(f"has {entries(length)}", wanted))
    gathering.refuse()


def _order_by_number(session_ids: Sequence[str], place: Place, gathering: Gathering) -> list[tuple[int, int]]:
    """Session numbers with their places in the lists, sorted as numbers."""
    index_of: dict[int, int] = {}
    for index, session_id in enumerate(session_ids):
        inside = place.at("haystack_session_ids", index)
        number = _NUMBER_AT_END.search(session_id)
        if number is None:
            gathering.add(
                inside.fault(f"is {shown(session_id)}", 'an id that ends in a number, such as "session_3"')
            )
        elif int(number[1]) in index_of:
            gathering.add(inside.fault(f"is {shown(session_id)} again", "a session number of its own"))
        else:
            index_of[int(number[1])] = index
    return sorted(index_of.items())


def _session(haystack: PublishedHaystack, number: int, index: int, place: Place) -> Session:
    written = haystack.haystack_session_datetimes[index]
    try:
        date = datetime.fromisoformat(written) if written else None
    except ValueError:
        raise place.at("haystack_session_datetimes", index).fault(
            f"is {shown(written)}", 'a date such as "2023-05-08T13:56:00"'
        ) from None
    return Session(
        number=number,
        id=haystack.haystack_session_ids[index],
        date=date,
        summary=haystack.haystack_session_summaries[index] or None,
    )


def _turn(count: int, session: int, message: PublishedMessage) -> Turn:
    prefix = _SPEAKER_PREFIX.match(message.content)
    return Turn(
        id=str(count),
        number=count,
        session=session,
        role=message.role,
        speaker=_as_written(prefix["name"]) if prefix else None,
        text=message.content[prefix.end() :] if prefix else message.content,
    )


def _as_written(name: str) -> str:
    """The rows shout: CAROLINE is Caroline."""
    return name.title() if name.isupper() else name
