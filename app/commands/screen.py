"""``memreplay`` without ``--batch``: what the screen is given to work with."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from app.assembling.backend_names import refuse_unknown_backends
from app.errors import UsageError
from app.recording.files import new_recording_path, recording_files
from app.settings import Settings
from memory_backends.registry import known_backends

if TYPE_CHECKING:
    from app.assembling.conversing import ConversingAssembly
    from app.assembling.shown_tests import ShownTests
    from app.conversations.models import Conversation
    from app.tui.launch import ListedDataset

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
    from app.tui import run_tui
    from app.tui.launch import Launch

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

    def assemble(backends: Sequence[str], model: str) -> ConversingAssembly:
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
        from app.assembling.shown_tests import ShownTests

        return ShownTests(self._settings)

    def listed(self) -> list[ListedDataset]:
        """All that is shipped."""
        from app.assembling.shown_tests import listed_tests
        from app.conversations.registry import shipped_datasets

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
        from app.recording.store import Recording

        for path in recordings:
            Recording.open(path).close()


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
