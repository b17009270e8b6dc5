"""What a provider can do wrong, and what must come of it: one row a fault."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.stubs.openai_server import Answer, failure


@dataclass(frozen=True)
class ProviderFault:
    """``sent`` answers every ask. ``code`` is the exit code; ``outcome`` and ``error`` are those of the row in the
    results, None where there are none; ``asks`` is how often the one question is asked at most."""

    name: str
    sent: Answer
    code: int
    outcome: str | None
    error: str | None = None
    asks: int = 1


def _body(data: Any) -> Answer:
    return {"status": 200, "headers": {}, "body": data if isinstance(data, str) else json.dumps(data)}


def _completion(finish_reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [
            {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason},
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }


def _used(**usage: Any) -> Answer:
    return _body(_completion(content="Norway") | {"usage": usage})


WELL_FORMED = _completion(content="Norway")
_WHOLE = json.dumps(WELL_FORMED)
_TOOL = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
_UNREADABLE = "cannot be read"

PROVIDER_FAULTS = (
    # Text and numbers that cannot be stored as they are
    ProviderFault("half a surrogate pair", _body(_completion(content="Nor\ud83dway")), 0, "wrong"),
    ProviderFault("a NUL", _body(_completion(content="Nor\0way")), 0, "wrong"),
    ProviderFault("escape sequences", _body(_completion(content="\x1b]52;c;YQ==\x07Norway")), 0, "wrong"),
    ProviderFault("tokens beyond 64 bits", _used(prompt_tokens=10**30, completion_tokens=1), 0, "wrong"),
    ProviderFault("fewer than no tokens", _used(prompt_tokens=-5, completion_tokens=1), 0, "wrong"),
    ProviderFault("tokens as a text", _used(prompt_tokens="12", completion_tokens=1), 0, "wrong"),
    ProviderFault("no usage", _body(_completion(content="Norway") | {"usage": None}), 0, "wrong"),
    ProviderFault("an unknown finish reason", _body(_completion("banana", content="Norway")), 0, "wrong"),
    # No answer
    ProviderFault("null", _body(_completion(content=None)), 3, "error", "the reply is empty"),
    ProviderFault("nothing", _body(_completion(content="")), 3, "error", "the reply is empty"),
    ProviderFault("blanks", _body(_completion(content=" \n")), 3, "error", "the reply is empty"),
    ProviderFault("reasoning only", _body(_completion(content=None, reasoning_content="hm")), 3, "error", "empty"),
    ProviderFault("a tool", _body(_completion("tool_calls", content=None, tool_calls=_TOOL)), 3, "error", "a tool"),
    ProviderFault(
        "cut before text", _body(_completion("length", content="")), 3, "error", "cut by its limit", asks=2
    ),
    ProviderFault("no choices", _body(_completion() | {"choices": []}), 3, "error", "holds no answer"),
    # A success that cannot be read: asked once more, and not again if it says that it was billed
    ProviderFault("a page", _body("<html>oops"), 3, "error", _UNREADABLE, asks=2),
    ProviderFault("an empty body", _body(""), 3, "error", _UNREADABLE, asks=2),
    ProviderFault("an empty object", _body({}), 3, "error", _UNREADABLE, asks=2),
    ProviderFault("a list", _body([]), 3, "error", _UNREADABLE, asks=2),
    ProviderFault("nested too deeply", _body("[" * 100_000), 3, "error", _UNREADABLE, asks=2),
    ProviderFault("cut short before usage", _body(_WHOLE[:150]), 3, "error", _UNREADABLE, asks=2),
    ProviderFault("cut short after usage", _body(_WHOLE[:-2]), 3, "error", _UNREADABLE),
    ProviderFault("garbage after the reply", _body(_WHOLE + "}}"), 3, "error", _UNREADABLE),
    ProviderFault("content is a number", _body(_completion(content=5)), 3, "error", _UNREADABLE),
    ProviderFault("content is an object", _body(_completion(content={"a": 1})), 3, "error", _UNREADABLE),
    ProviderFault("usage is a text", _body({**_completion(content="x"), "usage": "?"}), 3, "error", _UNREADABLE, 2),
    ProviderFault("no message", _body(_completion() | {"choices": [{"message": None}]}), 3, "error", _UNREADABLE),
    # Errors
    ProviderFault("an error as a success", _body({"error": {"message": "overloaded"}}), 3, "error", "overloaded"),
    ProviderFault("a bad request", failure(400, "no such thing"), 3, "error", "no such thing"),
    ProviderFault("a page as an error", _body("<html>\x1b[2J") | {"status": 400}, 3, "error", "html"),
    # What only the owner can fix
    ProviderFault("a wrong key", failure(401, "no"), 5, None),
    ProviderFault("no credit", failure(402, "pay"), 5, None),
    ProviderFault("used-up quota", failure(429, "quota", code="insufficient_quota"), 5, None),
    ProviderFault("an unknown model", failure(404, "what?"), 5, None),
)  # fmt: skip
