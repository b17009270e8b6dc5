"""Messages edited by hand: the same conversation with other words, less, or more.

Turns keep their ids, so that evidence still names them; numbers follow the new order.
"""

from __future__ import annotations

from collections.abc import Sequence

from memreplay.conversations.models import Conversation, Frozen, Role, Turn
from memreplay.errors import UsageError


class MessageEdit(Frozen):
    """Other words for a message (``text``), no message (``text`` is None), or a new one after it (``role`` is set).

    ``turn`` is the number of a turn in the conversation before the edit.
    """

    turn: int
    text: str | None = None
    role: Role | None = None

    @property
    def inserts(self) -> bool:
        """Return whether it adds a message after the turn."""
        return self.role is not None


def edited_conversation(conversation: Conversation, at: int, edits: Sequence[MessageEdit]) -> Conversation:
    """Return the conversation after these edits; the first ``at`` turns stay as they are.

    Raises:
        UsageError: an edit is not of a later turn.
    """
    for edit in edits:
        first = at if edit.inserts else at + 1
        if not first <= edit.turn <= len(conversation.turns):
            last = len(conversation.turns)
            raise UsageError(f"message {edit.turn}: the branch departs after turn {at}; expected {first} to {last}")
    turns: list[Turn] = []
    taken = {turn.id for turn in conversation.turns}
    if not conversation.turns:
        return conversation
    for number in range(len(conversation.turns) + 1):
        here = [edit for edit in edits if edit.turn == number]
        if number:
            turns += _replaced(conversation.turns[number - 1], [edit for edit in here if not edit.inserts])
        before = conversation.turns[max(number - 1, 0)]
        for edit in here:
            if edit.inserts:
                turns.append(_inserted(conversation, before, edit, taken))
    numbered = tuple(turn.model_copy(update={"number": n}) for n, turn in enumerate(turns, start=1))
    return Conversation.model_validate(dict(conversation) | {"turns": numbered})


def _replaced(turn: Turn, edits: Sequence[MessageEdit]) -> list[Turn]:
    """Return the turn with the last text that is given to it; nothing if it is dropped."""
    if not edits:
        return [turn]
    text = edits[-1].text
    return [] if text is None else [turn.model_copy(update={"text": text, "key_info": None, "is_edited": True})]


def _inserted(conversation: Conversation, before: Turn, edit: MessageEdit, taken: set[str]) -> Turn:
    """Return a new turn in the session of the one before it, with an id of its own."""
    number = 1
    while (id_ := f"{before.id}+{number}") in taken:
        number += 1
    taken.add(id_)
    speakers = {turn.role: turn.speaker for turn in conversation.turns}
    assert edit.role is not None and edit.text is not None
    return Turn(
        id=id_,
        number=1,
        session=before.session,
        role=edit.role,
        speaker=speakers.get(edit.role),
        text=edit.text,
    )
