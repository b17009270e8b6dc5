"""Asks the writing model of a finished run again without a screen, about the facts that it never wrote."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from memreplay.llm.rate_limiter import ModelUnavailableError, StoppedError
from memreplay.numbers import counted, dollars
from memreplay.printable import printable
from memreplay.recording.reader import Recording
from memreplay.runtime.models import RunModels
from memreplay.runtime.recorded import settings_of_run
from memreplay.runtime.rewriting import Rewritten, WriterChange, WriterChanges, ask_again, estimate_of, lost_facts
from memreplay.settings import Settings
from memreplay.terminal import say
from memreplay.text import shortened, with_semicolons
from memreplay.trust import Consent

_LONGEST_SHOWN = 300


async def ask_writer_again(
    path: Path,
    run_id: str | None,
    given: Settings,
    wanted: WriterChanges,
    consent: Consent,
    *,
    limit: int | None,
    only_estimate: bool,
) -> bool:
    """Print, for each fact that was never written, what the writer would have it store under each change.

    Returns whether every call got a reply. What it takes is printed first.

    Raises:
        MemreplayError: the recording is unusable, or may not decide what it asks for; nothing was asked.
    """
    with closing(Recording.open(path)) as recording:
        run = recording.run(run_id)
        settings = settings_of_run(run.settings, given, path, consent)
        facts = list(lost_facts(recording, run.id))[:limit]
        if not facts:
            say("no fact of a wrong answer was lost by a writing model whose calls are recorded")
            return True
        for model, row in estimate_of(facts, wanted).items():
            price = row.price(model)
            say(
                f"asking {model} again about {counted(len(facts), 'fact')}: {counted(row.asked, 'call')}, about"
                f" {row.prompt_tokens:,} + {row.reply_tokens:,} tokens, {dollars(price)}"
            )
        if only_estimate:
            return True
        models = RunModels(settings, lambda: run.id, lambda sentence: say(f"warning: {sentence}"))
        paid, complete, unpriced = 0.0, True, False
        try:
            if models.writing_model is None:
                say(f"{path}: the run names no --extractor, so that its writer cannot be called")
                return False
            await models.warm_up()
            for fact in facts:
                print(printable(f"{fact.question_id} ({fact.backend}), turn {fact.turn}: {fact.finding.sentence}"))
                for change in wanted.names:
                    made = await ask_again(fact, change, wanted, models.writing_model, settings)
                    complete &= made.reading != "failed"
                    paid += made.cost_usd or 0.0
                    unpriced |= made.cost_usd is None
                    print(printable(f"    {_words(made, change, wanted)}"))
        except (StoppedError, ModelUnavailableError) as error:
            say(str(error))
            return False
        finally:
            models.close()
        say(f"paid {'unknown' if unpriced and not paid else dollars(paid)}; nothing was stored")
        return complete


def _words(made: Rewritten, change: WriterChange, wanted: WriterChanges) -> str:
    """Return what a memory would have stored, in words."""
    what = change.replace("_", " ") + (f" ({wanted.model})" if change == "other_model" else "")
    if made.problem is not None:
        return f"{what}: {made.problem}"
    if not made.facts:
        return f"{what}: nothing would be stored ({made.reading})"
    told = "with the answer" if made.holds else "without the answer"
    return f"{what}: would store, {told}: {shortened(with_semicolons(made.facts), _LONGEST_SHOWN)}"
