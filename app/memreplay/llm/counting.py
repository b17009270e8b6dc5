"""Counts the calls of a model that an estimate would make, and makes none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.caching import ReplyCache, is_cacheable, request_key
from memreplay.llm.catalogue import model_facts, table_entry
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.tokens import token_counter

Certainty = Literal["exact", "at most", "tokens about", "about", "tokens unknown", "cannot be estimated"]
"""Certainty of the calls and prompt tokens of an estimate. With ``tokens about`` the number of calls is exact."""


@dataclass
class Estimate:
    """The calls of one model in one part: a memory's reader or writer, the reranker, the judge, and so on.

    ``asked`` counts questions, or tests; ``calls`` those that would be paid, ``reused`` replies that are cached.
    """

    asked: int = 0
    calls: int = 0
    reused: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    certainty: Certainty = "exact"

    def price(self, model: str) -> float | None:
        """Return the cost in US dollars, without any discount; None if the price is unknown."""
        if self.certainty == "cannot be estimated":
            return None
        if model == EXTRACTIVE_MODEL or not self.calls:
            return 0.0
        if self.certainty == "tokens unknown":
            return None
        if per_call := (table_entry(model) or {}).get("input_cost_per_query"):
            return float(per_call) * self.calls
        facts = model_facts(model)
        if facts.prompt_price is None or (facts.completion_price is None and self.reply_tokens):
            return None
        return self.prompt_tokens * facts.prompt_price + self.reply_tokens * (facts.completion_price or 0.0)


Rows = dict[tuple[str, str], Estimate]
"""Estimates by the part of a run, such as the name of a memory, and the model."""


# Contexts that many questions share are counted once.
@lru_cache(maxsize=1024)
def _tokens(model: str, text: str) -> int:
    return token_counter(model)(text)


def prompt_tokens(request: AnswerRequest) -> int:
    """About as many tokens as the provider will count in a prompt, tools and schemas included."""
    return sum(_tokens(request.model, text) for text in _texts_of(request))


def _texts_of(request: AnswerRequest) -> Iterator[str]:
    for message in request.messages:
        yield from message.segments
    for raw in request.raw_messages:
        for value in raw.values():
            yield value if isinstance(value, str) else _json(value)
    for name in ("tools", "response_format"):
        if request.parameters.get(name):
            yield _json(request.parameters[name])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


StandIn = Callable[[AnswerRequest, str], Reply]
"""Makes a reply to a request that has this key."""


class CountingModel:
    """Returns cached replies; counts the other calls in ``row`` and returns what ``stand_in`` makes of a request.

    A reply is assumed to be as long as the stand-in says that it is, else as long as the model may make it. Equal
    requests count once among those in ``seen``; None counts each. Those to the embedded reader, whose replies are
    never cached, all count. While ``guessing`` names a part, its requests are not those that a run would make: no
    reply to them is cached, and other parts have no equal ones.
    """

    def __init__(
        self,
        cache: ReplyCache | None,
        seen: set[str] | None,
        stand_in: StandIn,
        guessing: Callable[[], str] = lambda: "",
    ) -> None:
        self.row = Estimate()
        self._cache, self._seen, self._stand_in, self._guessing = cache, seen, stand_in, guessing

    async def answer(self, request: AnswerRequest) -> Reply:
        """Return a reply; no model is asked for it."""
        key, guessed = request_key(request), self._guessing()
        is_kept = is_cacheable(request)
        cached = self._cache.get(key) if self._cache is not None and is_kept and not guessed else None
        key = f"{guessed} {key}" if guessed else key
        reply = cached or self._stand_in(request, key)
        seen = self._seen if is_kept else None
        if cached is not None or (seen is not None and key in seen):
            self.row.reused += 1
            return reply.model_copy(update={"reused": True})
        if seen is not None:
            seen.add(key)
        self.row.calls += 1
        self.row.prompt_tokens += prompt_tokens(request)
        self.row.reply_tokens += reply.usage.completion or int(request.parameters.get("max_tokens") or 0)
        return reply


def not_asked(request: AnswerRequest, key: str) -> Reply:
    """Return a stand-in where no text would do."""
    return Reply(text=None, error="not asked: this is an estimate")


def emptiest_reply(request: AnswerRequest, key: str) -> Reply:
    """Return a stand-in for a reply that tells a memory nothing: the least JSON that the request allows, or no
    text.
    """
    wanted = request.parameters.get("response_format")
    schema = wanted.get("json_schema", {}).get("schema") if isinstance(wanted, Mapping) else None
    if schema is None:
        return Reply(text="{}" if wanted else "")
    return Reply(text=json.dumps(_emptiest(schema, schema)))


_EMPTY: Mapping[str, Any] = {"array": [], "string": "", "number": 0, "integer": 0, "boolean": False}


def _emptiest(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Return the least value that a JSON schema allows."""
    if "$ref" in schema:
        found: Any = root
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = found[part]
        return _emptiest(found, root)
    if "const" in schema or "enum" in schema:
        return schema.get("const", *schema.get("enum", ())[:1])
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            some = schema[choice]
            return None if {"type": "null"} in some else _emptiest(some[0], root)
    if schema.get("type") == "object" or "properties" in schema:
        fields = schema.get("properties", {})
        return {name: _emptiest(fields.get(name, {}), root) for name in schema.get("required", ())}
    return _EMPTY.get(str(schema.get("type")))
