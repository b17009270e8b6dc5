"""What a shrunk case writes holds texts of others as data: no code in the test, no markup in the text."""

from __future__ import annotations

import ast

import pytest

from memory_backends.base import Hit, Snapshot
from memreplay.conversations.models import Conversation, Question, Session, Turn
from memreplay.views.shrunk_case import ShrunkCase, issue_text
from memreplay.views.shrunk_case import test_text as text_of_test

HOSTILE = (
    '"""\nimport os\nos.system("id")\n""" \\" <img src=x onerror=alert(1)> `code` @someone \x1b[31m {question}'
)


@pytest.fixture
def case() -> ShrunkCase:
    question = Question(id=HOSTILE, kind="recall", type=HOSTILE, text=HOSTILE, expected=HOSTILE, evidence=("1",))
    conversation = Conversation(
        id=HOSTILE,
        dataset=HOSTILE,
        sessions=(Session(id="s", number=1),),
        turns=(Turn(id="1", number=1, session=1, role="user", speaker=None, text=HOSTILE),),
        questions=(question,),
    )
    return ShrunkCase(
        conversation=conversation,
        question=question,
        backend=HOSTILE,
        model=HOSTILE,
        turns_before=9,
        verdict="the fact was never written",
        detail=HOSTILE,
        reply=HOSTILE,
        stored=Snapshot(values={"redis": {HOSTILE: HOSTILE}}, points={"q": {HOSTILE: {"1": {"content": HOSTILE}}}}),
        hits=(Hit(id="1", store="q", place="p", rank=1, score=0.5, text=HOSTILE),),
        libraries={},
        settings={"top_k": 3, "embedder": HOSTILE},
        command=("--backend", HOSTILE),
        notes=(HOSTILE,),
        of_memory=False,
    )


def test_the_test_runs_nothing_of_others(case: ShrunkCase) -> None:
    module = ast.parse(text_of_test(case))
    assert {type(node) for node in module.body} == {
        ast.Expr,
        ast.Import,
        ast.ImportFrom,
        ast.Assign,
        ast.FunctionDef,
    }
    imported = [name.name for node in ast.walk(module) if isinstance(node, ast.Import) for name in node.names]
    assert imported == ["json", "tempfile", "pytest"]


def test_the_text_for_an_issue_is_no_markup(case: ShrunkCase) -> None:
    text = issue_text(case)
    assert "\x1b" not in text
    outside = "".join(text.split("`")[::2])
    assert "<img" not in outside.replace("\\<img", "") and "@someone" not in outside
