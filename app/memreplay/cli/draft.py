"""``memreplay datasets draft``: a model drafts recall questions about a chat log, and a human decides."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from memreplay.batch.estimate import print_estimate
from memreplay.cli.options import GivenSettings, SessionGap, UserName, log_options, takes_settings
from memreplay.cli.reading_progress import read_conversations
from memreplay.cli.why import exit_code_of
from memreplay.conversations.export import as_test_conversation_text, lost_in_export
from memreplay.conversations.log_options import LogOptions
from memreplay.drafting.drafts import ANSWER_IN_OTHER_WORDS, CHARACTERS_OF_A_PART, DraftBook
from memreplay.drafting.run import Drafting, summary
from memreplay.errors import EXIT_DONE, EXIT_QUESTION_ERRORS, UsageError
from memreplay.files import read_text, refuse_unusable_output, write_whole
from memreplay.numbers import counted
from memreplay.printable import printable
from memreplay.settings import Settings, read_settings
from memreplay.terminal import say

_STANDARD_INPUT = "-"
_ALL = "all"
_SUFFIX = ".questions.json"
_DRAFTS = ".drafts.jsonl"


@takes_settings("model", "api_base", "concurrency", "rpm", "tpm", "timeout", "cache", "offline")
def draft(
    source: Annotated[str, typer.Argument(metavar="LOG", help="Chat log or dataset; - is standard input.")],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write the conversation with its questions. [default: LOG.questions.json]"
        ),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Conversation to draft from, if LOG holds several.")
    ] = None,
    questions: Annotated[
        int, typer.Option(metavar="N", min=1, max=50, help="Most questions from each 1,000 words.")
    ] = 5,
    accept: Annotated[
        str | None,
        typer.Option(
            metavar="all|FILE",
            help="Decide without the screen: accept all drafts whose answer stands in the evidence, or those whose"
            " ids a file lists, one a line.",
        ),
    ] = None,
    later: Annotated[bool, typer.Option("--later", help="Only draft; the same command reviews later.")] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Count calls, tokens and cost; call no model.")
    ] = False,
    session_gap: SessionGap = None,
    user: UserName = None,
    *,
    given: GivenSettings,
) -> None:
    """Draft recall questions about a conversation by a model, then accept or reject each on the screen.

    Everything is kept beside the output in FILE.drafts.jsonl: the same command continues, and pays nothing twice.
    """
    settings = read_settings(**given)
    target = _target(source, output)
    refuse_unusable_output(str(target), (Path(source),))
    book = _book(source, conversation, target, log_options(session_gap, user))
    if estimate:
        print_estimate(asyncio.run(Drafting(book, settings, questions).estimate()), "parts")
        return
    code = _draft(book, settings, questions)
    if accept is not None:
        _accept(book, accept)
    elif code == 0 and not later and book.with_decision("open") and _has_terminal():
        from memreplay.drafting import run_review
        from memreplay.paths import theme_file
        from memreplay.tui.launch import ThemeChoice

        code = run_review(book, settings.keys, ThemeChoice(settings.theme, theme_file()))
    _save(book, target)
    raise typer.Exit(code)


def _target(source: str, output: Path | None) -> Path:
    if output is not None:
        return output
    if source == _STANDARD_INPUT:
        raise UsageError("standard input has no name: say with --output where to write")
    return Path(Path(source).stem + _SUFFIX)


def _book(source: str, conversation_id: str | None, target: Path, options: LogOptions) -> DraftBook:
    (conversation,) = read_conversations(source, conversation_id, options=options)
    book = DraftBook(_drafts_path(target), conversation)
    if not book.exists and target.exists():
        raise UsageError(f"--output {target}: exists, and not from this command; choose another file")
    return book


def _drafts_path(target: Path) -> Path:
    for suffix in (_SUFFIX, ".json"):
        if target.name.endswith(suffix) and target.name != suffix:
            return target.with_name(target.name.removesuffix(suffix) + _DRAFTS)
    return target.with_name(target.name + _DRAFTS)


def _draft(book: DraftBook, settings: Settings, count: int) -> int:
    """Draft what is missing; returns the exit code."""
    drafting = Drafting(book, settings, count)
    if not drafting.left:
        return EXIT_DONE
    say(f"drafting from {counted(len(drafting.left), 'part')} of {printable(book.conversation.id)}")
    long = sum(len(turn.text) > CHARACTERS_OF_A_PART for _, part in drafting.left for turn in part)
    if long:
        verb, whose = ("is", "its") if long == 1 else ("are", "their")
        limit = f"longer than {CHARACTERS_OF_A_PART:,} characters"
        say(f"{counted(long, 'message')} {verb} {limit}: only {whose} beginning is read")
    ending = asyncio.run(drafting.run())
    for problem in drafting.progress.problems:
        say(problem)
    say(summary(drafting.progress, book))
    if ending != "complete":
        say(f"{ending}; every draft so far is kept. To continue, run the same command again")
        return exit_code_of(ending)
    return EXIT_QUESTION_ERRORS if drafting.progress.problems else EXIT_DONE


def _accept(book: DraftBook, accept: str) -> None:
    if accept == _ALL:
        chosen = [draft.id for draft in book.with_decision("open") if book.doubt(draft) is None]
    else:
        chosen = _listed(book, accept)
    for draft_id in chosen:
        book.change(draft_id, decision="accepted")


def _listed(book: DraftBook, path: str) -> list[str]:
    """Return the ids in a file, one a line; Raises UsageError for one that is no draft."""
    try:
        lines = read_text(Path(path)).splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(f"--accept {path}: expected all, or a file with ids of drafts: {error}") from None
    known = {draft.id for draft in book.drafts}
    for number, line in enumerate(lines, start=1):
        if line.strip() and line.strip() not in known:
            raise UsageError(f"{path}: line {number}: {line.strip()} is no draft; expected an id such as 1.1")
    return [line.strip() for line in lines if line.strip()]


def _has_terminal() -> bool:
    return bool(sys.__stdin__ and sys.__stdin__.isatty() and sys.__stderr__ and sys.__stderr__.isatty())


def _save(book: DraftBook, target: Path) -> None:
    """Write the accepted questions once anything was decided, and say what is left."""
    accepted, rejected, left = (book.with_decision(each) for each in ("accepted", "rejected", "open"))
    if accepted or rejected:
        conversation = book.with_questions()
        write_whole(str(target), as_test_conversation_text(conversation))
        counts = f"{len(accepted)} accepted, {len(rejected)} rejected"
        say(f"{counts}; {counted(len(conversation.questions), 'question')} in {target}")
        for phrase in lost_in_export(conversation):
            say(f"left out: {phrase}")
        if conversation.questions:
            say(f"to ask them of every memory: memreplay --batch --dataset {shlex.quote(str(target))}")
    if left:
        doubtful = sum(book.doubt(draft) is not None for draft in left)
        note = f" ({doubtful} of them because {ANSWER_IN_OTHER_WORDS})" if doubtful else ""
        say(
            f"{counted(len(left), 'draft')} in {book.path} not decided{note}: run the same command in a terminal,"
            " or with --accept"
        )
