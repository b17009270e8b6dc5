"""``memreplay``, with a screen or with ``--batch`` without one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memreplay import __version__
from memreplay.cli.options import (
    AnswerKeyFile,
    BatchQuestionFlags,
    MemoryFlags,
    ModelFlags,
    Outputs,
    QuestionFlags,
    TestFlags,
    flags_in_groups,
    settings_given,
)
from memreplay.errors import UsageError

if TYPE_CHECKING:
    from memreplay.conversations.models import Conversation
    from memreplay.runtime.test_runs import RunWithTests, ShownTests
    from memreplay.settings import Settings
    from memreplay.tui.launch import ListedDataset


@dataclass(frozen=True)
class ReplayedFlags:
    """What is replayed, and where the run is recorded."""

    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID|GLOB|PATH",
            help="What to replay, or tests to converse with; default: the shipped conversations.",
        ),
    ] = None
    evidence: Annotated[
        Path | None, typer.Option(help="A locomo10 file whose evidence is joined to LoCoMo-MC10 rows.")
    ] = None
    recording: Annotated[
        Path | None, typer.Option(help="The SQLite file; an existing one gains a run. Default: a new one.")
    ] = None


@dataclass(frozen=True)
class ScreenFlags:
    """What the screen can do beside a batch."""

    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another recording, to compare --recording with.")
    ] = None


@dataclass(frozen=True)
class BatchFlags:
    """What a batch can do beside the screen."""

    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished run of equal settings.")
    ] = False
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="With --resume: ask again what ended in an error.")
    ] = False
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what would be asked and what it would cost; ask nothing.")
    ] = False
    perceive: Annotated[
        bool,
        typer.Option(
            "--perceive", help="Also record what memory would give to each ordinary turn, as the screen does."
        ),
    ] = False
    output: Outputs = None
    fail_under: Annotated[
        float | None, typer.Option(metavar="X", help="Exit 1 when a backend's accuracy (0 to 1) is below X.")
    ] = None
    answer_key: AnswerKeyFile = None


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memreplay {__version__}")
        raise typer.Exit


@flags_in_groups
def replay(
    context: typer.Context,
    *,
    batch: Annotated[
        bool, typer.Option("--batch", help="Run without a screen: replay, ask, score, record.")
    ] = False,
    replayed: ReplayedFlags,
    memories: MemoryFlags,
    models: ModelFlags,
    questions: QuestionFlags,
    tests: TestFlags,
    only_screen: ScreenFlags,
    only_batch: BatchFlags,
    batch_questions: BatchQuestionFlags,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """A microscope for the memory of LLM agents.

    Without a command: opens the screen, or with --batch runs without one.
    """
    if context.invoked_subcommand is not None:
        _refuse(context.params, "does not go with a command")
        return
    from memreplay.settings import read_settings

    settings = read_settings(**settings_given(memories, models, questions, tests, batch_questions))
    if not batch:
        _refuse(asdict(only_batch) | asdict(batch_questions), "goes with --batch")

        open_screen(
            settings, tuple(replayed.dataset or ()), replayed.evidence, replayed.recording, only_screen.against
        )
        return
    _refuse(asdict(only_screen), "goes with the screen, not with --batch")
    from memreplay.batch.recorded_run import RunPlan
    from memreplay.cli.batch import BatchOptions, run_batch

    options = BatchOptions(
        datasets=tuple(replayed.dataset or ()),
        evidence=replayed.evidence,
        recording=replayed.recording,
        plan=RunPlan(perceive=only_batch.perceive, resume=only_batch.resume, retry_errors=only_batch.retry_errors),
        estimate=only_batch.estimate,
        outputs=tuple(only_batch.output or ()),
        fail_under=only_batch.fail_under,
        answer_key=only_batch.answer_key,
    )
    raise typer.Exit(run_batch(settings, options))


def _refuse(flags: dict[str, Any], why: str) -> None:
    """Make sure that none of these flags was given."""
    for name, value in flags.items():
        if value is not None and value is not False and value != () and value != []:
            raise UsageError(f"--{name.replace('_', '-')} {why}")


_NO_TERMINAL = (
    "the screen is drawn on a terminal, through standard error: run it in one, and redirect neither standard input"
    " nor standard error; --batch needs no terminal"
)


def open_screen(
    settings: Settings,
    datasets: Sequence[str],
    evidence: Path | None,
    recording: Path | None,
    against: Path | None = None,
) -> None:
    """Open the start screen; with a dataset the replay at once, with only a recording the recording.

    With another recording to hold it ``against``, the two are compared.

    Raises:
        MemreplayError: a dataset, a backend or a recording cannot be used, or there is no terminal to draw on.
    """
    if not (sys.__stdin__ and sys.__stdin__.isatty() and sys.__stderr__ and sys.__stderr__.isatty()):
        raise UsageError(_NO_TERMINAL)
    if against is not None and (recording is None or datasets):
        raise UsageError("--against compares two recordings: name the other with --recording, and no --dataset")
    refuse_unknown_keys(settings.keys)
    from memory_backends.registry import known_backends
    from memreplay.paths import new_recording_path, recording_files
    from memreplay.runtime.streams import refuse_unknown_backends
    from memreplay.tui import run_tui
    from memreplay.tui.launch import Launch

    refuse_unknown_backends(settings.backend)
    if len(settings.model) > 1:
        raise UsageError("the screen asks one model; several --model go with --batch")
    chosen: tuple[Conversation, ...] = ()
    offered = _Offered(settings, evidence)
    if datasets:
        conversations = offered.load(datasets)
        if len(conversations) > 1 and not all(conversation.conversing for conversation in conversations):
            ids = ", ".join(conversation.id for conversation in conversations[:12])
            raise UsageError(f"the screen replays one conversation; --dataset names {len(conversations)}: {ids}")
        chosen = tuple(conversations)
    else:
        _make_sure_of(*(path for path in (recording, against) if path is not None))

    def assemble(backends: Sequence[str], model: str) -> RunWithTests:
        into = recording if chosen and recording else new_recording_path()
        return offered.tests.assemble(backends, model, into)

    run_tui(
        Launch(
            conversation=chosen[0] if len(chosen) == 1 else None,
            one_of=chosen if len(chosen) > 1 else (),
            recording=None if chosen else recording,
            datasets=offered.listed,
            load=lambda spec: offered.load([spec]),
            recordings=recording_files,
            assemble=assemble,
            backends=settings.backend,
            model=settings.model[0],
            all_backends=tuple(dict.fromkeys([*known_backends(), *settings.backend])),
            against=against,
            keys=settings.keys,
        )
    )


class _Offered:
    """What can be picked. What reads it is imported when it is first wanted: no first paint needs it."""

    def __init__(self, settings: Settings, evidence: Path | None) -> None:
        self._settings = settings
        self._evidence = evidence

    @cached_property
    def tests(self) -> ShownTests:
        """Those that converse, and what was loaded so far."""
        from memreplay.runtime.test_runs import ShownTests

        return ShownTests(self._settings)

    def listed(self) -> list[ListedDataset]:
        """All that is shipped."""
        from memreplay.conversations.registry import shipped_datasets
        from memreplay.runtime.test_runs import listed_tests

        return [*shipped_datasets(), *listed_tests()]

    def load(self, specs: Sequence[str]) -> list[Conversation]:
        """The conversations that the specs name.

        Raises:
            MemreplayError: a dataset cannot be used.
        """
        return self.tests.load(specs, self._evidence)


def _make_sure_of(*recordings: Path) -> None:
    """Refuse what is no recording, while there is a terminal to say it on."""
    if recordings:
        from memreplay.recording.reader import Recording

        for path in recordings:
            Recording.open(path).close()


def refuse_unknown_keys(keys: Mapping[str, str]) -> None:
    """Make sure that every rebound key is an action's.

    Raises:
        UsageError: one is not; the sentence says which, and how they are written.
    """
    from memreplay.tui.actions import ACTIONS

    known = {action.id for action in ACTIONS}
    for name in keys:
        if name not in known:
            raise UsageError(f"setting keys: there is no action {name}; one is replay.step, ? lists what there is")
