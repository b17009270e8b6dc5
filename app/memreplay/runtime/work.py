"""The work of a run, from its settings and datasets: who answers, and which questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TypeVar
from urllib.parse import urlsplit

from memory_backends.controls import CLOSED_BOOK, CONTROLS, ORACLE
from memory_backends.plugins import is_handed_over
from memreplay.conversations.log_options import DEFAULT_LOG_OPTIONS, LogOptions
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import default_datasets, load
from memreplay.conversations.validation_errors import SILENT, OnOpened
from memreplay.engine.remote.addresses import is_agent, models_asked_of, refuse_unknown_backends
from memreplay.engine.session import Ask
from memreplay.errors import UsageError
from memreplay.llm.catalogue import is_loopback
from memreplay.llm.secrets import without_secrets
from memreplay.scoring.answer_key import AnswerKey, read_answer_key
from memreplay.settings import Settings

_Place = TypeVar("_Place", bound=Hashable)


@dataclass(frozen=True)
class Work:
    """Conversations with their questions."""

    conversations: Sequence[Conversation] = ()
    answer_key: AnswerKey | None = None

    @property
    def has_recall_questions(self) -> bool:
        return any(question.kind == "recall" for each in self.conversations for question in each.questions)


NOTHING = Work()


def check_settings(settings: Settings) -> None:
    """Raise UsageError for settings that contradict each other, or name unknown memories or unusable workers."""
    if settings.limit and settings.sample:
        raise UsageError("--limit and --sample both choose the questions; use one of them")
    if settings.offline and not settings.cache:
        raise UsageError("--offline takes replies from the cache; remove --no-cache")
    for url in (settings.redis_url, settings.qdrant_url) if settings.offline else ():
        if url is not None and not is_loopback(url):
            raise UsageError(f"--offline uses no network, but {without_secrets(url)} needs one")
    refuse_unknown_backends(settings.backend)
    _refuse_unusable_workers(settings)


def _refuse_unusable_workers(settings: Settings) -> None:
    several = (settings.workers or 1) > 1
    if settings.cluster is not None:
        if several:
            raise UsageError("--workers starts workers here, --cluster uses those of a scheduler; use one of them")
        number_of_local_workers(settings.cluster)
        if find_spec("distributed") is None:
            raise UsageError("--cluster needs Dask: pip install 'memreplay[cluster]'")
    for name in filter(is_handed_over, settings.backend) if several or settings.cluster is not None else ():
        raise UsageError(
            f"{name} exists only in this process; workers need a memory that they can import: package.module:Class"
        )


def number_of_local_workers(cluster: str) -> int | None:
    """Return how many workers Dask starts here; None for those of a scheduler.

    Raises:
        UsageError: the address has another form.
    """
    scheme, _, rest = cluster.partition(":")
    if scheme == "local" and rest.isdecimal() and int(rest):
        return int(rest)
    with suppress(ValueError):
        parts = urlsplit(cluster)
        if parts.scheme in ("tcp", "tls") and parts.hostname and parts.port:
            return None
    raise UsageError(f"--cluster {cluster}: expected tcp://host:8786, tls://host:8786 or local:N")


_NOTHING_TO_ASK = "nothing to ask: the chosen datasets contain no questions"
_FOR_LOGS = (
    "; memreplay datasets draft LOG --model MODEL drafts questions about a log, and without --batch the screen"
    " replays it, where a asks"
)


def work_of(
    settings: Settings,
    datasets: Sequence[str | Conversation],
    *,
    has_tests: bool = False,
    evidence: Path | None = None,
    logs: LogOptions = DEFAULT_LOG_OPTIONS,
    answer_key: Path | None = None,
    warn: Callable[[str], None],
    on_opened: OnOpened = SILENT.on_opened,
) -> Work:
    """Return what the datasets ask, the shipped ones if none is named.

    If the run ``has_tests``, in which the agent converses, it need not ask anything else.

    Raises:
        MemreplayError: a dataset or the answer key is unusable, or there is nothing to ask.
    """
    given = [each for each in datasets if isinstance(each, Conversation)]
    named = [each for each in datasets if isinstance(each, str)]
    specs = named if datasets or has_tests else [entry.id for entry in default_datasets()]
    _refuse_for_tests(settings, [*specs, *(each.id for each in given)], has_tests=has_tests)
    loaded = load(specs, evidence, warn, on_opened, logs) if specs else iter(())
    found = _chain(given, loaded)
    if settings.sample is not None:
        conversations = sampled_questions(found, settings.sample, settings.seed)
    else:
        conversations = list(first_questions(found, settings.limit))
    if not has_tests and not any(conversation.questions for conversation in conversations):
        raise UsageError(_NOTHING_TO_ASK + (_FOR_LOGS if conversations else ""))
    key = read_answer_key(answer_key) if answer_key else None
    if key is not None:
        key.check(conversations)
    return Work(conversations, key)


def _chain(given: Sequence[Conversation], loaded: Iterator[Conversation]) -> Iterator[Conversation]:
    """Yield the conversations in order, each id once."""
    seen: set[str] = set()
    for source in (given, loaded):
        for conversation in source:
            if conversation.id in seen:
                raise UsageError(f"two conversations have the id {conversation.id!r}; expected unique ids")
            seen.add(conversation.id)
            yield conversation


def refuse_agents(settings: Settings) -> None:
    """Raise UsageError if a remote agent would have to run tests."""
    agents = [name for name in settings.backend if is_agent(name)]
    if agents:
        raise UsageError(f"tests run on memories; {agents[0]} is an agent")


def _refuse_for_tests(settings: Settings, conversations: Sequence[str], *, has_tests: bool) -> None:
    """Raise UsageError for an option that has no meaning for these conversations, with tests or without."""
    if not has_tests:
        for name in ("examples", "memory_span", "isolated"):
            if getattr(settings, name):
                raise UsageError(f"--{name.replace('_', '-')} is for datasets of tests, and none was given")
        return
    refuse_agents(settings)
    if ORACLE in settings.backend:
        raise UsageError(f"--backend {ORACLE} needs the evidence of questions; tests have none: run it separately")
    for name in ("limit", "sample"):
        if conversations and getattr(settings, name) is not None:
            raise UsageError(f"--{name} counts either questions or tests: run conversations and tests separately")


def implicit_baselines(backends: Sequence[str]) -> tuple[str, ...]:
    """Return the closed book, with which every memory is compared: without it a right answer may be a guess.

    Not for an agent: no model of ours knows what it would say without its memory.
    """
    memories = [name for name in backends if name not in CONTROLS and not is_agent(name)]
    return (CLOSED_BOOK,) if memories and CLOSED_BOOK not in backends else ()


@dataclass(frozen=True)
class AskPlan:
    """The answerers of each question, and the number of repeats. ``baselines`` are backends that run without being
    chosen.
    """

    backends: tuple[str, ...]
    baselines: tuple[str, ...]
    models: tuple[str, ...]
    repeats: int
    retry_errors: bool

    @property
    def answerers(self) -> tuple[str, ...]:
        """Models, and agents by their addresses."""
        return (*self.models, *filter(is_agent, self.backends))

    def asks_of(self, conversation: Conversation) -> list[Ask]:
        """Return every ask, in order: those that share a context (full context, repeats) follow each other."""
        return [
            Ask(question, backend, model, repeat)
            for backend in (*self.backends, *self.baselines)
            for question in conversation.questions
            for model in models_asked_of(backend, self.models)
            for repeat in range(self.repeats if backend in self.backends else 1)
        ]


def first_questions(conversations: Iterable[Conversation], limit: int | None) -> Iterator[Conversation]:
    """Yield the conversations with the first ``limit`` questions in all; those without any are dropped."""
    left = limit
    for conversation in conversations:
        if left is None:
            yield conversation
            continue
        kept = conversation.questions[:left]
        left -= len(kept)
        if kept:
            yield conversation.model_copy(update={"questions": kept})


def sampled_questions(conversations: Iterable[Conversation], size: int, seed: int) -> list[Conversation]:
    """Return the conversations with a sample of ``size`` questions, stratified by type; those without any are
    dropped.

    Each type gets its share of the sample, by largest remainders. The order stays the dataset's. The same questions
    and seed yield the same sample.
    """
    loaded = list(conversations)
    drawn = stratified_sample(
        (
            (question.type, (conversation.id, question.id))
            for conversation in loaded
            for question in conversation.questions
        ),
        size,
        seed,
    )
    return [kept for conversation in loaded if (kept := _with_only(conversation, drawn)).questions]


def stratified_sample(places: Iterable[tuple[str, _Place]], size: int, seed: int) -> set[_Place]:
    """Return a sample of (type, place) pairs, stratified by type."""
    by_type: dict[str, list[_Place]] = defaultdict(list)
    for name, place in places:
        by_type[name].append(place)
    shares = _shares({name: len(found) for name, found in by_type.items()}, size)
    return {
        place for name, found in by_type.items() for place in Random(f"{seed}/{name}").sample(found, shares[name])
    }


def _with_only(conversation: Conversation, wanted: set[tuple[str, str]]) -> Conversation:
    kept = tuple(question for question in conversation.questions if (conversation.id, question.id) in wanted)
    return conversation.model_copy(update={"questions": kept})


def _shares(counts: Mapping[str, int], size: int) -> dict[str, int]:
    """Return how many of each type, by largest remainders; earlier types win ties."""
    total = sum(counts.values())
    size = min(size, total)
    exact = {name: size * count / total for name, count in counts.items()}
    shares = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(counts, key=lambda name: shares[name] - exact[name])
    for name in by_remainder[: size - sum(shares.values())]:
        shares[name] += 1
    return shares
