"""A reply is read to a limit, packed or not, and a call stays with the server that was named."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib

import pytest

from memory_backends.base import BackendError
from memreplay.llm.bounded_http import MAX_REPLY_BYTES
from memreplay.llm.embeddings import LiteLLMEmbedder, LiteLLMReranker
from tests.stubs.openai_server import Answer, OpenAIServer, answer, embeddings, rerankings
from tests.unit.llm.test_client import ask

MODELS = ("openai/stub", "mistral/mistral-small-latest", "groq/llama", "hosted_vllm/x", "ollama/x", "anthropic/x")
HUGE: Answer = {"status": 200, "headers": {}, "body": b" " * (MAX_REPLY_BYTES + 1)}
PACKED: Answer = {
    "status": 200,
    "headers": {"Content-Encoding": "gzip"},
    "body": gzip.compress(b" " * 100_000_000, 9),
}
GARBAGE: Answer = {"status": 200, "headers": {"Content-Encoding": "deflate"}, "body": b"garbage"}
FOREIGN: Answer = {"status": 200, "headers": {"Content-Encoding": "br"}, "body": b"garbage"}


def redirect(to: str) -> Answer:
    return {"status": 307, "headers": {"Location": to}, "body": ""}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MISTRAL_API_KEY", "GROQ_API_KEY", "ANTHROPIC_API_KEY", "COHERE_API_KEY", "HOSTED_VLLM_API_KEY"):
        monkeypatch.setenv(name, "sk-test-0123456789abcdefghijklmnop")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (HUGE, "sent more than 4,194,304 bytes"),
        (PACKED, "sent more than 4,194,304 bytes"),
        (GARBAGE, "cannot be unpacked"),
        (FOREIGN, "not asked for"),
    ],
    ids=["huge", "packed", "garbage", "foreign"],
)
async def test_a_reply_beyond_the_limit_is_an_error_at_once(model: str, sent: Answer, says: str) -> None:
    with OpenAIServer([sent]) as server:
        reply = await ask(server, model)
    assert reply.text is None and reply.error is not None and says in reply.error and "Traceback" not in reply.error
    assert len(server.requests) == 1


async def test_little_of_a_packed_reply_is_unpacked() -> None:
    with OpenAIServer([PACKED]) as server:
        await ask(server)
        tracemalloc.start()
        began = time.monotonic()
        await ask(server)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 5 * MAX_REPLY_BYTES and time.monotonic() - began < 10


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress], ids=["gzip", "deflate"])
async def test_a_packed_reply_within_the_limit_is_read(pack: object) -> None:
    sent = answer("1")
    name = {gzip.compress: "gzip", zlib.compress: "deflate"}[pack]  # type: ignore[index]
    body = pack(sent["body"].encode())  # type: ignore[operator]
    with OpenAIServer([{**sent, "headers": {"Content-Encoding": name}, "body": body}]) as server:
        assert (await ask(server)).text == "1"


@pytest.mark.parametrize("model", MODELS)
async def test_a_call_is_not_redirected_to_another_server(model: str) -> None:
    with OpenAIServer() as stranger, OpenAIServer([redirect(f"{stranger.url}/chat/completions")]) as server:
        reply = await ask(server, model)
    assert reply.error is not None and "redirects to" in reply.error and stranger.url[:-3] in reply.error
    assert stranger.requests == [] and len(server.requests) == 1


async def test_a_redirect_within_the_server_is_followed_but_not_for_ever() -> None:
    with OpenAIServer([redirect("/v1/elsewhere"), answer("1")]) as server:
        assert (await ask(server)).text == "1"
    assert [received.path for received in server.requests][-1] == "/v1/elsewhere"
    with OpenAIServer([redirect("/v1/again")]) as server:
        reply = await ask(server)
    assert reply.error is not None and "redirects more than" in reply.error


@pytest.mark.parametrize("sent", [HUGE, PACKED, redirect("http://127.0.0.2:9/v1/embeddings")])
def test_vectors_and_scores_are_read_the_same_way(sent: Answer) -> None:
    says = r"sent more than|redirects to"
    with OpenAIServer([sent]) as server, pytest.raises(BackendError, match=says):
        LiteLLMEmbedder("openai/text-embedding-stub", server.url, first_wait=0.0).embed(["a"])
    assert len(server.requests) <= 3  # OpenAI's client asks again by itself
    with OpenAIServer([sent]) as server, pytest.raises(BackendError, match=says):
        LiteLLMReranker("cohere/rerank-v3.5", server.url, first_wait=0.0).score("who?", ["a"])
    assert len(server.requests) == 1


def test_replies_within_the_limit_are_used() -> None:
    with OpenAIServer([embeddings([[1.0, 0.0]])]) as server:
        assert LiteLLMEmbedder("openai/text-embedding-stub", server.url).embed(["a"]).tolist() == [[1.0, 0.0]]
    with OpenAIServer([rerankings([0.5])]) as server:
        assert LiteLLMReranker("cohere/rerank-v3.5", server.url).score("who?", ["a"]) == [0.5]
