"""The keys that actions have once the user's own are applied, and what that leaves without a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memreplay.tui.actions import ACTIONS, Action, Place, actions_of

Rebound = Mapping[str, str]
"""From an action's id to its keys, separated by commas."""


def keys_of(place: Place, rebound: Rebound) -> dict[str, tuple[str, ...]]:
    """The keys of a screen's actions, by id. A key that was given to one action is taken from all others."""
    actions = [*actions_of(place)]
    given = {action.id: _split(rebound[action.id]) for action in actions if action.id in rebound}
    taken = {key for keys in given.values() for key in keys}
    owners: dict[str, str] = {}
    for id_, keys in given.items():
        for key in keys:
            owners.setdefault(key, id_)
    return {
        action.id: tuple(key for key in given[action.id] if owners[key] == action.id)
        if action.id in given
        else tuple(key for key in action.keys if key not in taken)
        for action in actions
    }


def without_key(rebound: Rebound) -> list[Action]:
    """The actions that the user's own keys leave without any."""
    places = dict.fromkeys(action.place for action in ACTIONS if action.id in rebound)
    keys = {id_: keys for place in places for id_, keys in keys_of(place, rebound).items()}
    return [action for action in ACTIONS if action.id in keys and not keys[action.id] and not action.is_count]


def sentence_on_lost_keys(actions: Sequence[Action]) -> str:
    """What to tell the user about actions without a key."""
    names = ", ".join(action.id for action in actions)
    return f"Your [keys] leave no key for {names}. The palette (ctrl+p) still has them." if actions else ""


def _split(keys: str) -> tuple[str, ...]:
    named = (key.strip() for key in keys.split(","))
    return tuple("," if key == "comma" else key for key in named if key)
