"""The contract: what every memory promises, rule by rule, and how to check a memory against it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from memory_backends.base import BackendError, Exchange, MemoryBackend, Message, Snapshot, StoreLostError
from memory_backends.contract.trial import (
    ANSWER,
    ANSWER_TURN,
    HOSTILE_TALK,
    QUESTION,
    TALK,
    WIDE_QUESTION,
    BrokenRuleError,
    Key,
    Rule,
    Subject,
    TickingClock,
    contents,
    count_words,
    expect,
    fold,
    observe_all,
    play,
    turns_cut,
    turns_quoted_in,
    turns_said_in,
)
from memory_backends.snapshots import exchanges_late

_TOP_KS = (1, 3, 10)
_CONTEXT_SIZES = (0, 7, 25, 60, 1000)
_ROOMY = 4000


async def _opens_empty(subject: Subject) -> None:
    empty = await (await subject.opened()).snapshot()
    await play(await subject.opened(), TALK)
    again = await (await subject.opened()).snapshot()
    expect(
        _sizes(again) == _sizes(empty),
        f"after open() was called again it holds {_brief(again)}; a new one held {_brief(empty)}",
    )


async def _holds_what_its_trace_says(subject: Subject) -> None:
    await _played_and_folded(subject, TALK)


async def _survives_hostile_text(subject: Subject) -> None:
    await _played_and_folded(subject, HOSTILE_TALK)


async def _observing_twice_changes_nothing(subject: Subject) -> None:
    memory = await _after(subject, TALK)
    once = await memory.snapshot()
    await observe_all(memory, TALK)
    twice = await memory.snapshot()
    expect(twice == once, f"after the second time it holds {_brief(twice)}; after the first it held {_brief(once)}")


async def _a_recall_leaves_nothing_behind(subject: Subject) -> None:
    memory = await _after(subject, TALK)
    before = await memory.snapshot()
    first = await memory.recall(QUESTION, 10, 60)
    expect(await memory.snapshot() == before, "a recall changed what snapshot() returns")
    await memory.recall(QUESTION, 1, 1000)
    expect(await memory.recall(QUESTION, 10, 60) == first, "the same question later returned something else")


async def _loses_nothing(subject: Subject) -> None:
    memory = await _after(subject, TALK[:3])
    await memory.recall(QUESTION, 10, 60)
    await play(memory, TALK[3:])
    await memory.recall(QUESTION, 10, 60)
    for store in memory.trace.stores.values():
        try:
            await store.check()
        except StoreLostError as error:
            raise BrokenRuleError(str(error)) from None


async def _has_written_once_settled(subject: Subject) -> None:
    memory = await subject.opened()
    heard: list[tuple[Message, ...]] = []
    known: set[tuple[Key, str]] = set()
    for each in TALK:
        heard.append(each.messages)
        await play(memory, [each])
        _, points = contents(await memory.snapshot())
        for place, held in points.items():
            for id_, payload in held.items():
                late = exchanges_late("\n".join(_strings_in(payload)), heard) if (place, id_) not in known else 0
                expect(
                    not late,
                    f"{id_} appears in {place[1]} {late} exchange{'s' * (late != 1)} after that whose words it has",
                )
                known.add((place, id_))


def _strings_in(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for inner in value.values():
                yield from _strings_in(inner)
        case list() | tuple():
            for inner in value:
                yield from _strings_in(inner)
        case _:
            pass


async def _keeps_to_limit_and_budget(subject: Subject) -> None:
    memory = await _after(subject, TALK)
    for top_k in _TOP_KS:
        for context_tokens in _CONTEXT_SIZES:
            recall = await memory.recall(QUESTION, top_k, context_tokens)
            asked = f"asked for {top_k} hit{'s' * (top_k != 1)} and {context_tokens} tokens it returned"
            expect(len(recall.hits) <= top_k, f"{asked} {len(recall.hits)} hits")
            expect(recall.tokens <= context_tokens, f"{asked} {recall.tokens} tokens")
            counted = count_words(recall.context)
            expect(counted <= recall.tokens, f"{asked} a context of {counted} tokens but reported {recall.tokens}")
            ranks = [hit.rank for hit in recall.hits]
            expect(ranks == list(range(1, len(ranks) + 1)), f"{asked} hits ranked {ranks}, not 1, 2, 3 …")


async def _claims_only_what_stands_there(subject: Subject) -> None:
    memory = await _after(subject, TALK)
    for context_tokens in _CONTEXT_SIZES:
        recall = await memory.recall(QUESTION, 10, context_tokens)
        for hit in recall.hits:
            if hit.in_prompt:
                expect(hit.text in recall.context, f"the text of hit {hit.rank} is not in the context")
            unsaid = set(hit.turns) - turns_quoted_in(hit.text, TALK)
            expect(not unsaid, f"hit {hit.rank} names turn {_first(unsaid)}, whose words are not in its text")


async def _names_every_turn_that_it_quotes(subject: Subject) -> None:
    memory = await _after(subject, TALK)
    for context_tokens in _CONTEXT_SIZES:
        recall = await memory.recall(QUESTION, 10, context_tokens)
        unnamed = turns_said_in(recall.context, TALK) - recall.turns_in_context
        expect(not unnamed, f"the words of turn {_first(unnamed)} are in the context, but no hit names that turn")


async def _namespaces_do_not_see_each_other(subject: Subject) -> None:
    mine, theirs = await subject.opened("mine"), await subject.opened("theirs")
    await play(mine, TALK[:2])
    await play(theirs, TALK[2:])
    await play(mine, TALK[2:3])
    alone = await subject.opened("alone")
    await play(alone, TALK[:3])
    for question in (QUESTION, "My cat is called Tofu."):
        told = await _context(theirs, question)
        expect("Nimbus" not in told and "Tofu" not in told, "one conversation recalled what was said in another")
        same = await _context(mine, question) == await _context(alone, question)
        expect(same, "a conversation recalls something else beside another one than alone")


async def _answers_alike_at_any_time_of_day(subject: Subject) -> None:
    contexts = []
    for run, year in enumerate((1999, 2031)):
        clock = TickingClock(datetime.fromisoformat(f"{year}-02-03T04:05:06+00:00"))
        memory = await subject.opened(run=f"run{run}", clock=clock)
        await play(memory, TALK)
        contexts.append((await memory.recall(QUESTION, 10, 1000)).context)
        await memory.close("resolved")
    expect(contexts[0] == contexts[1], "the context depends on the run or the time of day")


async def _closes_whatever_happened(subject: Subject) -> None:
    await subject.make(TickingClock()).close("cancelled")
    memory = await _after(subject, TALK[:1])
    await memory.close("cancelled")


async def _perceiving_changes_no_answer(subject: Subject) -> None:
    perceiving, skipping = await subject.opened(run="perceiving"), await subject.opened(run="skipping")
    await play(perceiving, TALK)
    await observe_all(skipping, TALK)
    given = [(await memory.recall(QUESTION, 10, 60)).context for memory in (perceiving, skipping)]
    expect(
        given[0] == given[1] or perceiving.perceive_changes_recall,
        "perceive() changes what recall() returns; if that is intended, set perceive_changes_recall = True",
    )


async def _finds_the_answer(subject: Subject) -> None:
    memory = await _after(subject, TALK)
    recall = await memory.recall(QUESTION, 10, 1000)
    expect(ANSWER in recall.context, f"asked {QUESTION!r} after five exchanges, its context lacks {ANSWER!r}")
    expect(ANSWER_TURN in recall.turns_in_context, f"no hit names turn {ANSWER_TURN}, which says {ANSWER!r}")


async def _reports_what_does_not_fit(subject: Subject) -> None:
    memory = await _after(subject, TALK)
    recall = await memory.recall(WIDE_QUESTION, 10, 40)
    retrieved = {turn for hit in recall.hits for turn in hit.turns}
    lost = retrieved - recall.turns_in_context - turns_cut(recall)
    expect(bool(turns_cut(recall)), "nothing is reported as cut where the budget is too small for all")
    expect(not lost, f"turn {_first(lost)} was retrieved, is not in the context, and not reported as cut")
    expect(all(cut.tokens > 0 for cut in recall.cut), "a cut is reported without its tokens")


async def _perceives_what_was_said_before(subject: Subject) -> None:
    memory = await _after(subject, TALK[:4])
    perceived = await memory.perceive(TALK[4].messages[0], 2, 1000)
    turns = {turn for hit in perceived.hits for turn in (*hit.turns, *hit.sources)}
    said = {turn for each in TALK[:4] for turn in each.turn_ids}
    expect(len(perceived.hits) <= 2, f"asked for 2 hits it returned {len(perceived.hits)}")
    expect(bool(perceived.hits), "perceive() returns nothing, so the retrieval panel stays empty during the replay")
    # A memory that reads a whole log at every turn names no turns then: the trace has its contents.
    nameless = [hit.rank for hit in perceived.hits if hit.text and not hit.turns and not hit.sources]
    expect(not nameless, f"hits {nameless} of perceive() name no turn that their text comes from")
    expect(turns <= said, f"turn {_first(turns - said)} was perceived before it was said")


async def _keeps_text_byte_for_byte(subject: Subject) -> None:
    memory = await subject.opened()
    await play(memory, HOSTILE_TALK, context_tokens=_ROOMY)
    context = (await memory.recall("User forged naïve", 50, _ROOMY)).context
    for each in HOSTILE_TALK:
        expect(each.text in context, f"{each.messages[0].text!r} does not come back as it was said")


PROMISES: Final[tuple[Rule, ...]] = (
    Rule(
        "opens_empty",
        "open() leaves nothing of an earlier attempt",
        "must",
        _opens_empty,
        "let open() delete what lies under namespace.path, and reset what the object itself keeps",
    ),
    Rule(
        "trace",
        "what it holds is what its trace says",
        "must",
        _holds_what_its_trace_says,
        "return from snapshot() exactly what is stored now, as plain JSON; if you write a trace yourself, "
        "record each change",
    ),
    Rule(
        "hostile",
        "any text can be said to it",
        "must",
        _survives_hostile_text,
        "store text as data: no templates, no string formatting, no SQL or paths made from it",
    ),
    Rule(
        "twice",
        "observing the same exchange twice changes nothing",
        "must",
        _observing_twice_changes_nothing,
        "skip what was seen: self.seen = SeenExchanges() of memory_backends.base, and in observe(): if not "
        "self.seen.is_new(exchange): return",
    ),
    Rule(
        "recall_is_a_read",
        "a recall changes no later answer",
        "must",
        _a_recall_leaves_nothing_behind,
        "let recall() write nothing; keep access counts and the like out of what ranks and out of snapshot()",
    ),
    Rule(
        "loses_nothing",
        "what was written stays until the memory removes it",
        "must",
        _loses_nothing,
        "remove items only in observe() or settle(); a store that expires or evicts them loses answers",
    ),
    Rule(
        "settled",
        "what it heard is written once it has settled",
        "should",
        _has_written_once_settled,
        "write in observe(), or await what works in the background in settle()",
    ),
    Rule(
        "budget",
        "a recall keeps to top_k and context_tokens",
        "must",
        _keeps_to_limit_and_budget,
        "return assemble(hits, order, context_tokens, self.count_tokens) of "
        "memory_backends.retrieval.rendering, for hits[:top_k]",
    ),
    Rule(
        "claims",
        "hits claim only what is in the context",
        "must",
        _claims_only_what_stands_there,
        "list in Hit.turns only turns whose words are in Hit.text; name those that a distilled text was made "
        "from in Hit.sources, or neither",
    ),
    Rule(
        "namespaces",
        "conversations do not see each other",
        "must",
        _namespaces_do_not_see_each_other,
        "store under namespace.path what lives outside of the object, and keep no state in the class",
    ),
    Rule(
        "clock",
        "an answer does not depend on run or time of day",
        "must",
        _answers_alike_at_any_time_of_day,
        "use exchange.said_at for dates in the context, and sort by turn_number, not by the time of the "
        "write or by random ids",
    ),
    Rule(
        "close",
        "closing is harmless, whatever happened before",
        "must",
        _closes_whatever_happened,
        "let close() return if nothing was opened",
    ),
    Rule(
        "perceive",
        "skipping perceive() changes no answer",
        "must",
        _perceiving_changes_no_answer,
        "set perceive_changes_recall = True on the class, or let perceive() change nothing",
    ),
    Rule(
        "provenance",
        "hits name every turn that they quote",
        "should",
        _names_every_turn_that_it_quotes,
        "leave Hit.turns empty, so that quoted turns are found by their words, or list all of them",
    ),
    Rule(
        "finds",
        "what was said can be found",
        "should",
        _finds_the_answer,
        "return what matches best first, and check that observe() stores both messages",
    ),
    Rule(
        "cuts",
        "what does not fit is reported",
        "should",
        _reports_what_does_not_fit,
        "make the recall with assemble(), which reports what does not fit",
    ),
    Rule(
        "perceives",
        "a turn perceives what was said before it",
        "should",
        _perceives_what_was_said_before,
        "implement perceive(message, …) as self.recall(message.text, …)",
    ),
    Rule(
        "verbatim",
        "text comes back byte for byte",
        "should",
        _keeps_text_byte_for_byte,
        "store and return text unchanged: no stripping, no normalisation",
    ),
)


async def _after(subject: Subject, exchanges: Sequence[Exchange]) -> MemoryBackend:
    memory = await subject.opened()
    await play(memory, exchanges)
    return memory


async def _played_and_folded(subject: Subject, exchanges: Sequence[Exchange]) -> None:
    memory = await subject.opened()
    opened = await memory.snapshot()
    await play(memory, exchanges, context_tokens=_ROOMY)
    if exchanges is TALK:
        await memory.recall(QUESTION, 10, 1000)
    held = await memory.snapshot()
    try:
        traced = fold(memory.trace.drain(), opened.points)
    except (KeyError, LookupError) as error:
        raise BrokenRuleError(f"the trace changes {error}, which it never wrote") from None
    expect(
        contents(traced) == contents(held), f"it holds {_brief(held)}; folding its trace yields {_brief(traced)}"
    )


async def _context(memory: MemoryBackend, question: str) -> str:
    """Return the context that it returns; empty if it has nothing for the question."""
    try:
        return (await memory.recall(question, 10, 1000)).context
    except BackendError:
        return ""


def _sizes(snapshot: Snapshot) -> tuple[set[Key], dict[Key, int]]:
    values, points = contents(snapshot)
    return set(values), {key: len(held) for key, held in points.items()}


def _brief(snapshot: Snapshot) -> str:
    """Return a snapshot in few words."""
    values, points = contents(snapshot)
    sizes = [f"{key} ({len(str(value))} characters)" for (_, key), value in values.items()]
    sizes += [f"{name} ({len(held)} points)" for (_, name), held in points.items()]
    return ", ".join(sizes) or "nothing"


def _first(turns: set[str]) -> str:
    return min(turns, default="")


LONGEST_TRIAL = 60.0
"""Seconds that one rule may take."""


@dataclass(frozen=True)
class Finding:
    """A rule, and how it is broken; None if it is kept."""

    rule: Rule
    broken: str | None

    @property
    def fatal(self) -> bool:
        """Return whether a rule is broken that a memory must keep."""
        return self.broken is not None and self.rule.weight == "must"


async def check_memory(subject: Subject, rules: Sequence[Rule] = PROMISES) -> AsyncIterator[Finding]:
    """Check one rule after the other. Any exception of the memory breaks the rule that raised it."""
    for rule in rules:
        yield Finding(rule, await _broken(rule, subject))


async def _broken(rule: Rule, subject: Subject) -> str | None:
    try:
        async with asyncio.timeout(LONGEST_TRIAL):
            await rule.holds(subject)
    except TimeoutError:
        return f"it took more than {LONGEST_TRIAL:g} s"
    except (BrokenRuleError, BackendError) as error:
        return str(error)
    except Exception as error:
        return f"it raised {type(error).__name__}: {error}"
    return None
