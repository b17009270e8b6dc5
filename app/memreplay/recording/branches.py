"""Branches: runs that depart from another run of the same recording at a turn, with what was changed by hand."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import copyfile
from typing import Any

import orjson
from pydantic import Field
from sqlite_utils import Database

from memory_backends.editing import KeyEdit, PointEdit
from memory_backends.private_files import create_private_file, make_private_folder
from memreplay.conversations.editing import MessageEdit
from memreplay.conversations.models import Frozen
from memreplay.errors import RecordingError
from memreplay.paths import demo_recordings, recordings_folder
from memreplay.settings import value_words
from memreplay.text import shortened


class Branch(Frozen):
    """The point at which a run departs from its ``parent``, and the change.

    ``turn`` counts the turns that were played before the edits, in the parent's conversation. ``messages`` are
    edits of that conversation; ``stores`` are made in memory once these turns were played; ``settings`` replace
    those of the parent.
    """

    parent: str
    conversation: str
    turn: int
    messages: tuple[MessageEdit, ...] = ()
    stores: tuple[KeyEdit | PointEdit, ...] = ()
    settings: dict[str, Any] = Field(default_factory=dict)

    @property
    def edit(self) -> str:
        """Return what was changed, in one line."""
        return "; ".join([*map(_of_message, self.messages), *map(_of_store, self.stores), *self._settings()])

    def _settings(self) -> list[str]:
        return [f"{name} = {value_words(value)}" for name, value in self.settings.items()]


def _of_message(edit: MessageEdit) -> str:
    if edit.inserts:
        return f"after message {edit.turn} inserted {edit.role}: {shortened(edit.text or '')}"
    return f"message {edit.turn} dropped" if edit.text is None else f"message {edit.turn} = {shortened(edit.text)}"


def _of_store(edit: KeyEdit | PointEdit) -> str:
    if isinstance(edit, PointEdit):
        return (
            f"point {edit.id} deleted" if edit.content is None else f"point {edit.id} = {shortened(edit.content)}"
        )
    if edit.removes:
        return f"{edit.key}{edit.pointer} deleted"
    return f"{edit.key}{edit.pointer} = {shortened(orjson.dumps(edit.value).decode())}"


def insert_branch(db: Database, run_id: str, branch: Branch) -> None:
    """Store a branch, in the transaction that stores its run."""
    db.table("branches").insert(
        {
            "run_id": run_id,
            "parent": branch.parent,
            "conversation": branch.conversation,
            "turn": branch.turn,
            "edit": branch.model_dump_json(include={"messages", "stores", "settings"}),
        }
    )


def branches_in(db: Database) -> dict[str, Branch]:
    """Return all branches by the id of their run; none in a recording of an older format."""
    if "branches" not in db.table_names():
        return {}
    return {
        row["run_id"]: Branch.model_validate(
            {name: row[name] for name in ("parent", "conversation", "turn")} | orjson.loads(row["edit"])
        )
        for row in db.query("select * from branches")
    }


def file_of_branches(path: Path, run_id: str) -> Path:
    """Return where branches of a run are saved: beside it; those of a shipped recording in a copy of the user's
    own.

    The copy need not exist yet.
    """
    if path.resolve() not in {shipped.resolve() for shipped in demo_recordings()}:
        return path
    return recordings_folder() / f"{path.stem}-branches-{run_id}.sqlite3"


def opened_for_branches(path: Path, run_id: str) -> Path:
    """Return the same, and it exists.

    Raises:
        RecordingError: the copy cannot be made.
    """
    own = file_of_branches(path, run_id)
    if not own.exists():
        unfinished = own.with_name(f".{own.name}.{os.getpid()}")
        try:
            make_private_folder(own.parent)
            try:
                create_private_file(unfinished)
                copyfile(path, unfinished)
                unfinished.replace(own)
            finally:
                unfinished.unlink(missing_ok=True)
        except OSError as error:
            raise RecordingError(f"{own}: a copy of {path.name} cannot be made: {error.strerror}") from None
    return own
