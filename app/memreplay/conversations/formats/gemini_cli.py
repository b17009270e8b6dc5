"""Sessions of Gemini CLI as JSON Lines: a line about the session, its messages, and what changes them later.

A message is written again whenever its tool calls go on; ``$set`` brings messages too, such as those of a resumed
session, and ``$rewindTo`` takes back a message with all after it. Source: ``chatRecordingService.ts`` in the
repository of Gemini CLI. The older files, an object with ``messages``, are read as chat messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memreplay.conversations.chat_logs import Chat, ChatLog
from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import MessageReader
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place

NAME = "Gemini CLI"
SIGNATURE = 'a session of Gemini CLI (with "sessionId" and "projectHash")'


def detect(file: DatasetFile) -> bool:
    return (
        file.container == "lines"
        and isinstance(file.first, dict)
        and {"sessionId", "projectHash"} <= file.first.keys()
        and not file.first.get("messages")
    )


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation for each session."""
    log = ChatLog(file, callbacks)
    sessions: dict[str, _Written] = {}
    written: _Written = {}
    for place, value in file.values(log.callbacks):
        log.values_go_on()
        line = value if isinstance(value, dict) else {}
        if "sessionId" in line:
            written = sessions.setdefault(str(line["sessionId"]), {})
        target = line.get("$rewindTo")
        if isinstance(target, str) and target in written:
            _take_back(written, target, log.reader)
        elif isinstance(line.get("id"), str) or not line.keys().isdisjoint(("sessionId", "$set")):
            written.update(_messages(line, place))
        else:
            log.reader.left_out.add("entry", "without a message is not shown", place)
    for session, of_session in sessions.items():
        said = [each for value, place in of_session.values() for each in log.reader.message(value, place)]
        yield from log.conversations(Chat(said, Place(file.path), session if len(sessions) > 1 else None))
    log.finish()


_Written = dict[str, tuple[Any, Place]]
"""The messages of a session by their ids, as they were last written."""


def _messages(line: dict[str, Any], place: Place) -> Iterator[tuple[str, tuple[Any, Place]]]:
    """Yield the messages of a line with their ids."""
    for holder, at in ((line, place), (line.get("$set"), place.at("$set"))):
        listed = holder.get("messages") if isinstance(holder, dict) else None
        for index, each in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(each, dict):
                of_message = at.at("messages", index)
                id_ = each.get("id")
                yield (id_ if isinstance(id_, str) else str(of_message)), (each, of_message)
    if isinstance(line.get("id"), str):
        yield line["id"], (line, place)


def _take_back(written: _Written, target: str, reader: MessageReader) -> None:
    """Remove a message with all after it."""
    ids = list(written)
    for id_ in ids[ids.index(target) :]:
        _, place = written.pop(id_)
        reader.left_out.add("message", "that the user took back is not shown", place)
