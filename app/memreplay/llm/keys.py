"""Whether a model's key is set, and under which names its provider looks for it."""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from memreplay.llm.litellm_setup import loaded_litellm

DUMMY_KEY = "no-key-needed"
"""Sent to a local server where the user has set no key, since most clients insist on one."""

_environment = Lock()


def missing_keys(model: str, api_base: str | None) -> str | None:
    """The variables to set, as ``A and B``, or ``A or B`` where one is enough; None if nothing is missing.

    An empty variable counts as missing: that is how a CI passes a secret that does not exist.
    """
    litellm = loaded_litellm()
    with _without_empty_variables():
        found = litellm.validate_environment(model)
        names = [name for name in found["missing_keys"] if not name.endswith("_VERSION")]
        if found["keys_in_environment"] or not names:
            return None
        with _set(names[0]):
            one_is_enough = litellm.validate_environment(model)["keys_in_environment"]
    if any(_OTHER_WAYS.get(name, _no_other_way)() for name in names):
        return None
    if one_is_enough and len(names) > 1:
        return " or ".join(names)
    bases = [name for name in names if name.endswith("_BASE")]
    if api_base is not None or len(bases) == len(names):
        # The address of a server, which is given or has a default, is no key.
        names = [name for name in names if name not in bases]
    return " and ".join(name for name in names if not os.environ.get(name, "").strip()) or None


@contextmanager
def _without_empty_variables() -> Iterator[None]:
    with _environment:
        empty = {name: value for name, value in os.environ.items() if not value.strip()}
        for name in empty:
            del os.environ[name]
        try:
            yield
        finally:
            os.environ.update(empty)


@contextmanager
def _set(name: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = before or DUMMY_KEY
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


def _no_other_way() -> bool:
    return False


def _aws_has_credentials() -> bool:
    """A profile, a role, or a token; whether they are valid, AWS says when they are used.

    A profile that ``AWS_PROFILE`` names is enough for LiteLLM, so it is not asked for here.
    """
    if any(os.environ.get(name) for name in _AWS_VARIABLES) or _is_on_ec2():
        return True
    return (os.environ.get("AWS_DEFAULT_PROFILE") or "default") in _aws_profiles()


_AWS_VARIABLES = (
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


def _aws_profiles() -> set[str]:
    """Profiles in AWS's two files. The config file calls them ``profile NAME``, except the default one."""
    files = (("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), ("AWS_CONFIG_FILE", "~/.aws/config"))
    profiles: set[str] = set()
    for variable, default in files:
        parser = configparser.RawConfigParser(default_section="")
        try:
            parser.read(Path(os.environ.get(variable) or default).expanduser(), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue
        profiles |= {
            name.removeprefix("profile ").strip() for name in parser.sections() if set(parser[name]) & _CREDENTIALS
        }
    return profiles


_CREDENTIALS = {
    "aws_access_key_id",
    "role_arn",
    "sso_session",
    "sso_start_url",
    "credential_process",
    "web_identity_token_file",
    "login_session",
}


def _is_on_ec2() -> bool:
    """A machine at Amazon may have a role of its own, which only a request would show."""
    try:
        return Path("/sys/devices/virtual/dmi/id/sys_vendor").read_text().strip() == "Amazon EC2"
    except OSError:
        return False


def _azure_has_credentials() -> bool:
    return any(os.environ.get(name) for name in ("AZURE_AD_TOKEN", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"))


def _google_has_credentials() -> bool:
    named = ("GOOGLE_APPLICATION_CREDENTIALS", "VERTEXAI_CREDENTIALS")
    default = Path("~/.config/gcloud/application_default_credentials.json").expanduser()
    return any(os.environ.get(name) for name in named) or default.is_file()


_OTHER_WAYS: Mapping[str, Callable[[], bool]] = {
    "AWS_ACCESS_KEY_ID": _aws_has_credentials,
    "AWS_SECRET_ACCESS_KEY": _aws_has_credentials,
    "AZURE_API_KEY": _azure_has_credentials,
    "VERTEXAI_PROJECT": _google_has_credentials,
}
"""How a provider may get its credentials without the variable, none of which reaches for the network."""
