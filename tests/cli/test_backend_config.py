"""``--backend-config``: mem0 with its user's own configuration."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import OpenAIServer
from tests.stubs.planted_writer import FACTS, behaves, written_down

pytestmark = pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed")

INSTRUCTIONS = "Write every fact in the manner of a ship's log."


@pytest.mark.parametrize("form", ["json", "toml", "words"])
def test_every_extraction_of_a_dated_conversation_has_the_users_instructions(
    run_cli: RunCli, tmp_path: Path, form: str
) -> None:
    config = {"mem0": {"custom_instructions": INSTRUCTIONS, "search": {"threshold": 0.2}}}
    given = tmp_path / f"mem0.{form}"
    if form == "toml":
        given.write_text(f'[mem0]\ncustom_instructions = "{INSTRUCTIONS}"\nsearch = {{ threshold = 0.2 }}\n')
    else:
        given.write_text(json.dumps(config))
    with OpenAIServer(behaves) as server:
        ran = run_cli(
            "--batch", "--dataset", written_down(tmp_path), "--backend", "mem0", "--extractor", "openai/writer",
            "--api-base", server.url, "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "out.json",
            "--backend-config", json.dumps(config) if form == "words" else given,
        )  # fmt: skip
        assert ran.code == 0, ran.err
        asked = [received.body["messages"][-1]["content"] for received in server.requests]
    assert len(asked) == len(FACTS)
    assert all(INSTRUCTIONS in text and "said on 2024-02-05" in text for text in asked)
    with closing(sqlite3.connect(tmp_path / "r.sqlite3")) as recording:
        [(settings,)] = recording.execute("select settings from runs").fetchall()
    assert json.loads(settings)["backend_config"] == config, "the recording knows which mem0 was measured"


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"mem0": {"custom_instuctions": "x"}}, "this version of mem0 has no setting custom_instuctions"),
        ({"mem0": {"llm": {"provider": "openai"}}}, "mem0's llm is the run's own"),
        ({"mem0": {"api_key": "sk-1"}}, "looks like a secret"),
        ({"mem0": "x"}, "expected a table of mem0"),
        ({"hybrid": {"a": 1}}, "hybrid takes no configuration of its own; expected a table of mem0"),
        ({"mem0": {"a": 1}, "chroma": {}}, "chroma takes no configuration of its own"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(
    run_cli: RunCli, tmp_path: Path, config: dict[str, object], why: str
) -> None:
    ran = run_cli(
        "--batch", "--dataset", written_down(tmp_path), "--backend", "mem0", "--backend-config", json.dumps(config),
        "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "out.json",
    )  # fmt: skip
    assert why in " ".join(ran.err.split())
    assert ran.code == 2
