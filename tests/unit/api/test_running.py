"""``import memreplay``: runs and recordings from Python."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

import memreplay
from memory_backends.base import Exchange, Hit, MemoryBackend, Namespace, Recall, Snapshot
from memreplay.api.recorded import Questions, table_html
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from tests.conftest import REPOSITORY


class LastWords(MemoryBackend):
    """Remembers the last ``kept`` exchanges."""

    def __init__(self, kept: int = 1) -> None:
        self.kept = kept
        self.heard: list[Exchange] = []

    async def open(self, namespace: Namespace) -> None:
        self.heard = []

    async def observe(self, exchange: Exchange) -> None:
        self.heard = [*self.heard, exchange][-self.kept :]

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        hits = tuple(
            Hit(
                id=str(rank),
                store="words",
                place="words",
                rank=rank,
                score=None,
                text=each.text,
                turns=each.turn_ids,
            )
            for rank, each in enumerate(self.heard, start=1)
        )
        return Recall(hits=hits, context="\n".join(hit.text for hit in hits))

    async def snapshot(self) -> Snapshot:
        return Snapshot(values={"words": {"words": [each.text for each in self.heard]}})


@pytest.fixture
def conversation() -> Conversation:
    return next(load(["multi-01"]))


def test_rows_and_figures_are_data_frames_where_pandas_is_installed(tmp_path: Path) -> None:
    """Pandas is no dependency, not even for development: without it this is skipped."""
    pandas = pytest.importorskip("pandas")
    with memreplay.run("multi-01", ["full_context", "closed_book"], recording=tmp_path / "run.sqlite3") as run:
        frame, summary = run.questions.to_pandas(), run.summary.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    right = frame.groupby("backend").score.sum().to_dict()
    assert right == {name: float(each.recall.correct) for name, each in run.summary.items() if each.recall}
    assert list(frame.tokens_prompt) == [row.tokens.prompt for row in run.questions if row.tokens]
    assert summary.set_index("backend").graded.to_dict() == {"full_context": 5, "closed_book": 5}


def test_to_pandas_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(memreplay.MemreplayError, match=r"needs pandas: pip install pandas"):
        Questions(()).to_pandas()


def test_importing_it_imports_nothing_else_and_recording_an_agent_nothing_of_runs() -> None:
    code = (
        "import sys, memreplay; dir(memreplay)\n"
        "assert not {'textual', 'litellm', 'pydantic', 'memory_backends', 'memreplay.api'} & {*sys.modules}\n"
        "memreplay.record, memreplay.turn\n"
        "import memreplay.capture.mcp_proxy\n"
        "assert not {'textual', 'litellm', 'memreplay.engine', 'memreplay.grading'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY / "app")


def test_a_run_gives_rows_figures_files_and_every_turn(tmp_path: Path) -> None:
    wide = LastWords(kept=100)
    wide.name = "wide"
    with memreplay.run("multi-01", ["full_context", LastWords, wide], recording=tmp_path / "run.sqlite3") as run:
        assert run.status == "finished"
        assert list(run.summary) == ["full_context", "LastWords", "wide"]
        assert len(run.questions) == 15
        assert {row.failure for row in run.questions if row.backend == "LastWords" and row.outcome == "wrong"} == {
            "not_written"
        }
        assert all(row.evidence_in_prompt for row in run.questions if row.backend in ("wide", "full_context"))
        run.save(tmp_path / "results.json", str(tmp_path / "results.csv"))
        assert len(json.loads((tmp_path / "results.json").read_text())["questions"]) == 15
        with pytest.raises(memreplay.MemreplayError, match="cannot write"):
            run.save(tmp_path / "results.docx")
    with memreplay.open(tmp_path / "run.sqlite3") as opened:
        assert opened.id == run.id
        replayed = opened.conversation("multi-01")
        held = replayed.at(turn=2)["LastWords"]
        assert held.state["words"] == [
            "\n".join(f"{replayed.conversation.label_of(t)}: {t.text}" for t in replayed.turns[:2])
        ]
        assert (held.hits, held.prompt, held.why) == (None, None, None)
        end = replayed.at()["LastWords"]
        assert len(end.questions) == 5
        with pytest.raises(memreplay.MemreplayError, match="choose one with at"):
            _ = end.prompt
        wrong = next(each for each in end.questions if each.outcome == "wrong")
        chosen = replayed.at(question=wrong.id)["LastWords"]
        assert chosen.why is not None and chosen.why.label == "not_written"
        assert chosen.hits and wrong.text in (chosen.prompt or "")
        with pytest.raises(memreplay.MemreplayError, match="has no turn 99"):
            replayed.at(turn=99)
    with pytest.raises(memreplay.MemreplayError, match="was closed"):
        _ = opened.conversations


def test_it_runs_inside_a_running_loop_and_beside_it(tmp_path: Path, conversation: Conversation) -> None:
    asked = conversation.model_copy(update={"questions": conversation.questions[:1]})

    async def notebook() -> tuple[memreplay.RecordedRun, memreplay.RecordedRun]:
        blocking = memreplay.run(asked, LastWords, recording=tmp_path / "a.sqlite3")
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        beside = await memreplay.arun(asked, LastWords, recording=tmp_path / "b.sqlite3")
        ticking.cancel()
        assert ticks > 1
        async with await memreplay.aopen(tmp_path / "b.sqlite3") as opened:
            assert opened.status == "finished"
        with pytest.raises(memreplay.MemreplayError, match="was closed"):
            _ = opened.conversations
        return blocking, beside

    with_loop, awaited = asyncio.run(notebook())
    assert [row.outcome for row in with_loop.questions] == [row.outcome for row in awaited.questions]
    assert "multi-01" in with_loop.conversation("multi-01")._repr_html_()
    for shown in (
        with_loop,
        with_loop.questions,
        with_loop.summary,
        with_loop.conversation("multi-01").at()["LastWords"],
    ):
        assert shown._repr_html_().startswith("<table>")
    with_loop.close()
    awaited.close()


def test_a_cancelled_run_is_on_record_and_resumes(tmp_path: Path, conversation: Conversation) -> None:
    recording = tmp_path / "run.sqlite3"

    class Waiting(LastWords):
        waits = True

        async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
            if Waiting.waits:
                task.cancel()
                await asyncio.Event().wait()
            return await super().recall(question, top_k, context_tokens)

    task: asyncio.Task[memreplay.RecordedRun]

    async def cancelled() -> None:
        nonlocal task
        task = loop.create_task(memreplay.arun(conversation, Waiting, recording=recording))
        task.cancel, cancel = lambda: loop.call_soon_threadsafe(cancel), task.cancel  # type: ignore[method-assign, assignment]
        await task

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(cancelled())
    finally:
        loop.close()
    with memreplay.open(recording) as interrupted:
        assert interrupted.status == "interrupted"
    Waiting.waits = False
    with memreplay.run(conversation, Waiting, recording=recording, resume=True) as resumed:
        assert resumed.status == "finished" and resumed.id == interrupted.id


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"datasets": "no-such"}, "no-such"),
        ({"backends": [object()]}, "it has no open"),
        ({"backends": [LastWords(), LastWords()]}, "two memories have one name"),
        ({"backends": "hybird"}, "hybird"),
        ({"topk": 3}, "topk is not a setting; did you mean top_k"),
        ({"top_k": 0}, "top_k"),
        ({"resume": True}, "resume needs recording"),
        ({"offline": True, "cache": False}, "cache"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, object], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    recording = {} if "resume" in arguments else {"recording": tmp_path / "run.sqlite3"}
    with pytest.raises(memreplay.MemreplayError, match=says) as refused:
        memreplay.run(**{"datasets": "multi-01", "backends": "full_context"} | recording | arguments)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run.sqlite3").exists()


def test_notebook_tables_escape_what_they_show() -> None:
    shown = table_html(("<b>",), [["<script>alert(1)</script>"], ["x" * 5000]], "&")
    assert "<script>" not in shown and "<th>&lt;b&gt;</th>" in shown and len(shown) < 1000
