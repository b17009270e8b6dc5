"""Limits, parameters, windows, filters and thoughts of models: what a server does, and what becomes of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure
from tests.unit.conversations.samples import locomo_sample

EXPLAINS = "Let me go through the conversation step by step. " * 40
RIGHT = "Arnau Ferrusola"


def _limit(received: Received) -> int:
    return int(received.body.get("max_tokens") or received.body.get("max_completion_tokens") or 10**6)


def _said(received: Received, text: str) -> Answer:
    """The text, cut at the limit, a word a token."""
    words = text.split(" ")
    cut = len(words) > _limit(received)
    return answer(" ".join(words[: _limit(received)]), finish_reason="length" if cut else "stop")


def _never_ends(received: Received) -> Answer:
    return answer("word " * 50, finish_reason="length")


def _wants_other_parameters(received: Received) -> Answer:
    if "max_tokens" in received.body:
        said = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
        return failure(400, said, code="unsupported_parameter")
    if received.body.get("temperature", 1) != 1:
        return failure(400, "Unsupported value: 'temperature' does not support 0.", code="unsupported_value")
    return answer(RIGHT)


def _reads_less(received: Received) -> Answer:
    return answer("No idea, but blue.", prompt_tokens=min(len(received.prompt) // 4, 64))


def _run(
    run_cli: RunCli, folder: Path, behaviour: Callable[[Received], Answer], *more: object
) -> tuple[Any, Any, Any]:
    """The finished command, the rows of the memory, and the requests."""
    with OpenAIServer(behaviour) as server:
        ran, rows = _ask(run_cli, folder, server, *more)
        return ran, rows, server.requests


def _ask(run_cli: RunCli, folder: Path, server: OpenAIServer, *more: object) -> tuple[Any, Any]:
    ran = run_cli(
        "--batch", "--dataset", "identity-01", "--backend", "rag", "--model", "openai/stub",
        "--api-base", server.url, "--recording", folder / "r.sqlite3", "--output", folder / "r.json",
        "--concurrency", 1, *more,
    )  # fmt: skip
    rows = json.loads((folder / "r.json").read_text())["questions"]
    return ran, [row for row in rows if row["backend"] == "rag"]


def test_a_reply_cut_by_its_limit_is_asked_for_once_more_with_a_larger_one(run_cli: RunCli, tmp_path: Path) -> None:
    ran, rows, requests = _run(run_cli, tmp_path, lambda received: _said(received, EXPLAINS + RIGHT))
    assert ran.code == 0 and {row["outcome"] for row in rows} <= {"correct", "wrong"}
    assert ran.err.count("was cut by its limit of 200 tokens") == 1
    assert Counter(map(_limit, requests))[200] == 1, "what was learnt holds for the whole run"


def test_a_reply_that_is_cut_again_is_no_answer(run_cli: RunCli, tmp_path: Path) -> None:
    ran, rows, requests = _run(run_cli, tmp_path, _never_ends)
    assert ran.code == 3
    assert {(row["outcome"], row["failure"], row["reply"]) for row in rows} == {("error", "cut_reply", None)}
    assert all("limit of 4,296 tokens" in row["error"] and "--reply-tokens" in row["error"] for row in rows)
    assert len(requests) == 2 * len(rows) + 1


@pytest.mark.parametrize("given", ['{"temperature": 1, "max_tokens": null, "max_completion_tokens": 300}', None])
def test_parameters_that_a_server_refuses_are_learnt_or_given(
    run_cli: RunCli, tmp_path: Path, given: str | None
) -> None:
    more = () if given is None else ("--model-args", given)
    ran, rows, requests = _run(run_cli, tmp_path, _wants_other_parameters, *more)
    assert ran.code == 0 and {row["error"] for row in rows} == {None}
    assert len(requests) == 2 * len(rows) + (2 if given is None else 0)
    assert ran.err.count("refuses the parameter") == (2 if given is None else 0)


def test_parameters_of_a_role_and_of_a_model_reach_their_calls_alone(run_cli: RunCli, tmp_path: Path) -> None:
    given = {"top_p": 0.5, "judge": {"top_p": 0.1}, "openai/stub": {"seed": 7}, "writer": {"top_p": 0.9}}
    said = ("--model-args", json.dumps(given), "--judge", "openai/judge", "--reply-tokens", 77)
    _, _, requests = _run(run_cli, tmp_path, lambda received: answer("yes"), *said)
    sent = {
        (one.body["model"], one.body.get("top_p"), one.body.get("seed"), one.body["max_tokens"]) for one in requests
    }
    assert sent == {("stub", 0.5, 7, 77), ("judge", 0.1, None, 100)}


@pytest.mark.parametrize("given", ["nonsense", '["top_p"]', '{"api_base": "http://x"}', '{"judge": 1}'])
def test_parameters_that_cannot_be_set_are_refused(run_cli: RunCli, given: str) -> None:
    ran = run_cli("--batch", "--dataset", "identity-01", "--model-args", given)
    assert ran.code == 2 and "model_args" in ran.err


def test_a_server_that_reads_less_than_it_was_sent_is_named_and_the_reader_is_not_blamed(
    run_cli: RunCli, tmp_path: Path
) -> None:
    ran, rows, _ = _run(run_cli, tmp_path, _reads_less)
    wrong = [row for row in rows if row["outcome"] == "wrong"]
    assert wrong and {row["failure"] for row in wrong} == {"prompt_cut"}
    assert ran.err.count("it cuts prompts") == 1


def test_a_refusal_is_asked_again_by_a_retry_and_by_a_new_run(run_cli: RunCli, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()

    def filters_once(received: Received) -> Answer:
        seen[received.prompt] += 1
        return answer("", finish_reason="content_filter") if seen[received.prompt] == 1 else answer(RIGHT)

    with OpenAIServer(filters_once) as server:
        _, rows = _ask(run_cli, tmp_path, server)
        assert {row["outcome"] for row in rows} == {"refused"}
        ran, rows = _ask(run_cli, tmp_path, server, "--resume", "--retry-errors")
        assert "refused" not in {row["outcome"] for row in rows}, ran.err


@pytest.mark.parametrize(
    "reply",
    [
        f"[THINK]blue or red?[/THINK]{RIGHT}",
        f"◁think▷blue or red?◁/think▷{RIGHT}",
        f"<|channel|>analysis<|message|>blue?<|end|><|start|>assistant<|channel|>final<|message|>{RIGHT}<|return|>",
        f"<think>blue or red?</think>\n{RIGHT}",
    ],
)
def test_thoughts_are_no_part_of_an_answer(run_cli: RunCli, tmp_path: Path, reply: str) -> None:
    _, rows, _ = _run(run_cli, tmp_path, lambda received: answer(reply))
    assert [row["outcome"] for row in rows if row["expected"] == RIGHT] == ["correct"]


def test_a_connection_that_fails_in_a_proxy_names_it(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with OpenAIServer([answer(RIGHT)]) as server:
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--backend", "rag", "--model", "openai/stub",
            "--api-base", server.url, "--recording", tmp_path / "r.sqlite3", "--limit", 1,
        )  # fmt: skip
    assert (ran.code, server.requests) == (4, [])
    assert "the proxy of HTTP_PROXY; NO_PROXY=127.0.0.1" in ran.err


PROMPT = """Memory:
{{ context }}
Asked ({{ kind }}): {{ question }}
{% for option in options %}{{ loop.index0 }}: {{ option }}
{% endfor %}Answer now:"""


def test_a_prompt_of_the_user_is_asked_recorded_and_part_of_what_a_run_is(run_cli: RunCli, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.jinja"
    prompt.write_text(PROMPT)
    with OpenAIServer([answer(RIGHT)]) as server:
        ran, _ = _ask(run_cli, tmp_path, server, "--prompt", prompt)
        assert ran.code == 0, ran.err
        sent = {request.prompt.split("\n")[0] for request in server.requests}
        assert sent == {"Memory:"} and all(one.prompt.endswith("Answer now:") for one in server.requests)
        settings = json.loads((tmp_path / "r.json").read_text())["run"]["settings"]
        assert (settings["prompt"], settings["prompt_text"]) == (str(prompt), PROMPT)
        prompt.write_text(PROMPT.replace("now", "briefly"))
        again = run_cli(
            "--batch", "--dataset", "identity-01", "--backend", "rag", "--model", "openai/stub", "--api-base",
            server.url, "--recording", tmp_path / "r.sqlite3", "--prompt", prompt, "--resume",
        )  # fmt: skip
        assert again.code == 2, "a changed prompt makes another run"
        why = run_cli("why", tmp_path / "r.sqlite3", "--model", "openai/stub", "--api-base", server.url)
        assert why.code in (0, 3), why.err


@pytest.mark.parametrize("name", ["locomo", "longmemeval", "mc10"])
def test_the_prompts_of_benchmarks_are_at_hand(run_cli: RunCli, tmp_path: Path, name: str) -> None:
    _, _, requests = _run(run_cli, tmp_path, lambda received: answer(RIGHT), "--prompt", name)
    expected = {
        "locomo": "Based on the above context, write",
        "longmemeval": "several history chats",
        "mc10": "1. Examine the conversation history and question",
    }[name]
    assert requests and all(expected in one.prompt for one in requests)


def _letter(received: Received, is_right: bool) -> Answer:
    if "Select the correct answer: (a) " not in received.prompt:
        return answer("quinces")
    right_is_first = "(a) Not mentioned in the conversation (b) It bit him." in received.prompt
    return answer("(a)" if right_is_first == is_right else "b")


@pytest.mark.parametrize("says_the_right_one", [True, False])
def test_an_adversarial_question_of_locomo_is_asked_with_two_answers_and_replied_to_with_a_letter(
    run_cli: RunCli, tmp_path: Path, says_the_right_one: bool
) -> None:
    dataset = tmp_path / "locomo10_small.json"
    dataset.write_text(json.dumps([locomo_sample()]))
    with OpenAIServer(lambda received: _letter(received, says_the_right_one)) as server:
        run_cli(
            "--batch", "--dataset", dataset, "--backend", "rag", "--model", "openai/stub", "--prompt", "locomo",
            "--api-base", server.url, "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json",
        )  # fmt: skip
    results = json.loads((tmp_path / "r.json").read_text())
    [row] = [row for row in results["questions"] if row["backend"] == "rag" and row["type"] == "adversarial"]
    assert row["reply"] in ("(a)", "b")
    assert row["outcome"] == ("correct" if says_the_right_one else "wrong")
    by_category = results["backends"]["rag"]["recall"]["locomo_f1"]["by_category"]
    assert by_category["adversarial"]["f1"] == float(says_the_right_one)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ question }} {{ options }}", "0 times"),
        ("{{ context }} {{ options }}", "does not hold {{ question }}"),
        ("{{ context }} {{ question }}", "does not hold {{ options }}"),
        ("{{ context }} {{ question }} {{ options }} {{ secret }}", "'secret' is undefined"),
        ("{{ context }\n{{ question }}", "prompt.jinja:1: not a Jinja template"),
        ("{{ context.__class__.__mro__ }} {{ question }}", "unsafe"),
        (None, "no such file"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_refused_before_anything_is_asked(
    run_cli: RunCli, tmp_path: Path, text: str | None, said: str
) -> None:
    prompt = tmp_path / "prompt.jinja"
    if text is not None:
        prompt.write_text(text)
    ran = run_cli("--batch", "--dataset", "identity-01", "--model", "openai/stub", "--prompt", prompt)
    assert ran.code == 2 and said in ran.err, ran.err


def test_tokens_that_a_server_did_not_count_are_null_and_no_zero(run_cli: RunCli, tmp_path: Path) -> None:
    place = iter(range(10**6))

    def counts_every_second_prompt(_: Received) -> Answer:
        said = answer(RIGHT, prompt_tokens=100)
        if next(place) % 2:
            return said
        body = json.loads(said["body"])
        return said | {"body": json.dumps({**body, "usage": None})}

    ran, rows, _requests = _run(run_cli, tmp_path, counts_every_second_prompt)
    assert ran.code == 0
    known = [row["tokens"] for row in rows if row["tokens"] is not None]
    assert 0 < len(known) < len(rows) and {each["prompt"] for each in known} == {100}
    assert all(row["cost_usd"] is None for row in rows if row["tokens"] is None)
    headline = json.loads((tmp_path / "r.json").read_text())["backends"]["rag"]["headline"]
    assert (headline["prompt_tokens_per_question"], headline["tokens_per_right"]) == (100.0, None)
