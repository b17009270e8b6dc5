"""Tell what users say from what programs put around it, or send in the user's name.

Coding agents send their settings, notices and the output of commands as messages of the user, and some put the
user's own words into tags. Read are those of Claude Code, Codex, Copilot, Cursor, Cline, Gemini CLI and Letta.
Sources: the fragments of context in the repositories of Codex, Copilot Chat, Cline and Gemini CLI, Letta's
documentation of message types, and public parsers of the sessions of Claude Code and Cursor.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
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
    r"|environment_(?:context|details|info)|hook_(?:context|prompt)|turn_aborted|subagent_notification"
    r"|codex_internal_context|(?P<common>workspace_info|session_context|state_snapshot|goal_context"
    r"|recommended_plugins|skill|user_(?:instructions|shell_command|info)))(?:\s[^<>]*)?>)",
    re.MULTILINE,
)
"""Matches the beginning of what agents send in the user's name. A ``common`` tag may stand in anyone's text."""
_CLOSINGS = {"# AGENTS.md instructions": "</INSTRUCTIONS>", "[Request interrupted by user": "]"}
"""The ends of what begins without a tag."""
_SENT_ALONE = re.compile(
    r"\s*<task-notification>(?s:.*)</task-notification>"
    r"|This is the Gemini CLI\. We are setting up the context for our chat\."
    r"|This session is being continued from a previous conversation that ran out of context\. The "
    r"|Warning: (?:The maximum number of unified exec processes you can keep open is|apply_patch was requested via "
    r"|Your account was flagged for potentially high-risk cyber activity)"
)
"""Matches the beginning of messages without words of the user."""
_REQUEST = re.compile(r"^## My request for Codex:", re.MULTILINE)
"""Matches what Codex puts between the files that are open or attached, and the user's words."""
_BEFORE_A_REQUEST = ("# Context from my IDE setup:", "# Files mentioned by the user:")
_QUERY = re.compile(r"^(?P<opening><(?P<tag>user_query|userRequest)>)", re.MULTILINE)
"""Matches the beginning of the user's words in a message of Cursor or Copilot, of which they made the rest."""
_IS_A_QUERY = re.compile(r"\s*<(?s:.*)</(?:user_query|userRequest)>\s*")
_RESULT_OF_CLINE = re.compile(r"\[[a-z]+(?:_[a-z]+)+(?: for '[^\n]*)?\] Result:[ \t]*(?:\n|\Z)")
_DETAILS_OF_CLINE = "<environment_details>"
_TO_CLINE = re.compile(r"(?P<opening><(?P<tag>task|feedback|answer|user_message)>)")
_EVENTS_OF_LETTA = ("login", "heartbeat", "system_alert")


def opened(text: str) -> list[Part]:
    """Return the parts of a message in the user's name, in their order; one without an envelope is one part."""
    if text.startswith("{"):
        return [_unpacked(text)]
    if _SENT_ALONE.match(text):
        return [Part(text, False)]
    if text.startswith(_BEFORE_A_REQUEST) and (request := _REQUEST.search(text)):
        return _joined([Part(text[: request.start()], False), Part(text[request.end() :], True)])
    if _RESULT_OF_CLINE.match(text) or (text.startswith("<") and f"\n{_DETAILS_OF_CLINE}" in text):
        words = _joined(_split(text, _TO_CLINE, is_the_users=True))
        if _RESULT_OF_CLINE.match(text) or any(part.is_the_users for part in words):
            return words
    if _IS_A_QUERY.fullmatch(text):
        return _joined(_split(text, _QUERY, is_the_users=True))
    if _SENT.search(text):
        return _joined(_split(text, _SENT, is_the_users=False))
    return [Part(text, True)]


def _split(text: str, beginning: re.Pattern[str], is_the_users: bool) -> Iterator[Part]:
    """Yield what stands in envelopes and what stands between them.

    ``is_the_users`` says who said what is inside; the rest is of the other one. What is not closed is no envelope,
    nor is what stands in a block of code.
    """
    end, begins = 0, _after_blanks(text, 0)
    unclosed: set[str] = set()
    blocks = [] if is_the_users else _blocks_of_code(text)
    for found in beginning.finditer(text):
        closing = _CLOSINGS.get(found["opening"], f"</{found['tag']}>")
        if found.start() < end or closing in unclosed or _is_in_a_block(found.start(), blocks):
            continue
        if not is_the_users and found["common"] and not _is_sent(found, begins):
            continue
        details = text.find(f"\n{_DETAILS_OF_CLINE}", found.end()) if found["tag"] == "task" else -1
        closed = text.find(closing, found.end()) if details < 0 else text.rfind(closing, found.end(), details)
        if closed < 0:
            unclosed.add(closing)
            continue
        yield Part(text[end : found.start()], not is_the_users)
        end = closed + len(closing)
        begins = _after_blanks(text, end)
        inside = text[found.end() : closed] if is_the_users else text[found.start() : end]
        yield Part(inside, is_the_users)
    yield Part(text[end:], not is_the_users)


_BLANK = re.compile(r"\s*")


def _after_blanks(text: str, place: int) -> int:
    blanks = _BLANK.match(text, place)
    return blanks.end() if blanks else place


def _is_sent(tag: re.Match[str], begins: int) -> bool:
    """Return whether a tag that anyone may write is an agent's: alone in its line, and not behind ``begins``, where
    the message begins, or what follows another envelope.
    """
    is_first = tag.start("opening") <= begins
    return is_first and tag.string[tag.end() : tag.end() + 1] in ("\n", "\r")


def _is_in_a_block(place: int, blocks: Sequence[tuple[int, int]]) -> bool:
    before = bisect_right(blocks, (place, place))
    return before > 0 and place < blocks[before - 1][1]


_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


def _blocks_of_code(text: str) -> list[tuple[int, int]]:
    """Return where the closed blocks of code of a Markdown text begin and end."""
    found: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]):
            found.append((opened.start(), fence.end()))
            opened = None
    return found


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
