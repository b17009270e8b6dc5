"""Plays a branch for the screen: the same as ``memreplay fork``, with its progress in words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing

from memreplay.engine.events import ReplayEvent
from memreplay.errors import UsageError
from memreplay.recording.branches import file_of_branches, opened_for_branches
from memreplay.recording.reader import Recording
from memreplay.runtime.branching import BranchRun, existing_branch, fork, is_complete
from memreplay.runtime.edits import Edits
from memreplay.settings import Settings
from memreplay.timeline.timeline import Timeline
from memreplay.tui.live import LiveRun
from memreplay.tui.requests import ForkWanted


async def play_branch(wanted: ForkWanted, given: Settings, progress: Callable[[str], None]) -> str:
    """Play a branch and ask all questions; the id of its run. A finished one is not played again.

    Raises:
        MemreplayError: an edit does not fit, or the recording, a server or a key is unusable.
    """
    source = wanted.source
    assert source.recorded_in is not None
    path, run_id = source.recorded_in
    own = file_of_branches(path, run_id)
    # A trunk that is still live goes on: the branch is recorded beside it.
    trunk = source.handle.recorder if source.handle is not None and not source.handle.is_over else None
    with closing(Recording.open(own if own.exists() else path) if trunk is None else trunk.reader()) as recording:
        edits = Edits(wanted.changed, wanted.deleted, wanted.inserted)
        branch = edits.branch(run_id, source.timeline.conversation.id, wanted.turn)
        made = await asyncio.to_thread(fork, recording, branch, given)
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
