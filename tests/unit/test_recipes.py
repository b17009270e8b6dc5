"""Each recipe of CONTRIBUTING.md is followed in a copy of the source: it works, and touches only files it names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest

from tests.conftest import REPOSITORY

GUIDE = (REPOSITORY / "CONTRIBUTING.md").read_text()
RECIPES: dict[str, str] = dict(re.findall(r"^## Add an? ([a-z ]+)\n(.*?)(?=^## |\Z)", GUIDE, re.M | re.S))
STEP = re.compile(r"^\d\. (.*?):", re.M | re.S)
PLACEHOLDERS = {"FORMAT.py": "chat_log.py", "BACKEND.py": "last_words.py", "PANEL.py": "counts.py"}


@dataclass
class Copy:
    """A copy of the source, and the files that were changed in it."""

    root: Path
    touched: set[str] = field(default_factory=set)

    def write(self, path: str, text: str) -> None:
        assert not (self.root / path).exists()
        self._put(path, dedent(text))

    def replace(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text()
        assert text.count(old) == 1, f"{path}: {old!r}"
        self._put(path, text.replace(old, new))

    def run(self, *arguments: str) -> str:
        """Run Python with the copy; the tests' helpers come from the project."""
        path = os.pathsep.join(map(str, (self.root / "app", self.root, REPOSITORY)))
        ran = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def run_script(self, script: str) -> str:
        return self.run("-c", dedent(script))

    def _put(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)
        self.touched.add(path)


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    leave_out = shutil.ignore_patterns("__pycache__")
    for folder in ("app/memreplay", "memory_backends"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder, ignore=leave_out)
    return Copy(tmp_path)


def add_format(copy: Copy) -> None:
    copy.write(
        "app/memreplay/conversations/formats/chat_log.py",
        """
        from memreplay.conversations.json_files import read_json
        from memreplay.conversations.models import Conversation, Session, Turn

        NAME = "chat log"
        SIGNATURE = "an object with `log`"


        def detect(file):
            return "log" in file.fields


        def load(file, callbacks, evidence):
            turns = tuple(
                Turn(id=str(n), number=n, session=1, role="user" if n % 2 else "assistant", speaker=None, text=text)
                for n, text in enumerate(read_json(file.path)["log"], start=1)
            )
            session = Session(number=1, id="1")
            yield Conversation(
                id=file.dataset, dataset=file.dataset, sessions=(session,), turns=turns, questions=()
            )
        """,
    )
    formats = "app/memreplay/conversations/formats/__init__.py"
    copy.replace(formats, "formats import (\n", "formats import (\n    chat_log,\n")
    copy.replace(formats, "= (\n    test_conversation,\n", "= (\n    chat_log,\n    test_conversation,\n")
    (copy.root / "talk.json").write_text('{"log": ["Hello.", "Hello to you."]}')
    copy.run_script(
        """
        from memreplay.conversations.registry import load
        (talk,) = load(["talk.json"])
        assert (talk.id, [turn.text for turn in talk.turns]) == ("talk", ["Hello.", "Hello to you."])
        """
    )


def add_backend(copy: Copy) -> None:
    copy.write(
        "memory_backends/last_words.py",
        """
        from memory_backends.examples.notebook import NotebookMemory


        class LastWords(NotebookMemory):
            name = "last_words"
        """,
    )
    copy.replace(
        "memory_backends/registry.py",
        '    "oracle": "memory_backends.',
        '    "last_words": "memory_backends.last_words:LastWords",\n    "oracle": "memory_backends.',
    )
    copy.run("-m", "memreplay", "check-backend", "last_words")


def add_panel(copy: Copy) -> None:
    copy.replace("memory_backends/base.py", 'PanelName = Literal["state"', 'PanelName = Literal["counts", "state"')
    copy.write(
        "app/memreplay/views/panels/counts.py",
        """
        from memreplay.views.panels import lines_view
        from memreplay.views.text import line


        def counts_view(timeline, backend, cursor):
            return lines_view("counts", [line(f"{len(timeline.events_at(backend, cursor))} events")])
        """,
    )
    panels = "app/memreplay/views/panels/architectures.py"
    copy.replace(
        panels,
        "from memreplay.views.panels.stores",
        "from memreplay.views.panels.counts import counts_view\nfrom memreplay.views.panels.stores",
    )
    copy.replace(panels, '"state": _state,', '"counts": _plain("counts", counts_view), "state": _state,')
    copy.run_script(
        """
        from memory_backends.base import MemoryDescription, PanelInfo
        from memreplay.engine.events import ConversationOpened
        from memreplay.timeline.timeline import Timeline
        from memreplay.views.panels.architectures import panels_of
        from tests.tui.builder import conversation
        memory = MemoryDescription(panels=(PanelInfo(panel="counts", weight=1),))
        opened = ConversationOpened(conversation="tiny-01", turn=0, backend="mine", memory=memory)
        (panel,) = panels_of(Timeline(conversation(), [opened]), "mine")
        assert [row.text.strip() for row in panel.at(0).document.rows(0, 40)] == ["1 events"]
        """
    )


def add_metric(copy: Copy) -> None:
    copy.replace(
        "app/memreplay/scoring/question_row.py",
        "    earlier_questions: int = 0\n",
        "    words_in_reply: int | None = None\n    earlier_questions: int = 0\n",
    )
    copy.replace(
        "app/memreplay/scoring/rows.py",
        "        earlier_questions=reply.earlier_questions,\n",
        "        words_in_reply=len(reply.text.split()) if reply.text else None,\n"
        "        earlier_questions=reply.earlier_questions,\n",
    )
    copy.run_script(
        """
        import csv, json
        from memreplay.batch.writers import RENDERERS
        from memreplay.scoring.aggregates import build_results
        from memreplay.scoring.results import RunFacts
        from tests.unit.scoring.samples import recall, reply, row
        run = RunFacts(id="r", started_at="", finished_at=None, memreplay_version="0", settings={}, datasets=())
        results = build_results(run, [row(recall(), reply("Ida and Bo"))])
        assert json.loads(results.to_json())["questions"][0]["words_in_reply"] == 3
        (cells,) = csv.DictReader(RENDERERS[".csv"](results).splitlines())
        assert cells["words_in_reply"] == "3"
        """
    )


def add_kind_of_question(copy: Copy) -> None:
    copy.replace(
        "app/memreplay/conversations/models.py",
        'QuestionKind = Literal["choice", "recall"]',
        'QuestionKind = Literal["choice", "recall", "yes_no"]',
    )
    copy.replace(
        "app/memreplay/llm/prompts.py",
        "KINDS: Final[Mapping[QuestionKind, KindOfQuestion]] = {\n",
        dedent(
            """
            def _score_yes_no(question: Question, text: str) -> Score:
                is_right = text.strip(" .").lower() == question.expected
                return Score(outcome="correct" if is_right else "wrong", score=float(is_right), predicted=text)


            KINDS: Final[Mapping[QuestionKind, KindOfQuestion]] = {
                "yes_no": KindOfQuestion(lambda question: "Answer yes or no:", 5, _score_yes_no, _refused_choice),
            """
        ),
    )
    copy.run_script(
        """
        from memreplay.llm.prompts import build_request
        from memreplay.scoring.aggregates import build_results
        from memreplay.scoring.results import RunFacts
        from tests.unit.scoring.samples import recall, reply, row
        question = recall(kind="yes_no", text="Is Ida coming?", expected="yes", expected_entities=())
        request = build_request(question, "User: Ida comes.", "memreplay/extractive", None)
        assert request.messages[0].content.endswith("Question: Is Ida coming?\\n\\nAnswer yes or no:")
        run = RunFacts(id="r", started_at="", finished_at=None, memreplay_version="0", settings={}, datasets=())
        rows = [row(question, reply("Yes.")), row(question, reply("No.")), row(question, reply("", refused=True))]
        assert [each.outcome for each in rows] == ["correct", "wrong", "refused"]
        both = [*rows, row(recall(), reply("Lisbon"))]
        found = build_results(run, both).backends["rag"]
        assert (found.other_kinds["yes_no"].total, found.recall.total) == (3, 1)
        assert sum(section.total for section in found.sections) == len(both)
        """
    )


FOLLOWED: dict[str, Callable[[Copy], None]] = {
    "dataset format": add_format,
    "backend": add_backend,
    "panel": add_panel,
    "metric": add_metric,
    "kind of question": add_kind_of_question,
}


def test_every_recipe_is_followed_here() -> None:
    assert set(RECIPES) == set(FOLLOWED)


@pytest.mark.parametrize("recipe", FOLLOWED)
def test_a_recipe_touches_at_most_three_files_and_works(copy: Copy, recipe: str) -> None:
    steps = STEP.findall(RECIPES[recipe])
    assert 1 <= len(steps) <= 3
    named = {
        str(Path(path).with_name(PLACEHOLDERS.get(Path(path).name, Path(path).name)))
        for step in steps
        for path in re.findall(r"`([\w/]+\.\w+)`", step)
    }
    FOLLOWED[recipe](copy)
    assert copy.touched <= named
