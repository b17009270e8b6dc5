"""Forking: what to change at the cursor, the branches that depart from this run, and playing one."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, get_args

from memreplay.conversations.models import Role
from memreplay.engine.events import ReplayEvent
from memreplay.errors import UsageError
from memreplay.numbers import counted
from memreplay.recording.branches import file_of_branches, opened_for_branches
from memreplay.recording.reader import Recording
from memreplay.settings import Settings
from memreplay.text import shortened
from memreplay.timeline.timeline import Timeline
from memreplay.trust import Consent
from memreplay.tui.controllers import ReplayHost
from memreplay.tui.live import LiveRun
from memreplay.tui.requests import BranchWanted, ForkWanted
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.terminal import loaded
from memreplay.views.panels.stores import fact_words
from memreplay.views.text import one_line

_SETTINGS = (
    "top-k=N, context-tokens=N, embedder=NAME, reranker=NAME, extractor=MODEL, ablate=NAME or tier-share=TIER=SHARE"
)
_WORKING = "scratchpad"
_NOT_SHOWN = frozenset({"agent_id", "event_id", "created_at", "last_updated", "current_task_id"})


@dataclass(frozen=True)
class _Choice:
    """Something that can be changed: its words in the list, what is asked for, and what an answer means.

    ``deletes`` is the deletion that an empty answer stands for; None if there has to be one. What ``is_working``
    is in an agent's scratchpad, which it writes anew at every turn.
    """

    words: str
    note: str
    value: str
    changed: Callable[[str], str]
    deletes: str | None = None
    inserts: bool = False
    is_working: bool = False

    def edits(self, text: str) -> dict[str, tuple[str, ...]]:
        """Return an answer as fields of :class:`memreplay.runtime.branching.Edits`."""
        if not text:
            return {"deleted": (self.deletes,)} if self.deletes else {}
        return {"inserted" if self.inserts else "changed": (self.changed(text),)}

    def refusal(self, text: str) -> str | None:
        """Return why an answer cannot be read."""
        from memreplay.runtime.branching import EditError, Edits

        if not text and not self.deletes:
            return self.note
        try:
            Edits(**self.edits(text)).branch("", "", 0)
        except EditError as error:
            return error.problem
        except UsageError as error:
            return str(error)
        return None


class Forking:
    """Asks what to change, and sends the wish on; the app plays the branch."""

    def __init__(self, source: ReplaySource, host: ReplayHost) -> None:
        self._source, self._host = source, host
        self._timeline = source.timeline

    def fork(self) -> None:
        """List what can be changed at the cursor, after the branches that there are."""
        if self._source.recorded_in is None:
            self._host.report("Nothing is played yet: space plays a turn, then F forks there.")
            return
        if not self._source.can_be_rebuilt:
            self._host.report("This run cannot be forked: its memories cannot be rebuilt.")
            return
        turn = min(self._host.cursor, self._timeline.last_turn)
        branches, every = branches_of(self._source), list(self._choices(turn))
        choices, working = ([each for each in every if each.is_working is kind] for kind in (False, True))
        title = f"fork after turn {turn}: what to change, or which branch to open"

        def chosen(place: int | None) -> None:
            if place is None:
                return
            if place < len(branches):
                self._host.post_message(BranchWanted(self._source, branches[place].run_id))
            elif (at := place - len(branches)) < len(choices):
                self._ask(choices[at], turn)
            else:
                self._host.open_screen(PickScreen(title, [each.words for each in working]), chosen_working)

        def chosen_working(place: int | None) -> None:
            if place is not None:
                self._ask(working[place], turn)

        names = [f"fork after turn {each.turn}: {each.edit}" for each in branches]
        names += [choice.words for choice in choices]
        names += [f"▸ {counted(len(working), 'value')} in the scratchpads of agents …"] if working else []
        self._host.open_screen(PickScreen(title, names), chosen)

    def _ask(self, choice: _Choice, turn: int) -> None:
        def typed(text: str | None) -> None:
            if text is None:
                return
            self._host.post_message(ForkWanted(self._source, turn, **choice.edits(text)))

        self._host.run_worker(loaded("memreplay.runtime.branching"), group="loading", exclusive=False)
        screen = TypingScreen(choice.words, choice.note, value=choice.value, refusal=choice.refusal)
        self._host.open_screen(screen, typed)

    def _choices(self, turn: int) -> Iterator[_Choice]:
        yield _Choice("a setting …", _SETTINGS, "", lambda text: text)
        yield _Choice(
            f"a new message after turn {turn} …",
            "what the user says, or assistant: what the assistant says",
            "",
            lambda text: f"message:{turn}={_with_role(text)}",
            inserts=True,
        )
        seen: set[str] = set()
        for backend in self._timeline.backends:
            held = self._timeline.snapshot_at(backend, turn)
            for states in held.values.values():
                kinds = Counter(key.partition(":")[0] for key in states)
                for key, state in states.items():
                    kind = key.partition(":")[0]
                    # Each agent has a personal state of its own; a shared state is alone.
                    yield from _state_choices(backend, kind if kinds[kind] == 1 else key.partition("/")[0], state)
            for collections in held.points.values():
                for points in collections.values():
                    yield from _point_choices(backend, points, seen)
        for message in self._timeline.conversation.turns[turn:]:
            yield _Choice(
                f"message {message.number}: {one_line(shortened(message.text))}",
                "other words; nothing typed drops the message",
                " ".join(message.text.split()),
                lambda text, number=message.number: f"message:{number}={text}",  # type: ignore[misc]
                deletes=f"message:{message.number}",
            )


def _state_choices(backend: str, name_of_state: str, state: Any) -> Iterator[_Choice]:
    """Yield the values in the parts of a state, such as the slots of a workspace."""
    for part, held in state.items() if isinstance(state, Mapping) else ():
        if part in _NOT_SHOWN or not isinstance(held, Mapping):
            continue
        for name, value in held.items():
            place = f"key:{name_of_state}/{_escaped(part)}/{_escaped(name)}"
            text = json.dumps(value, ensure_ascii=False)
            yield _Choice(
                f"{backend}  {shortened(fact_words(place.removeprefix('key:') + ' =', value))}",
                "a new value as JSON; nothing typed deletes it",
                text,
                lambda text, place=place: f"{place}={text}",  # type: ignore[misc]
                deletes=place,
                is_working=part == _WORKING,
            )


def _point_choices(backend: str, points: Mapping[str, Mapping[str, Any]], seen: set[str]) -> Iterator[_Choice]:
    for id_, payload in points.items():
        content = payload.get("content")
        if isinstance(content, str) and id_ not in seen:
            seen.add(id_)
            yield _Choice(
                f"{backend}  point {one_line(shortened(content))}",
                "other words; nothing typed deletes the point",
                " ".join(content.split()),
                lambda text, id_=id_: f"point:{id_}={text}",  # type: ignore[misc]
                deletes=f"point:{id_}",
            )


def _with_role(text: str) -> str:
    """Return a message with its role, which is the user's if none is typed."""
    return text if text.partition(":")[0].strip() in get_args(Role) else f"user: {text}"


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


@dataclass(frozen=True)
class KnownBranch:
    """A finished branch of a run: where it departs, and what it changes, in one line."""

    run_id: str
    turn: int
    edit: str


def branches_of(source: ReplaySource) -> list[KnownBranch]:
    """Return the finished branches that depart from a recorded conversation, oldest first.

    Raises:
        RecordingError: the recording cannot be read.
    """
    assert source.recorded_in is not None
    path, run_id = source.recorded_in
    path = file_of_branches(path, run_id)
    if not path.exists():
        return []
    with closing(Recording.open(path)) as recording:
        return [
            KnownBranch(run.id, run.branch.turn, run.branch.edit)
            for run in recording.runs()
            if run.branch is not None
            and run.status == "finished"
            and (run.branch.parent, run.branch.conversation) == (run_id, source.timeline.conversation.id)
        ]


async def play_branch(
    wanted: ForkWanted, given: Settings, consent: Consent, progress: Callable[[str], None]
) -> str:
    """Play a branch and ask all questions; the id of its run. A finished one is not played again.

    Raises:
        MemreplayError: an edit does not fit, or the recording, a server or a key is unusable.
    """
    from memreplay.runtime.branching import BranchRun, Edits, existing_branch, fork, is_complete

    source = wanted.source
    assert source.recorded_in is not None
    path, run_id = source.recorded_in
    own = file_of_branches(path, run_id)
    # A trunk that is still live goes on: the branch is recorded beside it.
    trunk = source.handle.recorder if source.handle is not None and not source.handle.is_over else None
    with closing(Recording.open(own if own.exists() else path) if trunk is None else trunk.reader()) as recording:
        edits = Edits(wanted.changed, wanted.deleted, wanted.inserted)
        branch = edits.branch(run_id, source.timeline.conversation.id, wanted.turn)
        made = await asyncio.to_thread(fork, recording, branch, given, consent)
        before = existing_branch(recording, made)
        complete = is_complete(recording, before)
    if before is not None and complete:
        return before.id
    path = await asyncio.to_thread(opened_for_branches, path, run_id)
    run = BranchRun(made, path, lambda sentence: None, resumes=before is not None, beside=trunk)
    timeline = Timeline(made.conversation)
    last = len(made.conversation.turns)

    def observe(event: ReplayEvent) -> None:
        timeline.append(event)

    live = LiveRun(run, timeline, observe)
    try:
        live.target = last
        await live.play(lambda turn: progress(f"branch: turn {turn}/{last}"))
        progress("branch: asking the questions")
        await live.ask()
        await live.complete()
    except BaseException:
        await live.abandon()
        raise
    assert run.recorder is not None
    if live.position < last:
        raise UsageError("the branch was stopped before its end")
    return run.recorder.run_id
