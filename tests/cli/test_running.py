"""How a batch asks: repeats, samples, shuffled options, offline, closed_book baseline, estimates, overlap."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure

COLOURS = ("red", "blue", "green", "black", "white", "pink", "brown", "grey", "teal", "gold")


def mc10(path: Path, conversations: int = 1, questions: int = 2) -> Path:
    """A LoCoMo-MC10 file: in each conversation a red kayak is spoken of; option 0 is right everywhere."""
    rows = [
        {
            "question_id": f"conv-{number}_q{place}",
            "question": f"What colour is kayak {place}?",
            "question_type": ("open_domain", "multi_hop")[place % 2],
            "answer": COLOURS[0],
            "correct_choice_index": 0,
            "num_choices": 10,
            "choices": list(COLOURS),
            "num_sessions": 1,
            "haystack_session_ids": ["session_1"],
            "haystack_session_summaries": [""],
            "haystack_session_datetimes": ["2023-05-08T13:56:00"],
            "haystack_sessions": [[{"role": "user", "content": f"[ANN{number}]: My kayak is red."}]],
        }
        for number in range(conversations)
        for place in range(questions)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def bodies(recording: Path, kind: str) -> list[dict[str, Any]]:
    with sqlite3.connect(recording) as db:
        query = (
            "select c.id, e.backend, e.body from events e join conversations c on c.key = e.conversation"
            " where e.kind = ? order by e.key"
        )
        found = db.execute(query, [kind]).fetchall()
    return [{**json.loads(body), "conversation": id_, "backend": backend} for id_, backend, body in found]


def run_of(dataset: object, folder: Path, *more: object) -> tuple[object, ...]:
    return (
        "--batch",
        "--dataset",
        dataset,
        "--recording",
        folder / "r.sqlite3",
        "--output",
        folder / "r.json",
        *more,
    )


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "r.json").read_text())["questions"]
    return found


def test_the_closed_book_baseline_runs_beside_a_memory_without_a_row_in_the_results(
    run_cli: RunCli, tmp_path: Path
) -> None:
    ran = run_cli(*run_of("identity-01", tmp_path, "--backend", "full_context"))
    assert ran.code == 0 and "also running the closed_book baseline" in ran.err
    asked = Counter(body["backend"] for body in bodies(tmp_path / "r.sqlite3", "question_asked"))
    assert asked == {"full_context": 5, "closed_book": 5}
    assert {row["backend"] for row in rows(tmp_path)} == {"full_context"}
    settings = json.loads((tmp_path / "r.json").read_text())["run"]["settings"]
    assert settings["closed_book_asked_along"] is True
    opened = bodies(tmp_path / "r.sqlite3", "conversation_opened")
    assert [(body["conversation"], body["backend"]) for body in opened] == [("identity-01", "full_context")]


@pytest.mark.parametrize("chosen", [("closed_book",), ("oracle",), ("full_context", "closed_book")])
def test_the_closed_book_baseline_does_not_run_if_it_is_chosen_or_no_memory_is(
    run_cli: RunCli, tmp_path: Path, chosen: tuple[str, ...]
) -> None:
    backends = [part for name in chosen for part in ("--backend", name)]
    ran = run_cli(*run_of("identity-01", tmp_path, *backends, "--limit", 1))
    assert "closed_book baseline" not in ran.err
    assert len(bodies(tmp_path / "r.sqlite3", "question_asked")) == len(chosen)


def test_repeats_are_asked_apart_and_closed_book_along_once(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer([answer("0")]) as server:
        model = ("--model", "openai/stub", "--api-base", server.url)
        ran = run_cli(
            *run_of(mc10(tmp_path / "d.jsonl"), tmp_path, *model, "--backend", "full_context", "--repeats", 3)
        )
        assert ran.code == 0, ran.err
        assert len(server.requests) == 2 * 3 + 2
    assert [row["repeat"] for row in rows(tmp_path)] == [0, 1, 2, 0, 1, 2]


def test_shuffled_options_are_shown_alike_to_every_memory_and_results_keep_the_datasets_numbers(
    run_cli: RunCli, tmp_path: Path
) -> None:
    def reads_red(received: Received) -> Answer:
        options = received.prompt.partition("Available Answer Options:\n")[2].splitlines()
        return answer(str(next(place for place, line in enumerate(options) if line.endswith(" red"))))

    with OpenAIServer(reads_red) as server:
        model = ("--model", "openai/stub", "--api-base", server.url)
        backends = ("--backend", "full_context", "--backend", "closed_book")
        more = (*model, *backends, "--shuffle-choices", "--seed", 4)
        assert run_cli(*run_of(mc10(tmp_path / "d.jsonl", questions=4), tmp_path, *more)).code == 0
    orders: dict[str, set[tuple[int, ...]]] = {}
    for body in bodies(tmp_path / "r.sqlite3", "question_asked"):
        orders.setdefault(body["question_id"], set()).add(tuple(body["choice_order"]))
    assert all(len(shown) == 1 for shown in orders.values())
    assert len({shown for every in orders.values() for shown in every}) == 4
    shown_first = {received.prompt.partition("Options:\n0. ")[2].split("\n")[0] for received in server.requests}
    assert len(shown_first) > 1
    assert {(row["predicted_index"], row["correct_index"], row["outcome"]) for row in rows(tmp_path)} == {
        (0, 0, "correct")
    }


def test_offline_gives_back_what_is_on_record_and_an_error_for_the_rest(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer([answer("0")]) as server:
        model = ("--model", "openai/stub", "--api-base", server.url, "--backend", "closed_book")
        dataset = mc10(tmp_path / "d.jsonl", questions=3)
        assert run_cli(*run_of(dataset, tmp_path, *model, "--limit", 2)).code == 0
        paid = len(server.requests)
        (tmp_path / "again").mkdir()
        ran = run_cli(*run_of(dataset, tmp_path / "again", *model, "--offline"))
        assert (ran.code, len(server.requests)) == (3, paid)
    assert [row["outcome"] for row in rows(tmp_path / "again")] == ["correct", "correct", "error"]
    assert "not recorded" in rows(tmp_path / "again")[2]["error"]
    assert "1 asked, 2 replies reused from other runs" in ran.err


def test_offline_needs_no_key(run_cli: RunCli, tmp_path: Path) -> None:
    ran = run_cli(*run_of("identity-01", tmp_path, "--model", "openai/gpt-4o-mini", "--offline", "--limit", 1))
    assert ran.code == 3 and "not recorded" in rows(tmp_path)[0]["error"]


def test_a_sample_has_something_of_every_type(run_cli: RunCli, tmp_path: Path) -> None:
    dataset = mc10(tmp_path / "d.jsonl", conversations=3, questions=10)
    assert run_cli(*run_of(dataset, tmp_path, "--backend", "closed_book", "--sample", 6)).code == 0
    assert Counter(row["type"] for row in rows(tmp_path)) == {"open_domain": 3, "multi_hop": 3}


def test_an_estimate_asks_nothing_records_nothing_and_counts_what_the_run_then_needs(
    run_cli: RunCli, tmp_path: Path
) -> None:
    with OpenAIServer([answer("0")]) as server:
        model = ("--model", "openai/gpt-4o-mini", "--api-base", server.url, "--backend", "full_context")
        arguments = run_of(mc10(tmp_path / "d.jsonl", questions=3), tmp_path, *model)
        first = run_cli(*arguments, "--estimate")
        assert (first.code, len(server.requests)) == (0, 0), first.err
        assert not (tmp_path / "r.sqlite3").exists() and not (tmp_path / "r.json").exists()
        lines = {line.split()[0]: line.split() for line in first.out.splitlines() if "gpt-4o-mini" in line}
        assert [lines[name][2:4] for name in ("full_context", "closed_book")] == [["3", "3"], ["3", "3"]]
        assert "$0.00" in first.out
        assert run_cli(*arguments).code == 0
        assert len(server.requests) == 6
        after = run_cli(*arguments, "--estimate")
    lines = {line.split()[0]: line.split() for line in after.out.splitlines() if "gpt-4o-mini" in line}
    assert [lines[name][2:4] for name in ("full_context", "closed_book")] == [["3", "0"], ["3", "0"]]


def test_asking_overlaps_across_conversations(run_cli: RunCli, tmp_path: Path) -> None:
    """No reply comes before six conversations of one question each are being asked about."""
    together, asked = Event(), set()

    def waits_for_the_others(received: Received) -> Answer:
        asked.add(received.prompt.lower().partition("ann")[2][:1])
        if len(asked - {""}) >= 6:
            together.set()
        return answer("0") if together.wait(60) else failure(400, "the others never came")

    with OpenAIServer(waits_for_the_others) as server:
        model = ("--model", "openai/stub", "--api-base", server.url, "--backend", "full_context")
        dataset = mc10(tmp_path / "d.jsonl", conversations=8, questions=1)
        ran = run_cli(*run_of(dataset, tmp_path, *model))
        assert ran.code == 0, ran.err


def test_progress_off_a_terminal_is_plain_lines_by_backend(run_cli: RunCli, tmp_path: Path) -> None:
    ran = run_cli(*run_of("identity-01", tmp_path, "--backend", "oracle", "--backend", "closed_book"))
    last = next(line for line in reversed(ran.err.splitlines()) if line.startswith("10/10"))
    assert "oracle 5/5" in last and "closed_book 5/5, 0 right (0.0 %)" in last
    assert "\x1b" not in ran.err and "paid $0\n" in ran.err
