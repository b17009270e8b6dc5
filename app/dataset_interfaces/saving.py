"""Writing tests as files of definitions, so that they can be shared, read, and run again as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from app.dataset_interfaces.definitions import CONFIG_FILE, DEFINITION, Benchmark, is_definition_folder
from app.dataset_interfaces.examples import TestExample
from app.errors import UsageError
from app.output_files import write_whole


def save_definitions(folder: Path, benchmark: Benchmark) -> None:
    """Write ``{dataset}/{id}.def.json`` for each test, and the ``config.yml`` to run them with.

    Raises:
        UsageError: the folder holds definitions already, or cannot be written, or a test has no name for a file.
    """
    if is_definition_folder(folder):
        raise UsageError(f"{folder}: holds definitions of tests already; name another folder")
    paths = {_path_of(folder, example): example for example in benchmark.tests}
    try:
        for path, example in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(str(path), json.dumps(example.to_dict(), indent=2, ensure_ascii=False) + "\n")
    except (TypeError, ValueError) as error:
        raise UsageError(f"The test {example.unique_id} cannot be written as JSON ({error})") from None
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
    write_whole(str(folder / CONFIG_FILE), yaml.safe_dump(_config_of(benchmark), allow_unicode=True))


def _path_of(folder: Path, example: TestExample) -> Path:
    """A name of a dataset or a test is never a path."""
    path = folder / example.dataset_name / f"{example.example_id}{DEFINITION}"
    if path.parent.parent != folder or path.name != f"{example.example_id}{DEFINITION}":
        raise UsageError(f"The test {example.unique_id!r} cannot be the name of a file")
    return path


def _config_of(benchmark: Benchmark) -> dict[str, Any]:
    """With each dataset's memory span: the waits of its tests are shares of it."""
    config = benchmark.config
    spans = {example.dataset_name: example.dataset_generator.memory_span for example in benchmark.tests}
    return {
        "config": {
            "run_name": config.run_name,
            "debug": config.debug,
            "incompatibilities": [sorted(group) for group in config.incompatibilities],
        },
        "datasets": {"datasets": [{"name": name, "args": {"memory_span": span}} for name, span in spans.items()]},
    }
