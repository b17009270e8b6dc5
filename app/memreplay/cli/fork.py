"""``memreplay fork``: change something in a recorded session at a turn, play on, and compare."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from memory_backends.controls import CONTROLS
from memreplay.batch.recorded_run import RunPlan, run_recorded
from memreplay.batch.report import results_of_run
from memreplay.cli.options import (
    COMMAND_OPTIONS,
    SET_BY_A_RUN,
    AllowFromRecording,
    GivenSettings,
    consent_to,
    takes_settings,
)
from memreplay.cli.why import exit_code_of
from memreplay.debugger.alignment import divergence
from memreplay.errors import EXIT_QUESTION_ERRORS, UsageError
from memreplay.printable import printable
from memreplay.recording.branches import Branch, file_of_branches, opened_for_branches
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording, RunInfo
from memreplay.runtime.branching import FORMS, BranchRun, Edits, existing_branch, is_complete
from memreplay.runtime.branching import fork as prepared
from memreplay.scoring.attribution import edited_evidence
from memreplay.scoring.holding import Answerable
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.run_comparison import AnswerRow, compare_runs
from memreplay.settings import read_settings
from memreplay.terminal import say
from memreplay.views.comparison import comparison_text, divergence_words

command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
@takes_settings("api_base", "concurrency", "rpm", "tpm", "timeout", "cache", "offline", of_recording=SET_BY_A_RUN)
def fork(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    at: Annotated[int, typer.Option(metavar="TURN", help="Depart after this turn; 0 is before the first.")],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="WHAT=VALUE",
            help=f"Change a setting, a later message, a value in a state (JSON) or a point: {FORMS}. Repeatable.",
        ),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT", help="Delete message:N, key:KEY/PLACE or point:ID. Repeatable."),
    ] = None,
    insert: Annotated[
        list[str] | None,
        typer.Option(
            metavar="message:N=ROLE: TEXT",
            help="Insert a message after message N; ROLE is user or assistant. Repeatable.",
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="ID", help="Run or branch to depart from. [default: the newest run]")
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Conversation of the run, if it has several.")
    ] = None,
    allow_from_recording: AllowFromRecording = False,
    *,
    given: GivenSettings,
) -> None:
    """Change something in a recorded session after a turn, play on, ask all questions, and compare.

    The branch is saved in the same recording; the run that it departs from is not changed. Memory is rebuilt up to
    the turn on embedded stores. Replies to prompts that did not change are taken from the recording. Run the same
    command again to continue after an interruption, or to ask again what ended in an error. Memories and models are
    those of the recording. One that runs code, or contacts a provider or an address, is used only if your own
    settings name it too.
    """
    settings = read_settings(**given)
    with closing(Recording.open(file)) as recording:
        own = file_of_branches(file, recording.run(run).id)
    with closing(Recording.open(own if own.exists() else file)) as recording, reporting_damage(file):
        parent = recording.run(run)
        edits = Edits(set_ or (), delete or (), insert or ())
        branch = edits.branch(parent.id, _conversation(recording, parent, conversation), at)
        made = prepared(recording, branch, settings, consent_to(file, allow_from_recording))
        before = existing_branch(recording, made)
        complete = is_complete(recording, before)
    if own != file:
        say(f"{file} is shipped and stays as it is; the branch is saved in {own}")
        file = opened_for_branches(file, made.lineage.root)
    if not complete:
        branch_run = BranchRun(made, file, lambda sentence: say(f"warning: {sentence}"))
        plan = RunPlan(
            perceive=made.perceives, resume=before is not None, retry_errors=before is not None, to_retry=""
        )
        ending = asyncio.run(run_recorded(branch_run, plan))
        if ending != "complete":
            say(f"{ending}; everything finished so far is saved. To continue, run the same command again")
            raise typer.Exit(exit_code_of(ending))
    with closing(Recording.open(file)) as recording, reporting_damage(file):
        found = existing_branch(recording, made)
        assert found is not None
        rows = _compare(recording, parent, found, branch)
    if any(row.outcome == "error" for row in rows):
        raise typer.Exit(EXIT_QUESTION_ERRORS)


def _compare(recording: Recording, parent: RunInfo, run: RunInfo, branch: Branch) -> Sequence[QuestionRow]:
    """Print what the branch changed; its rows."""
    trunk, other = (recording.timeline(each.id, branch.conversation) for each in (parent, run))
    print(f"branch {run.id} of {parent.id} at turn {branch.turn}: {printable(branch.edit)}")
    for backend in other.backends:
        if backend in CONTROLS:
            continue
        print(f"  {backend}: memory {divergence_words(divergence(trunk, other, backend), branch)}")
    turns, days = other.conversation.turns_by_id, other.conversation.days_by_session
    for question in other.conversation.questions:
        if (answerable := Answerable(question, turns, days)).edited:
            print(f"  {printable(edited_evidence(answerable))}")
    sides = [
        [row for row in results_of_run(recording, each).questions if row.conversation == branch.conversation]
        for each in (parent, run)
    ]
    before, after = ([AnswerRow.model_validate(row.model_dump()) for row in rows] for rows in sides)
    print("\nA is the run that it departs from, B the branch.")
    print("\n".join(comparison_text(compare_runs(before, after, parent.settings, run.settings))))
    print(printable(f"the branch's own results: memreplay report {recording.path} --run {run.id}"), file=sys.stderr)
    return sides[1]


def _conversation(recording: Recording, run: RunInfo, wanted: str | None) -> str:
    known = recording.conversation_ids(run.id)
    if wanted is None and len(known) == 1:
        return known[0]
    if wanted not in known:
        raise UsageError(f"--conversation: expected one of {', '.join(known)}")
    return wanted
