"""``memreplay rejudge --rubric stages``: a model says where wrong answers were lost, and reports follow it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memreplay.scoring.attribution import Attributor
from memreplay.tui.sources import recorded
from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure

WRONG = "A walrus."
JUDGE = "openai/judge"


def material(received: Received) -> dict[str, Any]:
    found: dict[str, Any] = json.JSONDecoder().raw_decode(received.body["messages"][1]["content"])[0]
    return found


def by_expected(received: Received) -> Answer:
    """A judge to whom notes give an answer if they have its first word."""
    given = material(received)
    return answer("Yes." if given["expected answer"].split()[0] in given["notes"] else "No.")


@pytest.fixture
def recording(run_cli: RunCli, tmp_path: Path) -> Path:
    """A run in which every answer is wrong, of a memory that distils what it hears."""
    path = tmp_path / "r.sqlite3"
    with OpenAIServer(lambda received: answer(WRONG)) as server:
        asked = ("--model", "openai/stub", "--api-base", server.url, "--dataset", "identity-02")
        ran = run_cli(
            "--batch", *asked, "--backend", "hybrid", "--ablate", "verbatim", "--top-k", 2, "--recording", path
        )
    assert ran.code == 0, ran.err
    return path


def rejudge(recording: Path, server: OpenAIServer, *more: object) -> tuple[object, ...]:
    asked = ("--judge", JUDGE, "--rubric", "stages", "--api-base", server.url, "--no-cache")
    return ("rejudge", recording, *asked, *more)


def rows_of(run_cli: RunCli, recording: Path) -> list[dict[str, Any]]:
    written = recording.with_name("report.json")
    assert run_cli("report", recording, "--output", written).code == 0
    rows: list[dict[str, Any]] = json.loads(written.read_text())["questions"]
    return rows


def test_the_judge_decides_the_stage_in_every_report_and_is_paid_once(
    run_cli: RunCli, tmp_path: Path, recording: Path
) -> None:
    by_rules = {row["question_id"]: row["failure"] for row in rows_of(run_cli, recording)}
    page = tmp_path / "judged.html"
    with OpenAIServer(by_expected) as server:
        estimate = run_cli(*rejudge(recording, server, "--estimate"))
        assert estimate.code == 0 and not server.requests
        ran = run_cli(*rejudge(recording, server, "--output", page, "--output", tmp_path / "judged.json"))
        assert ran.code == 0, ran.err
        calls = [material(received) for received in server.requests]
        again = run_cli(*rejudge(recording, server))
        assert again.code == 0 and len(server.requests) == len(calls), "nothing is paid for twice"
    (row,) = [line.split() for line in estimate.out.splitlines() if "judge by stages" in line]
    assert len(calls) <= int(row[5]) and "at most" in estimate.out
    assert all(set(call) == {"question", "expected answer", "said in the conversation", "notes"} for call in calls)
    assert not any(WRONG in json.dumps(call) for call in calls)
    judged = {row["question_id"]: row for row in rows_of(run_cli, recording) if row["failure_judge"] == JUDGE}
    assert judged and all(row["failure_by_rules"] == by_rules[id_] for id_, row in judged.items())
    for row in judged.values():
        differs = row["failure"] != row["failure_by_rules"]
        assert (row["failure_doubt"] == "second_opinion") is differs
        assert row["failure_detail"].count(JUDGE) == 1
    alike = sum(row["failure"] == row["failure_by_rules"] for row in judged.values())
    sentence = f"stages: {JUDGE} decides where {len(judged)} wrong answers were lost, and the rules say the same of"
    assert f"{sentence} {alike} (" in " ".join(ran.out.split())
    assert sentence in " ".join(run_cli("report", recording).out.split())
    on_screen = recorded(recording, "identity-02").timeline
    attributor = Attributor(on_screen)
    shown = {one.asked.question_id: attributor.attribute(one) for one in on_screen.answers()}
    assert all(
        each is not None and each.label == judged[id_]["failure"] for id_, each in shown.items() if id_ in judged
    )
    counted = json.loads((tmp_path / "judged.json").read_text())["stages"]
    assert sum(each["answers"] for each in counted) == len(judged)
    assert f"Where wrong answers were lost, by {JUDGE}" in page.read_text()


def test_an_interrupted_judge_of_stages_continues(run_cli: RunCli, recording: Path) -> None:
    def breaks_off(received: Received) -> Answer:
        return by_expected(received) if len(first.requests) <= 3 else failure(401)

    with OpenAIServer(breaks_off) as first:
        ran = run_cli(*rejudge(recording, first, "--concurrency", 1))
        assert ran.code == 5 and "run the same command again" in ran.err
    with OpenAIServer(by_expected) as second:
        assert run_cli(*rejudge(recording, second)).code == 0
        seen = [json.dumps(material(each)) for each in second.requests]
    kept = {json.dumps(material(each)) for each in first.requests[:3]}
    assert seen and kept.isdisjoint(seen), "what was paid for is not asked again"


def test_a_judge_that_does_not_say_leaves_the_rules_their_verdict(run_cli: RunCli, recording: Path) -> None:
    with OpenAIServer(lambda received: answer("I would rather not.")) as server:
        ran = run_cli(*rejudge(recording, server))
    assert ran.code == 3 and f"{JUDGE}@stages gave no verdict" in ran.out
    assert all(row["failure_judge"] is None for row in rows_of(run_cli, recording))
    with OpenAIServer(lambda received: answer("Yes. So the reply is wrong.")) as server:
        assert run_cli(*rejudge(recording, server)).code == 0, "it speaks of the reply too"
    with closing(sqlite3.connect(recording)) as db:
        stages = {name for (name,) in db.execute("select distinct failure from answers where correct = 0")}
    assert stages == {"misread"}, "views follow the judge"
    refused = run_cli("report", recording, "--judged-by", f"{JUDGE}@stages")
    assert refused.code == 2 and "judged no answer" in refused.err, "it grades no replies"


def test_a_second_judge_decides_only_what_it_gives_a_verdict_on(run_cli: RunCli, recording: Path) -> None:
    with OpenAIServer(by_expected) as server:
        assert run_cli(*rejudge(recording, server)).code == 0
    first = rows_of(run_cli, recording)
    other = ("rejudge", recording, "--judge", "openai/other", "--rubric", "stages", "--no-cache")
    with OpenAIServer(lambda received: answer("I would rather not.")) as server:
        assert run_cli(*other, "--api-base", server.url).code == 3
    assert rows_of(run_cli, recording) == first
    with OpenAIServer(lambda received: answer("No.")) as server:
        assert run_cli(*other, "--api-base", server.url).code == 0
        both = run_cli(*rejudge(recording, server), "--judge", "openai/other")
        assert both.code == 2 and "name one --judge" in both.err
    assert {row["failure_judge"] for row in rows_of(run_cli, recording)} == {"openai/other"}


def test_a_judged_answer_is_shrunk_by_the_verdict_of_the_rules(run_cli: RunCli, recording: Path) -> None:
    with OpenAIServer(lambda received: answer("Yes.")) as server:
        assert run_cli(*rejudge(recording, server)).code == 0
    judged = next(row for row in rows_of(run_cli, recording) if row["failure_by_rules"] == "not_written")
    assert judged["failure"] == "misread"
    with OpenAIServer(lambda received: answer(WRONG)) as server:
        asked = ("--model", "openai/stub", "--api-base", server.url, "--calls", 500)
        of = ("--question", judged["question_id"], "--backend", "hybrid", "--output", recording.with_name("c.json"))
        ran = run_cli("shrink", recording, *of, *asked)
    assert ran.code == 0, ran.err


def test_where_there_is_nothing_to_judge_that_is_no_error(run_cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "right.sqlite3"
    batch = ("--batch", "--dataset", "identity-02", "--limit", 1, "--backend", "full_context")
    with OpenAIServer(lambda received: answer(WRONG)) as server:
        asked = ("--model", "openai/stub", "--api-base", server.url)
        assert run_cli(*batch, *asked, "--recording", path).code == 0
        ran = run_cli(*rejudge(path, server))
    assert ran.code == 0 and "0 judgements made now" in ran.err


def test_the_name_of_a_strangers_judge_is_only_text(run_cli: RunCli, tmp_path: Path, recording: Path) -> None:
    with OpenAIServer(by_expected) as server:
        assert run_cli(*rejudge(recording, server)).code == 0
    with closing(sqlite3.connect(recording)) as db, db:
        db.execute("update rejudgements set body = replace(body, ?, ?)", [f'"{JUDGE}"', '"a\\u001b[31m<b>"'])
    page = tmp_path / "judges.html"
    ran = run_cli("rejudge", recording)
    assert run_cli("rejudge", recording, "--output", page).code == ran.code == 0
    assert "\x1b" not in ran.out and r"a\u001b[31m<b>" in ran.out
    assert "\x1b" not in page.read_text() and "31m<b>" not in page.read_text()
