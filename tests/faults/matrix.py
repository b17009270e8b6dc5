"""The fault matrix: what is injected where, and what must come of it. One list, which the table in the guide shows.

    python -m tests.faults.matrix

writes the table into ``tests/README.md``. Numbers are those of the rows that tests are made from.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.faults.provider import PROVIDER_FAULTS
from tests.faults.test_hostile_recordings import OVERSIZED, PREPARED
from tests.faults.test_keys import KEYS, SIZES
from tests.faults.test_lost_stores import FAULTS, MOMENTS, OUTAGES
from tests.faults.test_recordings import CONTRADICTIONS, FORMATS, LOGS
from tests.faults.test_secrets import SECRETS
from tests.faults.test_served import REQUESTS
from tests.faults.test_stores import AGENT_REPLIES, IMPOSTORS
from tests.faults.test_streams_and_signals import ENDING_SIGNALS, LOST_STREAMS

GUIDE: Final = Path(__file__).parents[1] / "README.md"
_HEAD: Final = ("| where | what is injected | what must happen | in |", "| --- | --- | --- | --- |")


class Row(NamedTuple):
    """``file`` is the module of tests in this folder."""

    where: str
    injected: str
    outcome: str
    file: str


MATRIX: Final = (
    Row(
        "provider",
        f"{len(PROVIDER_FAULTS)} replies: invalid text, absurd numbers, empty, unreadable, refused; replies"
        " mutated at random",
        "it costs at most its own answer; asked twice at most if unreadable; exit 3 for an error, 5 where only the"
        " owner can help",
        "test_provider.py",
    ),
    Row(
        "reply that is graded",
        "replies built from the answers of all datasets: reordered, denied, joined, cut, with other numbers and"
        " letters, without end; answers as odd",
        "every grader says something, in less than a second; a rule that fails costs its own row, which is graded"
        " again and never asked again",
        "test_grading.py",
    ),
    Row(
        "provider, agent, embedder",
        "one that hangs; a key or token that is refused in mid-run; a kill while replies are under way",
        "given up with a reason; exit 5, resumable; replies lost in flight are counted on resume",
        "test_long_faults.py",
    ),
    Row(
        "store, agent, cache",
        f"{len(IMPOSTORS)} servers that are not Qdrant, another distance function, {len(AGENT_REPLIES)} replies of"
        " agents that are none, a cache folder that cannot be written",
        "exit 4 and a sentence; an error with its reason; a warning",
        "test_stores.py",
    ),
    Row(
        "store that loses something",
        f"{len(FAULTS)} faults of a Redis and of a Qdrant server (flushed, evicted, erased, dropped, halved,"
        f" overwritten, restarted) at {len(MOMENTS)} moments of a run, once and for good",
        "filled again, and rows equal to an undisturbed run's; errors that name the store if it is lost again,"
        " exit 3, and equal once retried; no other row",
        "test_lost_stores.py",
    ),
    Row(
        "store that is of no use",
        f"{len(OUTAGES)} outages of Redis (hangs for good, gone, full, no permission) while a run fills"
        " and while it asks; everything lost before the run goes on",
        "the store is named; exit 5; rows equal to an undisturbed run's once resumed",
        "test_lost_stores.py",
    ),
    Row(
        "terminal, signal",
        f"{len(LOST_STREAMS)} streams that close, fill up or were closed; {len(ENDING_SIGNALS)} signals, Ctrl-C"
        " at the start; escape sequences and markup in every text of a dataset",
        "results are written, exit 0, or 5 where standard output is full; exit 130, saved and resumable; nothing"
        " acts on a terminal, a page, a cast or a spreadsheet",
        "test_streams_and_signals.py",
    ),
    Row(
        "clients of a served memory",
        f"{len(REQUESTS)} requests; twice as many clients at once as sessions, twice; clients that leave; idle"
        " sessions; an end while it loads",
        "refused in a sentence, no stack trace, bounded sessions, flat memory",
        "test_served.py",
    ),
    Row(
        "dataset file",
        "values and bytes mutated at random, endless turns, fields that occur twice",
        "loaded, or exit 2 with file and place",
        "test_datasets.py",
    ),
    Row(
        "recording of somebody else",
        f"{len(PREPARED)} definitions that are not memreplay's: triggers, views, columns that compute, edited"
        f" schemas; {len(OVERSIZED)} bodies that expand or nest without end; a demo with bytes overwritten",
        "refused in a sentence that names it, before anything is written or read through it; exit 2",
        "test_hostile_recordings.py",
    ),
    Row(
        "recording, imported run",
        f"{len(CONTRADICTIONS)} contradictions, {len(FORMATS)} formats; bits flipped, files cut, rows missing and"
        f" schemas changed at random; {len(LOGS)} runs that cannot be imported",
        "read, or a sentence (exit 2); every format is opened, stepped and reported",
        "test_recordings.py",
    ),
    Row(
        "storage, process",
        "every write fails in turn; a disk full from the start; a kill at any moment; a reader beside a writer",
        "exit 5 or 2; no stored reply is lost or paid twice; resuming gives an undisturbed run's rows",
        "test_crashes.py",
    ),
    Row(
        "what a user types",
        f"breakpoints and settings at random; {len(KEYS)} keys in any order on screens of {len(SIZES)} sizes",
        "understood, or refused in one sentence; the app stays up",
        "test_grammars.py",
    ),
    Row("", "", "", "test_keys.py"),
    Row(
        "secrets",
        f"{len(SECRETS)} keys and a password in every place that takes one, against servers that echo all they get",
        "no artefact holds one",
        "test_secrets.py",
    ),
    Row("network", "sockets forbidden, every command", "no attempt that nobody asked for", "test_network.py"),
)


def table() -> str:
    """The matrix in Markdown."""
    return "\n".join((*_HEAD, *_lines()))


def _lines() -> Iterable[str]:
    files: dict[Row, list[str]] = {}
    for row in MATRIX:
        # A row without words shares those of the one above.
        files.setdefault(row if row.where else list(files)[-1], []).append(f"`{row.file}`")
    for row, named in files.items():
        yield f"| {row.where} | {row.injected} | {row.outcome} | {', '.join(named)} |"


def in_guide(text: str) -> str:
    """The guide with this table in place of the one that it has."""
    start = text.index(_HEAD[0].partition(" what")[0])
    end = text.index("\n\n", start)
    return text[:start] + table() + text[end:]


if __name__ == "__main__":
    GUIDE.write_text(in_guide(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{GUIDE}: {len(MATRIX)} rows\n")
