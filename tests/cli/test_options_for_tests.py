"""Options that mean nothing where tests converse: said in a line, or refused."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import OpenAIServer, answer
from tests.stubs.tests_to_run import python_dataset, small_definitions

SHORT = ("--examples", 1, "--memory-span", 300)
"""One test, with little said between what it tells and what it asks."""


def test_options_without_effect_are_reported_in_one_line(run_cli: RunCli, tmp_path: Path) -> None:
    given = ("--shuffle-choices", "--perceive", "--estimate", *SHORT)
    ran = run_cli("--batch", "--dataset", "colours", *given, "--recording", tmp_path / "r.sqlite3")
    assert ran.code == 0, ran.err
    assert "warning: --shuffle-choices: no effect since no question has options" in ran.err
    assert "warning: --perceive: no effect since tests read memory at every turn" in ran.err


def test_a_setting_without_effect_is_reported_with_the_reason(run_cli: RunCli, tmp_path: Path) -> None:
    asked = ("--batch", "--dataset", "identity-02", "--estimate", "--recording", tmp_path / "r.sqlite3")
    idle = ("--rpm", 5, "--api-base", "http://localhost:9", "--judge-rubric", "locomo", "--redis-ttl", 60)
    idle += ("--reply-tokens", 9)
    ran = run_cli(*asked, "--backend", "full_context", "--top-k", 3, "--user", "B", *idle)
    assert ran.code == 0, ran.err
    for said in (
        "--api-base, --rpm: no effect since no model of a server is called",
        "--judge-rubric: no effect since no judge is named",
        "--reply-tokens: no effect on memreplay/extractive, which is no language model",
        "--redis-ttl: no effect since the embedded Redis ends with the run",
        "--user: no effect since no chat log is replayed",
        "--top-k: no effect since these memories rank nothing",
    ):
        assert f"warning: {said}" in ran.err
    ran = run_cli(*asked, "--backend", "rag", "--backend", "rag", "--top-k", 3)
    assert "no effect" not in ran.err and "warning: --backend rag: given twice, runs once" in ran.err


def test_an_answer_key_has_no_effect_on_tests_and_is_refused_if_it_is_missing(
    run_cli: RunCli, tmp_path: Path
) -> None:
    key = tmp_path / "key.json"
    given = ("--batch", "--dataset", "colours", *SHORT, "--estimate", "--recording", tmp_path / "r.sqlite3")
    refused = run_cli(*given, "--answer-key", key)
    assert refused.code == 2 and "key.json" in refused.err and "Traceback" not in refused.err
    key.write_text("{}")
    ran = run_cli(*given, "--answer-key", key)
    assert ran.code == 0, ran.err
    assert "warning: --answer-key: no effect since tests have no published answers" in ran.err


def test_a_control_that_needs_evidence_is_refused(run_cli: RunCli, tmp_path: Path) -> None:
    ran = run_cli("--batch", "--dataset", "colours", "--backend", "oracle", "--recording", tmp_path / "r.sqlite3")
    assert ran.code == 2 and "evidence of questions" in ran.err
    assert not (tmp_path / "r.sqlite3").exists()


def test_an_estimate_of_tests_counts_what_the_run_needs_and_calls_no_model(run_cli: RunCli, tmp_path: Path) -> None:
    dataset = small_definitions(tmp_path / "tests", ("Colours",))
    with OpenAIServer([answer("Teal it is.")]) as server:
        here = (
            *("--batch", "--dataset", dataset, "--backend", "closed_book", "--model", "openai/gpt-4o-mini"),
            *("--api-base", server.url, "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json"),
        )
        first = run_cli(*here, "--estimate")
        assert (first.code, server.requests) == (0, []) and not (tmp_path / "r.sqlite3").exists()
        assert run_cli(*here).code == 0
        needed = len(server.requests)
        after = run_cli(*here, "--estimate")
    estimated, left = ([line for line in ran.out.splitlines() if "gpt-4o-mini" in line] for ran in (first, after))
    assert estimated[0].split()[2:4] == ["2", str(needed)] and left[0].split()[2:4] == ["2", "0"]
    assert "callbacks" not in first.out


def test_an_estimate_says_which_tests_it_cannot_tell_of_and_counts_judging_apart(
    run_cli: RunCli, tmp_path: Path
) -> None:
    watched = ("--dataset", "prospective_memory", "--dataset", f"{python_dataset(tmp_path)}:Keys", "--examples", 1)
    ran = run_cli(
        *("--batch", *watched, "--memory-span", 300, "--backend", "closed_book", "--judge", "openai/gpt-4o"),
        *("--estimate", "--recording", tmp_path / "r.sqlite3"),
    )
    assert ran.code == 0, ran.err
    assert "1 of 2 tests depend on the agent's replies" in ran.out
    (judging,) = [line for line in ran.out.splitlines() if "(judge, at least)" in line]
    assert int(judging.split()[5]) >= 1
