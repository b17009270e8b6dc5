"""``memreplay bisect``: from which turn on a question can be answered, and until when."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from memreplay.cli.options import (
    COMMAND_OPTIONS,
    SET_BY_A_RUN,
    AllowFromRecording,
    GivenSettings,
    consent_to,
    takes_settings,
)
from memreplay.conversations.export import as_test_conversation_text
from memreplay.conversations.models import Conversation, Question
from memreplay.debugger.lifetime import Lifetime
from memreplay.errors import EXIT_QUESTION_ERRORS, UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.numbers import counted
from memreplay.printable import printable
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording, RunInfo
from memreplay.runtime.bisecting import BY, By, last_turn, lifetimes, memories_in, question_in
from memreplay.runtime.reasking import Reasking
from memreplay.runtime.recorded import Lineage, lineage_of, settings_of_memories, settings_of_run
from memreplay.runtime.revisions import Revisions
from memreplay.runtime.shrinking import Case, Shrinker, as_in_a_file, case_in, refuse_without_calls
from memreplay.runtime.versions import Versions, failure_under
from memreplay.settings import Settings, read_settings
from memreplay.terminal import say
from memreplay.timeline.timeline import Timeline
from memreplay.trust import Consent

command = typer.Typer(**COMMAND_OPTIONS)

_WIDEST_BAR = 60
_MEANINGS: Mapping[By, str] = {
    "stored": "what is stored holds the answer",
    "prompt": "what memory returns for the question holds the answer",
    "answer": "the model answers correctly",
}


@command.command()
@takes_settings("api_base", "timeout", "offline", of_recording=SET_BY_A_RUN)
def bisect(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    question: Annotated[str, typer.Option(metavar="ID", help="The question's id, or its end if that is unique.")],
    by: Annotated[
        str,
        typer.Option(
            metavar="stored|prompt|answer",
            help="What counts as knowing: what is stored holds the answer (from the recording alone), what the"
            " rebuilt memory returns holds it, or the model gives it.",
        ),
    ] = "stored",
    versions: Annotated[
        str | None,
        typer.Option(
            metavar="NAME==FIRST..LAST",
            help="Name the first version of a library under which the shrunk question fails. Each is installed in"
            " an environment of its own.",
        ),
    ] = None,
    git: Annotated[
        str | None,
        typer.Option(
            metavar="GOOD..BAD",
            help="Name the first revision at which the shrunk question fails, of the git repository that has the"
            " memory's module. Runs the code of each revision that is tried, in a worktree of its own.",
        ),
    ] = None,
    calls: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="With --versions and --git: most calls of models that cost while shrinking. Each version or"
            " revision then plays the smallest conversation with them once more.",
        ),
    ] = 0,
    wheels: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="With --versions: wheels, in place of the index.")
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="ID", help="Run or branch. [default: the newest run]")] = None,
    allow_from_recording: AllowFromRecording = False,
    *,
    given: GivenSettings,
) -> None:
    """Show from which turn on each memory knew the answer of a question, and until when.

    It looks at a number of turns that grows with the logarithm of the conversation's length. With --by prompt or
    answer, a memory or model of the recording that runs code, or contacts a provider or an address, is used only if
    your own settings name it too. --by prompt fills the memory again, and asks neither the reader nor the judge.
    """
    known = next((each for each in BY if each == by), None)
    if known is None:
        raise UsageError(f"--by {by}: expected {', '.join(BY)}")
    if versions is not None and git is not None:
        raise UsageError("--versions and --git: use one of them")
    settings = read_settings(**given)
    if versions is not None or git is not None:
        with closing(Recording.open(file)) as recording, reporting_damage(file):
            consent = consent_to(file, allow_from_recording)
            case = case_in(recording, recording.run(run), question, None, settings, consent)
        refuse_without_calls(case, calls)
        if versions is not None:
            _by_version(case, calls, Versions.read(versions, wheels))
        else:
            _by_revision(case, calls, Revisions.read(git or "", case.backend))
        return
    with closing(Recording.open(file)) as recording, reporting_damage(file):
        info = recording.run(run)
        timeline, found = _question(recording, info, question)
        lineage = lineage_of(recording, info)
        consent = consent_to(file, allow_from_recording)
        result = asyncio.run(_bisect(timeline, found, known, info, settings, lineage, file, consent))
    print(f"{found.id}: {printable(found.text)}")
    print(f"known: {_MEANINGS[known]}{_asked(info) if known == 'answer' else ''}")
    width = max(map(len, result))
    end = last_turn(timeline, known)
    if end < timeline.last_turn:
        print(f"the run was played up to turn {end} of {timeline.last_turn}")
    for name, life in result.items():
        if isinstance(life, str):
            print(f"{name:<{width}}  {printable(life)}")
        else:
            print(f"{name:<{width}}  {bar(life, end, _WIDEST_BAR)}  {in_words(life)}")
    turns = len({turn for life in result.values() if isinstance(life, Lifetime) for turn in life.probed})
    print(f"looked at {turns} of {end + 1} positions", file=sys.stderr)
    if not any(isinstance(life, Lifetime) for life in result.values()):
        raise typer.Exit(EXIT_QUESTION_ERRORS)


def _by_version(case: Case, calls: int, versions: Versions) -> None:
    """Shrink a wrong answer, and print what becomes of it under each version of a library."""
    names = versions.all()
    first: str | None = None
    with _smallest(case, calls) as (question, batch):
        for version in names:
            found = failure_under(versions, version, question, case.backend, batch)
            fails = found == case.failure.label
            first = first or (version if fails else None)
            print(f"  {version}  {'fails: ' if fails else ''}{found or 'right'}")
    print(f"first that fails: {first}" if first else "none of them fails at this stage")


_SAID = {"good": "does not fail so", "bad": "fails", "skip": "cannot be tested"}


def _by_revision(case: Case, calls: int, revisions: Revisions) -> None:
    """Shrink a wrong answer, and print at which revisions of a project's own memory it is wrong."""
    with _smallest(case, calls) as (question, batch):
        tried, first = revisions.first_that_fails(question, case.backend, str(case.failure.label), batch)
    for revision in tried:
        print(f"  {printable(revision.words)}: {_SAID[revision.said]}")
    if len(first) == 1:
        print(f"first that fails: {printable(first[0].words)}")
        return
    print("first that fails, one of:")
    for revision in first:
        print(f"  {printable(revision.words)}")


@contextmanager
def _smallest(case: Case, calls: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the question of the shrunk conversation, and the options of ``memreplay --batch`` that ask it."""
    smallest, settings = asyncio.run(_shrunk(case, calls)), case.settings
    asked = next(each for each in smallest.questions if each.kind == case.question.kind)
    values: dict[str, object] = {
        name: getattr(settings, name)
        for name in ("top_k", "context_tokens", "embedder", "reranker", "extractor", "api_base")
    }
    values["model"] = case.model if case.needs_replies else EXTRACTIVE_MODEL
    batch = [word for name, value in values.items() if value for word in (_flag(name), str(value))]
    for name in ("ablate", "tier_share"):
        batch += [word for value in getattr(settings, name) for word in (_flag(name), str(value))]
    if settings.backend_config:
        batch += [_flag("backend_config"), json.dumps(settings.backend_config)]
    print(f"{case.question.id} of {printable(case.backend)}, shrunk to {counted(len(smallest.turns), 'turn')}")
    with TemporaryDirectory(prefix="memreplay-case-") as folder:
        path = Path(folder) / "case.json"
        path.write_text(as_test_conversation_text(smallest), encoding="utf-8")
        yield asked.id, ["--dataset", str(path), *batch]


def _flag(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


async def _shrunk(case: Case, calls: int) -> Conversation:
    shrinker = Shrinker(case, calls=calls, same_hits=True, warn=lambda sentence: say(f"warning: {sentence}"))
    try:
        await shrinker.run()
        return as_in_a_file(shrinker.best)
    finally:
        await shrinker.close()


def _asked(run: RunInfo) -> str:
    """Return which model answers, and who says whether it is right."""
    model, judge = next(iter(run.settings["model"])), run.settings.get("judge")
    return f" ({printable(model)}{f', by the judge {printable(judge)}' if judge else ''})"


async def _bisect(
    timeline: Timeline,
    question: Question,
    by: By,
    run: RunInfo,
    given: Settings,
    lineage: Lineage,
    file: Path,
    consent: Consent,
) -> Mapping[str, Lifetime | str]:
    backends = memories_in(timeline)
    if not backends:
        raise UsageError(
            f"run {run.id} has no memory to bisect: what agents remember, and imported runs held, is not recorded"
        )
    if by == "stored":
        return await lifetimes(timeline, question, backends, by, None)
    if not {"model", "backend"} <= run.settings.keys():
        raise UsageError(
            f"--by {by}: run {run.id} does not say how its memories were set up; --by stored needs no memory"
        )
    settings_of = settings_of_run if by == "answer" else settings_of_memories
    settings = settings_of(run.settings, given, file, consent)
    reasking = Reasking(settings, run.id, lambda sentence: say(f"warning: {sentence}"), lineage)
    try:
        await reasking.check(settings.model if by == "answer" else ())
        return await lifetimes(timeline, question, backends, by, reasking)
    finally:
        await reasking.close()


def _question(recording: Recording, run: RunInfo, wanted: str) -> tuple[Timeline, Question]:
    found = [
        (conversation.id, question)
        for id_ in recording.conversation_ids(run.id)
        for conversation in [recording.conversation(run.id, id_)]
        if (question := question_in(conversation, wanted)) is not None
    ]
    if not found and all(size.conversing for size in recording.sizes(run.id)):
        raise UsageError(f"run {run.id}: tests in which the agent converses cannot be bisected")
    if len(found) != 1:
        what = "no question" if not found else f"{len(found)} questions"
        raise UsageError(f"--question {wanted}: {what} of run {run.id} {'has' if not found else 'have'} this id")
    id_, question = found[0]
    return recording.timeline(run.id, id_), question


def bar(life: Lifetime, last: int, width: int) -> str:
    """Return turns 0 to ``last`` in at most ``width`` cells, full where the answer is known at any of their
    turns.
    """
    cells = min(width, last + 1)
    edges = [cell * (last + 1) // cells for cell in range(cells + 1)]
    return "".join(
        "█" if any(life.knows(turn) for turn in range(first, end)) else "·" for first, end in pairwise(edges)
    )


def in_words(life: Lifetime) -> str:
    """Learnt when, forgotten when."""
    if life.learnt is None:
        return "never known at the turns looked at"
    since = f"learnt at turn {life.learnt}" if life.learnt else "known from the start"
    return f"{since}, " + ("known to the end" if life.forgotten is None else f"forgotten at turn {life.forgotten}")
