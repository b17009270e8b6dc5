"""A branch of a recorded run: the same run up to a turn, then with something changed by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from jsonpointer import JsonPointer, JsonPointerException

from memory_backends.base import MemoryBackend
from memory_backends.controls import CLOSED_BOOK
from memory_backends.editing import KeyEdit, PointEdit, edited_state
from memreplay.conversations.editing import MessageEdit, edited_conversation
from memreplay.conversations.models import Conversation, Role
from memreplay.engine.events import EventSink
from memreplay.engine.play import Played
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.errors import UsageError
from memreplay.llm.caching import CachedModel
from memreplay.llm.model import Reply
from memreplay.recording.branches import Branch
from memreplay.recording.reader import ANY_STATUS, Recording, RunInfo, RunStatus
from memreplay.recording.writer import RunRecorder, fingerprint
from memreplay.runtime.changes import paid_replies
from memreplay.runtime.recorded import Lineage, lineage_of, settings_of_run
from memreplay.runtime.run import Run
from memreplay.runtime.work import Work
from memreplay.settings import Settings, read_settings
from memreplay.timeline.timeline import Timeline
from memreplay.trust import Consent

BRANCH_SETTINGS = ("top_k", "context_tokens", "embedder", "reranker", "extractor", "ablate", "tier_share")
"""Settings that a branch may change. All but the first two make its memory, and hold from its first turn."""


@dataclass(frozen=True)
class Fork:
    """All that a branch needs of its trunk.

    ``paid`` are the parent's replies by request.
    """

    branch: Branch
    conversation: Conversation
    settings: Settings
    lineage: Lineage
    paid: Mapping[str, Reply]
    perceives: bool
    baselines: tuple[str, ...]

    @property
    def identity(self) -> str:
        """Return the fingerprint of a branch, by which the same command continues an interrupted one."""
        return fingerprint({"branch": self.branch.model_dump(mode="json"), "model": list(self.settings.model)})


def fork(recording: Recording, branch: Branch, given: Settings, consent: Consent) -> Fork:
    """Prepare a branch. Nothing is written.

    Raises:
        NotAllowedError: the recording asks for what neither the user's settings nor ``consent`` allow.
        UsageError: the edits do not fit, or there are none.
        RecordingError: the recording has no such run or conversation.
    """
    parent = recording.run(branch.parent)
    if not branch.edit:
        raise UsageError("a branch needs a change: --set, --delete or --insert")
    if "backend" not in parent.settings:
        raise UsageError(f"{recording.path}: run {parent.id} was imported: its memories cannot be rebuilt")
    before = recording.conversation(parent.id, branch.conversation)
    if not before.can_be_replayed:
        raise UsageError(f"{branch.conversation}: tests in which the agent converses cannot be forked")
    if not 0 <= branch.turn <= len(before.turns):
        raise UsageError(f"--at {branch.turn}: expected a turn from 0 to {len(before.turns)}")
    _refuse_before(parent, branch)
    settings = settings_of_run(parent.settings, given, recording.path, consent)
    timeline = recording.timeline(parent.id, branch.conversation)
    if 0 < timeline.played < branch.turn:
        raise UsageError(f"--at {branch.turn}: run {parent.id} was played up to turn {timeline.played} only")
    for edit in branch.stores:
        _refuse_unknown(edit, timeline, branch.turn)
    made = Fork(
        branch=branch,
        conversation=edited_conversation(before, branch.turn, branch.messages),
        settings=replace(settings, **branch.settings),
        lineage=lineage_of(recording, parent, branch),
        paid=paid_replies(timeline, settings.api_base),
        perceives=_has_perceived(recording, parent, branch.conversation),
        baselines=(CLOSED_BOOK,) if parent.settings.get("closed_book_asked_along") else (),
    )
    return replace(made, paid={**_paid_before(recording, made), **made.paid})


def _paid_before(recording: Recording, made: Fork) -> Mapping[str, Reply]:
    """Return the replies that an interrupted attempt at the same branch has paid for."""
    run, id_ = existing_branch(recording, made), made.branch.conversation
    if run is None or id_ not in recording.conversation_ids(run.id):
        return {}
    return paid_replies(recording.timeline(run.id, id_), made.settings.api_base)


def _refuse_before(parent: RunInfo, branch: Branch) -> None:
    """Refuse a turn before the parent branch departs: the new branch builds on its changes."""
    if parent.branch is not None and branch.turn < parent.branch.turn:
        raise UsageError(
            f"--at {branch.turn}: run {parent.id} is a branch that departs after turn {parent.branch.turn};"
            f" fork its parent {parent.branch.parent} to depart earlier"
        )


def _refuse_unknown(edit: KeyEdit | PointEdit, timeline: Timeline, turn: int) -> None:
    """Raise UsageError for an edit of something that no memory held at the turn; say what there was."""
    held = [timeline.snapshot_at(backend, turn) for backend in timeline.backends]
    if isinstance(edit, PointEdit):
        points = (
            ids for snapshot in held for collections in snapshot.points.values() for ids in collections.values()
        )
        if not any(edit.id in ids for ids in points):
            raise UsageError(f"point:{edit.id}: no memory held such a point after turn {turn}")
        return
    states = {
        key: value for snapshot in held for values in snapshot.values.values() for key, value in values.items()
    }
    for snapshot in held:
        _refuse_ambiguous(edit, [key for values in snapshot.values.values() for key in values], states)
    fitting = {key: value for key, value in states.items() if edit.fits(key) and isinstance(value, Mapping)}
    if not fitting:
        known = ", ".join(dict.fromkeys(key.partition(":")[0] for key in states)) or "no key"
        raise UsageError(f"key:{edit.key}: no memory held such a state after turn {turn}; there were {known}")
    if all(edited_state(value, edit) is None for value in fitting.values()):
        parts = edit.pointer.rsplit("/", 1)[0]
        nearby = [place for value in fitting.values() for place in _places_in(value, parts)]
        hint = f"; there were {', '.join(nearby[:_MOST_PLACES])}" if nearby else ""
        raise UsageError(f"key:{edit.key}{edit.pointer}: no such place after turn {turn}{hint}")


def _refuse_ambiguous(edit: KeyEdit, held: Sequence[str], states: Mapping[str, Any]) -> None:
    """Raise UsageError if several states of one memory have the place: which of them is meant?"""
    found = [
        key
        for key in held
        if edit.fits(key) and isinstance(states[key], Mapping) and edited_state(states[key], edit) is not None
    ]
    if len(found) > 1:
        names = ", ".join(f"key:{key.partition('/')[0]}{edit.pointer}" for key in found)
        raise UsageError(f"key:{edit.key}{edit.pointer}: several states have this place; name one: {names}")


_MOST_PLACES = 12


def _places_in(state: Mapping[str, Any], pointer: str) -> list[str]:
    """Pointers to the values at a place in a state; none if the place does not exist."""
    try:
        found = JsonPointer(pointer).resolve(state)
    except JsonPointerException:
        return []
    return [f"{pointer}/{name}" for name in found] if isinstance(found, Mapping) else []


def _has_perceived(recording: Recording, run: RunInfo, conversation: str) -> bool:
    return next(iter(recording.events(run.id, conversation, ("perceived",))), None) is not None


def existing_branch(recording: Recording, made: Fork) -> RunInfo | None:
    """Return the newest run of the same branch, whatever has become of it."""
    return next((run for run in reversed(recording.runs()) if run.fingerprint == made.identity), None)


def is_complete(recording: Recording, run: RunInfo | None) -> bool:
    """Return whether a branch was played to its end, and each of its questions was answered."""
    if run is None or run.status != "finished":
        return False
    answers = [answer for id_ in recording.conversation_ids(run.id) for answer in recording.asks(run.id, id_)]
    return all(answer.received is not None and answer.received.reply.error is None for answer in answers)


class BranchRun(Run):
    """Plays a branch, and records it as a run of its own in the trunk's recording."""

    def __init__(
        self,
        made: Fork,
        path: Path,
        warn: Callable[[str], None],
        *,
        resumes: bool = False,
        beside: RunRecorder | None = None,
    ) -> None:
        """``resumes`` an interrupted one, where :meth:`begin_run` does not say so.

        ``beside`` is what records the trunk, if this process is recording it.
        """
        # Workers know no branches.
        settings = replace(made.settings, workers=None, cluster=None)
        work = Work([made.conversation])
        super().__init__(settings, path, work, warn=warn)
        self.implicit_baselines = made.baselines
        self._made, self._continues, self._beside = made, resumes, beside
        self.answer_model = CachedModel(self.answer_model, _Paid(made.paid))
        self._answerer = self.answerer(self.answer_model)

    def begin_run(
        self, conversations: Mapping[str, str], datasets: Sequence[str], *, resume: Collection[RunStatus] = ()
    ) -> None:
        """Start recording the branch, or resume it if it was interrupted."""
        if resume or self._continues:
            # A finished one is taken up again where answers ended in an error.
            self.recorder = RunRecorder.resume(self.recording_path, self._made.identity, ANY_STATUS, self._beside)
            return
        settings = self._recorded_settings()
        self.recorder = RunRecorder.start(
            self.recording_path, settings, datasets, self._made.identity, self._made.branch, self._beside
        )

    def start_session(
        self,
        conversation: Conversation,
        emit: EventSink | None = None,
        *,
        backends: Sequence[str] | None = None,
        perceive: bool = True,
        played: Played | None = None,
    ) -> ReplaySession:
        """Return a session of the branch; memories perceive turns if those of the trunk did."""
        names = (*self.backend_names, *self.implicit_baselines) if backends is None else backends
        if self._continues and self.recorder is None:
            self.begin_run({}, [])
            assert self.recorder is not None
            self.recorder.add_conversation(conversation)
            self.recorder.forget_ingestion(conversation.id, names)
            asked = self.recorder.reader().asks(self.recorder.run_id, conversation.id)
            self.recorder.forget_asks(conversation.id, [answer.asked for answer in asked])
        perceives = self._made.perceives
        return super().start_session(conversation, emit, backends=names, perceive=perceives, played=played)

    def plan(self, run_id: str, memories: Mapping[str, MemoryBackend], *, perceive: bool) -> ReplayPlan:
        lineage = self._made.lineage
        plan = super().plan(lineage.root, memories, perceive=perceive)
        return replace(
            plan, edits=lineage.edits, earlier=lineage.earlier, ends_of_exchanges=lineage.ends_of_exchanges
        )


class _Paid:
    """The parent's replies, as a cache that takes no others."""

    def __init__(self, replies: Mapping[str, Reply]) -> None:
        self._replies = replies

    def get(self, key: str) -> Reply | None:
        return self._replies.get(key)

    def put(self, key: str, reply: Reply) -> None:
        return


FORMS = (
    "top-k, context-tokens, embedder, reranker, extractor, ablate, tier-share, message:N, key:KEY/PLACE or point:ID"
)

_MESSAGE = re.compile(r"message:(\d+)")

_POINT = re.compile(r"point:(\S+)")

_KEY = re.compile(r"key:([^/]+)(/.*)")

_SEVERAL = ("ablate", "tier_share")

Edit = MessageEdit | KeyEdit | PointEdit | tuple[str, str]


class EditError(UsageError):
    """A change that cannot be read. ``problem`` says why, without the option of the command line."""

    def __init__(self, option: str, text: str, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{option} {text}: {problem}")


@dataclass(frozen=True)
class Edits:
    """Changes as they were typed: ``changed`` have a value, ``deleted`` name what goes, ``inserted`` are messages.

    An error names the option of the command line.
    """

    changed: Sequence[str] = ()
    deleted: Sequence[str] = ()
    inserted: Sequence[str] = ()

    def branch(self, parent: str, conversation: str, turn: int) -> Branch:
        """Return the branch that these make.

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
            raise EditError("--set", text, f"expected the new words of the message; --delete {what} drops it")
        return MessageEdit(turn=int(found[1]), text=value)
    if (found := _POINT.fullmatch(what)) and value.strip():
        return PointEdit(id=found[1], content=value)
    if found := _KEY.fullmatch(what):
        return KeyEdit(key=found[1], pointer=found[2], value=_json(text, value))
    raise EditError("--set", text, f"expected {FORMS}, then = and the value")


def _json(option: str, value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        raise EditError("--set", option, 'expected a value in JSON, such as "text" in quotes, or 3') from None


def _deleted(what: str) -> Edit:
    if found := _MESSAGE.fullmatch(what):
        return MessageEdit(turn=int(found[1]))
    if found := _POINT.fullmatch(what):
        return PointEdit(id=found[1])
    if found := _KEY.fullmatch(what):
        return KeyEdit(key=found[1], pointer=found[2], removes=True)
    raise EditError("--delete", what, "expected message:N, key:KEY/PLACE or point:ID")


def _inserted(text: str) -> MessageEdit:
    what, _, said = text.partition("=")
    role, _, words = said.partition(":")
    speaker: Role | None = next((each for each in get_args(Role) if each == role.strip()), None)
    found = _MESSAGE.fullmatch(what)
    if found is None or speaker is None or not words.strip():
        raise EditError("--insert", text, "expected message:N=user: TEXT, or assistant: TEXT")
    return MessageEdit(turn=int(found[1]), text=words.strip(), role=speaker)


def _settings(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Settings, spelt and checked as in the environment."""
    texts: dict[str, str] = {}
    for name, value in pairs:
        texts[name] = f"{texts[name]},{value}" if name in _SEVERAL and name in texts else value
    read = read_settings(**texts)
    return {name: getattr(read, name) for name in texts}
