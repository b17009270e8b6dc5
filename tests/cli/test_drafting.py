"""``memreplay datasets draft``: a model proposes, checks and a human decide, and nothing is paid twice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from signal import SIGINT, SIGKILL, Signals
from threading import Event
from typing import Any

import pytest

from memreplay.conversations.registry import load
from tests.cli.conftest import RunCli
from tests.stubs.launcher import Launcher
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure, hang

MODEL = "openai/gpt-4o-mini"
SOUND = {
    "question": "What is the user's neighbour called?",
    "answer": "Bertram",
    "evidence": [{"turn": "[3]", "quote": "my neighbour BERTRAM, plot 14"}],
    "type": "single_fact",
}
UPDATE = {
    "question": "What is the budget?",
    "answer": "410",
    "evidence": [{"turn": "5", "quote": "make it 410"}],
    "type": "update",
    "outdated": ["340", "a value that nobody named"],
}
IN_OTHER_WORDS = {
    "question": "What must never be suggested?",
    "answer": "pesticides",
    "evidence": [{"turn": "3", "quote": "never suggest chemicals"}],
    "type": "instruction",
}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-stub-key")
    path = tmp_path / "chat.txt"
    path.write_text(
        "User: Hi, I'm Ottoline. My allotment is under water.\n"
        "Assistant: Sorry to hear that. Is it standing, or running off?\n"
        "User: Standing. The key is with my neighbour Bertram, plot 14. And never suggest chemicals.\n"
        "Assistant: Understood. I'd dig a trench.\n"
        "User: My budget is 340 euros. Actually, make it 410.\n"
        "Assistant: Then a pipe of 12 metres fits.\n"
    )
    return path


def drafting(*questions: Any) -> Answer:
    return answer(json.dumps({"questions": questions}), prompt_tokens=300, completion_tokens=50)


def saved_questions(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["recallQuestions"]
    return found


def test_accepted_drafts_become_questions_of_a_dataset_that_can_be_run(log: Path, run_cli: RunCli) -> None:
    with OpenAIServer([drafting(SOUND, UPDATE)]) as server:
        ran = run_cli(
            "datasets",
            "draft",
            log,
            "--model",
            MODEL,
            "--api-base",
            server.url,
            "--accept",
            "all",
            "--questions",
            3,
        )
    assert ran.code == 0, ran.err
    assert "1 call, 0 reused, 350 tokens" in ran.err
    assert "memreplay --batch --dataset chat.questions.json" in ran.err
    prompt = server.requests[0].prompt
    assert "[3] User: Standing." in prompt and "at most 3 questions" in prompt
    written = Path("chat.questions.json")
    neighbour, budget = saved_questions(written)
    assert (neighbour["expectedAnswer"], neighbour["type"]) == ("Bertram", "single_fact")
    assert (budget["type"], budget["supersedes"]) == ("update", ["340"])
    (conversation,) = load([str(written)])
    assert [(question.expected, question.evidence) for question in conversation.questions] == [
        ("Bertram", ("3",)),
        ("410", ("5",)),
    ]
    assert run_cli("validate", "--format-only", written).code == 0
    assert (
        run_cli("--batch", "--dataset", written, "--backend", "full_context", "--recording", "r.sqlite3").code == 0
    )


@pytest.mark.parametrize(
    "change, why",
    [
        ({"evidence": [{"turn": "3", "quote": "my neighbour Bertrand"}]}, "quotes what the turn does not say"),
        ({"evidence": [{"turn": "1", "quote": "my neighbour Bertram"}]}, "quotes what the turn does not say"),
        ({"evidence": [{"turn": "3", "quote": "  "}]}, "quotes what the turn does not say"),
        ({"evidence": [{"turn": "99", "quote": "Bertram"}]}, "names a turn that is not in this part"),
        ({"evidence": []}, "is not a question with its answer and evidence"),
        ({"answer": ""}, "is not a question with its answer and evidence"),
        ({"type": "riddle"}, "is not a question with its answer and evidence"),
        ({"question": "Is Bertram the neighbour?"}, "gives its answer away"),
        ({"question": "what is the BUDGET"}, "was asked before"),
    ],
)
def test_a_draft_that_fails_a_check_is_dropped_and_counted(
    change: dict[str, Any], why: str, log: Path, run_cli: RunCli
) -> None:
    with OpenAIServer([drafting(UPDATE, SOUND | change)]) as server:
        ran = run_cli("datasets", "draft", log, "--model", MODEL, "--api-base", server.url, "--accept", "all")
    assert ran.code == 0
    assert f"dropped 1 that failed a check (1 {why})" in ran.err
    assert [question["expectedAnswer"] for question in saved_questions(Path("chat.questions.json"))] == ["410"]


def test_a_draft_without_a_type_is_a_single_fact(log: Path, run_cli: RunCli) -> None:
    untyped = {name: value for name, value in SOUND.items() if name != "type"}
    with OpenAIServer([drafting(untyped)]) as server:
        ran = run_cli("datasets", "draft", log, "--model", MODEL, "--api-base", server.url, "--accept", "all")
    assert ran.code == 0, ran.err
    (question,) = saved_questions(Path("chat.questions.json"))
    assert question["type"] == "single_fact"


def test_drafts_wait_for_a_decision_and_nobody_is_asked_again(log: Path, run_cli: RunCli) -> None:
    with OpenAIServer([drafting(SOUND, IN_OTHER_WORDS)]) as server:
        drafted = run_cli("datasets", "draft", log, "--model", MODEL, "--api-base", server.url, "--no-cache")
        assert drafted.code == 0
        assert "2 drafts in chat.drafts.jsonl not decided (1 of them because" in drafted.err
        assert not Path("chat.questions.json").exists()
        accepted = run_cli("datasets", "draft", log, "--accept", "all")
        assert "1 accepted, 0 rejected; 1 question in chat.questions.json" in accepted.err
        assert "1 draft in chat.drafts.jsonl not decided" in accepted.err, "its answer is in other words"
        Path("mine.txt").write_text("1.2\n")
        by_id = run_cli("datasets", "draft", log, "--accept", "mine.txt")
        assert "2 accepted" in by_id.err
        assert len(server.requests) == 1
    neighbour, chemicals = saved_questions(Path("chat.questions.json"))
    assert neighbour["expectedEntities"] == ["Bertram"]
    assert chemicals["expectedEntities"] == [], "nothing else could contain them"


def test_an_interrupted_drafting_continues_with_the_parts_that_are_missing(log: Path, run_cli: RunCli) -> None:
    said = "".join(
        f"User: Item {n} costs {n * 37} crowns. {'And so on. ' * 80}\nAssistant: Noted.\n" for n in range(20)
    )
    log.write_text(said)
    refused = {"on": True}

    def behave(received: Received) -> Answer:
        turn, item = re.findall(r"\[(\d+)\] User: Item (\d+)", received.prompt)[0]
        if refused["on"] and turn != "1":
            return failure(401, "no", code="invalid_api_key")
        price = str(int(item) * 37)
        quote = f"Item {item} costs {price}"
        return drafting(
            {
                "question": f"Price of thing number {turn}?",
                "answer": f"{price} crowns",
                "evidence": [{"turn": turn, "quote": quote}],
                "type": "single_fact",
            }
        )

    command = ("datasets", "draft", log, "--model", MODEL, "--no-cache", "--concurrency", 1)
    with OpenAIServer(behave) as server:
        estimated = run_cli(*command, "--api-base", server.url, "--estimate")
        assert estimated.code == 0 and not server.requests
        first = run_cli(*command, "--api-base", server.url)
        assert first.code == 5, "a refused key stops the run"
        assert "run the same command again" in first.err
        kept = Path("chat.drafts.jsonl").read_text()
        assert kept.count('"kind":"part"') == 1
        asked = len(server.requests)
        refused["on"] = False
        second = run_cli(*command, "--api-base", server.url, "--accept", "all")
        assert second.code == 0, second.err
        again = [received for received in server.requests[asked:] if "[1] User" in received.prompt]
        assert again == [], "what was paid for is not asked again"
    assert Path("chat.drafts.jsonl").read_text().startswith(kept)
    parts = int(re.findall(r"(\d+) of \d+ parts drafted", second.err)[0])
    assert parts >= 2 and len(saved_questions(Path("chat.questions.json"))) == parts + 1


@pytest.mark.parametrize("signal", [SIGINT, SIGKILL])
def test_what_was_drafted_before_the_program_was_stopped_is_kept(
    signal: Signals, log: Path, launcher: Launcher, run_cli: RunCli, tmp_path: Path
) -> None:
    said = (f"User: Item {n} costs {n * 37} crowns. {'And so on. ' * 80}\nAssistant: Noted.\n" for n in range(20))
    log.write_text("".join(said))
    stopped = Event()

    def behave(received: Received) -> Answer:
        turn, item = re.findall(r"\[(\d+)\] User: Item (\d+)", received.prompt)[0]
        if turn != "1" and not stopped.is_set():
            return hang()
        quote = f"Item {item} costs {int(item) * 37}"
        evidence = [{"turn": turn, "quote": quote}]
        draft = {"question": f"Price in turn {turn}?", "answer": quote[-4:], "evidence": evidence}
        return drafting(draft | {"type": "single_fact"})

    command = (
        "datasets",
        "draft",
        log,
        "--model",
        MODEL,
        "--no-cache",
        "--concurrency",
        1,
        "--output",
        tmp_path / "q.json",
    )
    drafts = tmp_path / "q.drafts.jsonl"
    with OpenAIServer(behave) as server:
        run = launcher.start(tmp_path / "log", *command, "--api-base", server.url)
        run.wait_until(lambda: drafts.exists() and len(server.requests) > 1)
        run.signal(signal)
        if signal is SIGINT:
            run.wait_until(lambda: "finishing the calls" in run.said)
            run.signal(signal)
        assert run.wait() == (130 if signal is SIGINT else -SIGKILL)
        stopped.set()
        asked = len(server.requests)
        again = run_cli(*command, "--api-base", server.url, "--accept", "all")
        assert again.code == 0, again.err
        assert not any("[1] User" in received.prompt for received in server.requests[asked:])
    assert len(saved_questions(tmp_path / "q.json")) == drafts.read_text().count('"kind":"part"') > 2


def test_a_reply_that_cannot_be_read_is_an_error_and_is_asked_for_again(log: Path, run_cli: RunCli) -> None:
    command = ("datasets", "draft", log, "--model", MODEL)
    with OpenAIServer([answer("I'd rather not."), drafting(SOUND)]) as server:
        first = run_cli(*command, "--api-base", server.url)
        assert first.code == 3
        assert "part 1: the reply is not the JSON that was asked for" in first.err
        second = run_cli(*command, "--api-base", server.url, "--accept", "all")
        assert second.code == 0, second.err
    assert len(saved_questions(Path("chat.questions.json"))) == 1


def test_of_a_message_that_is_too_long_for_a_call_only_the_beginning_is_read_and_that_is_said(
    log: Path, run_cli: RunCli
) -> None:
    log.write_text(f"User: My neighbour is Bertram. {'So it goes. ' * 900}The end.\nAssistant: Noted.\n")
    sound = SOUND | {"evidence": [{"turn": "1", "quote": "My neighbour is Bertram"}]}
    with OpenAIServer([drafting(sound)]) as server:
        ran = run_cli("datasets", "draft", log, "--model", MODEL, "--api-base", server.url)
    assert "1 message is longer than 6,000 characters: only its beginning is read" in ran.err
    assert "The end." not in server.requests[0].prompt and "1 draft in all" in ran.err


def test_of_a_reply_that_was_cut_off_the_whole_questions_count(log: Path, run_cli: RunCli) -> None:
    cut = "<think>{}</think>Here you are:\n" + json.dumps({"questions": [SOUND, UPDATE]})[:-40]
    with OpenAIServer([answer(cut)]) as server:
        ran = run_cli("datasets", "draft", log, "--model", MODEL, "--api-base", server.url, "--accept", "all")
    assert ran.code == 0, ran.err
    assert [question["expectedAnswer"] for question in saved_questions(Path("chat.questions.json"))] == ["Bertram"]


def test_what_cannot_be_drafted_is_refused_before_a_call(log: Path, run_cli: RunCli) -> None:
    def refusal(*options: object) -> str:
        ran = run_cli("datasets", "draft", *options)
        assert ran.code == 2, ran.err
        return ran.err

    assert "needs a language model: name it with --model" in refusal(log)
    assert "one --model" in refusal(log, "--model", MODEL, "--model", "openai/gpt-4o")
    Path("chat.questions.json").write_text("{}")
    assert "exists, and not from this command" in refusal(log, "--model", MODEL)
    Path("chat.questions.json").unlink()
    assert "would overwrite the input" in refusal(log, "--model", MODEL, "--output", log)
    assert "--output" in refusal("-", "--model", MODEL)
    with OpenAIServer([drafting(SOUND)]) as server:
        run_cli("datasets", "draft", log, "--model", MODEL, "--api-base", server.url)
    Path("ids.txt").write_text("1.1\n7.7\n")
    assert "ids.txt: line 2: 7.7 is no draft" in refusal(log, "--accept", "ids.txt")
    kept = Path("chat.drafts.jsonl").read_text()
    Path("chat.drafts.jsonl").write_text(kept + "nonsense\n")
    assert "chat.drafts.jsonl: line 3: is not a line of drafts" in refusal(log)
    Path("chat.drafts.jsonl").write_text(kept)
    log.write_text(log.read_text() + "User: One more thing.\nAssistant: Yes?\n")
    assert "another version of this one" in refusal(log, "--model", MODEL)


def test_a_torn_line_of_the_drafts_is_dropped_and_the_rest_is_kept(log: Path, run_cli: RunCli) -> None:
    with OpenAIServer([drafting(SOUND)]) as server:
        run_cli("datasets", "draft", log, "--model", MODEL, "--api-base", server.url)
    drafts = Path("chat.drafts.jsonl")
    drafts.write_text(drafts.read_text() + '{"kind":"decided","id":"1.1","deci')
    assert run_cli("datasets", "draft", log, "--accept", "all").code == 0
    assert len(saved_questions(Path("chat.questions.json"))) == 1
    assert run_cli("datasets", "draft", log).code == 0, "the file is sound again"
