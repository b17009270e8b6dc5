"""BEAM: a chat of batches of turns with dates, and probing questions of ten kinds about it.

The questions stand in the folder ``probing_questions`` beside ``chat.json`` in the repository, and in the rows of
the published data set. Source of the format: Tavakoli et al., "Beyond a Million Tokens", and its repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from memreplay.conversations.chat_logs import Chat, ChatLog, ChatSession
from memreplay.conversations.json_files import DatasetFile, literal, read_json
from memreplay.conversations.messages import ChatMessage, MessageReader, moment
from memreplay.conversations.models import Conversation, Question
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown

NAME = "BEAM"
SIGNATURE = 'a BEAM chat (with "batch_number" and "turns", or "chat" and "probing_questions")'

_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
_ABSTENTION = "abstention"


def detect(file: DatasetFile) -> bool:
    return file.fields >= {"batch_number", "turns"} or file.fields >= {"chat", "probing_questions"}


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield the conversation of a chat file with the questions beside it, or one for each row."""
    log = ChatLog(file, callbacks)
    if "batch_number" in file.fields:
        batches = [(place, value) for place, value in file.values(callbacks)]
        folder = file.path.resolve().parent
        beside = folder / "probing_questions" / "probing_questions.json"
        asked = read_json(beside) if beside.is_file() else {}
        name = f"{folder.parent.name}-{folder.name}" if asked else file.dataset
        yield from _conversations(name, batches, asked, Place(file.path), Place(beside), log)
    else:
        for place, row in file.values(callbacks, ("chat",)):
            groups = row.get("chat") if isinstance(row, dict) else None
            if not isinstance(groups, list):
                callbacks.on_error(place.error("has no chat", 'an object with "chat", a list of lists of messages'))
                continue
            batches = [(place.at("chat", i), {"turns": group}) for i, group in enumerate(groups)]
            at = place.at("probing_questions")
            asked = _written(row.get("probing_questions"), at)
            yield from _conversations(row.get("conversation_id"), batches, asked, place, at, log)
    log.finish()


def _written(value: Any, place: Place) -> Any:
    """Return the questions of a row, which stand in it as the text of a Python literal."""
    try:
        return literal(value) if isinstance(value, str) else value
    except ValueError as wrong:
        raise place.error(str(wrong), "an object of questions, or its text") from None


def _conversations(
    name: object, batches: Iterable[tuple[Place, Any]], asked: Any, place: Place, at: Place, log: ChatLog
) -> Iterator[Conversation]:
    sessions = [_session(batch, where, log.reader) for where, batch in batches]
    turn_of = {message.id: str(number) for number, message in enumerate(_all(sessions), start=1) if message.id}
    for conversation in log.conversations(Chat((), place, name, sessions=sessions)):
        questions = tuple(_questions(conversation.id, asked, turn_of, at, log))
        yield conversation.model_copy(update={"questions": questions})


def _all(sessions: Iterable[ChatSession]) -> Iterator[ChatMessage]:
    return (message for session in sessions for message in session.messages)


def _session(batch: Any, place: Place, reader: MessageReader) -> ChatSession:
    """Return the messages of a batch, dated by the first time anchor in it."""
    turns = batch.get("turns") if isinstance(batch, dict) else None
    if not isinstance(turns, list):
        raise place.error(f"is {shown(batch)}", 'an object with "turns", a list')
    groups = [each if isinstance(each, list) else [each] for each in turns]
    anchors = [batch.get("time_anchor")]
    anchors += [each.get("time_anchor") for group in groups for each in group if isinstance(each, dict)]
    messages = [each for i, group in enumerate(groups) for each in reader.messages(group, place.at("turns", i))]
    return ChatSession(messages, next((date for date in map(moment, anchors) if date is not None), None))


def _questions(
    conversation: str, asked: Any, turn_of: dict[str, str], place: Place, log: ChatLog
) -> Iterator[Question]:
    if not isinstance(asked, dict):
        raise place.error(f"is {shown(asked)}", "an object with a list of questions for each kind")
    for kind, listed in asked.items():
        for index, each in enumerate(listed if isinstance(listed, list) else ()):
            at = place.at(kind, index)
            answer = (
                next((each[name] for name in _ANSWERS if each.get(name)), None) if isinstance(each, dict) else None
            )
            if answer is None or not each.get("question"):
                log.reader.left_out.add("question", "without a text or an answer is not asked", at)
                continue
            ids = list(dict.fromkeys(map(str, _numbers(each.get("source_chat_ids")))))
            evidence = tuple(turn_of[name] for name in ids if name in turn_of)
            log.reader.left_out.add("piece of evidence", "names no turn", at, len(ids) - len(evidence))
            yield Question(
                id=f"{conversation}-{kind}-{index + 1}",
                kind="recall",
                type=str(kind),
                text=str(each["question"]),
                expected=str(answer),
                abstain=kind == _ABSTENTION,
                evidence=evidence,
                evidence_role="supports" if evidence else None,
            )


def _numbers(value: Any) -> Iterator[int]:
    """Yield the ids in a list, or in an object of lists."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _numbers(each)
