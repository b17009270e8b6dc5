"""Parameters of model calls: what the user sets for a role or a model, and what a server has refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.errors import reason_of, status_of
from memreplay.llm.model import AnswerModel, AnswerRequest, Reply

Role = Literal["reader", "judge", "writer"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

OF_THE_CALL: Final = frozenset(
    "model messages stream api_base base_url api_key api_version headers extra_headers custom_llm_provider n"
    " tools tool_choice functions timeout num_retries max_retries fallbacks mock_response metadata".split()
)
"""Parameters that the program sets itself, or that name an address or a key: those have settings of their own."""


HARMLESS: Final = frozenset(
    "temperature top_p max_tokens max_completion_tokens response_format tools tool_choice parallel_tool_calls stop"
    " seed reasoning_effort presence_penalty frequency_penalty".split()
)
"""Parameters that only shape a reply: no other is recorded of a memory's own calls, or taken from a recording."""


def check_model_args(args: Mapping[str, Any]) -> None:
    """Raise ValueError for a parameter that cannot be set, and for a table that is none."""
    for name, value in args.items():
        if name in ROLES or "/" in name:
            if not isinstance(value, dict):
                raise ValueError(f'expected parameters of {name} in an object, such as {{"temperature": 1}}')
            tables = [value]
        else:
            tables = [{name: value}]
        for parameter in (each for table in tables for each in table):
            if parameter in OF_THE_CALL:
                raise ValueError(f"{parameter} is no parameter that can be set here")


def parameters_for(args: Mapping[str, Any], role: Role, model: str) -> dict[str, Any]:
    """Return what the user sets for a role and model: for the reader, then for the role, then for the model.

    A parameter that is None is to be left out of calls.
    """
    plain = {name: value for name, value in args.items() if name not in ROLES and "/" not in name}
    return {**(plain if role == "reader" else {}), **args.get(role, {}), **args.get(model, {})}


class ParameterisedModel:
    """Calls the inner model with the parameters that the user sets for a role.

    ``reply_tokens`` replaces the limit of a reply, thoughts included.
    """

    def __init__(
        self, inner: AnswerModel, role: Role, args: Mapping[str, Any], reply_tokens: int | None = None
    ) -> None:
        self._inner, self._role, self._args, self._reply_tokens = inner, role, args, reply_tokens

    async def answer(self, request: AnswerRequest) -> Reply:
        """Return the reply of the inner model."""
        return await self._inner.answer(self.of(request))

    def of(self, request: AnswerRequest) -> AnswerRequest:
        """Return the call as it is sent."""
        if request.model == EXTRACTIVE_MODEL:
            return request
        parameters = dict(request.parameters)
        if self._reply_tokens is not None:
            parameters["max_tokens"] = self._reply_tokens
        parameters |= parameters_for(self._args, self._role, request.model)
        kept = {name: value for name, value in parameters.items() if value is not None}
        return request if kept == request.parameters else request.model_copy(update={"parameters": kept})


LONGER_BY = 4096
"""Tokens by which the limit of a model's replies is raised, once, when one was cut."""

LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def limit_of(parameters: Mapping[str, Any]) -> int | None:
    """Return the limit of a reply, in tokens."""
    return next((parameters[name] for name in LIMITS if isinstance(parameters.get(name), int)), None)


@dataclass
class LearntParameters:
    """Changes that calls of one model were found to need.

    ``refused`` maps a parameter to the one that its server wants instead, or to None. With ``is_longer`` the limit
    of replies is raised.
    """

    refused: dict[str, str | None] = field(default_factory=dict)
    is_longer: bool = False

    def applied_to(self, request: AnswerRequest) -> dict[str, Any]:
        """Return the parameters of a call as its server accepts them."""
        parameters: dict[str, Any] = {}
        for name, value in request.parameters.items():
            if self.is_longer and name in LIMITS and isinstance(value, int) and not request.accepts_cut_reply:
                value += LONGER_BY
            sent = self.refused.get(name, name)
            if sent is not None:
                parameters[sent] = value
        return parameters

    def learn_from(self, error: BaseException, sent: Mapping[str, Any]) -> str | None:
        """Return what changes, in one sentence, if a server refused one of the parameters that were sent; empty if
        another call has learnt it meanwhile.
        """
        found = _refused_parameter(error, sent)
        if found is None:
            return None
        name, instead = found
        original = next((given for given, other in self.refused.items() if other == name), name)
        if original == name and name in self.refused:
            return ""
        self.refused[original] = instead
        change = f"it is called {instead} there" if instead else "it is left out"
        return f"the server refuses the parameter {name}, and {change} from now on ({reason_of(error)})"


_UNSUPPORTED = re.compile(
    r"unsupported|not (?:be )?support|unrecognized|unknown|unexpected|not (?:permitted|allowed)|n.t support"
    r"|only the default|extra inputs",
    re.IGNORECASE,
)
_TOO_MUCH = re.compile(r"too (?:large|long|high|many)|at most|maximum|exceed", re.IGNORECASE)
_INSTEAD = re.compile(r"use [`'\"]?(\w+)[`'\"]? instead", re.IGNORECASE)


def _refused_parameter(error: BaseException, sent: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """Return the name of a refused parameter, and the one to use instead, if the server names any."""
    if status_of(error) not in (400, 422):
        return None
    body = getattr(error, "body", None)
    message = f"{error} {body or ''}"
    if not _UNSUPPORTED.search(message) or _TOO_MUCH.search(message):
        return None
    named = [str(body.get("param"))] if isinstance(body, dict) else []
    named += re.findall(r"\w+", message)
    name = next((each for each in named if each in sent), None)
    if name is None:
        return None
    instead = _INSTEAD.search(message)
    return name, instead[1] if instead and instead[1] not in sent and instead[1] != name else None
