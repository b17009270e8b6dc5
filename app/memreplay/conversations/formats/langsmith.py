"""Runs exported from LangSmith: a list or JSON Lines of runs, or an object with ``runs``.

A thread is the ``session_id``, ``thread_id`` or ``conversation_id`` in a run's metadata, else its trace. Of each
trace the root run counts; where it holds no messages, its model calls do. Source of the format: LangSmith's
documentation, "Run (span) data format" and "Threads".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import Call, messages_in, moment, threads
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.errors import DatasetError

NAME = "LangSmith runs"
SIGNATURE = 'LangSmith runs (with "run_type")'

_THREAD = ("session_id", "thread_id", "conversation_id")


def detect(file: DatasetFile) -> bool:
    return "run_type" in file.fields or "runs" in file.fields


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation for each thread."""
    return threads(file, _calls(file, callbacks), callbacks)


def _calls(file: DatasetFile, callbacks: LoadCallbacks) -> Iterator[Call]:
    by_trace: dict[str, list[tuple[bool, bool, Call]]] = defaultdict(list)
    for place, run in _runs(file, callbacks):
        try:
            call = _call(run, place)
        except DatasetError as error:
            callbacks.on_error(error)
            continue
        if call.given or call.returned:
            by_trace[str(run.get("trace_id") or run.get("id"))].append(
                (not run.get("parent_run_id"), run.get("run_type") == "llm", call)
            )
    for found in by_trace.values():
        roots = [call for is_root, _, call in found if is_root]
        models = [call for _, is_model, call in found if is_model]
        yield from roots or models or [call for *_, call in found]


def _runs(file: DatasetFile, callbacks: LoadCallbacks) -> Iterator[tuple[Place, dict[str, Any]]]:
    for place, value in file.values(callbacks):
        inside = value.get("runs") if isinstance(value, dict) else None
        found = (
            [(place.at("runs", i), each) for i, each in enumerate(inside)]
            if isinstance(inside, list)
            else [(place, value)]
        )
        for at, run in found:
            if not isinstance(run, dict) or "run_type" not in run:
                callbacks.on_error(at.error(f"is {shown(run)}", 'a run with "run_type"'))
                continue
            yield at, run


def _call(run: dict[str, Any], place: Place) -> Call:
    extra = run.get("extra")
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    named = [metadata[name] for name in _THREAD if metadata.get(name)] if isinstance(metadata, dict) else []
    return Call(
        thread=str(named[0] if named else run.get("trace_id") or run.get("id")),
        at=moment(run.get("start_time")),
        order=str(run.get("dotted_order", "")),
        given=messages_in(run.get("inputs"), "user", place.at("inputs")),
        returned=messages_in(run.get("outputs"), "assistant", place.at("outputs")),
    )
