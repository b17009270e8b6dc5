"""The pytest plugin: memory regressions as unit tests.

    @pytest.mark.memreplay(dataset="multi-01", backend="hybrid")
    def test_remembers_the_deadline(memory):
        assert memory.recalls("q1", turn=8)

Loaded into every pytest run where memreplay is installed: it imports nothing of memreplay until a test uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from memreplay.api.replayed import Answered, Recalled, ReplayedMemory
    from memreplay.api.running import BackgroundLoop

_MARKER = "memreplay"
_ARGUMENTS = "dataset, backend='hybrid', conversation=None, **settings"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARKER}({_ARGUMENTS}): replay a conversation to a memory, and ask it through the fixture `memory`.",
    )


class Memory:
    """The fixture ``memory``: the marked memory, at any turn of the marked conversation."""

    def __init__(self, replayed: ReplayedMemory, loop: BackgroundLoop, node: pytest.Item) -> None:
        self._replayed, self._loop, self._node = replayed, loop, node

    def recalls(self, question: str, expected: str | None = None, *, turn: int | None = None) -> Recalled:
        """Return whether what memory returns for a question after a turn (default: the last) holds the answer.

        ``question`` is the id or the text of a question of the dataset, or, with ``expected``, one of your own. No
        model is asked. A failure names the stage that lost the answer.
        """
        with _in_one_sentence():
            asked = self._replayed.question(question, expected)
            recalled = self._loop.call(self._replayed.recall(asked, turn))
        self._report(recalled)
        return recalled

    def answers(self, question: str, expected: str | None = None, *, turn: int | None = None) -> Answered:
        """Return whether the model (of the marker or the configuration) answers rightly from what memory
        returns.
        """
        with _in_one_sentence():
            asked = self._replayed.question(question, expected)
            answered = self._loop.call(self._replayed.answer(asked, turn))
        self._report(answered)
        return answered

    def _report(self, result: Recalled | Answered) -> None:
        if not result:
            self._node.add_report_section("call", _MARKER, result.explanation)


@contextmanager
def _in_one_sentence() -> Iterator[None]:
    """Fail with one sentence: a traceback of memreplay would hide what the user can fix."""
    from memreplay.errors import MemreplayError

    try:
        yield
        return
    except MemreplayError as error:
        problem = str(error)
    pytest.fail(f"memreplay: {problem}", pytrace=False)


class _Pool:
    """The memories of a test session. Tests with equal markers share one, at whatever turn it stands."""

    def __init__(self) -> None:
        from memreplay.api.running import BackgroundLoop

        self._open = ExitStack()
        self.loop = self._open.enter_context(BackgroundLoop())
        self._memories: dict[str, ReplayedMemory] = {}

    def memory(self, dataset: object, backend: object, conversation: str | None, settings: Any) -> ReplayedMemory:
        from memreplay.api.replayed import ReplayedMemory
        from memreplay.api.running import settings_of

        read = settings_of([backend], settings.pop("model", ()), settings)
        replayed = _conversation(dataset, conversation)
        name = repr((replayed.id, str(dataset), read, id(backend) if not isinstance(backend, str) else backend))
        if name not in self._memories:
            memory = ReplayedMemory(replayed, read.backend[0], read, lambda sentence: None)
            self._open.callback(lambda: self.loop.call(memory.close()))
            self._memories[name] = memory
        return self._memories[name]

    def close(self) -> None:
        self._open.close()


def _conversation(dataset: object, wanted: str | None) -> Any:
    from memreplay.conversations.models import Conversation
    from memreplay.conversations.registry import load
    from memreplay.errors import UsageError

    if isinstance(dataset, Conversation):
        return dataset
    found = {each.id: each for each in load([str(dataset)])}
    if wanted is None and len(found) == 1:
        return next(iter(found.values()))
    if wanted is None or wanted not in found:
        raise UsageError(f"{dataset} has the conversations {', '.join(found)}; name one with conversation=")
    return found[wanted]


@pytest.fixture(scope="session")
def _memreplay_pool() -> Iterator[_Pool]:
    pool = _Pool()
    yield pool
    pool.close()


@pytest.fixture
def memory(request: pytest.FixtureRequest, _memreplay_pool: _Pool) -> Memory:
    """The memory that ``@pytest.mark.memreplay(dataset=…, backend=…)`` names."""
    marker = request.node.get_closest_marker(_MARKER)
    if marker is None or marker.args or "dataset" not in marker.kwargs:
        raise pytest.UsageError(f"the fixture `memory` needs @pytest.mark.{_MARKER}({_ARGUMENTS})")
    settings = dict(marker.kwargs)
    chosen = settings.pop("dataset"), settings.pop("backend", "hybrid"), settings.pop("conversation", None)
    with _in_one_sentence():
        replayed = _memreplay_pool.memory(*chosen, settings)
    return Memory(replayed, _memreplay_pool.loop, request.node)
