"""Options of the memories: recorded where they hold, refused where they cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, embeddings

RUN = ("--batch", "--dataset", "identity-01", "--limit", "2")


def test_what_is_switched_off_and_the_shares_are_recorded(run_cli: RunCli, tmp_path: Path) -> None:
    ran = run_cli(
        *RUN, "--backend", "hybrid", "--ablate", "verbatim", "--ablate", "personal", "--tier-share", "shared=0.5",
        "--recording", tmp_path / "r.sqlite3", "--output", "-",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    results = json.loads(ran.out)
    assert results["run"]["settings"]["ablate"] == ["personal", "verbatim"]
    assert results["run"]["settings"]["tier_share"] == ["personal=0.05", "shared=0.5", "knowledge=0.1"]
    assert all(not hit["turns"] for row in results["questions"] for hit in row["hits"])


def test_variants_of_rag_are_backends_of_their_own(run_cli: RunCli, tmp_path: Path) -> None:
    names = ["rag", "rag:keyword", "rag:fused"]
    chosen = [part for name in names for part in ("--backend", name)]
    ran = run_cli(*RUN, *chosen, "--recording", tmp_path / "r.sqlite3", "--output", "-")
    assert ran.code == 0, ran.err
    results = json.loads(ran.out)
    assert list(results["backends"]) == names
    assert all(backend["retrieval"]["recall_at"]["10"] > 0 for backend in results["backends"].values())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--backend", "hybrid", "--ablate", "everything"), "unknown mechanism 'everything'"),
        (("--backend", "rag", "--ablate", "dense"), "--ablate is an option of hybrid"),
        (("--backend", "rag", "--tier-share", "shared=0.2"), "--tier-share is an option of hybrid"),
        (("--backend", "rag", "--extractor", "openai/x"), "--extractor is an option of hybrid"),
        (("--backend", "hybrid", "--tier-share", "shared=2"), "'shared=2' is not a share of a tier"),
        (("--backend", "hybrid", "--extractor", "memreplay/extractive"), "--extractor needs a language model"),
        (("--embedder", "word2vec"), "unknown embedder 'word2vec'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(
    run_cli: RunCli, tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    ran = run_cli(*RUN, *options, "--recording", tmp_path / "r.sqlite3")
    assert ran.code == 2
    assert says in ran.err and "Traceback" not in ran.err
    assert not (tmp_path / "r.sqlite3").exists()


def test_a_key_that_an_extractor_or_an_embedder_needs_is_missed_before_the_first_question(
    run_cli: RunCli, tmp_path: Path
) -> None:
    for options in (("--extractor", "openai/gpt-4o-mini"), ("--embedder", "litellm:openai/text-embedding-3-small")):
        ran = run_cli(*RUN, "--backend", "hybrid", *options, "--recording", tmp_path / "r.sqlite3")
        assert ran.code == 4
        assert "OPENAI_API_KEY" in ran.err


def test_extraction_and_vectors_by_a_server_are_accounted_apart_and_paid_once(
    run_cli: RunCli, tmp_path: Path
) -> None:
    def serve(received: Received) -> Answer:
        if received.path.endswith("/embeddings"):
            return embeddings([[float(len(text)), 1.0, 2.0] for text in received.body["input"]])
        return answer('{"facts": []}', prompt_tokens=50, completion_tokens=5)

    def run(name: str) -> dict[str, object]:
        ran = run_cli(
            *RUN, "--backend", "hybrid", "--extractor", "openai/stub", "--embedder", "litellm:openai/vectors",
            "--api-base", server.url, "--recording", tmp_path / name, "--output", "-",
        )  # fmt: skip
        assert ran.code == 0, ran.err
        results = json.loads(ran.out)
        assert results["run"]["settings"]["embedder"] == "litellm:openai/vectors"
        return results["backends"]["hybrid"]["extraction"]

    with OpenAIServer(serve) as server:
        first = run("first.sqlite3")
        sent = len(server.requests)
        second = run("second.sqlite3")
        # Of the second run only the check that the embedder answers, if anything, is sent.
        assert len(server.requests) - sent <= 1
    assert first["calls"] > 5 and first["reused"] == 0 and first["errors"] == 0
    assert first["tokens"]["prompt"] == 50 * first["calls"]
    assert second["reused"] == second["calls"] == first["calls"]


def test_offline_an_embedder_of_a_provider_uses_only_the_vectors_it_returned_before(
    run_cli: RunCli, tmp_path: Path
) -> None:
    def serve(received: Received) -> Answer:
        return embeddings([[float(len(text)), 1.0, 2.0] for text in received.body["input"]])

    def run(name: str, dataset: str, *options: str) -> tuple[int, str, int]:
        before = len(server.requests)
        ran = run_cli(
            "--batch", "--dataset", dataset, "--limit", 2, "--backend", "rag", "--fresh", "--api-base", server.url,
            "--embedder", f"litellm:{model}", *options, "--recording", tmp_path / name,
        )  # fmt: skip
        return ran.code, ran.err, len(server.requests) - before

    model = "openai/vectors-on-record"
    with OpenAIServer(serve) as server:
        code, said, requests = run("unknown.sqlite3", "identity-01", "--offline")
        assert (code, requests) == (4, 0)
        assert f"no vector of litellm:{model} is in the cache" in said
        code, said, requests = run("online.sqlite3", "identity-01")
        assert code == 0 and requests > 0, said
        code, said, requests = run("known.sqlite3", "identity-01", "--offline")
        assert (code, requests) == (0, 0), said
        code, said, requests = run("others.sqlite3", "identity-02", "--offline")
        assert (code, requests) == (3, 0), said
