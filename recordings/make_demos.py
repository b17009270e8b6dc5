"""Makes the shipped recordings: ``make demo`` runs it.

``demo.sqlite3`` has the first sessions of a long history and a short conversation, with little room in a prompt. Each
recording in ``recordings/demos`` tells one story about memory, on a part of a long history, in a few questions. The story is not assumed: parts
are tried until a recorded run shows it, notes are placed where the run shows it, and if no part does, this ends with an
error.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memreplay.paths import datasets_folder
from memreplay.recording.annotations import annotations_of
from memreplay.recording.reader import Recording
from memreplay.timeline.annotations import Bookmark
from memreplay.timeline.timeline import Timeline

RECORDINGS = Path(__file__).resolve().parent
DEMOS = RECORDINGS / "demos"
FIRST = ("long-04", (1, 2), "identity-01")
"""What ``demo.sqlite3`` has: the sessions of a history, and a conversation."""
FIRST_OPTIONS = ("--perceive", "--no-cache", "--top-k", "6", "--context-tokens", "900")
SESSIONS = (2, 3)
"""Sessions in a part: few, so that the recording stays small."""
QUESTIONS = 6
LARGEST = 1_500_000
"""Bytes of a demo."""

Row = dict[str, Any]
"""A question of results.json, answered by one memory."""


@dataclass(frozen=True)
class Part:
    """Some sessions of a history as a dataset of its own, with the questions that they answer."""

    name: str
    data: dict[str, Any]

    def with_questions(self, texts: Sequence[str]) -> Part:
        """Only these questions, in this order."""
        kept = [asked for text in texts for asked in self.data["recallQuestions"] if asked["question"] == text]
        return Part(self.name, self.data | {"recallQuestions": kept})


@dataclass(frozen=True)
class Story:
    """``parts`` of a history that may show it; ``holds`` says whether a question does, given its row of each memory.

    ``budgets`` are tried in turn: hits and tokens of memory in a prompt. ``notes`` tells the story, as far as the recorded
    timeline shows it; without notes it does not.
    """

    name: str
    options: tuple[str, ...]
    budgets: tuple[tuple[int, int], ...]
    parts: Callable[[dict[str, Any]], Iterator[Part]]
    holds: Callable[[dict[str, Any], dict[str, Row]], bool]
    notes: Callable[[Timeline, dict[str, Any], dict[str, Row]], list[Bookmark]]


def part_of(history: dict[str, Any], numbers: Sequence[int]) -> Part:
    """These sessions, in order, with the questions whose evidence lies in them."""
    asked = [one for question in history["recallQuestions"] if (one := _moved(question, numbers))]
    name = f"{history['id']}-sessions-{'-'.join(map(str, numbers))}"
    kept = [history["sessions"][number - 1] for number in numbers]
    data = {name_: value for name_, value in history.items() if name_ != "tags"}
    return Part(name, data | {"id": name, "sessions": kept, "recallQuestions": asked})


def windows(history: dict[str, Any]) -> Iterator[Part]:
    """All runs of consecutive sessions that answer a question."""
    for count in SESSIONS:
        for first in range(1, len(history["sessions"]) - count + 2):
            part = part_of(history, range(first, first + count))
            if part.data["recallQuestions"]:
                yield part


def corrections(history: dict[str, Any]) -> Iterator[Part]:
    """For each corrected value, the one or two sessions that say the old value last, and that with the new one."""
    for question in history["recallQuestions"]:
        new = min((int(turn[1:].partition(":")[0]) for turn in question["evidence"]), default=0)
        olds = [
            number
            for number, session in enumerate(history["sessions"][:new], start=1)
            if any(_says_old(question, turn["content"]) for turn in session["turns"])
        ]
        for few in {len(olds[-count:]): olds[-count:] for count in (1, 2)}.values():
            if few:
                yield part_of(history, sorted({*few, new}))


def _says_old(question: dict[str, Any], text: str) -> bool:
    """Whether a text holds one of the values that a question knows to be out of date."""
    return any(value.casefold() in text.casefold() for value in question.get("supersedes", ()))


def _moved(question: dict[str, Any], numbers: Sequence[int]) -> dict[str, Any] | None:
    """A question with its evidence counted within these sessions; None if some of it lies elsewhere."""
    evidence = []
    for turn in question["evidence"]:
        session, _, place = turn.removeprefix("D").partition(":")
        if int(session) not in numbers:
            return None
        evidence.append(f"D{list(numbers).index(int(session)) + 1}:{place}")
    return question | {"evidence": evidence} if evidence else None


# ---- running -------------------------------------------------------------------------------------------------------


def make_first(histories: Sequence[dict[str, Any]]) -> None:
    """Record the demo that is opened first."""
    name, sessions, short = FIRST
    part = part_of(next(history for history in histories if history["id"] == name), sessions)
    target = RECORDINGS / "demo.sqlite3"
    target.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run(part, (*FIRST_OPTIONS, "--dataset", short), target, Path(folder))
    print(f"{target.name}: {part.name}, {short}, {target.stat().st_size:,} bytes", flush=True)


def run(part: Part, options: Sequence[str], recording: Path, folder: Path) -> dict[str, dict[str, Row]]:
    """Record a run of a part; the rows of its questions by text and backend."""
    dataset = folder / f"{part.name}.json"
    dataset.write_text(json.dumps(part.data, ensure_ascii=False), encoding="utf-8")
    results = folder / "results.json"
    command = [sys.executable, "-m", "memreplay", "--batch", "--dataset", str(dataset), "--recording", str(recording)]
    done = subprocess.run(
        [*command, "--output", str(results), *options], capture_output=True, text=True, encoding="utf-8"
    )
    if done.returncode:
        raise SystemExit(f"{part.name}: {done.stderr.strip()}")
    rows: dict[str, dict[str, Row]] = {}
    for row in json.loads(results.read_text(encoding="utf-8"))["questions"]:
        if row["kind"] == "recall":
            rows.setdefault(row["question"], {})[row["backend"]] = row
    return rows


def make(story: Story, into: Path, histories: Sequence[dict[str, Any]]) -> Path:
    """Find a part that shows a story, record it, and add the notes. Raises SystemExit if none shows it."""
    tries = ((budget, part) for budget in story.budgets for history in histories for part in story.parts(history))
    for (top_k, tokens), part in tries:
        options = (*story.options, "--top-k", str(top_k), "--context-tokens", str(tokens))
        with tempfile.TemporaryDirectory() as name:
            made = _made(story, options, part, Path(name))
            if made is not None:
                target = into / f"{story.name}.sqlite3"
                target.write_bytes(made.read_bytes())
                print(f"{target.name}: {part.name}, {target.stat().st_size:,} bytes", flush=True)
                return target
    raise SystemExit(f"{story.name}: no part of the long histories shows this story")


def _made(story: Story, options: Sequence[str], part: Part, folder: Path) -> Path | None:
    """The recording of a part with the question that shows a story and a few more; None if no question shows it."""
    tried = folder / "tried.sqlite3"
    rows = run(part, options, tried, folder)
    for question in part.data["recallQuestions"]:
        if not story.holds(question, rows.get(question["question"], {})):
            continue
        others = [one["question"] for one in part.data["recallQuestions"] if one is not question]
        short = part.with_questions([question["question"], *others[: QUESTIONS - 1]])
        made = folder / "demo.sqlite3"
        made.unlink(missing_ok=True)
        told = run(short, (*options, "--perceive", "--no-cache"), made, folder)[question["question"]]
        if story.holds(question, told) and annotate(made, story, question, told) and made.stat().st_size <= LARGEST:
            return made
    return None


def annotate(recording: Path, story: Story, question: dict[str, Any], rows: dict[str, Row]) -> bool:
    """Save the notes of a story in its recording; whether there are any."""
    with closing(Recording.open(recording)) as opened:
        run_id = opened.run().id
        (conversation_id,) = opened.conversation_ids(run_id)
        notes = story.notes(opened.timeline(run_id, conversation_id), question, rows)
    annotations = annotations_of(recording, run_id, conversation_id)
    for note in notes:
        annotations.set_bookmark(note)
    return bool(notes)


# ---- the stories ---------------------------------------------------------------------------------------------------


def _is_right(row: Row | None) -> bool:
    return row is not None and row["outcome"] == "correct"


def _lost(row: Row | None, failure: str) -> bool:
    return row is not None and row["outcome"] == "wrong" and row["failure"] == failure


def _first(timeline: Timeline, question: dict[str, Any]) -> int:
    """The number of the first evidence turn."""
    return min(timeline.conversation.turns_by_id[turn].number for turn in question["evidence"])


def _dropped(question: dict[str, Any], rows: dict[str, Row]) -> bool:
    return _lost(rows.get("hybrid"), "not_written") and _is_right(rows.get("rag"))


def _dropped_notes(timeline: Timeline, question: dict[str, Any], rows: dict[str, Row]) -> list[Bookmark]:
    judged = [made for turn in question["evidence"] for made in timeline.ledger("hybrid").about_turn(turn)]
    dropped = next((turn for turn, decision in judged if decision.decision == "DROP"), None)
    said = _first(timeline, question)
    how = "judges it and drops it: see promotions"
    if dropped is None:
        dropped, how = said + 1, "makes no fact of it: no rule reads it, see promotions"
    return [
        Bookmark(mark="1-said", turn=said, note=f"A detail in passing. Asked later: {question['question']}"),
        Bookmark(mark="2-dropped", turn=dropped, note=f"hybrid {how}. rag keeps the text"),
        Bookmark(
            mark="3-lost",
            turn=timeline.last_turn,
            note="rag has it, hybrid without its verbatim store does not. r, enter and w lead from here to that turn",
        ),
    ]


def _cut(question: dict[str, Any], rows: dict[str, Row]) -> bool:
    return _lost(rows.get("full_context"), "cut") and _is_right(rows.get("rag"))


def _cut_notes(timeline: Timeline, question: dict[str, Any], rows: dict[str, Row]) -> list[Bookmark]:
    said = _first(timeline, question)
    (backend,) = (name for name in timeline.backends if name == "full_context")
    index = timeline.perceived_index(backend)
    known = timeline.conversation.turns_by_id
    gone = next(
        (
            turn
            for turn, ref in zip(index.turns, index.refs, strict=True)
            for cut in timeline.perceived(ref).cut
            for id_ in cut.turns
            if id_ in known and known[id_].number == said
        ),
        timeline.last_turn,
    )
    return [
        Bookmark(mark="1-said", turn=said, note=f"Asked at the end: {question['question']}"),
        Bookmark(mark="2-cut", turn=gone, note="full_context no longer fits: the turn with the answer is cut here (×)"),
        Bookmark(mark="3-found", turn=timeline.last_turn, note="rag still finds it. r, then enter, shows both prompts"),
    ]


def _only_hybrid(question: dict[str, Any], rows: dict[str, Row]) -> bool:
    lost = _lost(rows.get("rag"), "not_retrieved") and _lost(rows.get("full_context"), "cut")
    return lost and _is_right(rows.get("hybrid"))


def _only_hybrid_notes(timeline: Timeline, question: dict[str, Any], rows: dict[str, Row]) -> list[Bookmark]:
    return [
        Bookmark(mark="1-said", turn=_first(timeline, question), note=f"Asked at the end: {question['question']}"),
        Bookmark(
            mark="2-asked",
            turn=timeline.last_turn,
            note="hybrid is right; rag did not find the turn, and full_context has cut it. r shows all answers",
        ),
    ]


def _corrected(question: dict[str, Any], rows: dict[str, Row]) -> bool:
    rag = rows.get("rag")
    if rag is None or rag["outcome"] != "wrong" or not _is_right(rows.get("hybrid")):
        return False
    reply = (rag["predicted"] or "").casefold()
    return any(value.casefold() in reply for value in question.get("supersedes") or ())


def _corrected_notes(timeline: Timeline, question: dict[str, Any], rows: dict[str, Row]) -> list[Bookmark]:
    new = _first(timeline, question)
    reply = rows["rag"]["predicted"] or rows["rag"]["reply"] or ""
    places = {value: reply.casefold().find(value.casefold()) for value in question["supersedes"]}
    given = min((value for value in places if places[value] >= 0), key=places.__getitem__, default=None)
    told = {"supersedes": [given] if given else question["supersedes"]}
    old = next((turn.number for turn in timeline.conversation.turns if _says_old(told, turn.text)), new)
    if old >= new:
        return []
    return [
        Bookmark(mark="1-old", turn=old, note=f"The old value. Asked later: {question['question']}"),
        Bookmark(mark="2-new", turn=new, note=f"Corrected here: {question['expectedAnswer']}. Step on, and see who notes it"),
        Bookmark(
            mark="3-outdated",
            turn=timeline.last_turn,
            note=f"rag answers “{_short(reply)}”, the old value; hybrid is right. r, then enter, says why",
        ),
    ]


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:59] + "…"


STORIES = (
    Story(
        "corrected-value",
        ("--backend", "hybrid", "--backend", "rag"),
        # With room for several hits, rag nearly always finds the correction too.
        ((1, 1000), (2, 1000), (3, 300)),
        corrections,
        _corrected,
        _corrected_notes,
    ),
    Story(
        "dropped-detail",
        ("--backend", "hybrid", "--backend", "rag", "--ablate", "verbatim"),
        ((5, 500), (10, 1000)),
        windows,
        _dropped,
        _dropped_notes,
    ),
    Story(
        "cut-context",
        ("--backend", "full_context", "--backend", "rag"),
        ((4, 1200), (4, 800)),
        windows,
        _cut,
        _cut_notes,
    ),
    Story(
        "three-memories",
        ("--backend", "hybrid", "--backend", "rag", "--backend", "full_context"),
        ((3, 500), (5, 800), (5, 1000)),
        windows,
        _only_hybrid,
        _only_hybrid_notes,
    ),
)


def main() -> None:
    files = sorted((datasets_folder() / "long").glob("*.json"))
    histories = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    # English first: these demos are what most people open first.
    histories.sort(key=lambda history: history["language"] != "en")
    wanted, missing = sys.argv[1:], []
    if not wanted or "demo" in wanted:
        make_first(histories)
    for story in STORIES:
        if not wanted or story.name in wanted:
            try:
                make(story, DEMOS, histories)
            except SystemExit as failed:
                missing.append(str(failed))
    if missing:
        raise SystemExit("\n".join(missing))


if __name__ == "__main__":
    main()
