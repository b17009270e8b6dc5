"""``memreplay rejudge``: the same answers under several judges and rubrics, and where wrong ones were lost."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from memreplay.batch.estimate import print_estimate
from memreplay.batch.rejudge import estimate_rejudging
from memreplay.batch.rejudge import rejudge as judge_again
from memreplay.batch.report import results_of_run
from memreplay.batch.writers import STANDARD_OUTPUT, check_outputs
from memreplay.cli.options import COMMAND_OPTIONS, GivenSettings, takes_settings
from memreplay.errors import EXIT_INTERRUPTED, EXIT_QUESTION_ERRORS, EXIT_STOPPED, UsageError
from memreplay.files import write_whole
from memreplay.llm.judging import BY_STAGES, rubric_named
from memreplay.numbers import counted
from memreplay.printable import printable
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.recording.rejudgements import JudgePair, judgements_of, pairs_in
from memreplay.recording.run_rows import store_scores
from memreplay.rich_console import terminal_console
from memreplay.scoring.judges import (
    RULES,
    AnswerKeyOf,
    Verdicts,
    accuracies,
    agreements,
    calibrations,
    rankings,
    splits,
)
from memreplay.scoring.question_row import QuestionRow
from memreplay.settings import read_settings
from memreplay.terminal import say
from memreplay.timeline.timeline import ask_key
from memreplay.views.judges import judges_text, stages_judged
from memreplay.views.remarks import listed_reasons
from memreplay.views.table import Table, for_terminal

command = typer.Typer(**COMMAND_OPTIONS)

_WIDTH_WITHOUT_TERMINAL = 140


@command.command()
@takes_settings("api_base", "concurrency", "rpm", "tpm", "timeout", "cache", "offline")
def rejudge(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    judge: Annotated[
        list[str] | None, typer.Option(metavar="MODEL", help="Model that judges the answers. Repeatable.")
    ] = None,
    rubric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE",
            help="What a judge accepts as right: auto, plain, locomo, longmemeval, or a text file. With stages it"
            " says where wrong answers were lost. Repeatable. [default: auto]",
        ),
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="ID", help="Run to judge. [default: the newest]")] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Also write the comparison here: .html, .json, or - for JSON on standard output. Repeatable.",
        ),
    ] = None,
    *,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Count calls, tokens and cost; call no model.")
    ] = False,
    given: GivenSettings,
) -> None:
    """Judge the same answers by several judges and rubrics, and compare them.

    Each answer is paid for once a judge and rubric; run the same command again to continue after an interruption.
    Without --judge it shows what was judged before, and asks no model.

    --rubric stages grades nothing: of each wrong answer the judge says whether the prompt gives the expected
    answer, and if not, whether what memory stored does. It then decides where the fact was lost, in all reports and
    screens; where the rules say another stage, the verdict is uncertain.
    """
    outputs = tuple(dict.fromkeys(output or ()))
    check_outputs(outputs, (".html", ".json"), inputs=(file,))
    settings = read_settings(**given)
    judges = tuple(dict.fromkeys(judge or ()))
    rubrics = [rubric_named(name) for name in dict.fromkeys(rubric or ("auto",))]
    if rubric and not judges:
        raise UsageError("--rubric needs a --judge")
    if len(judges) > 1 and any(each.name == BY_STAGES for each in rubrics):
        raise UsageError(f"--rubric {BY_STAGES}: name one --judge, which decides where answers were lost")
    if estimate:
        if not judges or outputs:
            raise UsageError("--estimate needs a --judge, and writes no --output")
        print_estimate(asyncio.run(estimate_rejudging(file, run, settings, judges, rubrics)), "answers")
        return
    ending = asyncio.run(judge_again(file, run, settings, judges, rubrics)) if judges else "complete"
    missing = _show(file, run, outputs, asked=bool(judges))
    if ending != "complete":
        say(f"{ending}; every judgement so far is recorded. To continue, run the same command again")
        raise typer.Exit(EXIT_INTERRUPTED if ending == "interrupted" else EXIT_STOPPED)
    if missing:
        raise typer.Exit(EXIT_QUESTION_ERRORS)


def _show(file: Path, run_id: str | None, outputs: tuple[str, ...], *, asked: bool) -> int:
    """Print the comparison of all judges of a run; return how many answers a judge gave no verdict on.

    ``asked``: a judge was to judge now. If nothing is judged then, there was nothing to judge.
    """
    with closing(Recording.open(file)) as recording, reporting_damage(file):
        run = recording.run(run_id)
        pairs = pairs_in(recording, run.id)
        of_stages = _problems_of_stages(recording, run.id)
        if not pairs and not of_stages and not asked:
            raise UsageError(f"{file}: no judge has judged run {run.id} again; name one with --judge")
        rows = results_of_run(recording, run).questions if of_stages else ()
        by_judge, problems = _verdicts(recording, run.id, pairs)
        problems |= of_stages
        labels, by_rules = _by_hand_and_by_rules(recording, run.id)
        by_rules = {key: right for key, right in by_rules.items() if any(key in each for each in by_judge.values())}
        questions = {
            (conversation_id, question.id): question.text
            for conversation_id in recording.conversation_ids(run.id)
            for question in recording.conversation(run.id, conversation_id).questions
        }
    missing = [
        f"{pair} gave no verdict on {counted(reasons.total(), 'answer')}: {listed_reasons(reasons)}."
        for pair, reasons in problems.items()
        if reasons
    ]
    if rows and asked:
        store_scores(file, run.id, rows)
    figures = json.dumps(_figures(by_judge, by_rules, labels, rows), ensure_ascii=False, indent=2) + "\n"
    for path in outputs:
        if path == STANDARD_OUTPUT:
            sys.stdout.write(figures)
        elif Path(path).suffix == ".html":
            from memreplay.pages.judges import judges_page

            command = shlex.join(["memreplay", "rejudge", file.name, "--run", run.id])
            write_whole(path, judges_page(run.id, by_judge, by_rules, labels, questions, missing, command, rows))
        else:
            write_whole(path, figures)
    if STANDARD_OUTPUT not in outputs:
        console = terminal_console(width=_WIDTH_WITHOUT_TERMINAL)
        for part in judges_text(by_judge, by_rules, labels, questions, missing, rows):
            if isinstance(part, Table):
                console.print(Text(printable(part.title), style="bold"))
                console.print(for_terminal(part))
            else:
                print(printable(part))
    return sum(reasons.total() for reasons in problems.values())


def _verdicts(
    recording: Recording, run_id: str, pairs: list[JudgePair]
) -> tuple[dict[str, Verdicts], dict[str, Counter[str]]]:
    """Return by judge and rubric the verdicts, and how often there is none for which reason."""
    by_judge: dict[str, Verdicts] = {}
    problems: dict[str, Counter[str]] = {}
    for pair in pairs:
        verdicts: dict[AnswerKeyOf, bool] = {}
        reasons = problems[str(pair)] = Counter()
        for conversation_id in recording.conversation_ids(run_id):
            for ask, judgement in judgements_of(recording, run_id, conversation_id, pair).items():
                if judgement.verdict is None:
                    reasons[judgement.problem or "no reason given"] += 1
                else:
                    verdicts[(conversation_id, *ask)] = judgement.verdict == "right"
        by_judge[str(pair)] = verdicts
    return by_judge, problems


def _problems_of_stages(recording: Recording, run_id: str) -> dict[str, Counter[str]]:
    """Return by judge of stages how often it gave no verdict for which reason; nothing where none was asked."""
    problems: dict[str, Counter[str]] = {}
    for conversation_id in recording.conversation_ids(run_id):
        for _, _, judgement in recording.stages_judged(run_id, conversation_id):
            reasons = problems.setdefault(str(JudgePair(judgement.judge, BY_STAGES)), Counter())
            if judgement.verdict is None:
                reasons[judgement.problem or "no reason given"] += 1
    return problems


def _by_hand_and_by_rules(recording: Recording, run_id: str) -> tuple[Verdicts, Verdicts]:
    """Return the labels of answers, and what the rules say of these, even where a judge decided in the run."""
    by_hand: dict[AnswerKeyOf, bool] = {}
    by_rules: dict[AnswerKeyOf, bool] = {}
    for conversation_id in recording.conversation_ids(run_id):
        labels = recording.labels(run_id, conversation_id)
        for answer in recording.asks(run_id, conversation_id):
            asked = answer.asked
            if asked.by_hand:
                continue
            key = (conversation_id, asked.backend, asked.model, asked.question_id, asked.repeat)
            if (label := labels.get(ask_key(asked))) is not None:
                by_hand[key] = label == "right"
            if answer.scored is not None:
                outcome = (answer.scored.score.grader or answer.scored.score).outcome
                by_rules |= {key: outcome == "correct"} if outcome != "error" else {}
    return by_hand, by_rules


def _figures(
    by_judge: dict[str, Verdicts], by_rules: Verdicts, labels: Verdicts, rows: Sequence[QuestionRow]
) -> dict[str, Any]:
    by_all = {RULES: by_rules, **by_judge}
    return {
        "schema_version": 1,
        "accuracy": [{**vars(each), "share": each.share} for each in accuracies(by_all)],
        "agreement": [{**vars(each), "share": each.share, "kappa": each.kappa} for each in agreements(by_all)],
        "rankings": rankings(by_judge).places,
        "splits": [
            {
                **dict(zip(("conversation", "backend", "model", "question_id", "repeat"), key, strict=True)),
                "right_by": said,
            }
            for key, said in splits(by_judge)
        ],
        "calibration": [vars(each) for each in calibrations(by_all, labels)],
        "labels": len(labels),
        "stages": [
            {"judge": judge, "by_rules": by_rules, "by_judge": said, "answers": number}
            for judge, counts in stages_judged(rows)
            for (by_rules, said), number in counts.items()
        ],
    }
