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
from memreplay.conversations.messages import LeftOut, MessageReader, decoded, side
from memreplay.conversations.models import Conversation
from memreplay.conversations.traces import Call, read_calls
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.errors import DatasetError

NAME = "LangSmith runs"
SIGNATURE = 'LangSmith runs (with "run_type")'

_THREAD = ("session_id", "thread_id", "conversation_id")


def detect(file: DatasetFile) -> bool:
    return "run_type" in file.fields or "runs" in file.fields


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation for each thread."""
    return read_calls(file, callbacks, _calls, _of_roots)


def _calls(value: Any, place: Place, reader: MessageReader) -> Iterator[Call | DatasetError]:
    inside = value.get("runs") if isinstance(value, dict) else None
    found = (
        [(place.at("runs", i), each) for i, each in enumerate(inside)]
        if isinstance(inside, list)
        else [(place, value)]
    )
    for at, run in found:
        if not isinstance(run, dict) or "run_type" not in run:
            yield at.error(f"is {shown(run)}", 'a run with "run_type"')
            continue
        if run["run_type"] not in ("llm", "chain", "prompt", "agent"):
            reader.left_out.add("run", f"of type {run['run_type']} is not shown", at)
            continue
        yield _call(run, at)


def _of_roots(calls: list[Call], left_out: LeftOut) -> Iterator[Call]:
    """Yield of each trace the root calls that hold messages; else its model calls, else all."""
    by_trace: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_trace[call.trace].append(call)
    for of_trace in by_trace.values():
        found = [call for call in of_trace if call.given or call.returned]
        roots = [call for call in found if call.is_root]
        models = [call for call in found if call.is_model]
        chosen = roots or models or of_trace
        yield from chosen
        counted = set(map(id, chosen))
        texts = {message.text for call in chosen for message in (*call.given, *call.returned)}
        for call in of_trace:
            if id(call) not in counted and not texts.issuperset(m.text for m in (*call.given, *call.returned)):
                where = "inside another one" if roots else "beside the calls of the model"
                left_out.add("run", f"{where} is not shown", call.place)


def _call(run: dict[str, Any], place: Place) -> Call:
    reader = MessageReader()
    extra = decoded(run.get("extra"))
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    named = [metadata[name] for name in _THREAD if metadata.get(name)] if isinstance(metadata, dict) else []
    named += [run["thread_id"]] if run.get("thread_id") else []
    trace = str(run.get("trace_id") or run.get("id"))
    return Call(
        thread=str(named[0] if named else trace),
        at=reader.time(run.get("start_time"), place),
        order=str(run.get("dotted_order", "")),
        given=side(run.get("inputs"), "user", reader, place.at("inputs")),
        returned=side(run.get("outputs"), "assistant", reader, place.at("outputs")),
        place=place,
        name=str(run.get("name") or ""),
        trace=trace,
        is_root=not run.get("parent_run_id"),
        is_model=run.get("run_type") == "llm",
        left_out=reader.left_out,
    )
