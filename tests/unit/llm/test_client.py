"""LiteLLM calls against a loopback server that speaks OpenAI's API."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import ExitStack
from threading import Event

import pytest

from memreplay.conversations.models import Question
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.grading.choice import parse_choice
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.client import LiteLLMModel, NeverUnavailableModel
from memreplay.llm.litellm_setup import loaded_litellm
from memreplay.llm.model import Reply
from memreplay.llm.prompts import build_request
from memreplay.llm.rate_limiter import Clock, ModelUnavailableError, RateLimiters, RateLimits, StoppedError
from tests.conftest import REPOSITORY
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, broken_body, failure, hang

CHOICES = ("Sweden", "Norway", "Denmark")
QUESTION = Question(
    id="q", kind="choice", type="t", text="Where from?", expected="Norway", choices=CHOICES, correct_index=1
)
KEY = "sk-test-0123456789abcdefghijklmnop"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


class Sleeper(Clock):
    """A clock that records how long each sleep is, and waits for none."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def now(self) -> float:
        return sum(self.waits)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


async def ask(server: OpenAIServer, model: str = "openai/stub", sleeper: Sleeper | None = None) -> Reply:
    request = build_request(QUESTION, "Ada: I come from Norway.", model, server.url)
    return await LiteLLMModel(rate_limiters=RateLimiters(clock=sleeper or Sleeper())).answer(request)


async def test_prompt_temperature_and_cap_are_sent_and_reply_usage_and_time_come_back() -> None:
    with OpenAIServer([answer("1", prompt_tokens=120, completion_tokens=2, cached_tokens=64)]) as server:
        reply = await ask(server)
    (received,) = server.requests
    assert received.prompt.startswith("Conversation History:\nAda: I come from Norway.\n\nQuestion: Where from?\n")
    assert received.body["temperature"] == 0
    assert received.body["max_tokens"] == 10
    assert received.body["model"] == "stub"
    assert reply.error is None and reply.text is not None
    assert parse_choice(reply.text, CHOICES).index == 1
    assert reply.usage.model_dump() == {"prompt": 120, "completion": 2, "cached": 64}
    assert reply.ms > 0


async def test_the_cost_is_null_for_a_model_without_a_known_price() -> None:
    with OpenAIServer([answer("1", prompt_tokens=1000, completion_tokens=10)]) as server:
        known = await ask(server, "openai/gpt-4o-mini")
        unknown = await ask(server, "openai/nobody-has-priced-this")
    assert known.cost_usd is not None and 0 < known.cost_usd < 0.01
    assert unknown.cost_usd is None


async def test_retry_after_is_honoured() -> None:
    sleeper = Sleeper()
    with OpenAIServer([failure(429, "slow down", retry_after="7"), answer("1")]) as server:
        reply = await ask(server, sleeper=sleeper)
    assert reply.text == "1"
    assert len(server.requests) == 2
    assert 7 <= sleeper.waits[0] < 8


async def test_a_retry_after_beyond_the_limit_is_an_error_at_once() -> None:
    sleeper = Sleeper()
    with OpenAIServer([failure(429, "come back tomorrow", retry_after="86400")]) as server:
        reply = await ask(server, sleeper=sleeper)
    assert reply.text is None and reply.error is not None
    assert "86400 s" in reply.error
    assert len(server.requests) == 1 and sleeper.waits == []


async def test_server_errors_are_reported_after_four_attempts_with_growing_waits() -> None:
    sleeper = Sleeper()
    with OpenAIServer([failure(500, "boom")]) as server:
        reply = await ask(server, sleeper=sleeper)
    assert len(server.requests) == 4
    assert (reply.text, reply.error) == (None, "InternalServerError: boom")
    assert sleeper.waits[0] < sleeper.waits[1] < sleeper.waits[2] < 5


async def test_a_bad_request_is_not_retried() -> None:
    with OpenAIServer([failure(400, "no such thing")]) as server:
        reply = await ask(server)
    assert len(server.requests) == 1
    assert reply.error is not None and "no such thing" in reply.error


async def test_a_hanging_server_times_out() -> None:
    with OpenAIServer([hang()]) as server:
        request = build_request(QUESTION, "", "openai/stub", server.url)
        reply = await LiteLLMModel(timeout=0.3, attempts=1).answer(request)
    assert reply.error == "the model did not answer within 0.3 s"


async def test_a_reply_that_arrives_with_a_cancellation_is_kept_and_the_task_still_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    litellm = await asyncio.to_thread(loaded_litellm)
    replied: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    called = asyncio.Event()

    async def completion(**_: object) -> object:
        called.set()
        return await replied

    monkeypatch.setattr(litellm, "acompletion", completion)
    model = LiteLLMModel(rate_limiters=RateLimiters(clock=Sleeper()))
    kept: list[Reply] = []

    async def ask_on() -> None:
        for _ in range(3):
            kept.append(await model.answer(build_request(QUESTION, "", "openai/stub", None)))
            await asyncio.sleep(0)

    asking = asyncio.create_task(ask_on())
    await called.wait()
    replied.set_result(litellm.ModelResponse(choices=[{"message": {"content": "1"}}]))
    # The call has finished, but its caller has not resumed yet.
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert [reply.text for reply in kept] == ["1"]


async def test_a_broken_body_is_an_error_and_not_an_exception() -> None:
    with OpenAIServer([broken_body()]) as server:
        reply = await ask(server)
    assert reply.text is None
    assert reply.error


async def test_a_content_filter_is_a_refusal() -> None:
    with OpenAIServer([answer("", finish_reason="content_filter")]) as server:
        filtered = await ask(server)
    with OpenAIServer([answer(None, refusal="I cannot help with that.")]) as server:
        declined = await ask(server)
    assert filtered.refused and filtered.error is None
    assert declined.refused and declined.text == "I cannot help with that."


async def test_a_key_in_a_servers_error_message_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    complaint = failure(401, f"Incorrect API key provided: {KEY}")
    with OpenAIServer([complaint]) as server, pytest.raises(ModelUnavailableError) as told:
        await ask(server)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "Incorrect API key" in str(told.value) and "OPENAI_API_KEY" in str(told.value)
    assert KEY not in str(told.value) and KEY[:12] not in str(told.value)


async def test_a_key_in_a_servers_answer_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "Butterkuchen+Mohn")
    with OpenAIServer(lambda received: answer(f"you sent {received.headers['authorization']}")) as server:
        reply = await ask(server)
    assert reply.text == "you sent Bearer [key]"


async def test_the_embedded_reader_answers_through_the_same_client_for_free() -> None:
    request = build_request(QUESTION, "Ada: I come from Norway.", EXTRACTIVE_MODEL, None)
    reply = await LiteLLMModel(timeout=1e-6).answer(request)
    assert reply.text == "1", "it has no server that could be waited for"
    assert reply.cost_usd == 0.0
    assert reply.usage.prompt > 50 and reply.usage.completion > 0


def test_a_hosted_model_without_its_key_is_refused_with_the_variables_name() -> None:
    with pytest.raises(MissingServerOrKeyError, match="OPENAI_API_KEY"):
        ensure_reachable("openai/gpt-4o-mini", None)
    with pytest.raises(MissingServerOrKeyError, match="OPENAI_API_KEY"):
        ensure_reachable("openai/gpt-4o-mini", "https://api.example.com/v1")


def test_a_local_server_or_the_embedded_reader_needs_no_key() -> None:
    ensure_reachable("openai/anything", "http://127.0.0.1:8080/v1")
    ensure_reachable("openai/anything", "http://localhost:8080/v1")
    ensure_reachable(EXTRACTIVE_MODEL, None)


def test_a_key_in_the_environment_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ensure_reachable("openai/gpt-4o-mini", None)


@pytest.mark.parametrize("model", ["nosuchprovider/thing", "just-a-word", "memreplay/other", ""])
def test_an_unknown_model_is_a_usage_error_of_one_line(model: str) -> None:
    with pytest.raises(UsageError) as caught:
        ensure_reachable(model, None)
    assert "unknown model" in str(caught.value) and "\n" not in str(caught.value)


def test_a_whole_session_of_asking_is_silent_and_litellm_is_imported_only_then() -> None:
    code = """
import asyncio, sys
from memreplay.llm.client import LiteLLMModel
from memreplay.llm.litellm_setup import warm_up
from memreplay.llm.rate_limiter import ModelUnavailableError, RateLimits, RateLimiters
from memreplay.llm.prompts import build_request
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.tokens import token_counter, context_budget
from memreplay.conversations.models import Question
token_counter("gpt-4o")("hello"); context_budget("gpt-4o", None)
assert "litellm" not in sys.modules
question = Question(id="q", kind="recall", type="t", text="Where does Ada come from?", expected="Norway")
good = build_request(question, "Ada: I come from Norway.", "memreplay/extractive", None)
bad = build_request(question, "", "openai/x", "http://127.0.0.1:9/v1")
model = LiteLLMModel(attempts=1)
assert asyncio.run(model.answer(good)).text == "I come from Norway."
assert "litellm" not in sys.modules
warm_up().join()
assert "litellm" in sys.modules
try: ensure_reachable("nosuch/model", None)
except Exception: pass
try: asyncio.run(model.answer(bad))
except ModelUnavailableError: pass
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def test_an_account_without_credit_is_reported_at_once() -> None:
    empty = failure(429, "You exceeded your current quota", code="insufficient_quota")
    with OpenAIServer([empty]) as server, pytest.raises(ModelUnavailableError, match="quota"):
        await ask(server)
    assert len(server.requests) == 1


async def test_a_server_that_keeps_running_calls_the_model_again_after_a_wrong_key() -> None:
    with OpenAIServer([failure(401, "wrong key"), answer("1")]) as server:
        request, asked = build_request(QUESTION, "", "openai/stub", server.url), NeverUnavailableModel()
        refused, answered = await asked.answer(request), await asked.answer(request)
    assert refused.error is not None and "wrong key" in refused.error
    assert answered.text == "1"


async def test_an_unavailable_model_is_not_called_again_and_blocks_no_other() -> None:
    rate_limiters = RateLimiters(RateLimits(concurrency=1))
    model = LiteLLMModel(rate_limiters=rate_limiters)
    with OpenAIServer(
        lambda received: failure(404, "unknown") if received.body["model"] == "gone" else answer("1")
    ) as server:
        for _ in range(2):
            with pytest.raises(ModelUnavailableError, match="openai/gone is unavailable"):
                await model.answer(build_request(QUESTION, "", "openai/gone", server.url))
        assert (await model.answer(build_request(QUESTION, "", "openai/stub", server.url))).text == "1"
    assert [received.body["model"] for received in server.requests] == ["gone", "stub"]


async def test_a_server_that_is_never_there_is_given_up_within_seconds() -> None:
    sleeper = Sleeper()
    model = LiteLLMModel(rate_limiters=RateLimiters(clock=sleeper))
    request = build_request(QUESTION, "", "openai/x", "http://127.0.0.1:9/v1")
    with pytest.raises(ModelUnavailableError, match=r"no connection to its server for \d+ s; start it"):
        await model.answer(request)
    assert 10 <= sleeper.now() < 30


async def test_a_server_that_restarts_costs_no_question() -> None:
    with OpenAIServer([answer("1")]) as server, ExitStack() as later:

        class Restarting(Sleeper):
            """The server is back after 40 s."""

            is_back = False

            async def sleep(self, seconds: float) -> None:
                await super().sleep(seconds)
                if self.now() > 40 and not self.is_back:
                    self.is_back = True
                    later.enter_context(OpenAIServer([answer("2")], port=port))

        sleeper = Restarting()
        model = LiteLLMModel(rate_limiters=RateLimiters(clock=sleeper))
        request = build_request(QUESTION, "", "openai/x", server.url)
        port = int(server.url.split(":")[2].split("/")[0])
        assert (await model.answer(request)).text == "1"
        server.__exit__(None, None, None)
        assert (await model.answer(request)).text == "2"
    assert 40 < sleeper.now() < 60


async def test_rate_limits_are_retried_more_often_than_failures() -> None:
    sleeper = Sleeper()
    with OpenAIServer([*[failure(429, "slow down")] * 8, answer("1")]) as server:
        reply = await ask(server, sleeper=sleeper)
    assert (reply.text, len(server.requests)) == ("1", 9)
    assert max(sleeper.waits) <= 45


async def test_a_broken_body_is_retried() -> None:
    with OpenAIServer([broken_body(), answer("1")]) as server:
        reply = await ask(server)
    assert (reply.text, len(server.requests)) == ("1", 2)


async def test_cached_tokens_cost_less() -> None:
    with OpenAIServer(
        [answer("1", prompt_tokens=2000), answer("1", prompt_tokens=2000, cached_tokens=1500)]
    ) as server:
        full, cached = [await ask(server, "openai/gpt-4o-mini") for _ in range(2)]
    assert full.cost_usd is not None and cached.cost_usd is not None
    assert full.cost_usd - cached.cost_usd == pytest.approx(1500 * (1.5e-07 - 7.5e-08), rel=0.01)


async def test_a_marked_prefix_is_a_block_for_the_prompt_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with OpenAIServer([failure(400, "enough seen")]) as server:
        request = build_request(QUESTION, "Ada: I come from Norway.", "anthropic/claude-sonnet-4-5", server.url)
        await LiteLLMModel().answer(request.model_copy(update={"marks_prefix": True}))
    shared, rest = server.requests[0].body["messages"][0]["content"]
    assert shared["text"] == "Conversation History:\nAda: I come from Norway."
    assert shared["cache_control"] == {"type": "ephemeral"}
    assert rest["text"].strip().startswith("Question: Where from?") and "cache_control" not in rest


async def test_stopping_the_run_cancels_a_pending_retry() -> None:
    rate_limiters, asked = RateLimiters(), Event()

    def busy(received: Received) -> Answer:
        asked.set()
        return failure(429, "slow down", retry_after="30")

    with OpenAIServer(busy) as server:
        request = build_request(QUESTION, "", "openai/stub", server.url)
        asking = asyncio.create_task(LiteLLMModel(rate_limiters=rate_limiters).answer(request))
        await asyncio.to_thread(asked.wait)
        rate_limiters.stop()
        with pytest.raises(StoppedError):
            await asking
    assert len(server.requests) == 1


async def test_a_call_runs_none_of_litellms_callbacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    litellm = await asyncio.to_thread(loaded_litellm)
    from litellm.integrations.custom_logger import CustomLogger

    logged: list[str] = []

    class Noting(CustomLogger):
        def log_pre_api_call(self, *_: object) -> None:
            logged.append("before")

        async def async_log_success_event(self, *_: object) -> None:
            logged.append("after")

    monkeypatch.setattr(litellm, "callbacks", [Noting()])
    with OpenAIServer([answer("1")]) as server:
        model = LiteLLMModel()
        for number in range(3):
            reply = await model.answer(build_request(QUESTION, str(number), "openai/gpt-4o-mini", server.url))
            assert reply.text == "1" and reply.cost_usd is not None
        await asyncio.sleep(0)
    assert logged == []
