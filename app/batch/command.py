"""``memreplay --batch`` and ``memreplay report``: from options to files and an exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.assembly import content_digest, refuse_unknown_backends
from app.batch.progress import shown_progress
from app.batch.report import results_of_run
from app.batch.runner import BatchRunner, first_questions
from app.batch.tests_runner import TestsRunner
from app.batch.writers import check_outputs, print_table, write_results
from app.conversations.models import Conversation
from app.conversations.registry import load, shipped_datasets
from app.conversing import ConversingAssembly
from app.dataset_interfaces.sources import TestSource, split_specs
from app.errors import (
    EXIT_BELOW_THRESHOLD,
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_QUESTION_ERRORS,
    MemreplayError,
    UsageError,
)
from app.paths import recordings_folder
from app.reading_progress import shown_reading
from app.recording.store import Recording
from app.scoring.results import Results
from app.settings import Settings
from app.streams import refuse_for_tests


@dataclass(frozen=True)
class BatchOptions:
    """What ``--batch`` is told beside the settings."""

    datasets: tuple[str, ...]
    evidence: Path | None
    recording: Path | None
    resume: bool
    perceive: bool
    outputs: tuple[str, ...]
    fail_under: float | None


def run_batch(settings: Settings, options: BatchOptions) -> int:
    """Run headless and write the results; the exit code says how it went.

    Raises:
        MemreplayError: nothing was asked, since the options, a dataset, a server or a key will not do.
    """
    if options.resume and options.recording is None:
        raise UsageError("--resume needs --recording: the file with the run to go on with")
    refuse_unknown_backends(settings.backend)
    recording = options.recording or new_recording_path()
    outputs = options.outputs or (str(recording.with_suffix(".results.json")),)
    check_outputs(outputs)
    specs, sources = split_specs(options.datasets or tuple(entry.id for entry in shipped_datasets()))
    refuse_for_tests(settings, sources)
    conversations: list[Conversation] = []
    if specs:
        with shown_reading() as opened:
            conversations = list(first_questions(load(specs, options.evidence, _warn, opened), settings.limit))
    if not sources and not any(conversation.questions for conversation in conversations):
        raise UsageError("nothing to ask: the chosen datasets hold no questions")
    assembly = ConversingAssembly(settings, recording)
    try:
        asyncio.run(_run(assembly, conversations, sources, options))
    except KeyboardInterrupt:
        print(
            f"interrupted; everything finished so far is saved. Go on with the same options and:"
            f" --recording {recording} --resume",
            file=sys.stderr,
        )
        return EXIT_INTERRUPTED
    results = _report(recording, None, outputs)
    print(f"recorded in {recording}", file=sys.stderr)
    return _exit_code(results, options.fail_under)


def report_again(path: Path, run_id: str | None, outputs: Sequence[str]) -> None:
    """Write the results of a recorded run again, from the file alone.

    Raises:
        MemreplayError: the file or an output cannot be used.
    """
    chosen = tuple(outputs) or (str(path.with_suffix(".results.json")),)
    check_outputs(chosen)
    _report(path, run_id, chosen)


def new_recording_path() -> Path:
    """Where a new recording goes: named by the time of its start, to the millisecond."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
    return recordings_folder() / f"{stamp}.sqlite3"


async def _run(
    assembly: ConversingAssembly,
    conversations: Sequence[Conversation],
    sources: Sequence[TestSource],
    options: BatchOptions,
) -> None:
    status = "interrupted"
    try:
        await assembly.check()
        digests = {conversation.id: content_digest(conversation) for conversation in conversations}
        datasets = list(dict.fromkeys(conversation.dataset for conversation in conversations))
        tests = TestsRunner(assembly, sources)
        scored = await tests.prepare(_warn)
        digests |= {source.name: source.digest() for source in sources}
        datasets += [source.name for source in sources]
        assembly.begin_run(digests, datasets, resume=options.resume)
        questions = sum(len(conversation.questions) for conversation in conversations)
        total = questions * len(assembly.backend_names) * len(assembly.models) + scored
        reading = "" if options.perceive else "; what memory would give to ordinary turns is not read (--perceive)"
        if conversations:
            print(f"asking {questions} questions of {len(conversations)} conversations{reading}", file=sys.stderr)
        if sources:
            print(f"conversing: {scored} tests to be scored, all memories together", file=sys.stderr)
        with shown_progress(total) as progress:
            await BatchRunner(assembly, progress, perceive=options.perceive).run(conversations)
            await tests.run(progress)
        status = "finished"
    except* MemreplayError as group:
        raise _first(group) from None
    finally:
        await assembly.finish("finished" if status == "finished" else "interrupted")


def _first(group: BaseExceptionGroup[MemreplayError]) -> MemreplayError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, MemreplayError)
    return error


def _report(path: Path, run_id: str | None, outputs: Sequence[str]) -> Results:
    recording = Recording.open(path)
    try:
        results = results_of_run(recording, recording.run(run_id))
    finally:
        recording.close()
    write_results(results, outputs)
    if "-" not in outputs:
        print_table(results)
    return results


def _exit_code(results: Results, fail_under: float | None) -> int:
    if any(row.outcome == "error" for row in results.questions):
        return EXIT_QUESTION_ERRORS
    if fail_under is not None and any(
        backend.accuracy is None or backend.accuracy < fail_under for backend in results.backends.values()
    ):
        return EXIT_BELOW_THRESHOLD
    return EXIT_DONE


def _warn(sentence: str) -> None:
    print(f"warning: {sentence}", file=sys.stderr)
