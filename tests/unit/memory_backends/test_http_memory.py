"""``--backend http-memory:URL``, against the example server's own logic and against services that misbehave."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jsonschema
import pytest

from memory_backends.base import BackendError, MemoryBackend
from memory_backends.contract import Subject, check_memory
from memory_backends.contract.trial import TALK, Clock, WordEmbedder, count_words, play
from memory_backends.examples import http_memory_server
from memory_backends.http_memory import MAX_REPLY_BYTES
from memory_backends.registry import check_backend_name, create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.trust import reaches
from tests.conftest import REPOSITORY
from tests.stubs.memory import TickingClock, namespace
from tests.stubs.memory_service import Service, memory_service

FOLDER = REPOSITORY / "memory_backends"
OPENAPI = json.loads((FOLDER / "examples" / "http_memory.openapi.json").read_text(encoding="utf-8"))
README = (FOLDER / "README.md").read_text(encoding="utf-8")
MAPPINGS = re.findall(r"^```toml\n# (mem0|zep)\.toml(.*?)^```", README, re.MULTILINE | re.DOTALL)


def created(name: str, clock: Clock | None = None) -> MemoryBackend:
    connections = RedisConnection.embedded(), QdrantConnection.embedded()
    return create_backend(name, Resources(*connections, WordEmbedder(), count_words, clock or TickingClock()), {})


def as_the_example(method: str, path: str, body: Any) -> tuple[int, Any] | None:
    parts = urlsplit(path)
    asked = body or {name: values[0] for name, values in parse_qs(parts.query).items()}
    found = http_memory_server.answer(parts.path, asked)
    return None if found is None else (200, found)


@pytest.fixture
def service() -> Iterator[Service]:
    with memory_service(as_the_example) as served:
        yield served


async def test_the_example_keeps_every_promise(service: Service) -> None:
    name = f"http-memory:{service.url}"
    found = [each async for each in check_memory(Subject(name, lambda clock: created(name, clock)))]
    assert {each.rule.name: each.broken for each in found if each.broken} == {}


async def test_every_request_and_reply_is_as_the_openapi_file_says(service: Service) -> None:
    replies: list[tuple[str, str, Any]] = []

    def noted(method: str, path: str, body: Any) -> tuple[int, Any] | None:
        answered = as_the_example(method, path, body)
        replies.append((method, urlsplit(path).path, answered and answered[1]))
        return answered

    service.answer = noted
    memory = created(f"http-memory:{service.url}")
    await memory.open(namespace("http"))
    await play(memory, TALK[:2])
    recall = await memory.recall("Where does Marta work?", 3, 400)
    await memory.close("resolved")
    assert recall.hits[0].turns == ("1", "2") and "Nimbus Labs" in recall.context
    assert {(method, urlsplit(path).path) for method, path, _ in service.requests} == {
        (method.upper(), path) for path, methods in OPENAPI["paths"].items() for method in methods
    }
    for method, path, body in service.requests:
        described = OPENAPI["paths"][urlsplit(path).path][method.lower()]
        if method == "POST":
            schema = described["requestBody"]["content"]["application/json"]["schema"]
            jsonschema.validate(body, {**schema, "components": OPENAPI["components"]})
        else:
            query = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
            assert set(query) == {each["name"] for each in described["parameters"]}
            jsonschema.validate(query["session"], described["parameters"][0]["schema"])
    for method, path, reply in replies:
        content = OPENAPI["paths"][path][method.lower()]["responses"].get("200", {}).get("content")
        if content:
            schema = content["application/json"]["schema"]
            jsonschema.validate(reply, {**schema, "components": OPENAPI["components"]})
    jsonschema.Draft202012Validator.check_schema({"$defs": OPENAPI["components"]["schemas"], "$ref": "#/$defs/Add"})


async def test_the_token_is_sent_and_never_said(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMREPLAY_MEMORY_TOKEN", "s3cret")
    memory = created(f"http-memory:{service.url}")
    await memory.open(namespace("http"))
    assert {each["authorization"] for each in service.headers} == {"Bearer s3cret"}
    service.answer = lambda method, path, body: (500, {"you sent": "s3cret"})
    with pytest.raises(
        BackendError, match=r"POST http://127.0.0.1:\d+/search: answered 500: .*\[token\]"
    ) as failed:
        await memory.recall("Who?", 3, 400)
    assert "s3cret" not in str(failed.value)
    service.answer = lambda method, path, body: (401, {})
    with pytest.raises(BackendError, match=r"the token is refused \(MEMREPLAY_MEMORY_TOKEN\)"):
        await memory.recall("Who?", 3, 400)


async def test_message_ids_are_turns_where_the_text_quotes_them_and_sources_where_it_does_not(
    service: Service,
) -> None:
    memory = created(f"http-memory:{service.url}")
    await memory.open(namespace("http"))
    await play(memory, TALK[:1])
    said = TALK[0].messages[0].text
    hit = {"id": 7, "text": f"Note: {said}", "message_ids": ["1", "2"]}
    service.answer = lambda method, path, body: (200, {"hits": [hit, {"id": "b", "text": "Marta has work"}]})
    first, second = (await memory.recall("Marta", 5, 400)).hits
    assert (first.id, first.turns, first.sources, first.score) == ("7", ("1",), ("2",), None)
    assert second.turns == ()


async def test_a_service_that_cannot_list_has_an_unknown_state(service: Service) -> None:
    service.answer = lambda method, path, body: None if method == "GET" else as_the_example(method, path, body)
    memory = created(f"http-memory:{service.url}")
    await memory.open(namespace("http"))
    await play(memory, TALK[:2])
    assert (await memory.snapshot()).is_known is False
    assert (await memory.recall("Where does Marta work?", 3, 400)).hits[0].turns == ("1", "2")


HIT = {"id": "a", "text": "b"}


@pytest.mark.parametrize(
    ("status", "reply", "says"),
    [
        (200, {"hit": []}, "hits is no list"),
        (200, [], "hits is no list"),
        (200, {"hits": ["a"]}, r"hits\[0\] is no object"),
        (200, {"hits": [HIT, {"id": "a"}]}, r"hits\[1\]\.text is no text"),
        (200, {"hits": [{"text": "a"}]}, r"hits\[0\]\.id is no text or whole number"),
        (200, b'{"hits": [{"id": "a", "text": "b", "score": 1e999}]}', r"hits\[0\]\.score is no finite number"),
        (200, b'{"hits": [{"id": "a", "text": "b", "score": NaN}]}', "the reply is no JSON"),
        (200, {"hits": [{**HIT, "score": "high"}]}, r"hits\[0\]\.score is no finite number"),
        (200, {"hits": [{**HIT, "message_ids": "1"}]}, r"hits\[0\]\.message_ids is no list of texts"),
        (200, {"hits": [{**HIT, "message_ids": ["99"]}]}, "names '99', a message that it was never given"),
        (200, b"<html>", "the reply is no JSON"),
        pytest.param(200, b"[" * 100_000, "the reply is no JSON", id="nested too deeply"),
        pytest.param(200, b" " * (MAX_REPLY_BYTES + 1), "more than 4,194,304 bytes", id="too long"),
        (307, {}, "answered 307"),
        (404, {}, "answered 404"),
        (500, b"\xff\xfe\n\nboom", "answered 500"),
    ],
)
async def test_a_wrong_reply_is_one_sentence_with_the_url_and_the_field(
    service: Service, status: int, reply: Any, says: str
) -> None:
    memory = created(f"http-memory:{service.url}")
    await memory.open(namespace("http"))
    service.answer = lambda method, path, body: (status, reply)
    service.more_headers = {"Location": f"{service.url}/elsewhere"} if status == 307 else {}
    with pytest.raises(BackendError, match=rf"^POST {service.url}/search: .*{says}") as raised:
        await memory.recall("Who?", 3, 400)
    assert "\n" not in str(raised.value)
    assert not any(path == "/elsewhere" for _, path, _ in service.requests)


async def test_a_packed_reply_and_a_server_that_is_not_there(service: Service) -> None:
    memory = created(f"http-memory:{service.url}")
    await memory.open(namespace("http"))
    service.more_headers = {"Content-Encoding": "gzip"}
    with pytest.raises(BackendError, match="packed"):
        await memory.recall("Who?", 3, 400)
    with pytest.raises(BackendError, match=r"POST http://127\.0\.0\.1:1/reset: no reply: ConnectError"):
        await created("http-memory:http://127.0.0.1:1").open(namespace("http"))


async def test_a_session_that_is_not_empty_after_its_reset_is_refused(service: Service) -> None:
    held = {"items": [{"id": "a", "text": "of before"}]}
    service.answer = lambda method, path, body: (200, held)
    with pytest.raises(BackendError, match=r"/reset left 1 items of the session in place"):
        await created(f"http-memory:{service.url}").open(namespace("http"))


@pytest.mark.parametrize(
    "name",
    [
        "http-memory:",
        "http-memory:notes",
        "http-memory:ftp://host",
        "http-memory:http://me:pass@host/",
        "http-memory:http://host/?key=1",
        "http-memory[]:http://host",
        "http-memory[no-such.toml]:http://host",
    ],
)
def test_a_name_that_is_no_address_is_refused(name: str) -> None:
    with pytest.raises(BackendError) as refused:
        check_backend_name(name)
    assert "pass@" not in str(refused.value)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("add = 1", r"no \[search\]"),
        ("[add]\n[search]\n[reset]", "add.request is not like"),
        ("[add]\nrequest='POST //evil/x'\n[search]\n[reset]", "add.request is not like"),
        ("[add]\nrequest='POST /x'\nbdy={}\n[search]\n[reset]", "add.bdy is not known"),
        ("[add", "is no TOML"),
        pytest.param("x = '" + "a" * 70_000 + "'", "more than 65,536 bytes", id="too long"),
    ],
)
def test_a_mapping_that_cannot_be_used_names_its_field(tmp_path: Path, written: str, says: str) -> None:
    file = tmp_path / "m.toml"
    file.write_text(written)
    with pytest.raises(BackendError, match=rf"m\.toml: .*{says}"):
        check_backend_name(f"http-memory[{file}]:http://host")


@pytest.mark.parametrize(
    "name", ["http-memory:http://h:9/a", "http-memory[m.toml]:http://h:9/a", "mcp:http://h:9/mcp"]
)
def test_a_file_that_names_an_address_needs_the_users_word(name: str) -> None:
    [reach] = reaches({"backend": [name]}, {})
    assert reach.effect == "sends conversations and the memory's token to h:9"
    assert reaches({"backend": [name]}, {"backend": [name]}) == []


class Mem0Server:
    """mem0's REST server, as far as its documented requests go. It stores messages word for word."""

    def __init__(self) -> None:
        self.held: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, method: str, path: str, body: Any) -> tuple[int, Any] | None:
        parts = urlsplit(path)
        user = body["user_id"] if body else parse_qs(parts.query)["user_id"][0]
        mine = self.held.setdefault(user, [])
        match method, parts.path:
            case "POST", "/memories":
                for said in body["messages"]:
                    assert set(said) == {"role", "content"}
                    mine.append({"id": f"m{len(mine)}", "memory": said["content"], "metadata": body["metadata"]})
                return 200, {"results": mine[-1:]}
            case "POST", "/search":
                return 200, {"results": _ranked(mine, body["query"], "memory")}
            case "GET", "/memories":
                return 200, {"results": mine}
            case "DELETE", "/memories":
                self.held[user] = []
                return 200, {"message": "All relevant memories deleted"}
        return None


class ZepServer:
    """The sessions of Zep's open server: an unknown one is a 404."""

    def __init__(self) -> None:
        self.held: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, method: str, path: str, body: Any) -> tuple[int, Any] | None:
        parts = urlsplit(path)
        _, _, _, _, session, resource = unquote(parts.path).split("/")
        mine = self.held.setdefault(session, []) if method == "POST" else self.held.get(session)
        if mine is None:
            return None
        match method, resource:
            case "POST", "memory":
                for said in body["messages"]:
                    assert set(said) <= {"role", "role_type", "content", "metadata"}
                    mine.append({"uuid": f"u{len(mine)}", **said})
                return 200, b"OK"
            case "POST", "search":
                ranked = [{**each, "text": each["content"]} for each in mine]
                found = _ranked(ranked, body["text"], "content")
                return 200, [{"message": each, "score": each["score"]} for each in found]
            case "GET", "memory":
                return 200, {"messages": mine}
            case "DELETE", "memory":
                del self.held[session]
                return 200, b"OK"
        return None


def _ranked(items: list[dict[str, Any]], query: str, text: str) -> list[dict[str, Any]]:
    scored = [{**item, "score": http_memory_server.shared(query, item[text])} for item in items]
    return sorted(scored, key=lambda item: -item["score"])


@pytest.mark.parametrize(("server", "name"), [(Mem0Server, "mem0"), (ZepServer, "zep")])
async def test_the_mappings_of_the_readme_work(tmp_path: Path, server: Any, name: str) -> None:
    file = tmp_path / f"{name}.toml"
    file.write_text(dict(MAPPINGS)[name], encoding="utf-8")
    with memory_service(server()) as service:
        spelled = f"http-memory[{file}]:{service.url}"
        chosen = [each async for each in check_memory(Subject(spelled, lambda clock: created(spelled, clock)))]
        assert {each.rule.name: each.broken for each in chosen if each.fatal} == {}
        memory = created(spelled)
        await memory.open(namespace("http"))
        await play(memory, TALK)
        recall = await memory.recall("Where does Marta work?", 3, 400)
        assert recall.hits[0].turns == ("1",) and "Nimbus Labs" in recall.context
        held = (await memory.snapshot()).points["http"]["memories"]
        assert len(held) == 10
        await memory.close("resolved")
