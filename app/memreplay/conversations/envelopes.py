"""Tell what users say from what programs put around it, or send in the user's name.

Coding agents send their settings, notices and the output of commands as messages of the user, and some put the
user's own words into tags. Read are those of Claude Code, Codex, Copilot, Cursor, Cline, Gemini CLI and Letta.
Sources: the fragments of context in the repositories of Codex, Copilot Chat, Cline and Gemini CLI, Letta's
documentation of message types, and public parsers of the sessions of Claude Code and Cursor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import orjson


class Part(NamedTuple):
    """A part of a message in the user's name, and whether the user said it."""

    text: str
    is_the_users: bool


_SENT = re.compile(
    r"(?:^|(?<=>))[ \t]*(?P<opening># AGENTS\.md instructions\b|\[Request interrupted by user|<(?P<tag>"
    r"system[-_]reminder|local-command-(?:caveat|stdout|stderr)|bash-(?:input|stdout|stderr)|task-notification"
    r"|command-(?:name|message|args|contents)|(?:user-prompt-submit|post-tool-use|session-start)-hook"
    r"|ide_(?:opened_file|selection|diagnostics)|new-diagnostics|teammate-message"
    r"|environment_(?:context|details|info)|workspace_info|session_context|hook_(?:context|prompt)|state_snapshot"
    r"|user_(?:instructions|shell_command|info)|skill|turn_aborted|subagent_notification"
    r"|codex_internal_context|goal_context|recommended_plugins)(?:\s[^<>]*)?>)",
    re.MULTILINE,
)
"""Matches the beginning of what agents send in the user's name."""
_CLOSINGS = {"# AGENTS.md instructions": "</INSTRUCTIONS>", "[Request interrupted by user": "]"}
"""The ends of what begins without a tag."""
_SENT_ALONE = re.compile(
    r"\s*<task-notification>|This is the Gemini CLI\. We are setting up the context for our chat\."
    r"|This session is being continued from a previous conversation that ran out of context"
    r"|Warning: (?:The maximum number of unified exec processes you can keep open is|apply_patch was requested via "
    r"|Your account was flagged for potentially high-risk cyber activity)"
)
"""Matches the beginning of messages without words of the user."""
_REQUEST = re.compile(r"^## My request for Codex:", re.MULTILINE)
"""Matches what Codex puts between the files that are open or attached, and the user's words."""
_QUERY = re.compile(r"^(?P<opening><(?P<tag>user_query|userRequest)>)", re.MULTILINE)
"""Matches the beginning of the user's words in a message of Cursor or Copilot, of which they made the rest."""
_OF_CLINE = re.compile(r"\A\[[a-z]+(?:_[a-z]+)+(?: for '[^\n]*)?\] Result:|^<environment_details>", re.MULTILINE)
_TO_CLINE = re.compile(r"(?P<opening><(?P<tag>task|feedback|answer|user_message)>)")
_EVENTS_OF_LETTA = ("login", "heartbeat", "system_alert")


def opened(text: str) -> list[Part]:
    """Return the parts of a message in the user's name, in their order; one without an envelope is one part."""
    if text.startswith("{"):
        return [_unpacked(text)]
    if _SENT_ALONE.match(text):
        return [Part(text, False)]
    if request := _REQUEST.search(text):
        return _joined([Part(text[: request.start()], False), Part(text[request.end() :], True)])
    if _OF_CLINE.search(text):
        return _joined(_split(text, _TO_CLINE, is_the_users=True))
    query = _joined(_split(text, _QUERY, is_the_users=True))
    if any(part.is_the_users for part in query):
        return query
    if _SENT.search(text):
        return _joined(_split(text, _SENT, is_the_users=False))
    return [Part(text, True)]


def _split(text: str, beginning: re.Pattern[str], is_the_users: bool) -> Iterator[Part]:
    """Yield what stands in envelopes and what stands between them.

    ``is_the_users`` says who said what is inside; the rest is of the other one. What is not closed is no envelope.
    """
    end = 0
    unclosed: set[str] = set()
    for found in beginning.finditer(text):
        closing = _CLOSINGS.get(found["opening"], f"</{found['tag']}>")
        if found.start() < end or closing in unclosed:
            continue
        closed = text.find(closing, found.end())
        if closed < 0:
            unclosed.add(closing)
            continue
        yield Part(text[end : found.start()], not is_the_users)
        end = closed + len(closing)
        inside = text[found.end() : closed] if is_the_users else text[found.start() : end]
        yield Part(inside, is_the_users)
    yield Part(text[end:], not is_the_users)


def _joined(parts: Iterable[Part]) -> list[Part]:
    """Return parts without the blanks around them, and as one those that follow each other and have one speaker."""
    groups: list[tuple[bool, list[str]]] = []
    for text, is_the_users in parts:
        if groups and (not text.strip() or is_the_users == groups[-1][0]):
            groups[-1][1].append(text)
        else:
            groups.append((is_the_users, [text]))
    found = [Part("".join(texts).strip(), is_the_users) for is_the_users, texts in groups]
    return [part for part in found if part.text]


def _unpacked(text: str) -> Part:
    """Return what Letta packs into JSON with its time: a message of the user, or an event."""
    try:
        packed = orjson.loads(text) if '"type"' in text else {}
    except orjson.JSONDecodeError:
        packed = {}
    if packed.get("type") == "user_message" and isinstance(packed.get("message"), str):
        return Part(packed["message"], True)
    return Part(text, not ("time" in packed and packed.get("type") in _EVENTS_OF_LETTA))
