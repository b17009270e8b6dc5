"""A setting comes from its flag, else the environment, else the config file, else its default."""

from __future__ import annotations

import sys
from dataclasses import fields
from io import StringIO
from pathlib import Path

import pytest
import typer

from memreplay.cli.options import GivenSettings, takes_settings
from memreplay.errors import UsageError
from memreplay.llm.secrets import without_secrets
from memreplay.settings import Settings, flags, read_settings


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text("")
    monkeypatch.setenv("MEMREPLAY_CONFIG", str(path))
    return path


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_settings().top_k == 10
    config.write_text("top_k = 3\nbackend = ['rag']\n")
    assert (read_settings().top_k, read_settings().backend) == (3, ("rag",))
    monkeypatch.setenv("MEMREPLAY_TOP_K", "5")
    monkeypatch.setenv("MEMREPLAY_BACKEND", "hybrid, rag,hybrid")
    assert (read_settings().top_k, read_settings().backend) == (5, ("hybrid", "rag"))
    assert (read_settings(top_k=7, backend=()).top_k, read_settings(backend=("oracle",)).backend) == (
        7,
        ("oracle",),
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [("top_k = 0\n", "top_k"), ("topk = 3\n", "topk"), ("top_k = ", "config.toml"), ("backend = []\n", "backend")],
)
def test_an_unusable_config_file_is_reported_in_one_sentence(config: Path, content: str, says: str) -> None:
    config.write_text(content)
    with pytest.raises(UsageError, match=says) as refused:
        read_settings()
    assert "\n" not in str(refused.value)


def test_a_config_file_that_is_named_must_be_there(config: Path) -> None:
    config.unlink()
    with pytest.raises(UsageError, match="file not found"):
        read_settings()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("MEMREPLAY_TOPK", "3", "MEMREPLAY_TOPK is not a setting; did you mean MEMREPLAY_TOP_K"),
        ("MEMREPLAY_RECORDING", "a.sqlite3", "MEMREPLAY_RECORDING is not a setting"),
        ("MEMREPLAY_KEYS", "nonsense", r"MEMREPLAY_KEYS or .*: not JSON"),
        ("MEMREPLAY_KEYS", '{"replay.step": 5}', "MEMREPLAY_KEYS or"),
        ("MEMREPLAY_REPEATS", "1000000000", "MEMREPLAY_REPEATS or .*less than or equal to 1000"),
        ("MEMREPLAY_TIMEOUT", "inf", "MEMREPLAY_TIMEOUT or .*finite"),
    ],
)
def test_an_unusable_variable_is_reported_and_not_ignored(
    name: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=says):
        read_settings()


def test_keys_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMREPLAY_KEYS", '{"replay.step": "l"}')
    assert read_settings().keys == {"replay.step": "l"}


def given_by(*arguments: str) -> GivenSettings:
    """What the command line passes on of these arguments."""
    seen: GivenSettings = {}

    @takes_settings()
    def command(*, given: GivenSettings) -> None:
        seen.update(given)

    app = typer.Typer(add_completion=False)
    app.command()(command)
    typer.main.get_command(app).main(list(arguments), standalone_mode=False)
    return seen


def test_every_setting_but_secrets_and_keys_has_a_flag_of_its_name() -> None:
    assert {each.name for each in fields(Settings)} - set(flags()) == {
        "qdrant_api_key",
        "agent_token",
        "keys",
        "theme",
        "trusted_projects",
    }
    assert set(given_by()) == set(flags())


def test_every_flag_sets_its_setting() -> None:
    given = given_by(
        "--backend", "rag", "--backend", "hybrid", "--top-k", "3", "--timeout", "2.5", "--no-cache", "--isolated"
    )
    assert {name: value for name, value in given.items() if value is not None} == {
        "backend": ["rag", "hybrid"], "top_k": 3, "timeout": 2.5, "cache": False, "isolated": True,
    }  # fmt: skip


def test_a_switch_that_was_left_out_may_come_from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMREPLAY_OFFLINE", "true")
    monkeypatch.setenv("MEMREPLAY_CACHE", "false")
    settings = read_settings(**given_by("--seed", "0"))
    assert (settings.offline, settings.cache, settings.seed) == (True, False, 0)


def test_a_number_that_no_recording_can_hold_is_refused() -> None:
    with pytest.raises(UsageError, match=r"seed.*too large"):
        read_settings(seed=10**20)


@pytest.mark.parametrize(
    "url", ["nonsense", "127.0.0.1:8080/v1", "http://u:a[b@host/v1", "http://host:port/v1", "ftp://h"]
)
def test_an_api_base_that_is_no_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UsageError, match=r"api_base .*: not a URL; expected http") as refused:
        read_settings(api_base=url)
    assert url not in str(refused.value)


@pytest.mark.parametrize("name", ["redis_url", "qdrant_url"])
def test_a_password_that_breaks_its_url_is_reported_without_it(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} .*: not a URL") as refused:
        read_settings(**{name: "redis://u:a[b@host"})
    assert "a[b" not in str(refused.value)


def test_what_is_recorded_of_the_settings_holds_no_secret() -> None:
    settings = read_settings(
        redis_url="rediss://me:hunter2@host:6380/1?password=hunter2",
        qdrant_url="https://hunter2@qdrant:6333",
        qdrant_api_key="hunter2",
        api_base="http://user:hunter2@127.0.0.1:8080/v1?key=hunter2",
    )
    assert "hunter2" not in str(settings.public())
    assert settings.public()["redis_url"] == "rediss://host:6380/1"
    assert "hunter2" not in repr(settings)
    assert without_secrets(None) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("memreplay.toml", "top_k = 4\n"),
        ("pyproject.toml", "[project]\nname = 'x'\n[tool.memreplay]\ntop_k = 4\n"),
    ],
)
def test_a_project_file_above_the_working_directory_stands_between_environment_and_user(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str
) -> None:
    config.write_text("top_k = 2\nseed = 9\n")
    inner = tmp_path / "project" / "package"
    inner.mkdir(parents=True)
    (inner.parent / name).write_text(content)
    (inner / "pyproject.toml").write_text("[project]\nname = 'no settings here'\n")
    monkeypatch.chdir(inner)
    assert (read_settings().top_k, read_settings().seed) == (4, 9)
    monkeypatch.setenv("MEMREPLAY_TOP_K", "5")
    assert (read_settings().top_k, read_settings(top_k=6).top_k) == (5, 6)


EVIL = "https://prompts.evil.example/v1"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f"api_base = '{EVIL}'", "api_base sends prompts and your key to prompts.evil.example"),
        (f"qdrant_url = '{EVIL}'", "qdrant_url sends conversations and Qdrant's key to prompts.evil.example"),
        ("redis_url = 'redis://evil.example:6379/0'", "redis_url sends conversations to evil.example"),
        ("cluster = 'tcp://evil.example:8786'", "cluster sends conversations to evil.example"),
        (f"backend = ['rag', '{EVIL}/run_turn']", "sends conversations and the agent's token to prompts.evil"),
        (f"backend = ['openai:me@{EVIL}']", "sends conversations and the agent's token to prompts.evil.example"),
        ("backend = ['mcp:curl evil.example']", "backend mcp:curl evil.example runs the command curl evil.example"),
        ("backend = ['mcp[add=a search=b]:x https://localhost/']", "runs the command x https://localhost/"),
        ("backend = ['their_module:Memory']", "backend their_module:Memory runs its code"),
        ("backend = ['an_entry_point']", "backend an_entry_point runs its code"),
        ("model = 'openai/gpt-4o-mini'", "model sends prompts, with your key, to the model openai/gpt-4o-mini"),
        ("model = 'oobabooga/http://evil.example:1'", "to the model oobabooga/http://evil.example:1"),
        ("judge = 'huggingface/http://evil.example'", "judge sends questions and replies, with your key, to"),
        ("extractor = 'openai/gpt-4o-mini'", "extractor sends conversations, with your key, to the model openai"),
        (
            "embedder = 'litellm:huggingface/http://evil.example'",
            "sends texts, with your key, to the model hugging",
        ),
        ("embedder = 'fastembed:x/y'", "embedder fastembed:x/y downloads the model x/y"),
        ("reranker = 'litellm:x'", "reranker litellm:x sends texts, with your key, to the model x"),
        ("api_base = 'http://127.0.0.1:8080/v1'", "api_base sends prompts and your key to 127.0.0.1:8080"),
        ("redis_url = 'redis://me:secret@localhost'", "redis_url sends conversations to localhost"),
        ("backend = ['openai:http://127.0.0.1/x@http://evil.example/v1']", "agent's token to 127.0.0.1"),
        ("cluster = 'local:2'", "cluster sends conversations to local:2"),
        ("workers = 999", "workers 999 is beyond"),
        ("repeats = 1000", "repeats 1000 is beyond 100, the most that a file may choose"),
        ("cache = false", "cache False may be set only by you"),
        ("agent_token = 'abc'", "agent_token"),
        ("keys = { 'replay.step' = 'x' }", "keys"),
    ],
)
def test_a_project_that_is_not_trusted_sends_nothing_elsewhere_and_runs_nothing(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, says: str
) -> None:
    project = tmp_path / "cloned" / "repository"
    project.mkdir(parents=True)
    (project / "memreplay.toml").write_text(content)
    monkeypatch.chdir(project)
    with pytest.raises(UsageError) as refused:
        read_settings()
    assert says in str(refused.value)
    assert f"trusted_projects = ['{project}']" in str(refused.value) and "\n" not in str(refused.value)
    config.write_text(f"trusted_projects = ['{tmp_path / 'other'}']")
    with pytest.raises(UsageError):
        read_settings()
    config.write_text(f"trusted_projects = ['{tmp_path / 'cloned'}']")
    read_settings()
    config.write_text("")
    monkeypatch.setenv("MEMREPLAY_TRUSTED_PROJECTS", str(project))
    assert str(project) not in str(read_settings().public())


def test_a_project_may_choose_shipped_memories_and_bounded_numbers_without_trust(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        "backend = ['rag:keyword', 'mem0', 'oracle']",
        "model = ['memreplay/extractive']",
        "top_k = 3",
        "seed = 4",
        "repeats = 2",
        "ablate = ['dense']",
        "offline = true",
        "theme = 'nord'",
    ]
    (tmp_path / "memreplay.toml").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    assert read_settings().backend == ("rag:keyword", "mem0", "oracle")


def test_a_project_cannot_lift_what_the_user_forbids(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memreplay.toml").write_text("offline = false")
    monkeypatch.chdir(tmp_path)
    assert not read_settings().offline
    config.write_text("offline = true")
    with pytest.raises(UsageError, match="offline False may be set only by you"):
        read_settings()


def test_a_project_may_name_what_the_user_has_configured_too(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memreplay.toml").write_text("model = 'openai/gpt-4o-mini'")
    monkeypatch.chdir(tmp_path)
    config.write_text("model = ['openai/gpt-4o-mini']")
    assert read_settings().model == ("openai/gpt-4o-mini",)


class Terminal(StringIO):
    """A terminal on which somebody has typed."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_trust_is_asked_for_once_and_counts_for_these_settings_alone(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)

    def read(content: str, typed: str) -> Settings:
        (tmp_path / "memreplay.toml").write_text(content)
        monkeypatch.setattr(sys, "stdin", Terminal(typed))
        return read_settings()

    for typed in ("", "\n", "no\n", "maybe\n"):
        with pytest.raises(UsageError, match="if you trust this project"):
            read("model = 'openai/gpt-4o-mini'", typed)
    assert "[y/N]" in screen.getvalue() and "to the model openai/gpt-4o-mini" in screen.getvalue()
    assert read("model = 'openai/gpt-4o-mini'", "y\n").model == ("openai/gpt-4o-mini",)
    asked = screen.getvalue().count("[y/N]")
    assert read("model = 'openai/gpt-4o-mini'", "").model == ("openai/gpt-4o-mini",)
    assert screen.getvalue().count("[y/N]") == asked, "it was asked again"
    with pytest.raises(UsageError, match="evil"):
        read("model = 'openai/gpt-4o-mini'\napi_base = 'http://evil.example/v1'", "")


@pytest.mark.parametrize("name", ["api_base", "redis_url", "qdrant_url"])
@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example:1\\@127.0.0.1:6333",
        "http://127.0.0.1:6333 @evil.example",
        "http://127.0.0.1\t.evil.example",
        "\x00http://evil.example",
        "http://127.0.0.1:99999",
        "http://[::1",
        "http://evil.example\u2044x",
    ],
)
def test_an_address_that_two_parsers_could_read_differently_is_refused(name: str, url: str) -> None:
    with pytest.raises(UsageError, match=f"{name} .*not a URL"):
        read_settings(**{name: url})


def test_what_the_user_says_instead_needs_no_trust_and_no_project_trusts_itself(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memreplay.toml").write_text(f"api_base = '{EVIL}'")
    monkeypatch.chdir(tmp_path)
    assert read_settings(api_base="https://mine.example/v1").api_base == "https://mine.example/v1"
    monkeypatch.setenv("MEMREPLAY_API_BASE", "https://mine.example/v1")
    assert read_settings().api_base == "https://mine.example/v1"
    (tmp_path / "memreplay.toml").write_text("trusted_projects = ['/']")
    with pytest.raises(UsageError, match="no project can give itself"):
        read_settings()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("memreplay.toml", "topk = 4\n", r"memreplay.toml: unknown setting topk; did you mean top_k"),
        ("memreplay.toml", "top_k = 0\n", r"setting top_k \(flag, MEMREPLAY_TOP_K or .*memreplay.toml\)"),
        ("pyproject.toml", "[tool.memreplay]\ntop_k = \n", "pyproject.toml: not a usable config file"),
        ("memreplay.toml", f"top_k = {'[' * 2000}{']' * 2000}\n", "memreplay.toml: not a usable config file"),
        ("pyproject.toml", "tool.memreplay = 3\n", "tool.memreplay is not a table"),
        ("pyproject.toml", "tool = 'tool.memreplay'\n", "tool.memreplay is not a table"),
    ],
)
def test_an_unusable_project_file_is_reported_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, says: str
) -> None:
    (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=says) as refused:
        read_settings()
    assert "\n" not in str(refused.value)
