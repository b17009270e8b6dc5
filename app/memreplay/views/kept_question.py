"""A question that was marked in the recording of a running agent, kept as a dataset and a test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memory_backends.registry import known_backends
from memreplay.conversations.export import as_test_conversation, as_test_conversation_text
from memreplay.conversations.models import Conversation, Question
from memreplay.debugger.shrink import only_question, with_turns
from memreplay.errors import UsageError
from memreplay.numbers import counted
from memreplay.views.shrunk_case import in_docstring


@dataclass(frozen=True)
class KeptQuestion:
    """A dataset of what was said before a question, and a test that asks it of a memory."""

    dataset: str
    test: str

    def save(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write both files; returns the paths of dataset and test.

        Raises:
            UsageError: the folder cannot be written.
        """
        dataset, test = (folder / file for file in files_of(name))
        try:
            dataset.write_text(self.dataset, encoding="utf-8")
            test.write_text(self.test, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
        return dataset, test


def files_of(name: str) -> tuple[str, str]:
    """Return the names of the dataset and of the test, which pytest finds."""
    return f"{name}.json", f"test_{name.replace('-', '_')}.py"


def kept_question(
    conversation: Conversation, question: Question, turn: int, memory: str, name: str
) -> KeptQuestion:
    """Return the question with the conversation up to the message at which it was marked.

    The message itself and what follows is left out: a memory that hears the question could recall that. ``memory``
    is what the agent used; the test asks it by that name if it is one that memreplay runs.

    Raises:
        UsageError: no message is left.
    """
    kept = {
        each.id: each.text
        for each in conversation.turns
        if each.role != "other" and (each.number < turn or each.id in question.evidence)
    }
    if not kept:
        raise UsageError("nothing is said before this question: the recording holds the calls of a memory alone")
    shorter = only_question(with_turns(conversation, kept), question)
    backend = memory if memory in known_backends() else "hybrid"
    asked = next(iter(as_test_conversation(shorter)["recallQuestions"]))["question"]
    function = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in question.id)
    test = _TEST.format(
        summary=in_docstring(
            f"{conversation.dataset}: a question at turn {turn} of an agent's recording, after"
            f" {counted(len(kept), 'message')}."
        ),
        dataset=files_of(name)[0],
        backend=backend,
        function=function.strip("_").lower() or "question",
        question=repr(asked),
    )
    return KeptQuestion(as_test_conversation_text(shorter), test)


_TEST = '''\
"""{summary}"""

from pathlib import Path

import pytest

CONVERSATION = Path(__file__).with_name("{dataset}")
MEMORY = "{backend}"  # another memory, or package.module:Class


@pytest.mark.memreplay(dataset=CONVERSATION, backend=MEMORY)
def test_{function}(memory):
    assert memory.recalls({question})
'''
