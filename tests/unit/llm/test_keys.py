"""Which variables a provider needs: one, one of several, all of several, or none because of a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from memreplay.errors import MissingServerOrKeyError
from memreplay.llm.catalogue import ensure_reachable

BEDROCK = "bedrock/anthropic.claude-3-sonnet-20240229-v1:0"
VARIABLES = (
    *("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    *("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_API_KEY", "AZURE_API_BASE", "AZURE_AD_TOKEN"),
    *("VERTEXAI_PROJECT", "VERTEXAI_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS"),
)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))


@pytest.mark.parametrize(
    ("model", "given", "says"),
    [
        ("openai/gpt-4o", {}, "set OPENAI_API_KEY"),
        ("openai/gpt-4o", {"OPENAI_API_KEY": ""}, "set OPENAI_API_KEY"),
        ("openai/gpt-4o", {"OPENAI_API_KEY": "  "}, "set OPENAI_API_KEY"),
        ("gemini/gemini-2.0-flash", {}, "set GOOGLE_API_KEY or GEMINI_API_KEY"),
        (BEDROCK, {}, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (BEDROCK, {"AWS_ACCESS_KEY_ID": "x"}, "set AWS_SECRET_ACCESS_KEY"),
        ("azure/gpt-4o", {}, "set AZURE_API_BASE and AZURE_API_KEY"),
        ("vertex_ai/gemini-pro", {}, "set VERTEXAI_PROJECT and VERTEXAI_LOCATION"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, model: str, given: dict[str, str], says: str
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MissingServerOrKeyError) as missing:
        ensure_reachable(model, None)
    assert str(missing.value) == f"{model} needs a key: {says}"


@pytest.mark.parametrize(
    ("model", "given"),
    [
        ("gemini/gemini-2.0-flash", {"GOOGLE_API_KEY": "x"}),
        (BEDROCK, {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}),
        (BEDROCK, {"AWS_BEARER_TOKEN_BEDROCK": "x"}),
        (BEDROCK, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/var/token", "AWS_ROLE_ARN": "arn"}),
        (BEDROCK, {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/role"}),
        ("azure/gpt-4o", {"AZURE_API_BASE": "https://x", "AZURE_AD_TOKEN": "x"}),
        ("vertex_ai/gemini-pro", {"GOOGLE_APPLICATION_CREDENTIALS": "key.json"}),
    ],
)
def test_what_is_there_in_another_way_is_not_refused(
    monkeypatch: pytest.MonkeyPatch, model: str, given: dict[str, str]
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    ensure_reachable(model, None)


@pytest.mark.parametrize(
    ("file", "text", "profile"),
    [
        ("credentials", "[default]\naws_access_key_id = x\naws_secret_access_key = y\n", None),
        ("credentials", "[work]\naws_access_key_id = x\naws_secret_access_key = y\n", "work"),
        ("config", "[profile work]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n", "work"),
        ("config", "[profile sso]\nsso_session = s\n[sso-session s]\nsso_start_url = https://x\n", "sso"),
    ],
)
def test_an_aws_profile_is_enough_for_bedrock(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, text: str, profile: str | None
) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    if profile is not None:
        monkeypatch.setenv("AWS_DEFAULT_PROFILE", profile)
    ensure_reachable(BEDROCK, None)
    monkeypatch.setenv("AWS_DEFAULT_PROFILE", "another")
    with pytest.raises(MissingServerOrKeyError):
        ensure_reachable(BEDROCK, None)
    monkeypatch.setenv("AWS_PROFILE", "trusted")
    ensure_reachable(BEDROCK, None)
