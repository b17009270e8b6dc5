"""``memreplay fork`` and ``memreplay bisect``: what would have been if one thing had been otherwise."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from shutil import copy
from signal import SIGKILL
from typing import Any

import pytest

from memreplay.engine.events import QuestionAsked, StoreOperated
from memreplay.recording.branches import opened_for_branches
from memreplay.recording.reader import Recording, RunInfo
from tests.cli.conftest import Ran, RunCli
from tests.stubs.in_process import made_in
from tests.stubs.launcher import Launcher
from tests.stubs.openai_server import OpenAIServer, answer, failure

CITY = "key:shared_state/shared_data/user.city"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trunk")
    asked = ("--dataset", "identity-02", "--ablate", "verbatim", "--backend", "hybrid", "--backend", "rag")
    made_in(folder, "--batch", *asked, "--recording", folder / "r.sqlite3")
    return folder / "r.sqlite3"


@pytest.fixture
def trunk(shared: Path, tmp_path: Path) -> Path:
    return Path(copy(shared, tmp_path / "r.sqlite3"))


def runs(path: Path) -> list[RunInfo]:
    reader = Recording.open(path)
    found = reader.runs()
    reader.close()
    return found


def branch_in(ran: Ran) -> str:
    assert ran.code == 0, ran.err
    found = re.search(r"^branch (\w+) of", ran.out, re.MULTILINE)
    assert found is not None
    return found[1]


def outcomes(run_cli: RunCli, path: Path, run: str) -> dict[tuple[str, str], str]:
    ran = run_cli("report", path, "--run", run, "--output", "-")
    rows: list[dict[str, Any]] = json.loads(ran.out)["questions"]
    return {(row["backend"], row["question_id"].rpartition("-")[2]): row["outcome"] for row in rows}


def facts_with(path: Path, words: str) -> list[str]:
    """Ids of the distilled facts with these words."""
    reader = Recording.open(path)
    run = reader.run()
    points = reader.timeline(run.id, "identity-02").snapshot_at("hybrid", 8).points["qdrant"]["hybrid_knowledge"]
    reader.close()
    return [id_ for id_, payload in points.items() if words in payload["content"]]


def test_without_the_fact_the_answer_that_rested_on_it_changes_and_the_trunk_does_not(
    run_cli: RunCli, trunk: Path
) -> None:
    before = runs(trunk)[0]
    events = [event.model_dump() for event in Recording.open(trunk).events(before.id, "identity-02")]
    (fact,) = facts_with(trunk, "flat in Dundee")
    ran = run_cli("fork", trunk, "--at", 8, "--delete", CITY, "--delete", f"point:{fact}")
    branch = branch_in(ran)
    assert "hybrid: memory differs from turn 8 on" in ran.out and "rag: memory is the same" in ran.out
    old, new = outcomes(run_cli, trunk, before.id), outcomes(run_cli, trunk, branch)
    assert {place for place in old if old[place] != new[place]} == {("hybrid", "q3")}
    reader = Recording.open(trunk)
    by_hand = [
        event.operation
        for event in reader.events(branch, "identity-02", ("store_operated",))
        if isinstance(event, StoreOperated) and event.operation.actor == "you"
    ]
    assert [(operation.phase, operation.command) for operation in by_hand] == [
        ("by_hand", "SET"),
        ("by_hand", "delete"),
    ]
    assert [event.model_dump() for event in reader.events(before.id, "identity-02")] == events
    assert (reader.run().id, runs(trunk)[0]) == (before.id, before)
    life = run_cli("bisect", trunk, "--question", "q3", "--run", branch).out
    assert re.search(r"hybrid .* learnt at turn 6, forgotten at turn 8", life)
    rebuilt = run_cli("bisect", trunk, "--question", "q3", "--run", branch, "--by", "prompt").out
    assert re.search(r"hybrid .* learnt at turn 6, forgotten at turn 8", rebuilt)
    assert re.search(r"rag .* learnt at turn 6, known to the end", rebuilt)
    assert re.search(
        r"hybrid .* learnt at turn 6, known to the end", run_cli("bisect", trunk, "--question", "q3").out
    )


def test_the_same_command_makes_no_second_branch_and_a_branch_of_a_branch_keeps_its_edits(
    run_cli: RunCli, trunk: Path
) -> None:
    (fact,) = facts_with(trunk, "flat in Dundee")
    first = ("fork", trunk, "--at", 8, "--delete", CITY, "--delete", f"point:{fact}")
    branch = branch_in(run_cli(*first))
    assert branch_in(run_cli(*first)) == branch
    second = branch_in(run_cli("fork", trunk, "--run", branch, "--at", 8, "--set", "message:9=I have saved £5."))
    assert outcomes(run_cli, trunk, second)["hybrid", "q3"] == "wrong"
    assert outcomes(run_cli, trunk, second)["rag", "q5"] == "wrong"
    shown = run_cli("recordings", "show", trunk).out
    assert f"branch of {branch} at turn 8: message 9 = I have saved £5." in shown
    assert [run.branch and run.branch.parent for run in runs(trunk)] == [None, runs(trunk)[0].id, branch]
    early = run_cli("fork", trunk, "--run", branch, "--at", 3, "--set", "top-k=2")
    assert early.code == 2 and "departs after turn 8" in early.err


def test_an_edited_turn_that_no_longer_says_the_answer_puts_the_key_in_doubt(run_cli: RunCli, trunk: Path) -> None:
    ran = run_cli("fork", trunk, "--at", 8, "--set", "message:9=Money: my savings come to £12,000.")
    doubt = (
        "The edited turn 9 is evidence of identity-02-q5: its expected answer, “£19,600”, is that of the old text"
    )
    assert doubt in ran.out
    branch = branch_in(ran)
    rows = json.loads(run_cli("report", trunk, "--run", branch, "--output", "-").out)["questions"]
    found = {
        (row["failure"], row["failure_detail"]): row["answer_in_prompt"]
        for row in rows
        if row["question_id"].endswith("q5") and row["outcome"] != "correct"
    }
    assert found == {("key_suspect", f"{doubt}."): False}
    kept = run_cli("fork", trunk, "--at", 8, "--set", "message:9=Money. In all, my savings come to £19,600.")
    assert kept.code == 0 and "is that of the old text" not in kept.out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "--set, --delete or --insert"),
        (("--set", "wishes=3"), "top-k"),
        (("--set", "top-k=none"), "top_k"),
        (("--set", "ablate=everything"), "everything"),
        (("--set", "message:3=too early"), "departs after turn 8"),
        (("--set", f"{CITY}=Leeds"), "JSON"),
        (("--delete", "key:shared_state/shared_data/nothing"), "/shared_data/user.city"),
        (("--delete", "key:nowhere/at/all"), "shared_state"),
        (("--delete", "point:unknown"), "no memory held such a point"),
        (("--insert", "message:9=somebody: hello"), "user: TEXT"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_and_leaves_nothing(
    run_cli: RunCli, trunk: Path, options: tuple[str, ...], expected: str
) -> None:
    ran = run_cli("fork", trunk, "--at", 8, *options)
    assert ran.code == 2 and expected in ran.err and "Traceback" not in ran.err
    assert len(runs(trunk)) == 1


def test_limits_change_after_the_turn_and_a_state_of_an_agent_is_named(run_cli: RunCli, tmp_path: Path) -> None:
    recording = tmp_path / "r.sqlite3"
    asked = ("--dataset", "identity-02", "--ablate", "verbatim", "--backend", "hybrid", "--perceive")
    assert run_cli("--batch", *asked, "--recording", recording).code == 0
    # The agent keeps what it retrieved at turn 9, which top-k 2 would lessen, in its personal state.
    ran = run_cli("fork", recording, "--at", 10, "--set", "top-k=2")
    branch = branch_in(ran)
    differs = re.search(r"hybrid: memory differs from turn (\d+) on", ran.out)
    assert "hybrid: memory is the same" in ran.out or (differs and int(differs[1]) > 10), ran.out
    reader = Recording.open(recording)
    asks = [event for event in reader.events(branch, "identity-02") if isinstance(event, QuestionAsked)]
    assert 0 < max(len(event.hits) for event in asks if event.backend == "hybrid") <= 2
    reader.close()
    unclear = run_cli("fork", recording, "--at", 9, "--set", 'key:personal_state/scratchpad/status="lost"')
    assert unclear.code == 2 and "key:personal_state:planner_agent/scratchpad/status" in unclear.err
    named = run_cli(
        "fork", recording, "--at", 9, "--set", 'key:personal_state:planner_agent/scratchpad/status="lost"'
    )
    assert "hybrid: memory differs from turn 9 on" in named.out


def test_an_interrupted_branch_continues_with_the_same_command_and_asks_nothing_twice(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    recording = tmp_path / "r.sqlite3"
    with OpenAIServer(lambda received: answer("It was a walrus.")) as server:
        model = ("--model", "openai/stub", "--api-base", server.url)
        asked = ("--dataset", "identity-02", "--backend", "full_context", *model, "--recording", recording)
        assert run_cli("--batch", *asked).code == 0
        fork = (
            "fork",
            recording,
            "--at",
            8,
            "--set",
            "message:9=I saved nothing at all.",
            *model,
        )
        fork += ("--no-cache", "--concurrency", 1)
        server.requests.clear()
        run = launcher.start(tmp_path / "log", *fork)
        run.wait_until(lambda: run.is_over or len(server.requests) >= 2)
        run.signal(SIGKILL)
        run.wait()
        ran = run_cli(*fork)
        assert ran.code == 0, ran.err
        prompts = [received.prompt for received in server.requests]
    assert len(runs(recording)) == 2
    # Five questions with a changed context; closed_book's prompts are those of the trunk. One call may be lost.
    assert len(set(prompts)) == 5 and len(prompts) <= 6


def test_an_unknown_question_or_measure_is_refused(run_cli: RunCli, trunk: Path) -> None:
    assert run_cli("bisect", trunk, "--question", "q99").code == 2
    assert run_cli("bisect", trunk, "--question", "q3", "--by", "magic").code == 2
    given = run_cli("bisect", trunk, "--question", "q3", "--by", "prompt")
    assert re.search(r"rag .* learnt at turn 6, known to the end", given.out), given.err


def test_a_message_dropped_after_the_turn_leaves_memory_as_it_was_at_the_turn(run_cli: RunCli, trunk: Path) -> None:
    dropped = run_cli("fork", trunk, "--at", 8, "--delete", "message:9")
    turns = [int(turn) for turn in re.findall(r": memory differs from turn (\d+) on", dropped.out)]
    assert len(turns) == 2 and min(turns) > 8, dropped.out


def test_what_ended_in_an_error_is_asked_again_by_the_same_command(run_cli: RunCli, tmp_path: Path) -> None:
    recording = tmp_path / "r.sqlite3"
    with OpenAIServer(lambda received: answer("It was a walrus.")) as server:
        model = ("--model", "openai/stub", "--api-base", server.url)
        asked = ("--dataset", "identity-02", "--backend", "full_context", *model, "--recording", recording)
        assert run_cli("--batch", *asked).code == 0
        fork = ("fork", recording, "--at", 8, "--delete", "message:9", *model, "--no-cache")
        server.behaviour = [failure(400, "too long")]
        broken = run_cli(*fork)
        assert broken.code == 3 and "run the same command again" in broken.err
        server.behaviour = [answer("It was a walrus.")]
        mended = run_cli(*fork)
        assert mended.code == 0, mended.err
        assert branch_in(mended) == re.search(r"^branch (\w+) of", broken.out, re.MULTILINE)[1]  # type: ignore[index]
        server.requests.clear()
        assert run_cli(*fork).code == 0 and not server.requests
    assert len(runs(recording)) == 2


def test_a_run_is_not_judged_by_turns_that_it_never_played(run_cli: RunCli, trunk: Path) -> None:
    with sqlite3.connect(trunk) as db:
        db.execute("delete from events where turn > 7")
        db.execute("update runs set status = 'interrupted'")
    late = run_cli("fork", trunk, "--at", 9, "--set", "top-k=2")
    assert late.code == 2 and "was played up to turn 7 only" in late.err
    life = run_cli("bisect", trunk, "--question", "q3")
    assert "played up to turn 7 of 14" in life.out and re.search(r"rag +······██ ", life.out), life.out


def test_a_run_without_settings_or_with_a_memory_that_is_gone_gets_a_sentence(run_cli: RunCli, trunk: Path) -> None:
    with sqlite3.connect(trunk) as db:
        db.execute("update runs set settings = replace(settings, '\"rag\"', '\"gone.module:Memory\"')")
        for column in ("backend", "body"):
            db.execute(f"update events set {column} = replace({column}, '\"rag\"', '\"gone.module:Memory\"')")
        db.execute("update events set backend = 'gone.module:Memory' where backend = 'rag'")
    for command in (
        ("bisect", trunk, "--question", "q3", "--by", "prompt"),
        ("fork", trunk, "--at", 8, "--set", "top-k=2"),
    ):
        refused = run_cli(*command)
        assert refused.code == 2 and "gone.module:Memory runs its code" in refused.err
    by_prompt = run_cli("bisect", trunk, "--question", "q3", "--by", "prompt", "--allow-from-recording")
    assert by_prompt.code == 0 and "there is no module 'gone'" in by_prompt.out
    assert re.search(r"hybrid +······█+  learnt at turn 6", by_prompt.out)
    gone = run_cli("fork", trunk, "--at", 8, "--set", "top-k=2", "--allow-from-recording")
    assert gone.code == 2 and "there is no module 'gone'" in gone.err
    with sqlite3.connect(trunk) as db:
        db.execute("update runs set settings = '{}'")
    for command in (("fork", trunk, "--at", 8, "--set", "top-k=2"), ("why", trunk)):
        refused = run_cli(*command)
        assert refused.code == 2 and "was imported" in refused.err
    refused = run_cli("bisect", trunk, "--question", "q3", "--by", "prompt")
    assert refused.code == 2 and "--by stored" in refused.err


def test_branches_of_a_shipped_recording_are_saved_in_a_copy(
    trunk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opened_for_branches(trunk, "run") == trunk
    monkeypatch.setattr("memreplay.recording.branches.demo_recordings", lambda: [trunk])
    monkeypatch.setattr("memreplay.recording.branches.recordings_folder", lambda: tmp_path / "own")
    own = opened_for_branches(trunk, "run")
    assert own.parent == tmp_path / "own" and own.read_bytes() == trunk.read_bytes()
    own.write_bytes(b"with a branch")
    assert opened_for_branches(trunk, "run").read_bytes() == b"with a branch"
