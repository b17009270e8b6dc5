"""Limits on what a file from elsewhere may decide: a recording, or the settings of a project.

It may choose among the memories that memreplay ships, and set numbers within bounds. Whatever runs code, starts a
process, names an address or a provider, or costs money counts only if the user says the same, or allows it.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from memory_backends.addresses import parse_address
from memreplay.errors import UsageError
from memreplay.llm import AGENT_MODEL, EXTRACTIVE_MODEL, RubricChoice

MOST: Mapping[str, int] = {
    "top_k": 1_000,
    "context_tokens": 1_000_000,
    "redis_ttl": 2**31 - 1,
    "concurrency": 64,
    "workers": os.cpu_count() or 1,
    "rpm": 100_000,
    "tpm": 100_000_000,
    "timeout": 3_600,
    "reply_tokens": 32_768,
    "limit": 2**31 - 1,
    "sample": 2**31 - 1,
    "repeats": 100,
    "seed": 2**53 - 1,
    "examples": 1_000,
    "memory_span": 1_000_000,
}
"""The largest number that a file may choose for each setting; beyond it the user chooses."""

_NAMES = frozenset({"ablate", "tier_share", "theme", "shuffle_choices", "isolated", "fresh"})
"""Settings whose values only name parts of what memreplay ships, or order its work."""

_ONLY_STRICTER: Mapping[str, bool] = {"offline": True, "cache": True}
"""Switches that a file may turn only one way: it cannot lift the user's ban on the network, nor pay twice."""

_EMBEDDER = "minilm"
_PROMPTS = ("memreplay", "locomo", "longmemeval", "mc10")
_MODELS = {EXTRACTIVE_MODEL, AGENT_MODEL}
_SENT = {
    "model": "sends prompts, with your key, to the model {}",
    "judge": "sends questions and replies, with your key, to the model {}",
    "extractor": "sends conversations, with your key, to the model {}",
    "api_base": "sends prompts and your key to {}",
    "redis_url": "sends conversations to {}",
    "qdrant_url": "sends conversations and Qdrant's key to {}",
    "cluster": "sends conversations to {}",
}
"""Settings that name a provider or an address, and what goes there."""


@dataclass(frozen=True)
class Reach:
    """A value in a file that would run, contact or cost something. ``effect`` says what, beginning with a verb."""

    setting: str
    value: Any
    effect: str

    def __str__(self) -> str:
        # An address may hold a password, and the effect of a model names it.
        return f"{self.setting} {'' if self.setting in _SENT else f'{self.value} '}{self.effect}"

    @property
    def flag(self) -> str:
        """Return the flag that says the same, quoted for a shell."""
        value = json.dumps(self.value) if isinstance(self.value, dict) else str(self.value)
        return f"--{self.setting.replace('_', '-')} {shlex.quote(value)}"


Consent = Callable[[Sequence[Reach]], bool]
"""Tells whether the user allows a file all of this."""


def refuse(reaches: Sequence[Reach]) -> bool:
    """Allow nothing."""
    return False


def allow(reaches: Sequence[Reach]) -> bool:
    """Allow everything."""
    return True


class NotAllowedError(UsageError):
    """A recording asks for what its user has not given. ``reaches`` says for what."""

    def __init__(self, file: object, reaches: Sequence[Reach]) -> None:
        self.reaches = tuple(reaches)
        flags = " ".join(dict.fromkeys(each.flag for each in reaches))
        super().__init__(
            f"{file} asks for what your settings do not name, so nothing was started: {in_words(reaches)};"
            f" if you want this, add {flags}, or --allow-from-recording"
        )


def in_words(reaches: Sequence[Reach]) -> str:
    """Return what a file asks for, in one line."""
    return "; ".join(map(str, reaches))


def reaches(values: Mapping[str, Any], own: Mapping[str, Any]) -> list[Reach]:
    """Return what the values of a file would do beyond what the user's ``own`` values do."""
    return [
        Reach(name, each, effect)
        for name, value in values.items()
        for each in _each(value)
        if each not in _each(own.get(name)) and (effect := _effect(name, each)) is not None
    ]


def _each(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    if isinstance(value, dict) and not value:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def _effect(name: str, value: Any) -> str | None:
    """Return what a value does beyond choosing among what is shipped; None if nothing."""
    if name in MOST:
        return None if value <= MOST[name] else f"is beyond {MOST[name]:,}, the most that a file may choose"
    if name in _ONLY_STRICTER:
        return None if value is _ONLY_STRICTER[name] else "may be set only by you"
    match name:
        case _ if name in _NAMES:
            return None
        case "backend":
            return _effect_of_backend(str(value))
        case "prompt" if value in _PROMPTS:
            return None
        case "judge_rubric" if value in get_args(RubricChoice):
            return None
        case "embedder" | "reranker":
            return _effect_of_model_of_texts(str(value))
        case "model" | "judge" | "extractor" if value in _MODELS:
            return None
        case _ if name in _SENT:
            return _SENT[name].format(_shown(str(value)))
    return "may be set only by you"


def _effect_of_backend(name: str) -> str | None:
    # These load pydantic, which --help does without.
    from memory_backends.registry import BACKEND_NAMES
    from memreplay.engine.remote.addresses import AgentAddress, is_agent

    if name in BACKEND_NAMES:
        return None
    if (effect := _effect_of_service(name)) is not None:
        return effect
    if is_agent(name):
        return f"sends conversations and the agent's token to {AgentAddress.read(name).host}"
    return "runs its code"


def _effect_of_service(name: str) -> str | None:
    """Return what a memory server does, read by the adapters that start or call it; None for another name."""
    from memory_backends import http_memory
    from memory_backends.adapters import mcp
    from memory_backends.base import BackendError

    family = name.partition(":")[0].lower().partition("[")[0]
    try:
        if family == "http-memory":
            return f"sends conversations and the memory's token to {http_memory.read_name(name)[0].netloc}"
        if family == "mcp":
            _, command = mcp.read_name(name)
            if (address := mcp.address_of(command)) is not None:
                return f"sends conversations and the memory's token to {address.netloc}"
            return f"runs the command {command}"
    except BackendError:
        return (
            f"runs the command {name.partition(':')[2]}" if family == "mcp" else "sends conversations to a server"
        )
    return None


def _effect_of_model_of_texts(name: str) -> str | None:
    if name == _EMBEDDER:
        return None
    maker, _, model = name.partition(":")
    if maker == "fastembed":
        return f"downloads the model {model}"
    return f"sends texts, with your key, to the model {model or name}"


def _shown(named: str) -> str:
    """Return the host of an address, without its password; any other name as it is."""
    try:
        return parse_address(named).netloc
    except ValueError:
        return named
