"""``memreplay``: replay on the screen, or with ``--batch`` without one."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memreplay import __version__
from memreplay.cli.options import (
    AllowFromRecording,
    AnswerKeyFile,
    Breakdowns,
    GivenSettings,
    Outputs,
    SessionGap,
    TablesShown,
    UserName,
    chosen_breakdowns,
    log_options,
    shows_all_tables,
    takes_settings,
)
from memreplay.conversations.log_options import DEFAULT_LOG_OPTIONS, LogOptions
from memreplay.errors import UsageError
from memreplay.printable import printable
from memreplay.settings import read_settings
from memreplay.terminal import say

if TYPE_CHECKING:
    from memreplay.conversations.catalog import Catalog
    from memreplay.conversations.models import Conversation
    from memreplay.goodai.run import ShownTests
    from memreplay.runtime.run import Run
    from memreplay.settings import Settings
    from memreplay.trust import Consent
    from memreplay.tui.launch import ListedDataset

_ONLY_WITH_BATCH = (
    "resume", "retry_errors", "estimate", "perceive", "output", "fail_under", "answer_key", "by", "tables",
    "sample", "repeats", "why", "workers", "cluster",
)  # fmt: skip


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memreplay {__version__}")
        raise typer.Exit


@takes_settings()
def replay(
    context: typer.Context,
    *,
    batch: Annotated[
        bool, typer.Option("--batch", help="Run without a screen: replay, ask, score, record.")
    ] = False,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID|GLOB|PATH",
            help="Conversations to replay, or tests to run. Repeatable. [default: the shipped ones but long-*]",
        ),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="locomo10 file whose evidence is joined to LoCoMo-MC10 rows. [default: the one beside them]",
        ),
    ] = None,
    session_gap: SessionGap = None,
    user: UserName = None,
    recording: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="SQLite file to record into; an existing file gains a run. [default: a new file]"
        ),
    ] = None,
    given: GivenSettings,
    allow_from_recording: AllowFromRecording = False,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="On the screen: compare --recording with this recording."),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="On the screen: show what an agent adds to --recording as it runs."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the newest unfinished run with the same settings.")
    ] = False,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="With --resume: retry the questions that ended in an error.")
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Estimate calls, tokens and cost; call no model.")
    ] = False,
    perceive: Annotated[
        bool,
        typer.Option(
            "--perceive",
            help="Also record what memory retrieves at ordinary turns, as the screen does; changes no score.",
        ),
    ] = False,
    output: Outputs = None,
    fail_under: Annotated[
        float | None, typer.Option(metavar="X", help="Exit 1 if a backend's accuracy (0 to 1) is below X.")
    ] = None,
    answer_key: AnswerKeyFile = None,
    by: Breakdowns = None,
    tables: TablesShown = None,
    why: Annotated[
        bool,
        typer.Option(
            "--why", help="Afterwards ask wrong answers again under one change at a time; see memreplay why."
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A debugger for the memory of LLM agents.

    Without a command: opens the screen, or with --batch runs without one.
    """
    if context.invoked_subcommand is not None:
        _refuse(context.params, "does not go with a command")
        return
    settings, datasets = read_settings(**given), tuple(dataset or ())
    if not batch:
        _refuse({name: context.params[name] for name in _ONLY_WITH_BATCH}, "needs --batch")
        logs = log_options(session_gap, user)
        may = {"allow_from_recording": allow_from_recording, "follow": follow}
        open_screen(settings, datasets, evidence, recording, against, logs=logs, **may)
        return
    not_for_batch = {"against": against, "allow_from_recording": allow_from_recording, "follow": follow}
    _refuse(not_for_batch, "is for the screen, not for --batch")
    from memreplay.batch.recorded_run import RunPlan
    from memreplay.cli.batch import BatchOptions, run_batch

    for name in ("backend", "model"):
        if twice := sorted(value for value, times in Counter(given[name] or ()).items() if times > 1):
            words = printable(", ".join(twice))
            say(f"warning: --{name} {words}: given twice, runs once; --repeats N asks each question N times")
    options = BatchOptions(
        datasets=datasets,
        evidence=evidence,
        recording=recording,
        plan=RunPlan(perceive=perceive, resume=resume, retry_errors=retry_errors),
        estimate=estimate,
        why=why,
        outputs=tuple(output or ()),
        fail_under=fail_under,
        answer_key=answer_key,
        by=chosen_breakdowns(by),
        every_table=shows_all_tables(tables),
        logs=log_options(session_gap, user),
    )
    raise typer.Exit(run_batch(settings, options))


def _refuse(options: Mapping[str, Any], why: str) -> None:
    """Raise UsageError if one of these options was given."""
    for name, value in options.items():
        if value is not None and value is not False and value not in ((), []):
            raise UsageError(f"--{name.replace('_', '-')} {why}")


_BROWSER = "textual.drivers.web_driver:WebDriver"
"""The driver with which ``memreplay serve`` starts an app: its terminal is a browser."""

_NO_TERMINAL = (
    "the screen needs a terminal and draws through standard error: redirect neither standard input nor standard"
    " error, or use --batch"
)


def open_screen(
    settings: Settings,
    datasets: Sequence[str],
    evidence: Path | None,
    recording: Path | None,
    against: Path | None = None,
    *,
    allow_from_recording: bool = False,
    follow: bool = False,
    logs: LogOptions = DEFAULT_LOG_OPTIONS,
) -> None:
    """Open the start screen; given a dataset, its replay; given only a recording, that recording.

    Raises:
        MemreplayError: a dataset, a backend or a recording is unusable, or there is no terminal.
    """
    has_terminal = sys.__stdin__ and sys.__stdin__.isatty() and sys.__stderr__ and sys.__stderr__.isatty()
    if not has_terminal and os.environ.get("TEXTUAL_DRIVER") != _BROWSER:
        raise UsageError(_NO_TERMINAL)
    if against is not None and (recording is None or datasets):
        raise UsageError("--against compares two recordings: give the other one with --recording, and no --dataset")
    if follow and (recording is None or datasets or against is not None):
        raise UsageError("--follow needs the recording of a running agent: memreplay agent.sqlite3 --follow")
    refuse_unknown_keys(settings.keys)
    refuse_unknown_theme(settings.theme)
    from memory_backends.registry import known_backends
    from memreplay.conversations.catalog import Catalog
    from memreplay.engine.remote.addresses import refuse_unknown_backends
    from memreplay.paths import demo_recording, new_recording_path, recording_files, theme_file
    from memreplay.runtime.effects import without_effect
    from memreplay.runtime.work import Work
    from memreplay.tui import run_tui
    from memreplay.tui.launch import Launch, ThemeChoice

    refuse_unknown_backends(settings.backend)
    if len(settings.model) > 1:
        raise UsageError("the screen asks one model; several --model need --batch")
    chosen: tuple[Conversation, ...] = ()
    offered = _Offered(settings, evidence, logs)
    catalog = Catalog()
    is_large = bool(datasets) and offered.are_large(datasets)
    if datasets and not is_large:
        chosen = tuple(offered.load(datasets, catalog))
    elif not datasets:
        _refuse_unreadable(*(path for path in (recording, against) if path is not None))

    if chosen:
        given = {name for name, value in (("evidence", evidence), ("user", logs.user)) if value}
        offered.warnings += without_effect(settings, Work(chosen), options=given)

    def assemble(backends: Sequence[str], model: str) -> Run:
        into = recording if datasets and recording else new_recording_path()
        return offered.tests.assemble(backends, model, into)

    launch = Launch(
        conversation=chosen[0] if len(chosen) == 1 else None,
        one_of=chosen if len(chosen) > 1 else (),
        to_read=tuple(datasets) if is_large else (),
        warnings=tuple(catalog.warnings),
        recording=None if datasets else recording,
        datasets=offered.listed,
        load=offered.load,
        recordings=recording_files,
        assemble=assemble,
        resume=offered.resume,
        backends=settings.backend,
        model=settings.model[0],
        all_backends=tuple(dict.fromkeys([*known_backends(), *settings.backend])),
        against=against,
        demo=demo_recording(),
        keys=settings.keys,
        settings=settings,
        theme=ThemeChoice(settings.theme, theme_file()),
        allows_recordings=allow_from_recording,
        follow=follow,
    )
    try:
        run_tui(launch)
    finally:
        for sentence in dict.fromkeys(offered.warnings):
            say(f"warning: {printable(sentence)}")


class _Offered:
    """The datasets that can be picked. Imports wait until the first use: the first frame needs none of them."""

    def __init__(self, settings: Settings, evidence: Path | None, logs: LogOptions) -> None:
        self._settings = settings
        self._evidence = evidence
        self._logs = logs
        self.warnings: list[str] = []
        """Items that were left out of the datasets that were loaded."""

    @cached_property
    def tests(self) -> ShownTests:
        from memreplay.goodai.run import ShownTests

        return ShownTests(self._settings)

    def listed(self) -> list[ListedDataset]:
        from memreplay.conversations.registry import shipped_datasets
        from memreplay.goodai.run import listed_tests

        return [*shipped_datasets(), *listed_tests()]

    def resume(self, path: Path, recorded: Mapping[str, Any], consent: Consent) -> Run:
        from memreplay.runtime.recorded import continued

        return continued(path, recorded, self._settings, consent)

    def are_large(self, specs: Sequence[str]) -> bool:
        """Return whether reading takes so long that the screen has to open before."""
        from memreplay.cli.reading_progress import BIG_FILE_BYTES
        from memreplay.conversations.registry import size_of
        from memreplay.goodai.sources import split_specs

        return size_of(split_specs(specs)[0]) >= BIG_FILE_BYTES

    def load(self, specs: Sequence[str], catalog: Catalog) -> Iterator[Conversation]:
        def warn(sentence: str) -> None:
            self.warnings.append(sentence)
            catalog.warnings.append(sentence)

        return self.tests.load(specs, self._evidence, self._logs, warn, catalog.opened)


def _refuse_unreadable(*recordings: Path) -> None:
    """Open each recording once, so that an error is reported before the screen takes the terminal."""
    if recordings:
        from memreplay.recording.reader import Recording

        for path in recordings:
            Recording.open(path).close()


def refuse_unknown_keys(keys: Mapping[str, str]) -> None:
    """Raise UsageError for a key binding of an unknown action."""
    from memreplay.tui.actions import ACTIONS

    known = {action.id for action in ACTIONS}
    for name in keys:
        if name not in known:
            raise UsageError(
                f"setting keys: unknown action {name}; expected an id such as replay.step (? lists them)"
            )


def refuse_unknown_theme(theme: str | None) -> None:
    """Raise UsageError for a theme that does not exist."""
    if theme is None:
        return
    from textual.theme import BUILTIN_THEMES

    if theme not in BUILTIN_THEMES:
        raise UsageError(f"setting theme: unknown theme {theme}; expected one of {', '.join(BUILTIN_THEMES)}")
