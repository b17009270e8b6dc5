"""From a line on the screen to the command that wrote what it shows. It knows no screen."""

from __future__ import annotations

from app.replay.events import Operated
from app.replay.provenance import Origin, hit_written_by, point_written_by, value_written_by
from app.replay.timeline import Timeline
from app.tui.subjects import PieceSubject, StoredSubject, ValueSubject, WrittenSubject


def origin_of(timeline: Timeline, subject: WrittenSubject, turn: int) -> Origin | None:
    """The last write at or before a position that made a thing what it is there; None where none is on record."""
    match subject:
        case ValueSubject(backend, key, path):
            return value_written_by(timeline, backend, key, path, turn)
        case PieceSubject(backend, key, number):
            return _append_of(timeline, backend, key, number, turn)
        case StoredSubject(backend, "qdrant", "", point_id):
            written = [
                origin
                for name in timeline.collections(backend)
                for origin in point_written_by(timeline, backend, name, point_id, turn)
            ]
        case StoredSubject(backend):
            written = hit_written_by(timeline, backend, subject.as_hit(), turn)
    return written[-1] if written else None


def _append_of(timeline: Timeline, backend: str, key: str, number: int, turn: int) -> Origin | None:
    """The append that a piece of a log is, by its 0-based number."""
    appends = timeline.log(backend, key).writes_until(turn)
    if number >= len(appends):
        return None
    at, ref, _ = appends[number]
    event = timeline.archive.event(ref)
    return Origin(backend, at, ref, event.operation) if isinstance(event, Operated) else None


def origin_words(origin: Origin) -> str:
    """A write in one line: turn, command, place, who did it, on account of which turns, and how long it took."""
    operation = origin.operation
    because = f" because of turn {', '.join(operation.turns)}" if operation.turns else ""
    return (
        f"written at turn {origin.turn} by {operation.actor}{because} · {operation.store} {operation.command}"
        f" {operation.key} · {operation.ms:.1f} ms · ⌫ returns"
    )
