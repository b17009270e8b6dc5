"""What a recording from elsewhere holds besides what memreplay writes: triggers, views, columns that compute.

SQLite runs what a file defines: a trigger runs with every write, and a view or a generated column with every read.
So a recording may hold the tables, indexes and views of our schema and nothing else, each as we define it.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path

from sqlite_utils import Database

from memreplay.errors import RecordingError
from memreplay.recording.schema import VIEWS_OF_EARLIER_FORMATS, migrations

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\[[^\]]*\]|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|\w+|\S""", re.DOTALL
)
_QUOTED_NAME = re.compile(r"""["\[`]\w+["\]`]""")

_Definition = tuple[str, str, str, str]
"""Type, name and table of an object, and a digest of its SQL."""


def refuse_foreign_objects(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose schema has an object that memreplay does not write.

    This reads the schema alone, which runs nothing. A table that is missing is reported where it is read.

    Raises:
        RecordingError: it has one, or two objects that share their pages.
    """
    roots: dict[int, str] = {}
    for *definition, root in connection.execute(f"{_DEFINITIONS}, rootpage from sqlite_master"):
        kind, name, table, sql = definition
        if (kind, name, table, _digest(sql)) not in _known():
            if any(known[:2] == (kind, name) for known in _known()):
                raise _refusal(path, f"the {kind} {name!r} is not defined as memreplay defines it")
            raise _refusal(path, f"it holds the {kind} {name!r}, which memreplay does not write")
        if root and roots.setdefault(root, name) != name:
            raise _refusal(path, f"the {kind} {name!r} lies where {roots[root]!r} lies")


_DEFINITIONS = "select cast(type as text), cast(name as text), cast(tbl_name as text), cast(sql as text)"


def _refusal(path: Path, problem: str) -> RecordingError:
    return RecordingError(f"{path}: refused: {problem}; expected a recording as memreplay wrote it")


@cache
def _known() -> frozenset[_Definition]:
    """The objects of this format and of earlier ones."""
    with closing(sqlite3.connect(":memory:")) as connection:
        migrations.apply(Database(connection))
        rows = connection.execute(f"{_DEFINITIONS} from sqlite_master").fetchall()
    now = {(kind, name, table, _digest(sql)) for kind, name, table, sql in rows}
    return frozenset(now | {("view", name, name, digest) for name, digest in VIEWS_OF_EARLIER_FORMATS.items()})


@lru_cache(maxsize=128)
def _digest(sql: str | None) -> str:
    """A digest of the tokens; names count without quotes, which versions of sqlite-utils write differently."""
    tokens = _TOKEN.findall(sql or "")
    plain = (token[1:-1] if _QUOTED_NAME.fullmatch(token) else token for token in tokens)
    return sha256("\0".join(plain).encode("utf-8", "surrogatepass")).hexdigest()
