"""Secrets are redacted however they are written."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import pytest

from memreplay.llm.secrets import redact_reply, redact_secrets, register_secret, register_url_secrets, scrubbed
from memreplay.settings import read_settings

KEY = "Zitronen/kuchen=ä"


def test_a_secret_is_redacted_in_text_in_a_url_and_in_json() -> None:
    register_secret(KEY)
    for written in (KEY, quote(KEY), quote(KEY, safe=""), json.dumps(KEY)):
        assert "kuchen" not in redact_secrets(f"you sent {written}, which is wrong")


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("http://me:apfel%7Estrudel@host/v1", ["apfel~strudel", "apfel%7Estrudel"]),
        ("http://me:apfelstrudel@host/v1", [b64encode(b"me:apfelstrudel").decode().rstrip("=")]),
        ("redis://:pflaumenmus@host", ["pflaumenmus"]),
        ("https://quarktasche@qdrant", ["quarktasche"]),
        ("http://host/v1?sig=mohn&version=1", ["mohn"]),
        ("redis://host/0?password=birne", ["birne"]),
    ],
)
def test_the_credentials_of_a_url_are_redacted(url: str, secrets: list[str]) -> None:
    register_url_secrets(url)
    for secret in secrets:
        assert secret not in scrubbed(f"at {url} somebody sent {secret}, or Authorization: Basic {secret}==")


def test_a_secret_that_may_be_a_word_stays_in_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    register_url_secrets("redis://:Barcelona@host")
    monkeypatch.setenv("PRIMARY_KEY", "Constantinople")
    monkeypatch.setenv("OPENAI_API_KEY", "kuchen-2-Mohn")
    said = "From Constantinople to Barcelona with {}"
    assert redact_reply(said.format("kuchen-2-Mohn")) == said.format("[key]")


@pytest.mark.parametrize("name", ["AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "SNOWFLAKE_JWT", "HF_TOKEN"])
def test_a_variable_is_recognised_as_a_secret_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "Butterkuchen")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "Apfelkuchen")
    assert scrubbed("Butterkuchen, Apfelkuchen") == "[key], Apfelkuchen"


def test_a_secret_from_the_config_file_is_redacted_like_one_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text('agent_token = "Zitronenkuchen"\nredis_url = "redis://:apfelkorn@host"\n')
    monkeypatch.setenv("MEMREPLAY_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("OPENAI_API_KEY", "Butterkuchen")
    settings = read_settings()
    assert scrubbed("Zitronenkuchen apfelkorn Butterkuchen") == "[key] [key] [key]"
    assert "apfelkorn" not in repr(settings)
