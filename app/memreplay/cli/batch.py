"""``memreplay --batch``: run without a screen, write the results, return an exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memreplay.api.outputs import check_report_outputs
from memreplay.batch.estimate import estimate, print_estimate
from memreplay.batch.recorded_run import Ending, RunPlan, run_recorded, to_continue
from memreplay.batch.why import reask
from memreplay.cli.reading_progress import show_reading_progress
from memreplay.cli.report import default_output, write_report
from memreplay.cli.why import exit_code_of, has_errors
from memreplay.conversations.log_options import DEFAULT_LOG_OPTIONS, LogOptions
from memreplay.errors import (
    EXIT_BELOW_THRESHOLD,
    EXIT_DONE,
    EXIT_QUESTION_ERRORS,
    EXIT_STOPPED,
    MemreplayError,
    UsageError,
)
from memreplay.goodai.sources import TestSource, split_specs
from memreplay.paths import new_recording_path
from memreplay.printable import printable
from memreplay.runtime.changes import Selection
from memreplay.runtime.counting import Estimates
from memreplay.runtime.effects import without_effect
from memreplay.runtime.run import start
from memreplay.runtime.work import Work, check_settings, work_of
from memreplay.scoring import Shown
from memreplay.scoring.results import Results
from memreplay.settings import Settings
from memreplay.terminal import say


@dataclass(frozen=True)
class BatchOptions:
    """The options of ``--batch`` that are not settings."""

    datasets: tuple[str, ...]
    evidence: Path | None
    recording: Path | None
    plan: RunPlan
    estimate: bool
    outputs: tuple[str, ...]
    fail_under: float | None
    answer_key: Path | None = None
    by: tuple[Shown, ...] = ()
    every_table: bool = False
    why: bool = False
    logs: LogOptions = DEFAULT_LOG_OPTIONS

    def files_read(self) -> Iterator[Path]:
        """Files that the run reads, and must not overwrite."""
        for name in self.datasets:
            yield Path(name)
        for path in (self.evidence, self.answer_key):
            if path is not None:
                yield path

    def given(self) -> Iterator[str]:
        """Names of the options that were given, of those that may have no effect."""
        may = {
            "evidence": self.evidence,
            "answer_key": self.answer_key,
            "perceive": self.plan.perceive,
            "by options": "options" in self.by,
            "session_gap": self.logs.session_gap != DEFAULT_LOG_OPTIONS.session_gap,
            "user": self.logs.user,
        }
        return (name for name, value in may.items() if value)


def check_options(options: BatchOptions) -> None:
    """Raise UsageError for options that contradict each other."""
    wrong = {
        "--resume needs --recording, the file with the run to continue": options.plan.resume
        and options.recording is None,
        "--retry-errors needs --resume": options.plan.retry_errors and not options.plan.resume,
        "--fail-under must be an accuracy from 0 to 1": options.fail_under is not None
        and not 0 <= options.fail_under <= 1,
        "--estimate starts no run; remove --resume": options.estimate and options.plan.resume,
    }
    for sentence, applies in wrong.items():
        if applies:
            raise UsageError(sentence)


def run_batch(settings: Settings, options: BatchOptions) -> int:
    """Run and write the results; the exit code.

    Raises:
        MemreplayError: an option, a dataset, a server or a key is unusable; nothing was asked.
    """
    check_options(options)
    check_settings(settings)
    recording = options.recording or new_recording_path()
    outputs = tuple(dict.fromkeys(options.outputs)) or (default_output(recording),)
    # The recordings folder is created together with its first recording.
    folder_is_missing = not options.outputs and not recording.parent.exists()
    check_report_outputs(() if folder_is_missing else outputs, inputs=(recording, *options.files_read()))
    named, sources = split_specs(options.datasets)
    with show_reading_progress() as opened:
        work = work_of(
            settings,
            named,
            has_tests=bool(sources),
            evidence=options.evidence,
            logs=options.logs,
            answer_key=options.answer_key,
            warn=_warn,
            on_opened=opened,
        )
    for sentence in without_effect(settings, work, has_tests=bool(sources), options=set(options.given())):
        _warn(sentence)
    if options.estimate:
        return _estimate(settings, work, sources, options)
    ending, run_id = asyncio.run(_play(settings, work, sources, recording, options.plan))
    if ending != "complete":
        say(to_continue(ending, recording))
        return exit_code_of(ending)
    if options.why:
        ending = asyncio.run(reask(recording, run_id, settings, Selection()))
    try:
        results = write_report(
            recording, run_id, outputs, options.answer_key, options.by, every_table=options.every_table
        )
    except MemreplayError as error:
        say(f"memreplay: {error}\nthe run is complete; to write its results, run: memreplay report {recording}")
        return EXIT_STOPPED
    say(f"recorded in {recording}")
    if ending != "complete":
        say(f"{ending}; every reply so far is recorded. To continue, run: memreplay why {recording}")
        return exit_code_of(ending)
    return _exit_code(results, options.fail_under)


async def _play(
    settings: Settings, work: Work, sources: Sequence[TestSource], recording: Path, plan: RunPlan
) -> tuple[Ending, str]:
    """Return how the run ended, and its id. The embedder is released when it returns."""
    run = start(settings, recording, work, warn=_warn)
    tests = None
    if sources:
        from memreplay.goodai.run import TestsRunner

        tests = TestsRunner(run, sources, retry_errors=plan.retry_errors)
    ending = await run_recorded(run, plan, tests=tests)
    return ending, run.run_id


def _estimate(settings: Settings, work: Work, sources: Sequence[TestSource], options: BatchOptions) -> int:
    """Print what a run would take."""

    async def of_questions() -> Estimates:
        run = start(settings, new_recording_path(), work, estimates=True, warn=_warn)
        return await estimate(run, perceive=options.plan.perceive, why=options.why)

    async def of_tests() -> Estimates:
        from memreplay.goodai.run import estimate_tests

        return await estimate_tests(start(settings, new_recording_path(), estimates=True, warn=_warn), sources)

    if work.conversations:
        print_estimate(asyncio.run(of_questions()))
    if sources:
        print_estimate(asyncio.run(of_tests()), "tests")
    return EXIT_DONE


def _exit_code(results: Results, fail_under: float | None) -> int:
    of_control, _ = results.errors_of_control
    if of_control or any(row.outcome == "error" for row in results.questions) or has_errors(results):
        return EXIT_QUESTION_ERRORS
    if fail_under is not None and any(
        backend.accuracy is None or backend.accuracy < fail_under for backend in results.backends.values()
    ):
        return EXIT_BELOW_THRESHOLD
    return EXIT_DONE


def _warn(sentence: str) -> None:
    say(f"warning: {printable(sentence)}")
