"""``--estimate`` and ``why --estimate``: no request of any kind, and the numbers of the run that then follows."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from memreplay.recording.reader import Recording
from memreplay.runtime import counting as counting_module
from memreplay.runtime.reasking import OneAnswer, can_be_asked_again, cost_of_call
from memreplay.runtime.recorded import settings_of_run
from memreplay.settings import read_settings
from memreplay.trust import allow
from tests.cli.conftest import Ran, RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, embeddings, rerankings

MODEL = ("--model", "openai/gpt-4o-mini")
WRITER = ("--extractor", "openai/gpt-4.1-mini")
JUDGE = ("--judge", "openai/gpt-4o")
RERANKER = ("--reranker", "litellm:cohere/rerank-v3.5")
EMBEDDER = ("--embedder", "litellm:openai/text-embedding-3-small")
MEM0 = pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed")

COLUMNS = ("asked", "calls", "reused", "prompt", "reply", "price")


def part_of(received: Received) -> str:
    """Which part of a run a request belongs to, by its path and its model."""
    if "rerank" in received.path:
        return "reranker"
    if "embeddings" in received.path:
        return "embedder"
    return {"gpt-4.1-mini": "writer", "gpt-4o": "judge"}.get(received.body["model"], "reader")


def replies(received: Received) -> Answer:
    """Extractions with facts, verdicts, replies that are all different, vectors and scores."""
    match part_of(received):
        case "reranker":
            return rerankings([float(sum(text.encode()) % 97) for text in received.body["documents"]])
        case "embedder":
            texts = received.body["input"]
            return embeddings(
                [[float(sum(text.encode()) % number) + 1 for number in (7, 11, 13)] for text in texts]
            )
        case "writer" if received.body["response_format"]["type"] == "json_object":
            return answer(
                json.dumps({"memory": [{"id": "0", "text": f"They talked for {len(received.prompt)} s"}]})
            )
        case "writer":
            return answer('{"facts": []}')
        case "judge":
            return answer("No." if len(received.prompt) % 2 else "Yes.")
        case _:
            return answer(f"Reply {sum(received.prompt.encode())}")


def rows(ran: Ran) -> dict[str, list[dict[str, str]]]:
    """The rows of the printed table by part: ``reader``, ``writer``, ``reranker``, ``embedder``, ``judge``."""
    assert ran.code == 0, ran.err
    found: dict[str, list[dict[str, str]]] = {}
    for line in ran.out.splitlines():
        part, _, rest = line.strip().partition("  ")
        cells = rest.split()
        if not cells or "/" not in cells[0]:
            continue
        _, _, role = part.partition("(")
        row = dict(zip(COLUMNS, cells[1:], strict=False)) | {"part": part, "numbers": " ".join(cells[7:])}
        found.setdefault(role.rstrip(")") or "reader", []).append(row)
    return found


def calls(ran: Ran) -> Counter[str]:
    """The calls in the printed table, by part."""
    return Counter({part: sum(int(row["calls"].replace(",", "")) for row in of) for part, of in rows(ran).items()})


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--backend", "hybrid", "--backend", "chroma"), id="reader"),
        pytest.param(("--backend", "hybrid", *WRITER, *JUDGE), id="reader, writer, judge"),
        pytest.param(("--backend", "hybrid", *WRITER, *JUDGE, "--no-cache", "--repeats", 2), id="no cache"),
        pytest.param(("--backend", "mem0", *WRITER, *JUDGE, "--no-cache"), id="mem0", marks=MEM0),
        pytest.param(("--backend", "rag", "--backend", "hybrid", *RERANKER, *JUDGE), id="reranker"),
        pytest.param(("--backend", "rag", *EMBEDDER, *RERANKER, *JUDGE), id="embedder"),
        pytest.param(("--backend", "mem0", *EMBEDDER, *WRITER), id="mem0 with an embedder", marks=MEM0),
    ],
)
def test_an_estimate_makes_no_request_and_counts_those_of_the_run(
    run_cli: RunCli, tmp_path: Path, options: tuple[object, ...]
) -> None:
    if "chroma" in options and find_spec("chromadb") is None:
        pytest.skip("chromadb is not installed")
    with OpenAIServer(replies) as server:
        command = ("--batch", "--dataset", "identity-01", *MODEL, *options, "--api-base", server.url)
        estimate = run_cli(*command, "--estimate")
        assert server.requests == []
        written = ("--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json")
        ran = run_cli(*command, *written)
        assert ran.code == 0, ran.err
        made = Counter(map(part_of, server.requests))
        server.requests.clear()
        after = run_cli(*command, "--estimate")
        assert server.requests == []
    estimated = calls(estimate)
    # A run first sees that a reranker and an embedder answer; and it embeds texts in other batches.
    probes = {"reranker": 1} if RERANKER[0] in options else {}
    assert {part: made[part] - probes.get(part, 0) for part in made if part != "embedder"} == {
        part: number for part, number in estimated.items() if part != "embedder"
    }
    assert ("embedder" in estimated) == ("embedder" in made)
    if "--no-cache" in options:
        assert calls(after) == estimated, "nothing that other runs paid for is reused"
    else:
        assert not calls(after).total() and "reused" in after.out
        assert all(row["reused"] == str(int(row["asked"])) for row in rows(after)["reader"])


def test_each_part_has_a_price_of_its_own_and_says_how_sure_it_is(run_cli: RunCli) -> None:
    options = ("--backend", "hybrid", "--backend", "full_context", *WRITER, *JUDGE, *RERANKER)
    ran = run_cli("--batch", "--dataset", "identity-01", *MODEL, *options, "--estimate")
    by_part = {row["part"]: row for of in rows(ran).values() for row in of}
    assert {part: row["numbers"] for part, row in by_part.items()} == {
        "hybrid": "tokens about",
        "full_context": "exact",
        "closed_book": "exact",
        "hybrid (writer)": "exact",
        "(reranker)": "about",
        "(judge)": "tokens about",
    }
    assert all(row["price"].startswith("$0.0") for row in by_part.values())
    assert "price" in ran.out and "In all about $" in ran.out


def test_an_unknown_price_is_not_nothing(run_cli: RunCli) -> None:
    unknown = ("--model", "openai/stub", "--extractor", "openai/stub", "--judge", "openai/stub")
    reranker = ("--reranker", "litellm:cohere/stub")
    ran = run_cli("--batch", "--dataset", "identity-01", "--backend", "hybrid", *unknown, *reranker, "--estimate")
    found = [row for of in rows(ran).values() for row in of]
    assert len(found) == 5 and {row["price"] for row in found} == {"–"}
    assert "where the price is known" in ran.out


def test_no_stand_in_is_kept_for_later_runs(run_cli: RunCli, tmp_path: Path) -> None:
    """Estimated or not, a run embeds and scores the same texts."""

    def texts_asked(name: str, *, estimated: bool) -> tuple[set[str], list[str]]:
        written = ("--recording", tmp_path / f"{name}.sqlite3", "--output", tmp_path / f"{name}.json")
        models = ("--embedder", f"litellm:openai/{name}", "--reranker", f"litellm:cohere/{name}")
        with OpenAIServer(replies) as server:
            command = ("--batch", "--dataset", "identity-01", "--backend", "rag", *models, "--api-base", server.url)
            assert not estimated or run_cli(*command, "--estimate").code == 0
            ran = run_cli(*command, *written)
        assert ran.code == 0, ran.err
        embedded = [each.body["input"] for each in server.requests if part_of(each) == "embedder"]
        scored = [each.body["query"] for each in server.requests if part_of(each) == "reranker"]
        return {text for texts in embedded for text in texts}, sorted(scored)

    assert texts_asked("one", estimated=True) == texts_asked("other", estimated=False)


def test_a_memory_that_cannot_go_on_without_replies_says_so_in_its_row(run_cli: RunCli) -> None:
    memory = "tests.stubs.plugins:Insists"
    options = ("--backend", memory, "--backend", "full_context", *MODEL, *WRITER)
    ran = run_cli("--batch", "--dataset", "identity-01", *options, "--estimate")
    found = {row["part"]: row for of in rows(ran).values() for row in of}
    assert found[memory]["numbers"] == found[f"{memory} (writer)"]["numbers"] == "cannot be estimated"
    assert found[memory]["price"] == found[f"{memory} (writer)"]["price"] == "–"
    assert found["full_context"]["numbers"] == "exact" and found["full_context"]["calls"] == "5"
    assert f"{memory} cannot be estimated: it failed at turn 2 (observe)" in ran.out


def test_a_memory_that_works_elsewhere_is_not_opened(run_cli: RunCli) -> None:
    memory = "tests.stubs.plugins:WorksElsewhere"
    ran = run_cli("--batch", "--dataset", "identity-01", "--backend", memory, *MODEL, "--estimate")
    found = {row["part"]: row for row in rows(ran)["reader"]}
    assert (found[memory]["calls"], found[memory]["price"]) == ("5", "–") and "server was called" not in ran.out
    tests = run_cli("--batch", "--dataset", "colours", "--examples", 1, "--backend", memory, "--estimate")
    assert tests.code == 2 and "a process of its own, which an estimate does not use" in tests.err


def test_no_process_is_started_and_its_questions_are_counted(run_cli: RunCli, tmp_path: Path) -> None:
    started = tmp_path / "started"
    memory = f"mcp:{sys.executable} -c \"open('{started}','w')\""
    ran = run_cli("--batch", "--dataset", "identity-01", "--backend", memory, *MODEL, *JUDGE, "--estimate")
    assert ran.code == 0, ran.err
    assert not started.exists()
    assert "tokens unknown" in ran.out and "are not called" in ran.out
    assert [row["calls"] for row in rows(ran)["judge"]] == ["10"], "five of the memory, five without one"


def test_asking_why_is_estimated_without_a_request(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memories are rebuilt for it, also where their writer's replies are no longer cached."""
    recording = tmp_path / "r.sqlite3"
    with OpenAIServer(replies) as server:
        options = ("--backend", "hybrid", *MODEL, *WRITER, *JUDGE, *RERANKER, "--top-k", 1)
        here = ("--batch", "--dataset", "identity-01", *options, "--api-base", server.url)
        assert run_cli(*here, "--recording", recording, "--output", tmp_path / "r.json").code == 0
        server.requests.clear()
        why = ("why", recording, *MODEL, *WRITER, *JUDGE, *RERANKER, "--api-base", server.url)
        known = run_cli(*why, "--estimate")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
        unknown = run_cli(*why, "--estimate")
        assert server.requests == []
        assert run_cli(*why).code == 0
        made = Counter(map(part_of, server.requests))
    assert not calls(known)["writer"] and calls(unknown)["writer"] == made["writer"] > 0
    assert calls(known)["reader"] >= made["reader"] > 0
    assert "about" in unknown.out


def test_a_slow_estimate_says_how_far_it_is_and_a_quick_one_says_nothing(
    run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("--batch", "--dataset", "identity-01", "--backend", "rag", *MODEL, "--estimate")
    assert run_cli(*command).err == ""
    monkeypatch.setattr(counting_module, "SECONDS_BETWEEN_LINES", 0.0)
    slow = run_cli(*command)
    assert "estimating: conversation 1 of 1, turn 2 of 18" in slow.err
    assert "estimating: conversation 1 of 1, question 10 of 10" in slow.err and "\r" not in slow.err
    tests = run_cli("--batch", "--dataset", "colours", "--examples", 1, "--estimate")
    assert "estimating: colours@" in tests.err and ", turn 2" in tests.err


def test_the_costs_on_the_what_if_screen_need_no_request(run_cli: RunCli, tmp_path: Path) -> None:
    recording = tmp_path / "r.sqlite3"
    with OpenAIServer(replies) as server:
        options = ("--backend", "hybrid", *MODEL, *WRITER, *JUDGE, *RERANKER, "--api-base", server.url)
        command = ("--batch", "--dataset", "identity-01", *options, "--recording", recording)
        assert run_cli(*command, "--output", tmp_path / "r.json").code == 0
        server.requests.clear()
        with closing(Recording.open(recording)) as opened:
            (run,) = opened.runs()
            timeline = opened.timeline(run.id, "identity-01")
            wrong = next(each for each in timeline.answers() if can_be_asked_again(each) is None)
            settings = settings_of_run(run.settings, read_settings(), recording, allow)
            changes = OneAnswer(settings, run.id, recording, timeline, wrong).recorded_changes()
            costs = [cost_of_call(change.request) for change in changes if change.request is not None]
        assert server.requests == []
    assert costs and all(cost.tokens and cost.usd for cost in costs)
