"""A shrunk failure as documents: a text for an issue, and a test."""

from __future__ import annotations

import json
import platform
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from memory_backends.base import Hit, Snapshot
from memory_backends.stores.trace import Extraction, ModelCall
from memreplay import __version__
from memreplay.conversations.export import as_test_conversation, as_test_conversation_text
from memreplay.conversations.models import Conversation, Question
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.numbers import counted
from memreplay.printable import printable
from memreplay.runtime.shrinking import Shrinker, Tried
from memreplay.settings import command_line
from memreplay.views.table import plain
from memreplay.views.text import one_line

_SETTINGS = ("top_k", "context_tokens", "embedder", "reranker", "extractor", "ablate", "tier_share")
_LIBRARIES = {"mem0": "mem0ai", "chroma": "chromadb", "graphiti": "graphiti-core", "langgraph": "langgraph"}
_UNSET: tuple[object, ...] = (None, (), [], False)
_REPLAY = ("--batch", "--dataset", "case.json")
_MOST_STORED = 40
_LONGEST_LINE = 400


@dataclass(frozen=True)
class ShrunkCase:
    """A conversation that makes a memory fail, as it was last played to it.

    ``turns_before`` is the length of the conversation that it was shrunk from. ``settings`` are the memory's, and
    ``command`` the options of ``memreplay --batch`` that set them.
    """

    conversation: Conversation
    question: Question
    backend: str
    model: str
    settings: Mapping[str, Any]
    libraries: Mapping[str, str]
    turns_before: int
    verdict: str
    detail: str
    of_memory: bool
    hits: Sequence[Hit]
    stored: Snapshot
    reply: str | None
    command: Sequence[str]
    notes: Sequence[str] = ()
    writing: Sequence[ModelCall | Extraction] = ()


def shrunk_case(shrinker: Shrinker, last: Tried) -> ShrunkCase:
    """Return the result of a search, as it was last played."""
    case = shrinker.case
    settings, received = asdict(shrinker.settings), last.answer.received
    needs_reply = case.needs_replies or case.model == EXTRACTIVE_MODEL
    library = _LIBRARIES.get(case.backend)
    top_k, hits = shrinker.settings.top_k, last.answer.asked.hits
    notes: list[str] = []
    if top_k != case.settings.top_k:
        notes.append(
            f"top-k was lowered from {case.settings.top_k} to {top_k}, so that fewer other items are enough to keep"
            " the answer out (memreplay shrink --same-hits keeps it)"
        )
    elif case.failure.label == "not_retrieved" and 1 < top_k == len(hits):
        notes.append(f"memory returned {top_k} items, so it takes as many others to keep the answer out")
    given = {name: settings[name] for name in _SETTINGS if settings.get(name) not in _UNSET}
    tags = (f"failure={case.failure.label}", f"backend={case.backend}", *_in_words(given))
    of_run = ("backend", *_SETTINGS, "backend_config", *(["model"] if case.needs_replies else []))
    return ShrunkCase(
        conversation=last.conversation.model_copy(update={"tags": tags}),
        question=last.question,
        backend=case.backend,
        model=case.model,
        settings=given,
        libraries={library: _version(library)} if library else {},
        turns_before=shrinker.progress.first,
        verdict=case.failure.words,
        detail=last.attribution.detail,
        of_memory=not case.needs_replies,
        hits=hits,
        stored=last.stored,
        reply=received.reply.text if received is not None and needs_reply else None,
        command=command_line({name: settings[name] for name in of_run}),
        notes=notes,
        writing=last.writing,
    )


def _in_words(settings: Mapping[str, Any]) -> list[str]:
    return [f"{name.replace('_', '-')}={_plain(value)}" for name, value in settings.items()]


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "of an unknown version"


def text_in(suffix: str, case: ShrunkCase) -> str:
    """Return the case as a dataset (``.json``), a text for an issue (``.md``) or a test (``.py``)."""
    if suffix == ".json":
        return as_test_conversation_text(case.conversation)
    return issue_text(case) if suffix == ".md" else test_text(case)


def issue_text(case: ShrunkCase) -> str:
    """Return Markdown to be pasted into an issue."""
    question, lines = case.question, [f"# {_line(case.backend)}: {case.verdict}", ""]
    lines += [
        f"Asked **{_line(question.text)}**, after the conversation below.",
        "",
        f"- Expected: {_line(question.expected)}",
        f"- Actual: {_line(case.reply) if case.reply is not None else 'the answer is not in what memory returns'}",
        f"- Verdict: {case.verdict}. {_line(case.detail)}",
        f"- Shrunk from {case.turns_before} turns to {len(case.conversation.turns)}.",
        *(f"- {_line(note)}" for note in case.notes),
        "",
        "## Versions and settings",
        "",
        f"- memreplay {__version__}, Python {platform.python_version()}",
        *(f"- {name} {version}" for name, version in case.libraries.items()),
        f"- memory {_code(case.backend)}, read by {_code(case.model)}",
        *(f"- {name.replace('_', '-')}: {_code(_plain(value))}" for name, value in case.settings.items()),
        "",
        "## Conversation",
        "",
        *_conversation(case),
        *_writing(case.writing),
        "## Stored",
        "",
        *_stored(case.stored),
        "",
        "## Retrieved",
        "",
        *(_hit(hit) for hit in case.hits),
    ]
    if not case.hits:
        lines.append("Nothing.")
    # No text of others can end the block.
    data = as_test_conversation_text(case.conversation).replace("`", "\\u0060").replace("<", "\\u003c")
    lines += [
        "",
        "## To reproduce",
        "",
        f"Save this as `case.json`, then run {_code(shlex.join(['memreplay', *_REPLAY, *case.command]))}",
        "",
        "<details><summary>case.json</summary>",
        "",
        "```json",
        data.rstrip(),
        "```",
        "",
        "</details>",
    ]
    return "\n".join(lines) + "\n"


def _conversation(case: ShrunkCase) -> Iterable[str]:
    evidence = frozenset(case.question.evidence)
    for session in case.conversation.sessions:
        turns = [turn for turn in case.conversation.turns if turn.session == session.number]
        if session.date is not None:
            yield f"Session of {session.date:%Y-%m-%d %H:%M}"
            yield ""
        for turn in turns:
            mark = " ← the answer" if turn.id in evidence else ""
            label = _line(case.conversation.label_of(turn))
            yield f"- {_code(turn.id)} **{label}:** {_line(turn.text)}{mark}"
        yield ""


def _writing(calls: Sequence[ModelCall | Extraction]) -> Iterable[str]:
    """Yield what the model said that the memory writes with."""
    if not calls:
        return
    yield "## What the writer replied"
    yield ""
    for call in calls[:_MOST_STORED]:
        problem = call.error or call.rejected or (call.cut_at and f"cut at {call.cut_at} tokens")
        turns = ", ".join(map(_code, call.turns))
        yield f"- {_code(call.model)} to {turns}: {_line(call.reply or call.wanted or 'nothing')}" + (
            f" ({_line(problem)})" if problem else ""
        )
    if len(calls) > _MOST_STORED:
        yield f"- and {len(calls) - _MOST_STORED} more"
    yield ""


def _stored(stored: Snapshot) -> list[str]:
    lines: list[str] = []
    for places in stored.values.values():
        lines += [f"- {_code(key)}: {_line(_plain(value))}" for key, value in places.items()]
    for collections in stored.points.values():
        for name, points in collections.items():
            lines += [f"- {_code(name)}: {_line(_text_of(payload))}" for payload in points.values()]
    left_out = len(lines) - _MOST_STORED
    return (lines[:_MOST_STORED] + ([f"- and {left_out} more"] if left_out > 0 else [])) or ["Nothing."]


def _text_of(payload: Mapping[str, Any]) -> str:
    text = payload.get("content")
    return text if isinstance(text, str) else _plain(payload)


def _hit(hit: Hit) -> str:
    return f"{hit.rank}. {_line(hit.text)}" + ("" if hit.in_prompt else " (cut by the token budget)")


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _line(text: str) -> str:
    """Return a text of others on one line that is no markup."""
    flat = one_line(text)
    return plain(flat if len(flat) <= _LONGEST_LINE else flat[: _LONGEST_LINE - 1] + "…")


def _code(text: str) -> str:
    return f"`{printable(one_line(text)).replace('`', chr(39))}`"


def test_text(case: ShrunkCase) -> str:
    """Return a pytest module that fails as long as the memory does; it needs memreplay and the memory's library."""
    written = json.dumps(as_test_conversation(case.conversation), ensure_ascii=True, indent=2)
    arguments = {"backend": case.backend, **({} if case.of_memory else {"model": case.model}), **case.settings}
    given = "".join(f", {name}={value!r}" for name, value in arguments.items())
    name = re.sub(r"\W+", "_", f"{case.backend}_{case.question.id}").strip("_").lower()
    method = "recalls" if case.of_memory else "answers"
    return _TEST.format(
        summary=in_docstring(
            f"{case.backend}: {case.verdict}. A conversation of {counted(len(case.conversation.turns), 'turn')},"
            f" shrunk from {case.turns_before:,} by memreplay." + "".join(f" Note: {note}." for note in case.notes)
        ),
        written=written.replace("\\", "\\\\").replace('"""', '\\"\\"\\"'),
        given=given,
        name=name,
        method=method,
        question=case.question.id,
    )


def in_docstring(text: str) -> str:
    """Return a text of others on one line that cannot end the string that it stands in."""
    return printable(" ".join(text.split())).replace("\\", "\\\\").replace('"', "'")


_TEST = '''\
"""{summary}"""

import json
import tempfile
from pathlib import Path

import pytest

CONVERSATION = """
{written}
"""

CASE = Path(tempfile.mkdtemp()) / (json.loads(CONVERSATION)["id"].replace("/", "-") + ".json")
CASE.write_text(CONVERSATION, encoding="utf-8")


@pytest.mark.memreplay(dataset=CASE{given})
def test_{name}(memory):
    assert memory.{method}({question!r})
'''
