"""Edits of a branch as they are typed: ``top-k=5``, ``message:9=other words``, ``key:shared_state/status="x"``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from memory_backends.editing import KeyEdit, PointEdit
from memreplay.conversations.editing import MessageEdit
from memreplay.conversations.models import Role
from memreplay.errors import UsageError
from memreplay.recording.branches import Branch
from memreplay.runtime.branching import BRANCH_SETTINGS
from memreplay.settings import read_settings

FORMS = (
    "top-k, context-tokens, embedder, reranker, extractor, ablate, tier-share, message:N, key:KEY/PLACE or point:ID"
)

_MESSAGE = re.compile(r"message:(\d+)")
_POINT = re.compile(r"point:(\S+)")
_KEY = re.compile(r"key:([^/]+)(/.*)")
_SEVERAL = ("ablate", "tier_share")

Edit = MessageEdit | KeyEdit | PointEdit | tuple[str, str]


@dataclass(frozen=True)
class Edits:
    """Changes as they were typed: ``changed`` have a value, ``deleted`` name what goes, ``inserted`` are messages.

    An error names the option of the command line.
    """

    changed: Sequence[str] = ()
    deleted: Sequence[str] = ()
    inserted: Sequence[str] = ()

    def branch(self, parent: str, conversation: str, turn: int) -> Branch:
        """The branch that these make.

        Raises:
            UsageError: one cannot be read.
        """
        edits: list[Edit] = [
            *map(_changed, self.changed),
            *map(_deleted, self.deleted),
            *map(_inserted, self.inserted),
        ]
        return Branch(
            parent=parent,
            conversation=conversation,
            turn=turn,
            messages=tuple(edit for edit in edits if isinstance(edit, MessageEdit)),
            stores=tuple(edit for edit in edits if isinstance(edit, KeyEdit | PointEdit)),
            settings=_settings([edit for edit in edits if isinstance(edit, tuple)]),
        )


def _changed(text: str) -> Edit:
    what, _, value = text.partition("=")
    name = what.replace("-", "_")
    if name in BRANCH_SETTINGS and value:
        return name, value
    if found := _MESSAGE.fullmatch(what):
        if not value.strip():
            raise UsageError(f"--set {text}: expected the new words of the message; --delete {what} drops it")
        return MessageEdit(turn=int(found[1]), text=value)
    if (found := _POINT.fullmatch(what)) and value.strip():
        return PointEdit(id=found[1], content=value)
    if found := _KEY.fullmatch(what):
        return KeyEdit(key=found[1], pointer=found[2], value=_json(text, value))
    raise UsageError(f"--set {text}: expected {FORMS}, then = and the value")


def _json(option: str, value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        raise UsageError(f'--set {option}: expected JSON after =, such as "text" in quotes, or 3') from None


def _deleted(what: str) -> Edit:
    if found := _MESSAGE.fullmatch(what):
        return MessageEdit(turn=int(found[1]))
    if found := _POINT.fullmatch(what):
        return PointEdit(id=found[1])
    if found := _KEY.fullmatch(what):
        return KeyEdit(key=found[1], pointer=found[2], removes=True)
    raise UsageError(f"--delete {what}: expected message:N, key:KEY/PLACE or point:ID")


def _inserted(text: str) -> MessageEdit:
    what, _, said = text.partition("=")
    role, _, words = said.partition(":")
    speaker: Role | None = next((each for each in get_args(Role) if each == role.strip()), None)
    found = _MESSAGE.fullmatch(what)
    if found is None or speaker is None or not words.strip():
        raise UsageError(f"--insert {text}: expected message:N=user: TEXT, or assistant")
    return MessageEdit(turn=int(found[1]), text=words.strip(), role=speaker)


def _settings(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Settings, spelt and checked as in the environment."""
    texts: dict[str, str] = {}
    for name, value in pairs:
        texts[name] = f"{texts[name]},{value}" if name in _SEVERAL and name in texts else value
    read = read_settings(**texts)
    return {name: getattr(read, name) for name in texts}
