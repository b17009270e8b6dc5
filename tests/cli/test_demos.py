"""The shipped demos show the stories that they are made to tell, and say so in notes."""

from __future__ import annotations

import importlib.util
import json
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memreplay.batch.report import results_of_run
from memreplay.paths import demo_recordings
from memreplay.recording.annotations import annotations_of
from memreplay.recording.reader import Recording
from tests.conftest import REPOSITORY

STORIES = ("corrected-value", "dropped-detail", "cut-context", "three-memories")


@pytest.fixture(scope="module")
def demos() -> ModuleType:
    """The script that makes the demos."""
    spec = importlib.util.spec_from_file_location("_make_demos", REPOSITORY / "recordings" / "make_demos.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["_make_demos"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", STORIES)
def test_a_demo_shows_its_story_and_tells_it_in_notes(name: str, demos: ModuleType) -> None:
    """Run ``make demo`` where a demo is missing, or no longer shows its story."""
    path = next((path for path in demo_recordings() if path.stem == name), None)
    assert path is not None, "make demo makes it"
    assert path.stat().st_size < demos.LARGEST
    story = next(story for story in demos.STORIES if story.name == name)
    with closing(Recording.open(path)) as recording:
        run = recording.run()
        (conversation_id,) = recording.conversation_ids(run.id)
        conversation = recording.conversation(run.id, conversation_id)
        rows: dict[str, dict[str, Any]] = {}
        for row in results_of_run(recording, run).questions:
            if row.kind == "recall":
                rows.setdefault(row.question_id, {})[row.backend] = row.model_dump(mode="json")
    shown = [
        question
        for question in conversation.questions
        if question.id in rows
        and story.holds({"supersedes": question.supersedes, "question": question.text}, rows[question.id])
    ]
    assert shown, f"no question of {path.name} shows {name}"
    notes = annotations_of(path, run.id, conversation_id).bookmarks()
    assert len(notes) >= 2
    evidence = {conversation.turns_by_id[turn].number for question in shown for turn in question.evidence}
    assert evidence & {note.turn for note in notes}, "a note stands where the fact is said"
    assert all(note.note and 1 <= note.turn <= len(conversation.turns) for note in notes)


def test_parts_of_a_history_keep_the_evidence_of_their_questions(demos: ModuleType, tmp_path: Path) -> None:
    from memreplay.conversations.registry import load

    history = json.loads((REPOSITORY / "datasets" / "long" / "long-01.json").read_text(encoding="utf-8"))
    whole = next(iter(load(["long-01"])))
    asked = {question.text: question for question in whole.questions}
    part = demos.part_of(history, (2, 5, 6))
    file = tmp_path / f"{part.name}.json"
    file.write_text(json.dumps(part.data), encoding="utf-8")
    loaded = next(iter(load([str(file)])))
    assert 0 < len(loaded.questions) < len(whole.questions)
    for question in loaded.questions:
        said = [loaded.turns_by_id[turn].text for turn in question.evidence]
        assert said == [whole.turns_by_id[turn].text for turn in asked[question.text].evidence]


def test_a_story_that_no_part_shows_is_an_error(demos: ModuleType, tmp_path: Path) -> None:
    from dataclasses import replace

    never = replace(demos.STORIES[0], name="never", holds=lambda question, rows: False)
    with pytest.raises(SystemExit, match="never: no part of the long histories shows this story"):
        demos.make(never, tmp_path, [])
