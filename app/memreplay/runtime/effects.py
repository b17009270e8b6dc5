"""Options that are given and change nothing in a run: one table of when each has an effect."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from memory_backends.registry import backend_class
from memreplay.engine.remote.addresses import is_agent
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.runtime.work import Work
from memreplay.settings import Settings


@dataclass(frozen=True)
class _Situation:
    """A run that is about to begin. Without conversations it ``has_tests``, in which the agent converses."""

    settings: Settings
    work: Work
    has_tests: bool

    @property
    def has_agents(self) -> bool:
        return any(map(is_agent, self.settings.backend))

    @property
    def calls_models(self) -> bool:
        """Return whether anything but the embedded reader and embedder is called, as far as the settings say."""
        settings = self.settings
        named = (*settings.model, settings.extractor, settings.judge, settings.reranker)
        others = {name for name in named if name} - {EXTRACTIVE_MODEL}
        return bool(others or settings.backend_config) or settings.embedder.startswith("litellm:")

    @property
    def has_choices(self) -> bool:
        return any(question.choices for each in self.work.conversations for question in each.questions)

    @property
    def has_logs(self) -> bool:
        """Return whether there are conversations without questions, as every chat log is one."""
        return any(not each.questions for each in self.work.conversations)

    @property
    def is_limited_by_top_k(self) -> bool:
        names = self.settings.backend
        return any(is_agent(name) or getattr(backend_class(name), "limited_by_top_k", True) for name in names)


@dataclass(frozen=True)
class _Option:
    """Names of options, and the condition under which they have an effect; else ``why`` completes "no effect …"."""

    names: tuple[str, ...]
    has_effect: Callable[[_Situation], bool]
    why: str


_OPTIONS = (
    _Option(
        ("prompt", "model_args", "reply_tokens"),
        lambda run: EXTRACTIVE_MODEL not in run.settings.model,
        f"on {EXTRACTIVE_MODEL}, which is no language model",
    ),
    _Option(("api_base",), lambda run: run.calls_models, "since no model of a server is called"),
    _Option(
        ("rpm", "tpm", "timeout"),
        lambda run: run.calls_models or run.has_agents,
        "since no model of a server is called",
    ),
    _Option(
        ("judge_rubric",), lambda run: run.settings.judge is not None, "since no judge is named (--judge MODEL)"
    ),
    _Option(
        ("judge",),
        lambda run: run.has_tests or run.work.has_recall_questions,
        "since multiple choice needs no judge",
    ),
    _Option(("shuffle_choices", "evidence"), lambda run: run.has_choices, "since no question has options"),
    _Option(("answer_key",), lambda run: bool(run.work.conversations), "since tests have no published answers"),
    _Option(("perceive",), lambda run: bool(run.work.conversations), "since tests read memory at every turn"),
    _Option(("by options",), lambda run: run.has_choices, "since no question has options"),
    _Option(("session_gap", "user"), lambda run: run.has_logs, "since no chat log is replayed"),
    _Option(
        ("redis_ttl",), lambda run: run.settings.redis_url is not None, "since the embedded Redis ends with the run"
    ),
    _Option(
        ("agent_session_header",),
        lambda run: any(name.startswith("openai:") for name in run.settings.backend),
        "since no agent openai:URL is asked",
    ),
    _Option(("top_k",), lambda run: run.is_limited_by_top_k, "since these memories rank nothing"),
)


def without_effect(
    settings: Settings, work: Work, *, has_tests: bool = False, options: Collection[str] = ()
) -> list[str]:
    """Return a sentence for each reason why given options change nothing.

    ``options`` are those that were given and are no settings; a setting was given if it is not the default.
    """
    run, defaults = _Situation(settings, work, has_tests), Settings()
    idle: dict[str, list[str]] = {}
    for each in _OPTIONS:
        given = [
            f"--{name.replace('_', '-')}"
            for name in each.names
            if name in options or getattr(settings, name, None) != getattr(defaults, name, None)
        ]
        if given and not each.has_effect(run):
            idle.setdefault(each.why, []).extend(given)
    return [f"{', '.join(names)}: no effect {why}" for why, names in idle.items()]
