"""``memreplay`` without ``--batch``: what the screen is given to work with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.conversations.models import Conversation
from app.conversations.registry import shipped_datasets
from app.errors import UsageError
from app.settings import Settings
from memory_backends.registry import BACKEND_NAMES

if TYPE_CHECKING:
    from app.conversing import ConversingAssembly


def open_screen(settings: Settings, datasets: Sequence[str], evidence: Path | None, recording: Path | None) -> None:
    """Open the start screen; with a dataset the replay at once, with only a recording the recording.

    Raises:
        MemreplayError: a dataset, a backend or a recording cannot be used.
    """
    from app.assembly import refuse_unknown_backends
    from app.batch.command import new_recording_path
    from app.recording.listing import recording_files
    from app.recording.store import Recording
    from app.shown_tests import ShownTests, listed_tests
    from app.tui import run_tui
    from app.tui.launch import Launch

    refuse_unknown_backends(settings.backend)
    if len(settings.model) > 1:
        raise UsageError("the screen asks one model; several --model go with --batch")
    chosen: Conversation | None = None
    tests = ShownTests(settings)
    if datasets:
        conversations = tests.load(datasets, evidence)
        if len(conversations) > 1:
            ids = ", ".join(conversation.id for conversation in conversations[:12])
            raise UsageError(f"the screen replays one conversation; --dataset names {len(conversations)}: {ids}")
        chosen = conversations[0]
    elif recording is not None:
        Recording.open(recording).close()

    def assemble(backends: Sequence[str], model: str) -> ConversingAssembly:
        return tests.assemble(backends, model, recording if chosen and recording else new_recording_path())

    run_tui(
        Launch(
            conversation=chosen,
            recording=None if chosen else recording,
            datasets=lambda: [*shipped_datasets(), *listed_tests()],
            load=lambda spec: tests.load([spec], evidence),
            recordings=recording_files,
            assemble=assemble,
            backends=settings.backend,
            model=settings.model[0],
            all_backends=BACKEND_NAMES,
        )
    )
