"""What the command line hands to the screens. Importing this loads no screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from memreplay.conversations.models import Conversation
    from memreplay.engine.agent_session import AgentSession
    from memreplay.engine.events import ReplayEvent
    from memreplay.engine.probes import Probe
    from memreplay.engine.session import ReplaySession
    from memreplay.timeline.annotations import Annotations
    from memreplay.timeline.event_store import EventArchive


class ListedDataset(Protocol):
    """A dataset that can be picked."""

    @property
    def id(self) -> str:
        """What it is called, and loaded by."""
        ...

    @property
    def description(self) -> str:
        """One line on what it holds."""
        ...


class PublicSettings(Protocol):
    """Settings that can be shown."""

    def public(self) -> dict[str, Any]:
        """Names to values, without secrets."""
        ...


class RunHandle(Protocol):
    """Everything that a live run needs, as :class:`memreplay.runtime.run.Run` has it."""

    models: tuple[str, ...]
    backend_names: tuple[str, ...]

    @property
    def settings(self) -> PublicSettings:
        """What the run was asked to be."""
        ...

    @property
    def recording_path(self) -> Path | None:
        """Where the run is recorded."""
        ...

    def start_session(
        self, conversation: Conversation, emit: Callable[[ReplayEvent], None]
    ) -> ReplaySession | AgentSession:
        """A session of one conversation; every event is recorded before it is passed on."""
        ...

    def side_session(self, conversation: Conversation, emit: Callable[[ReplayEvent], None]) -> Probe:
        """Memories of their own, to be asked at any position."""
        ...

    def live_archive(self, conversation: Conversation) -> EventArchive:
        """Where the events of a started session rest; they are given to it in the order of their recording."""
        ...

    async def warm_up(self) -> None:
        """Load what is slow to load, in threads."""
        ...

    async def check(self) -> None:
        """Make sure of every server and key."""
        ...

    def try_again(self) -> None:
        """Ask models again that were given up: what was wrong may have been mended since."""
        ...

    def annotations(self, conversation_id: str) -> Annotations:
        """Bookmarks and watches of the conversation, saved in the run's recording."""
        ...

    async def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """End the run in the recording and let go of everything."""
        ...


@dataclass(frozen=True)
class Launch:
    """What the start screen offers, and what to open instead of it.

    ``conversation`` goes straight into a live replay, as does what is picked from ``one_of``; ``recording`` into
    the newest run of a recording; with ``against`` the two recordings are compared. ``keys`` maps ids of actions to
    keys, separated by commas.
    ``datasets`` and ``recordings`` (the shipped demo first) are read after the first paint, in a thread; so is
    ``load``. ``assemble`` takes names of backends and a model.
    """

    datasets: Callable[[], Sequence[ListedDataset]]
    load: Callable[[str], Sequence[Conversation]]
    recordings: Callable[[], Sequence[Path]]
    assemble: Callable[[Sequence[str], str], RunHandle]
    backends: tuple[str, ...]
    all_backends: tuple[str, ...]
    model: str
    conversation: Conversation | None = None
    one_of: tuple[Conversation, ...] = ()
    recording: Path | None = None
    against: Path | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
