"""``memreplay.record``: the memory behaves as before, and the recording shows what happened."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import memreplay
from memreplay.capture.assembling import bring_up_to_date
from memreplay.capture.journal import Journal, JournalReader
from memreplay.errors import RecordingError, UsageError
from tests.stubs.agents import SAYS, USER, Notebook, converse, recorded_notebook


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.sqlite3"


def opened(path: Path) -> memreplay.RecordedRun:
    bring_up_to_date(path)
    return memreplay.open(path)


def mark(path: Path, turn: int, expected: str, *evidence: str) -> None:
    journal = Journal(path)
    body = {"conversation": USER, "turn": turn, "expected": expected, "evidence": list(evidence)}
    journal.note("mark", time.time(), body)
    journal.close()


def test_a_recorded_memory_is_the_memory(path: Path):
    memory = recorded_notebook(path)
    assert isinstance(memory, Notebook) and memory.version == "1.0" and len(memory) == 0
    added = memory.add([{"role": "user", "content": "I like tea."}])
    assert added == {"results": [{"id": "1", "memory": "I like tea.", "event": "ADD"}]}
    assert len(memory) == 1
    with pytest.raises(ValueError, match="no such page"):
        memory.fail()


@pytest.mark.parametrize("marked", [True, False])
def test_the_recording_holds_what_was_said_written_and_read(path: Path, marked: bool):
    converse(recorded_notebook(path), marked=marked)
    with opened(path) as run:
        (name,) = run.conversations
        conversation = run.conversation(name)
        assert name == USER and conversation.backends == ("notebook",)
        assert [turn.text for turn in conversation.turns if turn.role == "user"] == list(SAYS)
        before, after = (conversation.at(turn)["notebook"] for turn in (1, 2))
        assert (len(before.points["notebook"]), len(after.points["notebook"])) == (0, 2)
        first = conversation.at(9)["notebook"].hits[0]
        assert (first.text, first.turns, first.rank) == (SAYS[0], ("1",), 1)


@pytest.mark.parametrize("marked", [True, False])
def test_a_mark_is_answered_from_what_was_recorded(path: Path, marked: bool):
    converse(recorded_notebook(path), marked=marked)
    mark(path, 11, "lead engineer", "3")
    mark(path, 9, "Lyon", "7")
    mark(path, 9, "Girona", "1")
    with opened(path) as run:
        found = [(row.outcome, row.failure, row.failure_loss) for row in run.questions]
        returned = run.questions[2].failure_detail
    assert found == [
        ("wrong", "not_written", "distilled_away"),
        ("wrong", "not_retrieved", None),
        ("correct", None, None),
    ]
    assert returned == "Memory returned the answer at rank 1 of 2; the prompt that the model got was not recorded."


def test_arguments_are_named_whatever_a_method_is_bound_to(path: Path):
    class Shelf:
        def put(this, title: str, *, owner: str) -> str:
            return title

        @classmethod
        def find(cls, query: str) -> list[str]:
            return [query]

        @staticmethod
        def drop(title: str) -> None:
            return None

    shelf = memreplay.record(Shelf(), path, writes=["put"], reads=["find"], removes=["drop"])
    shelf.put("Ada", owner=USER)
    shelf.find("Bel Canto")
    shelf.drop("Ada")
    bring_up_to_date(path)
    reader = JournalReader(path)
    notes = [note.body["arguments"] for note in reader.after() if note.source == "call"]
    reader.close()
    assert notes == [{"title": "Ada", "owner": USER}, {"query": "Bel Canto"}, {"title": "Ada"}]


def test_what_a_memory_kept_of_a_write_that_returned_nothing_is_not_known(path: Path):
    class Pages:
        def __init__(self) -> None:
            self.pages: list[str] = []

        def add(self, messages: list[dict[str, str]], user_id: str) -> None:
            self.pages += [message["content"] for message in messages]

        def search(self, query: str, user_id: str) -> list[str]:
            return self.pages[:1]

    memory = memreplay.record(Pages(), path, writes=["add"], reads=["search"])
    for text in ("I live in Girona.", "I got a promotion.", "What is new?"):
        with memreplay.turn(USER, "user", text):
            memory.search(text, user_id=USER)
        with memreplay.turn(USER, "assistant", "I see."):
            memory.add([{"role": "user", "content": text}], user_id=USER)
    mark(path, 5, "promotion", "3")
    with opened(path) as run:
        ((failure, detail),) = [(row.failure, row.failure_detail) for row in run.questions]
    assert failure == "not_visible"
    assert detail == "Turn 3 was not retrieved; what this memory stores cannot be seen."


class Distilling:
    """Keeps other texts than it is given, and returns what a test asks of it about them."""

    def __init__(self, *, ids: bool) -> None:
        self.rows: dict[str, str] = {}
        self._returns_ids = ids

    def remember(self, text: str, key: str | None = None) -> dict[str, str] | None:
        id_ = key or str(len(self.rows) + 1)
        self.rows[id_] = "user has a new dentist" if "dentist" in text else text
        return {"id": id_} if self._returns_ids else None

    def lookup(self, query: str, only: str) -> list[dict[str, str]]:
        return [{"id": id_, "memory": text} for id_, text in self.rows.items() if only in text]


def remembered(path: Path, *, only: str, ids: bool = True, keys: tuple[str | None, ...] = (None, None)) -> None:
    """Tell a memory two facts, and ask for the second, which it distilled; ``only`` is what its search finds."""
    memory = memreplay.record(Distilling(ids=ids), path, writes=["remember"], reads=["lookup"])
    facts = ("My dog is called Bruno.", "My new dentist is Dr. Okonkwo.")
    for fact, key in zip(facts, keys, strict=True):
        with memreplay.turn("one", "user", fact, user=USER):
            memory.remember(fact, key)
    with memreplay.turn("one", "user", "Who is my dentist?", user=USER):
        memory.lookup("dentist", only)
    with memreplay.turn("one", "assistant", "I do not know.", user=USER):
        pass
    mark(path, 3, "Okonkwo", "2")


def losses(path: Path) -> list[tuple[str | None, str | None]]:
    with opened(path) as run:
        return [(row.failure, row.failure_loss) for row in run.questions]


def test_a_text_that_a_write_returned_nothing_about_is_not_taken_for_stored(path: Path):
    remembered(path, only="Bruno", ids=False)
    assert losses(path) == [("not_visible", None)]


def test_a_write_that_returned_an_id_stored_what_the_next_read_of_it_shows(path: Path):
    remembered(path, only="dentist")
    assert losses(path) == [("not_written", "distilled_away")]
    with opened(path) as run:
        held = run.conversation(USER).at(2)["distilling"].points["distilling"]
    assert held["2"] == {"content": "user has a new dentist"}


def test_a_write_that_returned_an_id_stored_what_it_was_given_where_no_read_shows_it(path: Path):
    remembered(path, only="Bruno")
    assert losses(path) == [("not_retrieved", None)]


def test_a_read_tells_what_lies_under_a_key_from_then_on(path: Path):
    remembered(path, only="dentist", keys=("dog", "health"))
    with opened(path) as run:
        conversation = run.conversation(USER)
        held = [conversation.at(turn)["distilling"].points["distilling"]["health"] for turn in (2, 3)]
    assert held == [{"content": "My new dentist is Dr. Okonkwo."}, {"content": "user has a new dentist"}]


def test_texts_without_ids_are_told_apart(path: Path):
    class Pages:
        def search(self, query: str) -> list[str]:
            return [f"{query} is nine."]

    memory = memreplay.record(Pages(), path, reads=["search"])
    for name in ("Bruno", "Ada"):
        memory.search(name)
    with opened(path) as run:
        held = run.conversation("agent").at(2)["pages"].points["pages"]
    assert [point["content"] for point in held.values()] == ["Bruno is nine.", "Ada is nine."]


def test_pieces_that_share_an_id_change_nothing_that_is_stored(path: Path):
    class Documents:
        def put(self, key: str, text: str) -> None:
            pass

        def search(self, query: str) -> list[dict[str, str]]:
            return [{"key": "plan", "text": "We sail"}, {"key": "plan", "text": "in May."}]

    memory = memreplay.record(Documents(), path, writes=["put"], reads=["search"])
    memory.put("plan", "We sail in May.")
    memory.search("When?")
    with opened(path) as run:
        held = run.conversation("agent").at(2)["documents"].points["documents"]
    assert held == {"plan": {"content": "We sail in May."}}


def test_a_failed_call_is_a_failure_of_its_turn(path: Path):
    memory = recorded_notebook(path)
    converse(memory, marked=True, says=SAYS[:1])
    with pytest.raises(ValueError):
        memory.fail()
    bring_up_to_date(path)
    with memreplay.open(path) as run:
        failures = run.recording.timeline(run.id, USER).failures_at("notebook", 2)
    assert [failure.error for failure in failures] == ["fail: ValueError: no such page"]


def test_what_was_stored_before_the_recording_is_seen_when_it_is_read(path: Path):
    notebook = Notebook()
    notebook.add([{"role": "user", "content": "I am allergic to nuts."}])
    memory = memreplay.record(notebook, path, writes=["add"], reads=["search"])
    converse(memory, says=("Am I allergic to anything?",))
    with opened(path) as run:
        timeline = run.recording.timeline(run.id, USER)
        first = timeline.operations_at("notebook", 1)[0]
    assert first.command == "seen by a read" and first.turns == ()


def test_operations_are_the_turns_where_no_message_is_known(path: Path):
    class Facts:
        def __init__(self) -> None:
            self.facts: dict[str, str] = {}

        def put(self, key: str, text: str) -> None:
            self.facts[key] = text

        def lookup(self, query: str) -> list[dict[str, str]]:
            return [{"key": key, "text": text} for key, text in self.facts.items() if query in text]

        def drop(self, key: str) -> None:
            del self.facts[key]

    memory = memreplay.record(Facts(), path, writes=["put"], reads=["lookup"], removes=["drop"])
    memory.put("city", "lives in Girona")
    memory.lookup("Girona")
    memory.drop("city")
    with opened(path) as run:
        conversation = run.conversation("agent")
        texts = [turn.text for turn in conversation.turns]
        held = [dict(conversation.at(turn)["facts"].points["facts"]) for turn in (1, 3)]
    assert texts == ["put: lives in Girona", "lookup: Girona", "drop: city"]
    assert held == [{"city": {"content": "lives in Girona"}}, {}]


def test_new_notes_are_added_to_the_same_run_and_bookmarks_stay(path: Path):
    memory = recorded_notebook(path)
    converse(memory, says=SAYS[:2])
    with opened(path) as first:
        known = first.id
    from memreplay.recording.annotations import annotations_of
    from memreplay.timeline.annotations import Bookmark

    annotations_of(path, known, USER, shipped=()).set_bookmark(Bookmark(mark="a", turn=2, note="here"))
    converse(memory, says=SAYS[2:])
    with opened(path) as second:
        assert second.id == known and len(second.conversation(USER).turns) == 12
    (kept,) = annotations_of(path, known, USER, shipped=()).bookmarks()
    assert (kept.turn, kept.note) == (2, "here")


def test_an_unknown_memory_needs_the_names_of_its_methods(path: Path):
    with pytest.raises(UsageError, match=r'writes=\["add"\], reads=\["search"\]'):
        memreplay.record(Notebook(), path)
    with pytest.raises(UsageError, match="Notebook has no method keep"):
        memreplay.record(Notebook(), path, writes=["keep"])


def test_a_file_of_another_program_is_refused_when_recording_begins(tmp_path: Path):
    other = tmp_path / "notes.sqlite3"
    with sqlite3.connect(other) as db:
        db.execute("create table notes (text)")
    with pytest.raises(RecordingError, match="not a memreplay recording"):
        recorded_notebook(other)


def test_secrets_of_the_environment_reach_no_recording(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTHER_API_KEY", "sesame-9f8e7d6c5b4a")
    memory = recorded_notebook(path)
    memory.add([{"role": "user", "content": "The key is sesame-9f8e7d6c5b4a."}])
    bring_up_to_date(path)
    assert b"sesame" not in path.read_bytes()


async def test_coroutines_and_threads_are_recorded(path: Path):
    class Slow:
        async def add(self, text: str) -> str:
            await asyncio.sleep(0.001)
            return f"id-{text}"

    memory = memreplay.record(Slow(), path, writes=["add"])
    assert await asyncio.gather(*(memory.add(f"fact {n}") for n in range(20))) == [
        f"id-fact {n}" for n in range(20)
    ]
    notebook = recorded_notebook(path)
    messages = [[{"role": "user", "content": f"I have {n} cats."}] for n in range(100)]
    threads = [threading.Thread(target=notebook.add, args=(each,)) for each in messages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = JournalReader(path)
    assert len(reader.after()) == 120
    reader.close()


def started(code: str, path: Path, *arguments: str) -> subprocess.Popen[str]:
    """Return a process of its own that runs some code."""
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{root}:{root / 'app'}"}
    command = [sys.executable, "-c", code, str(path), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


_WRITES = """
import sys
from pathlib import Path
from tests.stubs.agents import recorded_notebook
memory = recorded_notebook(Path(sys.argv[1]))
for each in range(100):
    memory.add([{"role": "user", "content": f"process {sys.argv[2]} says {each}"}])
"""


def test_processes_share_a_recording(path: Path):
    for process in [started(_WRITES, path, str(number)) for number in range(3)]:
        with process:
            assert process.wait() == 0
    reader = JournalReader(path)
    assert len(reader.after()) == 300
    reader.close()


_ACKNOWLEDGES = """
import sys
from pathlib import Path
from tests.stubs.agents import recorded_notebook
memory = recorded_notebook(Path(sys.argv[1]))
for number in range(100_000):
    memory.add([{"role": "user", "content": f"fact {number}"}])
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(path: Path):
    with started(_ACKNOWLEDGES, path) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 500:
                break
        process.send_signal(signal.SIGKILL)
        acknowledged = 501 + sum(1 for _ in process.stdout)
    reader = JournalReader(path)
    assert acknowledged <= len(reader.after()) <= acknowledged + 1
    reader.close()
    with opened(path) as run:
        assert len(run.conversation("agent").turns) >= acknowledged


def test_notes_wait_while_the_file_is_locked_and_the_agent_does_not(path: Path):
    memory = recorded_notebook(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    began = time.perf_counter()
    for _ in range(20):
        memory.add([{"role": "user", "content": "I wait."}])
    waited = time.perf_counter() - began
    other.execute("commit")
    other.close()
    until = time.monotonic() + 5
    reader = JournalReader(path)
    while len(reader.after()) < 20 and time.monotonic() < until:
        time.sleep(0.01)
    assert len(reader.after()) == 20 and waited < 1.0
    reader.close()


def test_a_removal_that_names_nothing_removes_nothing(path: Path):
    class Topics:
        def add(self, text: str) -> str:
            return f"id of {text}"

        def forget(self, topic: str) -> None:
            return None

    memory = memreplay.record(Topics(), path, writes=["add"], removes=["forget"])
    memory.add("lives in Girona")
    memory.forget("weather")
    with opened(path) as run:
        held = run.conversation("agent").at(2)["topics"].points
        sentences = run.settings["not_shown"]
    assert [dict(points) for points in held.values()] == [{"id of lives in Girona": {"content": "lives in Girona"}}]
    assert "1 call of forget removes something that it does not name" in sentences[0]


def test_a_later_reply_is_not_taken_for_the_one_that_was_not_recorded(path: Path):
    memory = recorded_notebook(path)
    with memreplay.turn("monday", "user", "Where do I live?", user=USER):
        memory.search("Where do I live?", user_id=USER)
    with memreplay.turn("monday", "user", "And my dog?", user=USER):
        pass
    with memreplay.turn("monday", "assistant", "In Girona, and it is Bruno.", user=USER):
        pass
    mark(path, 1, "Girona", "1")
    with opened(path) as run:
        assert [row.predicted for row in run.questions] == ["(the agent's reply was not recorded)"]


def test_what_is_added_to_the_run_is_what_all_notes_give_at_once(path: Path):
    memory = memreplay.record(Notebook(), path, name="notebook", writes=["add"], reads=["search"])

    def exchange(user: str, text: str) -> None:
        memory.search(text, user_id=user)
        memory.add([{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}], user_id=user)

    for step, (user, text) in enumerate((("ann", "I like tea."), ("bo", "I ski."), ("ann", "I live in Lyon."))):
        exchange(user, text)
        if step != 1:
            bring_up_to_date(path)
    copy = path.with_name("copy.sqlite3")
    notes = JournalReader(path)
    journal = Journal(copy)
    for note in notes.after():
        journal.note(note.source, note.at, note.body)
    notes.close()
    journal.close()

    def held(recording: Path) -> dict[str, list[tuple[str, object, list[str]]]]:
        with opened(recording) as run:
            return {
                name: [
                    (turn.text, memory.points, [hit.text for hit in memory.hits or ()])
                    for turn in run.conversation(name).turns
                    for memory in run.conversation(name).at(turn.number).values()
                ]
                for name in run.conversations
            }

    shown = held(path)
    assert list(shown) == ["ann", "bo"] and len(shown["ann"]) == 4
    assert shown == held(copy)


def test_vectors_are_not_recorded(path: Path):
    class Searcher:
        def search(self, query: str, vector: list[float]) -> dict[str, object]:
            return {"results": [{"id": "1", "memory": "Tea.", "score": 0.5, "memory_embedding": [0.1] * 100_000}]}

    memory = memreplay.record(Searcher(), path, reads=["search"])
    assert "memory_embedding" in str(memory.search("What?", vector=[0.2] * 100_000))
    reader = JournalReader(path)
    (note,) = reader.after()
    reader.close()
    assert note.body["arguments"] == {"query": "What?"}
    assert note.body["result"] == {"results": [{"id": "1", "memory": "Tea.", "score": 0.5}]}
    assert bring_up_to_date(path) == ()
