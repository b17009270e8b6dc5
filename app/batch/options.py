"""What ``--batch`` is told beside the settings, and what of it cannot be meant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.answering.reachability import is_loopback
from app.batch.recorded_run import RunPlan
from app.errors import UsageError
from app.settings import Settings, without_secrets


@dataclass(frozen=True)
class BatchOptions:
    """What ``--batch`` is told beside the settings."""

    datasets: tuple[str, ...]
    evidence: Path | None
    recording: Path | None
    plan: RunPlan
    estimate: bool
    outputs: tuple[str, ...]
    fail_under: float | None
    answer_key: Path | None = None

    def files_read(self) -> Iterator[Path]:
        """Files that are named for reading; an id or a pattern of datasets is none."""
        for name in self.datasets:
            yield Path(name)
        for path in (self.evidence, self.answer_key):
            if path is not None:
                yield path


def check_options(settings: Settings, options: BatchOptions) -> None:
    """Make sure that the options can be meant together.

    Raises:
        UsageError: they cannot.
    """
    wrong = {
        "--resume needs --recording: the file with the run to go on with": options.plan.resume
        and options.recording is None,
        "--retry-errors goes with --resume": options.plan.retry_errors and not options.plan.resume,
        "--limit and --sample both choose the questions; give one of them": bool(
            settings.limit and settings.sample
        ),
        "--offline takes replies from the cache, which --no-cache forbids": settings.offline and not settings.cache,
        "--fail-under takes an accuracy, a number from 0 to 1": options.fail_under is not None
        and not 0 <= options.fail_under <= 1,
        "--estimate starts no run: it goes without --resume": options.estimate and options.plan.resume,
    }
    for sentence, applies in wrong.items():
        if applies:
            raise UsageError(sentence)
    for url in (settings.redis_url, settings.qdrant_url) if settings.offline else ():
        if url is not None and not is_loopback(url):
            raise UsageError(f"--offline reaches no network, and {without_secrets(url)} is on one")


def without_effect_on_tests(settings: Settings, options: BatchOptions) -> str | None:
    """The options that change nothing where only tests are run, in one sentence; None where there are none."""
    idle = {
        "--shuffle-choices": settings.shuffle_choices,
        "--evidence": options.evidence is not None,
        "--answer-key": options.answer_key is not None,
        "--perceive": options.plan.perceive,
    }
    given = [name for name, is_given in idle.items() if is_given]
    if not given:
        return None
    names = ", ".join(given)
    why = "they choose among no options, name no evidence, and read memory at every turn"
    return f"{names}: without effect on tests; {why}"
