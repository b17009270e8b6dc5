"""``memreplay`` without ``--batch``: what the screen is given to work with."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.conversations.models import Conversation
from app.conversations.registry import shipped_datasets
from app.errors import UsageError
from app.settings import Settings
from memory_backends.registry import known_backends

if TYPE_CHECKING:
    from app.assembling.conversing import ConversingAssembly

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
    from app.assembling.memories import refuse_unknown_backends
    from app.assembling.shown_tests import ShownTests, listed_tests
    from app.recording.files import new_recording_path, recording_files
    from app.recording.store import Recording
    from app.tui import run_tui
    from app.tui.launch import Launch

    refuse_unknown_backends(settings.backend)
    if len(settings.model) > 1:
        raise UsageError("the screen asks one model; several --model go with --batch")
    chosen: tuple[Conversation, ...] = ()
    tests = ShownTests(settings)
    if datasets:
        conversations = tests.load(datasets, evidence)
        if len(conversations) > 1 and not all(conversation.conversing for conversation in conversations):
            ids = ", ".join(conversation.id for conversation in conversations[:12])
            raise UsageError(f"the screen replays one conversation; --dataset names {len(conversations)}: {ids}")
        chosen = tuple(conversations)
    elif recording is not None:
        Recording.open(recording).close()
        if against is not None:
            Recording.open(against).close()

    def assemble(backends: Sequence[str], model: str) -> ConversingAssembly:
        return tests.assemble(backends, model, recording if chosen and recording else new_recording_path())

    run_tui(
        Launch(
            conversation=chosen[0] if len(chosen) == 1 else None,
            one_of=chosen if len(chosen) > 1 else (),
            recording=None if chosen else recording,
            datasets=lambda: [*shipped_datasets(), *listed_tests()],
            load=lambda spec: tests.load([spec], evidence),
            recordings=recording_files,
            assemble=assemble,
            backends=settings.backend,
            model=settings.model[0],
            all_backends=tuple(dict.fromkeys([*known_backends(), *settings.backend])),
            against=against,
            keys=settings.keys,
        )
    )


def refuse_unknown_keys(keys: Mapping[str, str]) -> None:
    """Make sure that every rebound key is an action's.

    Raises:
        UsageError: one is not; the sentence says which, and how they are written.
    """
    from app.tui.actions import ACTIONS

    known = {action.id for action in ACTIONS}
    for name in keys:
        if name not in known:
            raise UsageError(f"setting keys: there is no action {name}; one is replay.step, ? lists what there is")
