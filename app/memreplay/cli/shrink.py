"""``memreplay shrink``: the smallest conversation on which a memory still fails at the same stage."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from memreplay.batch.progress import BatchProgress
from memreplay.batch.recorded_run import RunPlan, Surroundings, run_recorded
from memreplay.capture.redacting import Redaction
from memreplay.cli.options import (
    COMMAND_OPTIONS,
    AllowFromRecording,
    GivenSettings,
    consent_to,
    takes_settings,
)
from memreplay.conversations.models import Conversation, exchanges_of
from memreplay.errors import EXIT_INTERRUPTED, UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.numbers import counted
from memreplay.printable import printable
from memreplay.recording.annotations import annotations_of
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.runtime.run import start
from memreplay.runtime.shrinking import Case, Progress, Shrinker, Tried, case_in, refuse_without_calls
from memreplay.runtime.work import Work
from memreplay.settings import Settings, read_settings
from memreplay.signals import two_step_interrupt
from memreplay.terminal import say
from memreplay.timeline.annotations import FAILS, Bookmark
from memreplay.views.shrunk_case import ShrunkCase, shrunk_case, text_in

command = typer.Typer(**COMMAND_OPTIONS)

_SUFFIXES = (".json", ".md", ".py", ".sqlite3")
_SECONDS_BETWEEN_LINES = 2.0


@command.command()
@takes_settings(
    "api_base",
    "rpm",
    "tpm",
    "timeout",
    "cache",
    "offline",
    "workers",
    of_recording=("model", "embedder", "reranker", "extractor", "judge"),
)
def shrink(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    question: Annotated[str, typer.Option(metavar="ID", help="The question's id, or its end if that is unique.")],
    output: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Write the conversation here: .json (dataset), .md (text for an issue), .py (pytest), .sqlite3"
            " (recording). Repeatable. Needed without --estimate.",
        ),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The memory. [default: the one that answers wrongly, if only one does]"),
    ] = None,
    calls: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Most calls of models that cost. A fact that memory lost needs none, a misread one a call a try.",
        ),
    ] = 0,
    tries: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most conversations to play. [default: until minimal]")
    ] = None,
    fewer_hits: Annotated[
        bool,
        typer.Option(
            "--fewer-hits/--same-hits",
            help="Lower top-k too where a fact was not retrieved: to be kept out of ten hits, it needs ten others.",
        ),
    ] = True,
    anonymise: Annotated[
        bool,
        typer.Option("--anonymise", help="Replace names, numbers and addresses at the end, if it still fails."),
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say which models would be called, and how often; shrink nothing.")
    ] = False,
    run: Annotated[str | None, typer.Option(metavar="ID", help="Run. [default: the newest run]")] = None,
    allow_from_recording: AllowFromRecording = False,
    *,
    given: GivenSettings,
) -> None:
    """Find the smallest conversation on which a memory still fails at the same stage.

    Sessions, exchanges, turns, sentences and words are removed; what is left is played to the memory anew, on
    embedded stores, and the question asked. The turns with the answer stay. Ctrl-C ends the search and writes the
    smallest conversation so far; the same command goes on from there. Memories and models are those of the
    recording. One that runs code, or contacts a provider or an address, is used only if your own settings name it
    too.
    """
    outputs = output or []
    if not outputs and not estimate:
        raise UsageError("--output PATH: name at least one file, or say --estimate")
    _check_outputs(outputs, file)
    settings = read_settings(**given, **({"backend": (backend,)} if backend else {}))
    with closing(Recording.open(file)) as recording, reporting_damage(file):
        case = case_in(
            recording,
            recording.run(run),
            question,
            backend,
            settings,
            consent_to(file, allow_from_recording),
        )
    if estimate:
        _print_estimate(case)
        return
    refuse_without_calls(case, calls)
    shown = _Lines()
    try:
        shrinker, last = asyncio.run(_shrink(case, calls, tries, fewer_hits, anonymise, shown))
    except asyncio.CancelledError:
        say("ended at once, and nothing was written; the tries are kept: to continue, run the same command again")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    progress = shrinker.progress
    found = shrunk_case(shrinker, last)
    for path in outputs:
        if path.suffix == ".sqlite3":
            asyncio.run(_record(path, found, shrinker.settings))
        else:
            path.write_text(text_in(path.suffix, found), encoding="utf-8")
        say(f"wrote {path}")
        if path.suffix == ".json":
            words = ("memreplay", "--batch", "--dataset", str(path), *found.command)
            say(f"replay it with: {printable(shlex.join(words))}")
    print(
        f"{case.question.id} of {printable(case.backend)}: {counted(progress.first, 'turn')} → {progress.turns}"
        f" ({found.verdict}); {progress.effort}"
    )
    for note in found.notes:
        say(note)
    if shrinker.ended_early is not None:
        say(f"{shrinker.ended_early}; it may not be minimal. To continue, run the same command again")
    if shrinker.stopping:
        raise typer.Exit(EXIT_INTERRUPTED)


def _print_estimate(case: Case) -> None:
    exchanges = len(exchanges_of(case.conversation))
    print(
        f"{case.question.id} of {printable(case.backend)}: {case.failure.words}; {len(case.conversation.turns)}"
        f" turns in {counted(exchanges, 'exchange')}, all played in the first try and ever fewer in the others"
    )
    if case.settings.extractor is not None:
        print(f"{printable(case.settings.extractor)}: about a call an exchange; a reply in the cache is free")
    if case.needs_replies and case.model != EXTRACTIVE_MODEL:
        print(f"{printable(case.model)}: a call a try; a reply in the cache is free")
    if not case.calls_cost:
        print("no call of a model that costs")


def _check_outputs(outputs: list[Path], file: Path) -> None:
    for path in outputs:
        if path.suffix not in _SUFFIXES:
            raise UsageError(f"--output {path}: expected a name that ends in {', '.join(_SUFFIXES)}")
        if not path.parent.is_dir():
            raise UsageError(f"--output {path}: there is no folder {path.parent}")
        if path.resolve() == file.resolve():
            raise UsageError(f"--output {path}: is the recording itself")
        if path.suffix == ".sqlite3" and path.exists():
            raise UsageError(f"--output {path}: exists already")


class _Lines:
    """Says now and then on standard error how far the search is."""

    def __init__(self) -> None:
        self._latest = 0.0

    def show(self, progress: Progress) -> None:
        if monotonic() - self._latest >= _SECONDS_BETWEEN_LINES:
            self._latest = monotonic()
            say(f"{progress.turns} of {counted(progress.first, 'turn')} left; {progress.effort}")


async def _shrink(
    case: Case, calls: int, tries: int | None, fewer_hits: bool, anonymise: bool, shown: _Lines
) -> tuple[Shrinker, Tried]:
    shrinker = Shrinker(
        case,
        calls=calls,
        tries=tries,
        same_hits=not fewer_hits,
        report=shown.show,
        warn=lambda sentence: say(f"warning: {sentence}"),
    )
    task = asyncio.current_task()
    assert task is not None
    try:
        with two_step_interrupt(shrinker.stop, lambda: _cancel(task)):
            await shrinker.run()
            if anonymise:
                await _anonymise(shrinker, case.conversation)
            return shrinker, await shrinker.replayed()
    finally:
        await shrinker.close()


_DIGITS = (1, 3, 100)
"""Numbers are replaced from so many digits on: first all of them, at last none."""
_FIRST_NAMES = (0, 9, 18)
"""Places of invented names: where the failure does not survive some, it may survive others."""


async def _anonymise(shrinker: Shrinker, whole: Conversation) -> None:
    """Replace what is personal in the smallest conversation as far as it still fails, and say what is left."""
    learnt = Redaction(keeps_years=True)
    for text in _texts_of(whole):
        learnt.learn(text)
    before, used = " ".join(_texts_of(shrinker.best)), None
    for digits, first in product(_DIGITS, _FIRST_NAMES):
        redaction = learnt.another(digits=digits, first=first)
        if await shrinker.replace_words(redaction.of):
            used = redaction
            break
    if used is None:
        left = [*learnt.names_in(before), *learnt.another(digits=100, first=0).numbers_left_in(before)]
        say(f"warning: with other names it does not fail so; those of the recording are in it: {_listed(left)}")
        return
    dates = [f"{session.date:%Y-%m-%d}" for session in shrinker.best.sessions if session.date is not None]
    if left := [*dict.fromkeys(dates), *used.numbers_left_in(before)]:
        say(f"--anonymise: these dates and numbers of the recording are still in it: {_listed(left)}")
    if doubtful := used.doubtful_in(" ".join(_texts_of(shrinker.best))):
        say(f"--anonymise: these words only ever begin sentences, and may be names: {_listed(doubtful)}")


def _listed(words: Sequence[str]) -> str:
    return printable(", ".join(words)) or "none were found"


def _texts_of(conversation: Conversation) -> Iterator[str]:
    for turn in conversation.turns:
        yield turn.text
        if turn.speaker:
            yield f"by {turn.speaker}"
    for question in conversation.questions:
        yield from (question.text, question.expected, question.suggested or "")
        yield from (*question.expected_entities, *question.choices, *question.supersedes)


def _cancel(task: asyncio.Task[object]) -> None:
    """End a task at once."""
    task.cancel()


@contextmanager
def _unseen(totals: Mapping[tuple[str, str], int]) -> Iterator[BatchProgress]:
    yield BatchProgress(totals)


async def _record(path: Path, found: ShrunkCase, settings: Settings) -> None:
    """Record the conversation with its question. A model that costs is not called: its reply must be cached."""
    settings = replace(settings, offline=settings.offline or found.model != EXTRACTIVE_MODEL)
    work = Work([found.conversation])
    made = start(settings, path, work, warn=lambda sentence: say(f"warning: {sentence}"))

    quiet = Surroundings(lambda sentence: None, _unseen, lambda first, second, farewell: nullcontext())
    await run_recorded(made, RunPlan(perceive=True), quiet)
    turn = len(found.conversation.turns)
    annotations_of(path, made.run_id, found.conversation.id).set_bookmark(
        Bookmark(mark=FAILS, turn=turn, note="; ".join((f"{found.question.text} {found.verdict}", *found.notes)))
    )
    print(f"open it with: memreplay {printable(str(path))}", file=sys.stderr)
