"""The values that the command line hands to the screens. Importing this loads no screen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from memory_backends.private_files import create_private_file, make_private_folder
from memreplay.settings import Settings
from memreplay.trust import Consent

if TYPE_CHECKING:
    from memreplay.conversations.catalog import Catalog
    from memreplay.conversations.models import Conversation
    from memreplay.engine.events import ReplayEvent
    from memreplay.engine.probes import Probe
    from memreplay.engine.session import PlayableSession
    from memreplay.recording.writer import RunRecorder
    from memreplay.timeline.annotations import Annotations
    from memreplay.timeline.event_store import EventArchive


FEW_COLOURS = "ansi-dark"
FEW_LIGHT_COLOURS = "ansi-light"
"""The themes of terminals with 16 colours: the terminal's own, so that none is lost."""


@dataclass(frozen=True)
class ThemeChoice:
    """``configured`` is the setting, ``file`` remembers what was picked; without a file nothing is remembered.

    A picked theme stands until the setting changes: the later of the two choices counts.
    """

    configured: str | None = None
    file: Path | None = None

    def theme(self) -> str | None:
        """Return the theme to start with; None for the default."""
        picked = self._picked()
        if picked is not None and picked.get("instead_of") == self.configured:
            name = picked.get("theme")
            return name if isinstance(name, str) else self.configured
        return self.configured

    def remember(self, theme: str) -> None:
        """Keep a picked theme. A folder that cannot be written is no reason to stop."""
        if self.file is None:
            return
        try:
            make_private_folder(self.file.parent)
            create_private_file(self.file)
            self.file.write_text(json.dumps({"theme": theme, "instead_of": self.configured}), encoding="utf-8")
        except OSError:
            return

    def _picked(self) -> dict[str, object] | None:
        if self.file is None:
            return None
        try:
            read = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return read if isinstance(read, dict) else None


class ListedDataset(Protocol):
    """A dataset on the start screen, with one line on what it holds."""

    @property
    def id(self) -> str: ...

    @property
    def description(self) -> str: ...


class PublicSettings(Protocol):
    def public(self) -> dict[str, Any]:
        """Return the settings by name, without secrets."""


class RunHandle(Protocol):
    """The part that screens need of a :class:`memreplay.runtime.run.Run`."""

    models: tuple[str, ...]
    backend_names: tuple[str, ...]

    @property
    def settings(self) -> PublicSettings: ...

    @property
    def recording_path(self) -> Path | None: ...

    @property
    def recorder(self) -> RunRecorder | None:
        """Return what records the run; None before its first turn."""

    @property
    def is_over(self) -> bool:
        """Return whether the run has ended, so that its recorder writes no more."""

    def session_for(self, conversation: Conversation, emit: Callable[[ReplayEvent], None]) -> PlayableSession:
        """Return a session of one conversation. Events are recorded before ``emit`` receives them."""

    def side_session(self, conversation: Conversation, emit: Callable[[ReplayEvent], None]) -> Probe:
        """Separate memories, which can be asked at any position."""

    def live_archive(self, conversation: Conversation) -> EventArchive:
        """Reads back the events of a started session, given to it in the order of their recording."""

    def kept_events(self, conversation_id: str) -> Sequence[ReplayEvent]:
        """Return what a resumed run keeps of an earlier attempt: its answers. Empty for a new run."""

    async def warm_up(self) -> None:
        """Load models in threads."""

    async def check(self) -> None:
        """Raise an error if a server or key is missing."""

    def try_again(self) -> None:
        """Use models again that were given up as unavailable."""

    def annotations(self, conversation_id: str) -> Annotations:
        """Bookmarks and breakpoints of a conversation, saved in the recording."""

    async def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """End the run in the recording and release all resources."""


@dataclass(frozen=True)
class Launch:
    """The contents of the start screen, or the session to open instead of it.

    ``conversation`` opens a live replay, as does the one picked from ``one_of``; ``recording`` opens its newest
    run, and compares it with that of ``against`` if given. ``to_read`` are datasets that are too large to be read
    before the screen opens; ``warnings`` say what was left out of those that were.
    ``keys`` maps action ids to comma-separated keys.
    ``demo`` is the recording of the guided tour. ``datasets``, ``recordings`` (the shipped demos first) and
    ``load`` are called in a thread after the first paint.
    ``assemble`` takes backend names and a model, ``resume`` a recording and the settings of its unfinished run.
    ``settings`` are those of today, for runs taken up again. ``allows_recordings``: recordings may run and contact
    what they name, without asking. ``follow``: show what a running agent adds to ``recording``.
    """

    datasets: Callable[[], Sequence[ListedDataset]]
    load: Callable[[Sequence[str], Catalog], Iterable[Conversation]]
    recordings: Callable[[], Sequence[Path]]
    assemble: Callable[[Sequence[str], str], RunHandle]
    backends: tuple[str, ...]
    all_backends: tuple[str, ...]
    model: str
    resume: Callable[[Path, Mapping[str, Any], Consent], RunHandle] | None = None
    demo: Path | None = None
    conversation: Conversation | None = None
    one_of: tuple[Conversation, ...] = ()
    to_read: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    recording: Path | None = None
    against: Path | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    theme: ThemeChoice = field(default_factory=ThemeChoice)
    allows_recordings: bool = False
    follow: bool = False
