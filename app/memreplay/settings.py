"""What a run is configured with: a flag, else ``MEMREPLAY_*`` in the environment, else the config file, else the
default.

The config file is TOML with the field names below as keys.
"""

from __future__ import annotations

import json
import os
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from memory_backends.registry import ARCHITECTURES
from memreplay.errors import UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.secrets import register_secret, register_url_secrets
from memreplay.paths import config_file

_CONFIG_VARIABLE = "MEMREPLAY_CONFIG"
_PREFIX = "MEMREPLAY_"
_VARIABLES_BESIDE_SETTINGS = (_CONFIG_VARIABLE, "MEMREPLAY_SERVE_TOKEN")

Names = Annotated[tuple[str, ...], NoDecode]
"""Several names; in the environment separated by commas."""


_MOST = 2**53 - 1
"""The largest whole number that every reader of JSON takes for what it is."""


class Settings(BaseSettings):
    """The settings of a run. Every field but secrets and ``keys`` has a flag of its name (``cache`` --no-cache)."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="forbid", frozen=True)

    backend: Names = ARCHITECTURES
    """The memory architectures to run, by name."""
    model: Names = (EXTRACTIVE_MODEL,)
    """The models to ask, by their LiteLLM names."""
    api_base: str | None = Field(default=None, repr=False)
    """Base URL of an OpenAI-compatible server, passed to LiteLLM."""
    redis_url: str | None = Field(default=None, repr=False)
    """A Redis server; embedded when absent."""
    qdrant_url: str | None = Field(default=None, repr=False)
    """A Qdrant server; embedded when absent."""
    qdrant_api_key: SecretStr | None = None
    """The key of the Qdrant server."""
    agent_token: SecretStr | None = None
    """Sent as a bearer token to agents, that is to backends named by a URL."""
    redis_ttl: int | None = Field(default=None, ge=1)
    """Seconds after which the Redis keys of a finished run expire; kept when absent."""
    top_k: int = Field(default=10, ge=1)
    """Most hits taken for a question, from all stores together."""
    context_tokens: int | None = Field(default=None, ge=1)
    """Most tokens of memory in a prompt; worked out from the model's window when absent."""
    embedder: str = "minilm"
    """What makes vectors: minilm (inside the package), fastembed:NAME or litellm:NAME."""
    extractor: str | None = None
    """The LiteLLM model that reads candidate facts for the hybrid memory; its rules when absent."""
    ablate: Names = ()
    """Mechanisms of the hybrid memory that are switched off, by name."""
    tier_share: Names = ()
    """The most that a tier of the hybrid memory may take of a recall, each as tier=share (0 to 1)."""
    concurrency: int | None = Field(default=None, ge=1)
    """Model calls under way at once."""
    rpm: int | None = Field(default=None, ge=1)
    """Most requests a minute to one model."""
    tpm: int | None = Field(default=None, ge=1)
    """Most tokens a minute to one model, prompts and replies together."""
    timeout: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    """Seconds after which a model's call is given up."""
    limit: int | None = Field(default=None, ge=1)
    """Ask only the first so many questions, or run the first so many tests."""
    sample: int | None = Field(default=None, ge=1)
    """Ask only so many questions, or run so many tests, drawn by type."""
    repeats: int = Field(default=1, ge=1, le=1000)
    """How often every question is asked, and every test run."""
    shuffle_choices: bool = False
    """Whether the options of a question are shown in an order drawn from the seed."""
    seed: int = 0
    """Seed of everything that is drawn."""
    examples: int | None = Field(default=None, ge=1, le=10_000)
    """Tests of each dataset of a run of tests."""
    memory_span: int | None = Field(default=None, ge=1, le=10_000_000)
    """Tokens over which a test is spread."""
    isolated: bool = False
    """Whether each test is run alone, with an empty memory."""
    judge: str | None = None
    """The model that datasets ask, to judge or to play a part; tests that need one are not graded without."""
    cache: bool = True
    """Whether replies paid for by other runs are reused."""
    offline: bool = False
    """Whether only replies on record, and the embedded reader, may answer."""
    keys: Annotated[dict[str, str], NoDecode] = Field(default_factory=dict)
    """Keys of the screen, an action's id (``replay.step``) to keys separated by commas; in the file: ``[keys]``, in
    the environment an object in JSON."""

    @field_validator("backend", "model", "ablate", "tier_share", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("keys", mode="before")
    @classmethod
    def _of_json(cls, value: Any) -> Any:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError:
            raise ValueError('not JSON; expected actions and their keys, {"replay.step": "space,l"}') from None

    @field_validator("backend", "model")
    @classmethod
    def _distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one")
        return tuple(dict.fromkeys(value))

    @field_validator("redis_url", "qdrant_url")
    @classmethod
    def _readable(cls, value: str | None) -> str | None:
        try:
            _ = urlsplit(value or "").port
        except ValueError:
            raise ValueError("cannot be read as a URL; write signs in a password as %5B and the like") from None
        return value

    @field_validator("api_base")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        try:
            parts = urlsplit(value or "http://none")
            understood = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            understood = False
        if not understood:
            raise ValueError("not a URL; expected http://host[:port]/path or https://…")
        return value or None

    @field_validator("*")
    @classmethod
    def _recordable(cls, value: Any) -> Any:
        if isinstance(value, int) and not -_MOST <= value <= _MOST:
            raise ValueError(f"the number is too large; the largest is {_MOST}")
        return value

    @field_validator("ablate")
    @classmethod
    def _sorted(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(set(value)))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flag, environment, config file; in this order."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml_file=_config_path())

    def public(self) -> dict[str, Any]:
        """The settings as they may be recorded: no keys, and no passwords in addresses."""
        values = self.model_dump(mode="json", exclude={"qdrant_api_key", "agent_token", "keys"})
        for name in ("redis_url", "qdrant_url", "api_base"):
            values[name] = without_secrets(values[name])
        return values


def read_settings(**flags: Any) -> Settings:
    """Settings with these flags; a flag that is None, or empty, was not given.

    Raises:
        UsageError: a value cannot be used; it says which, from where it may come, and what was expected.
    """
    given = {name: value for name, value in flags.items() if value not in (None, (), [])}
    if os.environ.get(_CONFIG_VARIABLE) and not _config_path().is_file():
        raise UsageError(f"{_config_path()}: named by {_CONFIG_VARIABLE}, and there is no such file")
    _refuse_unknown_variables()
    try:
        settings = Settings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        name, why = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        variable = f"{_PREFIX}{error.errors()[0]['loc'][0]}".upper()
        raise UsageError(f"setting {name} (flag, {variable} or {_config_path()}): {why}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{_config_path()}: not a usable config file: {error}") from None
    for url in (settings.api_base, settings.redis_url, settings.qdrant_url):
        register_url_secrets(url)
    for secret in (settings.qdrant_api_key, settings.agent_token):
        register_secret(secret.get_secret_value() if secret else None)
    return settings


def _refuse_unknown_variables() -> None:
    """A misspelt one would be passed over in silence."""
    known = {*_VARIABLES_BESIDE_SETTINGS, *(_PREFIX + name.upper() for name in Settings.model_fields)}
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else "; what a single run is about is told by flags alone"
            raise UsageError(f"{name} is no setting{hint}")


def without_secrets(url: str | None) -> str | None:
    """An address without user, password, query and fragment."""
    if url is None:
        return None
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _config_path() -> Path:
    named = os.environ.get(_CONFIG_VARIABLE)
    return Path(named) if named else config_file()
