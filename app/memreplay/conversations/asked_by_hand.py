"""Questions asked by hand, or marked in an agent's recording, kept as a dataset and a pytest module."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from memreplay.conversations.export import as_test_conversation
from memreplay.conversations.models import Conversation, Question
from memreplay.errors import UsageError
from memreplay.files import read_text, write_whole
from memreplay.text import occurs_in

_SUFFIX: Final = ".asked.json"
_SETTINGS: Final = ("top_k", "context_tokens", "embedder", "reranker", "extractor", "ablate")


def with_answer(question: Question, conversation: Conversation, expected: str, evidence: Sequence[str]) -> Question:
    """Return a question that was typed in, with its answer and the turns that say it."""
    said = any(occurs_in(expected, conversation.turns_by_id[turn].text) for turn in evidence)
    return question.model_copy(
        update={
            "expected": expected,
            "expected_entities": (expected,) if said else (),
            "evidence": tuple(evidence),
            "evidence_role": "supports" if evidence else None,
        }
    )


def keep_question(
    folder: Path, conversation: Conversation, turn: int, question: Question, tested: Mapping[str, Mapping[str, Any]]
) -> tuple[Path, Path, int]:
    """Add a question that was asked after a turn to the dataset of such questions, and see that a test asks them.

    The dataset holds the conversation up to that turn. ``tested`` are the memories by name, with their settings.
    Returns the dataset, the test, and how many questions the dataset holds.

    Raises:
        UsageError: a file cannot be written, or a dataset of that name is of another conversation.
    """
    heard = [each for each in conversation.turns[: max(turn, 0)] if each.role != "other"]
    if not heard:
        raise UsageError("nothing is said before this question")
    known = {each.session for each in heard}
    cut = conversation.model_copy(
        update={
            "turns": tuple(heard),
            "sessions": tuple(each for each in conversation.sessions if each.number in known),
            "questions": (question,),
        }
    )
    written = as_test_conversation(cut)
    until = "" if turn >= len(conversation.turns) else f"-to-turn-{turn}"
    path = folder / f"{_file_name(conversation.id)}{until}{_SUFFIX}"
    if path.exists():
        before = _read(path)
        if any(before.get(name) != written.get(name) for name in ("turns", "sessions")):
            raise UsageError(f"{path}: is about another conversation, or about another version of this one")
        kept = [each for each in before.get("recallQuestions", []) if each.get("question") != question.text]
        written["recallQuestions"] = [*kept, *written["recallQuestions"]]
    write_whole(str(path), json.dumps(written, ensure_ascii=False, indent=2) + "\n")
    test = folder / f"test_{re.sub(r'[^a-z0-9]+', '_', path.name.removesuffix('.json').lower())}.py"
    if not test.exists():
        write_whole(str(test), _test_of(path, tested))
    return path, test, len(written["recallQuestions"])


def _file_name(conversation: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", conversation).strip("-")[:80] or "conversation"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{path}: is no conversation with questions")
    return found


def _test_of(dataset: Path, tested: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a pytest module that asks each memory every question of the dataset, those added later too."""
    tests = []
    for backend, settings in tested.items():
        arguments = {"backend": backend, **{name: settings[name] for name in _SETTINGS if settings.get(name)}}
        given = "".join(f", {name}={value!r}" for name, value in arguments.items())
        name = re.sub(r"[^a-z0-9]+", "_", backend.lower()).strip("_")
        tests.append(_TEST.format(given=given, name=name))
    return _MODULE.format(dataset=dataset.name) + "".join(tests)


_MODULE = '''\
"""What the memories should recall: the questions in {dataset}, which memreplay wrote."""

import json
from pathlib import Path

import pytest

DATASET = Path(__file__).with_name({dataset!r})
QUESTIONS = [each["question"] for each in json.loads(DATASET.read_text(encoding="utf-8"))["recallQuestions"]]
'''

_TEST = """

@pytest.mark.memreplay(dataset=DATASET{given})
@pytest.mark.parametrize("question", QUESTIONS)
def test_{name}_recalls(memory, question):
    assert memory.recalls(question)
"""
