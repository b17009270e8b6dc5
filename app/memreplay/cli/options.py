"""Options that commands share: those that are settings, declared in groups, and those of results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def flags_in_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters may be dataclasses, as one that takes each of their fields as a flag.

    The fields of a group are annotated and given defaults as the parameters of any command are. Flags come in the
    order of the parameters, a group's in that of its fields.
    """
    parameters = signature(command, eval_str=True).parameters
    groups: dict[str, type[Any]] = {
        name: parameter.annotation for name, parameter in parameters.items() if _is_group(parameter.annotation)
    }

    def flat(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    flags = [
        flag
        for name, parameter in parameters.items()
        for flag in (_flags_of(groups[name]) if name in groups else [parameter])
    ]
    flat.__doc__ = command.__doc__
    flat.__signature__ = Signature(flags)  # type: ignore[attr-defined]  # what inspect.signature() reads
    return flat


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and is_dataclass(annotation)


def _flags_of(group: type[Any]) -> list[Parameter]:
    annotations = get_type_hints(group, include_extras=True)
    return [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=annotations[field.name])
        for field in fields(group)
    ]


@dataclass(frozen=True)
class MemoryFlags:
    """Which memories, what they are made of, and how much they give."""

    backend: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="hybrid, rag, rag:keyword, rag:fused, full_context, closed_book, oracle, package.module:Class or"
            " http://host/run_turn; repeatable.",
        ),
    ] = None
    redis_url: Annotated[str | None, typer.Option(metavar="URL", help="A Redis server; default: embedded.")] = None
    qdrant_url: Annotated[str | None, typer.Option(metavar="URL", help="A Qdrant server; default: embedded.")] = (
        None
    )
    redis_ttl: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Let the Redis keys of a finished run expire.")
    ] = None
    top_k: Annotated[int | None, typer.Option(metavar="N", help="Hits from all stores together; default 10.")] = (
        None
    )
    context_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", help="Most tokens of memory in a prompt; default: what fits the model."),
    ] = None
    embedder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What makes vectors: minilm (default), fastembed:NAME, litellm:NAME."),
    ] = None
    extractor: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="A LiteLLM model that reads facts for hybrid; default: its rules."),
    ] = None
    ablate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Switch off a part of hybrid: promotion, supersession, verbatim, knowledge, shared, personal,"
            " dense, keyword, speaker, date; repeatable.",
        ),
    ] = None
    tier_share: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TIER=SHARE",
            help="The most that a tier of hybrid takes of a recall: personal=0.05, shared=0.1, knowledge=0.1 by"
            " default; repeatable.",
        ),
    ] = None


@dataclass(frozen=True)
class ModelFlags:
    """Which models are asked, and how they are called."""

    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A LiteLLM model, or memreplay/extractive; repeatable."),
    ] = None
    api_base: Annotated[str | None, typer.Option(metavar="URL", help="Passed to LiteLLM.")] = None
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="Model calls under way at once; default: as the provider bears.")
    ] = None
    rpm: Annotated[int | None, typer.Option(metavar="N", help="Most requests a minute and model.")] = None
    tpm: Annotated[int | None, typer.Option(metavar="N", help="Most tokens a minute and model.")] = None
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Give a model's call up after this; default 120.")
    ] = None
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Use no reply that another run paid for.")] = False
    offline: Annotated[
        bool, typer.Option("--offline", help="Reach no network: a call that is not recorded is an error.")
    ] = False


@dataclass(frozen=True)
class QuestionFlags:
    """Which questions are asked, and how they are shown."""

    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Ask only the first N questions, or run the first N tests.")
    ] = None
    shuffle_choices: Annotated[
        bool, typer.Option("--shuffle-choices", help="Show options in an order drawn from the seed.")
    ] = False
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of everything that is drawn.")] = None


@dataclass(frozen=True)
class BatchQuestionFlags:
    """Which questions a batch asks, and how often."""

    sample: Annotated[
        int | None, typer.Option(metavar="N", help="Only N questions, or N tests, drawn by type from the seed.")
    ] = None
    repeats: Annotated[
        int | None, typer.Option(metavar="N", help="Ask every question, or run all tests, N times.")
    ] = None


@dataclass(frozen=True)
class TestFlags:
    """How datasets of tests make their tests."""

    __test__ = False

    examples: Annotated[
        int | None,
        typer.Option(metavar="N", help="Tests of each dataset; default: as defined, or 3."),
    ] = None
    memory_span: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="How far a test is spread; default: as defined, or 2000.")
    ] = None
    isolated: Annotated[bool, typer.Option("--isolated", help="Run each test alone, with an empty memory.")] = False
    judge: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Judges tests and plays parts in them; without: such are not graded."),
    ] = None


@dataclass(frozen=True)
class ReachFlags:
    """What a run would have to reach, where it is not as configured."""

    redis_url: Annotated[str | None, typer.Option(metavar="URL", help="A Redis server.")] = None
    qdrant_url: Annotated[str | None, typer.Option(metavar="URL", help="A Qdrant server.")] = None
    embedder: Annotated[str | None, typer.Option(metavar="NAME", help="What makes vectors.")] = None
    model: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A LiteLLM model; repeatable.")] = None
    api_base: Annotated[str | None, typer.Option(metavar="URL", help="Passed to LiteLLM.")] = None
    backend: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="An agent as http://host/run_turn; repeatable.")
    ] = None


SettingFlags = MemoryFlags | ModelFlags | QuestionFlags | BatchQuestionFlags | TestFlags | ReachFlags


def settings_given(*groups: SettingFlags) -> dict[str, Any]:
    """The settings that these flags name; None for a switch that was left out: it may come from elsewhere."""
    flags = {name: None if value is False else value for group in groups for name, value in asdict(group).items()}
    if flags.pop("no_cache", None):
        flags["cache"] = False
    return flags


Outputs = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Where results go (.json, .csv, .md, or - for JSON); repeatable."),
]

AnswerKeyFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Corrections of published answers, for adjusted scores beside the raw."),
]
