"""A finished run taken up again: its settings, as far as its file may decide them, and its memories rebuilt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from memory_backends.base import MemoryBackend, Recall
from memory_backends.editing import StoreEdit
from memory_backends.registry import texts_to_embed
from memory_backends.retrieval.embedding import MiniLMEmbedder
from memreplay.conversations.models import Conversation, exchanges_of
from memreplay.engine.events import BackendFailed, ReplayEvent
from memreplay.engine.session import Answerer, EarlierLimits, ReplayPlan, ReplaySession
from memreplay.errors import UsageError
from memreplay.llm.secrets import without_secrets
from memreplay.llm.tokens import context_budget, token_counter
from memreplay.recording.branches import Branch
from memreplay.recording.captured import CAPTURED
from memreplay.recording.reader import Recording, RunInfo
from memreplay.runtime.embedders import EMBEDDED
from memreplay.runtime.memories import RunMemories
from memreplay.runtime.run import Run, start
from memreplay.settings import ADDRESSES, AS_GIVEN, CHANGE_NO_ANSWER, Settings, recorded_values
from memreplay.trust import Consent, NotAllowedError, Reach, reaches

_DECISIVE = (
    "backend",
    "model",
    "top_k",
    "context_tokens",
    "embedder",
    "reranker",
    "extractor",
    "ablate",
    "tier_share",
    "shuffle_choices",
    "seed",
    "repeats",
    "judge",
    "judge_rubric",
)
"""Settings that decide what a memory holds, what is asked, and how it is graded."""


def settings_of_run(recorded: Mapping[str, Any], given: Settings, file: Path, consent: Consent) -> Settings:
    """Return the settings of a recorded run for asking it again; keys, addresses and pace are those of today.

    Memories are rebuilt on embedded stores, so that the servers of the run stay as they are. ``file`` is the
    recording, and ``consent`` is asked about what it may not decide by itself.

    Raises:
        NotAllowedError: the recording asks for code, a process, an address or a provider that is not allowed.
        UsageError: a recorded value is unusable, or the recording is of a running agent.
    """
    if CAPTURED in recorded:
        raise UsageError(
            f"{file} is of a running agent, whose memories cannot be filled again; memreplay datasets export {file}"
            " --output FILE makes a dataset of its conversation, for other memories"
        )
    known = _values(recorded, file)
    kept = {name: known[name] for name in _DECISIVE if name in known}
    if given.api_base is None and "api_base" in known:
        kept["api_base"] = known["api_base"]
    _check(kept, given, file, consent)
    return replace(given, **kept, redis_url=None, qdrant_url=None, redis_ttl=None)


def settings_of_memories(recorded: Mapping[str, Any], given: Settings, file: Path, consent: Consent) -> Settings:
    """Return the settings of a recorded run for filling its memories and searching them, which asks no reader or
    judge: the reader's name only chooses how tokens are counted, and an address counts for what memories call.

    Raises what :func:`settings_of_run` does.
    """

    def agreed(found: Sequence[Reach]) -> bool:
        reached = [each for each in found if each.setting != "model"]
        return not reached or consent(reached)

    known = recorded_values(recorded, file)
    called = (known.get("extractor"), known.get("reranker"), known.get("embedder"))
    unused = {"judge", "judge_rubric"}
    if all(each in (None, EMBEDDED, MiniLMEmbedder.name) for each in called):
        unused.add("api_base")
    kept = {name: value for name, value in recorded.items() if name not in unused}
    return settings_of_run(kept, given, file, agreed)


def settings_to_continue(recorded: Mapping[str, Any], given: Settings, file: Path, consent: Consent) -> Settings:
    """Return the settings with which an interrupted run goes on: its own; keys and pace are those of today.

    Raises what :func:`settings_of_run` does.
    """
    known = _values(recorded, file)
    kept = {name: value for name, value in known.items() if name not in CHANGE_NO_ANSWER}
    for name in ADDRESSES:
        if name in kept and without_secrets(getattr(given, name)) == kept[name]:
            # Only the user's own address has the password.
            kept[name] = getattr(given, name)
    _check(kept, given, file, consent)
    return replace(given, **kept)


def continued(recording: Path, recorded: Mapping[str, Any], given: Settings, consent: Consent) -> Run:
    """Return the run that goes on with the unfinished run of a recording on the screen, with its settings.

    Raises:
        NotAllowedError: they ask for what neither the user's settings nor ``consent`` allow.
        UsageError: the run was started without a screen, and asks what the screen does not.
    """
    if recorded.get("closed_book_asked_along"):
        raise UsageError(
            f"{recording}: this run was started with --batch; repeat that command with --recording {recording}"
            " --resume"
        )
    return start(settings_to_continue(recorded, given, recording, consent), recording, resumes=True)


def refuse_memories(backends: Sequence[str], given: Settings, file: Path, consent: Consent) -> None:
    """Raise NotAllowedError if the memories that a recording names run or contact what is not allowed."""
    _check({"backend": tuple(backends)}, given, file, consent)


def _values(recorded: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the recorded settings, as the run was given them."""
    values = recorded_values(recorded, file)
    if AS_GIVEN not in recorded:
        # An older run recorded what was in use: the full name of its embedder, and shares that only hybrid takes.
        if values.get("embedder") == MiniLMEmbedder.name:
            values["embedder"] = EMBEDDED
        if "hybrid" not in values.get("backend", ()):
            values.pop("tier_share", None)
    return values


def _check(values: Mapping[str, Any], given: Settings, file: Path, consent: Consent) -> None:
    found = reaches(values, asdict(given))
    if found and not consent(found):
        raise NotAllowedError(file, found)


@dataclass(frozen=True)
class Lineage:
    """The edits by hand on the way to a branch: none for a trunk.

    ``root`` is the id of the trunk, in whose namespace memory is rebuilt, so that keys and ids are the same.
    ``edits`` are those of all branches up to this one, each with its turn; ``earlier`` are the limits before each.
    """

    root: str = "rebuilt"
    edits: tuple[tuple[int, StoreEdit], ...] = ()
    earlier: tuple[EarlierLimits, ...] = ()
    ends_of_exchanges: frozenset[int] = frozenset()


def lineage_of(recording: Recording, run: RunInfo, branch: Branch | None = None) -> Lineage:
    """Return the lineage of a run, or of a branch that is to depart from it."""
    branches = [] if branch is None else [branch]
    while run.branch is not None:
        branches.insert(0, run.branch)
        run = recording.run(run.branch.parent)
    if not branches:
        return Lineage()
    return Lineage(
        root=branches[0].parent,
        edits=tuple((each.turn, edit) for each in branches for edit in each.stores),
        earlier=tuple(
            _earlier(each.turn, recorded_values(recording.run(each.parent).settings, recording.path))
            for each in branches
        ),
        ends_of_exchanges=frozenset(each.turn for each in branches if _ends_an_exchange(recording, each)),
    )


def _ends_an_exchange(recording: Recording, branch: Branch) -> bool:
    """Return whether an exchange was complete where a branch departs, so that memory has it."""
    ends = (
        exchange.turn_number
        for exchange in exchanges_of(recording.conversation(branch.parent, branch.conversation))
    )
    return branch.turn in ends


def _earlier(until: int, settings: Mapping[str, Any]) -> EarlierLimits:
    tokens = settings.get("context_tokens")
    return EarlierLimits(
        until, settings.get("top_k", Settings.top_k), lambda model, limited: context_budget(model, tokens, limited)
    )


class RebuiltMemory:
    """One memory of a recorded run, which ingests its conversation again at the first recall."""

    def __init__(
        self,
        conversation: Conversation,
        name: str,
        memories: RunMemories,
        answerer: Answerer,
        settings: Settings,
        lineage: Lineage,
    ) -> None:
        """Raises UsageError if the memory cannot be created."""
        self._memory: MemoryBackend = memories.beside(conversation, name)
        self._conversation, self._name = conversation, name
        self._memories, self._answerer, self._settings = memories, answerer, settings
        self._lineage = lineage
        self._session: ReplaySession | None = None
        self._failure: str | None = None
        self._lock = asyncio.Lock()

    @property
    def limited_by_top_k(self) -> bool:
        """Return whether the number of hits limits what it returns."""
        return self._memory.limited_by_top_k

    async def recall(self, question: str, top_k: int, context_tokens: int, model: str, turn: int) -> Recall | str:
        """Return what it returns at a turn, or a sentence that says why it failed."""
        async with self._lock:
            session = await self._at(turn)
            if self._failure is not None:
                return self._failure
            self._memory.set_token_counter(token_counter(model))
            return await session.driver(self._name).recall(question, top_k, context_tokens, session.position)

    async def close(self) -> None:
        """Release its stores."""
        if self._session is not None:
            await self._session.close("cancelled")
            self._session = None

    async def _at(self, turn: int) -> ReplaySession:
        if self._session is not None and self._session.position > turn:
            await self.close()
        if self._session is None:
            self._session = await self._opened()
        for _ in range(self._session.position, turn):
            await self._session.step()
            # Embedded stores never yield to the event loop: without this no reply would be processed meanwhile.
            await asyncio.sleep(0)
        return self._session

    async def _opened(self) -> ReplaySession:
        texts = texts_to_embed([self._name], exchanges_of(self._conversation))
        await self._memories.embed_ahead(texts)
        self._failure = None
        plan = ReplayPlan(
            run_id=self._lineage.root,
            models=self._settings.model,
            top_k=self._settings.top_k,
            perceive=self._memory.perceive_changes_recall,
            counter_of=token_counter,
            edits=self._lineage.edits,
            earlier=self._lineage.earlier,
            edits_of_others=True,
            ends_of_exchanges=self._lineage.ends_of_exchanges,
        )
        memories = {self._name: self._memory}
        session = ReplaySession(self._conversation, memories, self._answerer, plan, self._note)
        await session.open()
        return session

    def _note(self, event: ReplayEvent) -> None:
        if isinstance(event, BackendFailed) and event.phase != "recall":
            self._failure = f"memory failed at turn {event.turn} ({event.phase}): {event.error}"


class MissingMemory:
    """A memory that cannot be made again, as when its plug-in is no longer installed."""

    limited_by_top_k = True

    def __init__(self, why: str) -> None:
        self._why = why

    async def recall(self, question: str, top_k: int, context_tokens: int, model: str, turn: int) -> Recall | str:
        """Return why it is missing."""
        return self._why

    async def close(self) -> None:
        return
