"""The autopsy of published runs as sentences and tables, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memreplay.numbers import counted, interval, number, share, share_of
from memreplay.published.autopsy import BUDGETS, STAGES, Autopsy, Finding, SystemAutopsy, mean_of
from memreplay.scoring.statistics import cohens_kappa, wilson_interval
from memreplay.text import shortened
from memreplay.views.table import Table

_MOST_EXAMPLES = 5
_LONGEST = 160


@dataclass(frozen=True)
class Section:
    """A part of the page: sentences, tables, and examples in a few words each."""

    title: str
    sentences: Sequence[str]
    tables: Sequence[Table] = ()
    examples: Sequence[str] = ()


def autopsy_sections(autopsy: Autopsy) -> Iterator[Section]:
    """Yield what is to be said of published runs, the most important first."""
    systems = autopsy.systems
    yield Section("What was read", [said for each in systems for said in _read(each)], [_accuracy(systems)])
    yield Section(
        "Where the wrong answers were lost",
        [sentence for each in systems for sentence in _lost(each)],
        [_stages(systems)],
    )
    yield Section("What the contexts hold", [s for each in systems for s in _contexts(each)], list(_sizes(systems)))
    judged = [each for each in systems if any(one.by_rules is not None for one in each.findings)]
    if judged:
        yield Section(
            "Judge and rules",
            [sentence for each in judged for sentence in _judging(each)],
            [_agreement(judged)],
            [example for each in judged for example in _disagreements(each)],
        )
    yield Section("What closed book would give", [s for each in systems for s in _closed_book(each)])
    yield Section("What is odd in the files", list(_oddities(autopsy)))
    if missed := autopsy.missed_by_all:
        yield Section(
            "Questions that all systems miss",
            [f"{counted(len(missed), 'question')} of {autopsy.same_questions:,} that all systems were asked."],
            (),
            [f"{each[0].question_id}: {each[0].question} — expected {_short(each[0].expected)}" for each in missed],
        )


def _short(text: str) -> str:
    return f"“{shortened(text, _LONGEST)}”"


def _read(system: SystemAutopsy) -> Iterator[str]:
    stated = system.published_accuracy
    said = f"; the file states {share(stated)} right" if stated is not None else ""
    judged = f"judged by {system.judge}" if system.is_judged else "not judged in the file, so that our rules decide"
    yield (
        f"{system.name}: {counted(len(system.findings), 'answer')} of {system.model} in {system.file}"
        f" ({system.harness}), {judged}{said}; {system.joined}."
    )
    if system.is_judged and system.unjudged:
        answers = counted(system.unjudged, "answer")
        yield f"{system.name}: {answers} without a judgement in the file, about which our rules decide."
    for remark in system.remarks:
        yield f"{system.name}: {remark}."


def _accuracy(systems: Sequence[SystemAutopsy]) -> Table:
    types = list(dict.fromkeys(each.type for system in systems for each in system.findings))
    rows = []
    for system in systems:
        graded, right = system.graded, len(system.right)
        bounds = wilson_interval(right, len(graded)) if graded else None
        of_type = [[each for each in graded if each.type == name] for name in types]
        rows.append(
            [
                system.name,
                f"{right}/{len(graded)}",
                share(right / len(graded) if graded else None),
                interval(bounds),
                *(share_of(mean_of([float(bool(x.is_right)) for x in found]), len(found)) for found in of_type),
            ]
        )
    return Table.of("Right answers", ["system", "right", "share", "95 %", *types], rows)


def _stages(systems: Sequence[SystemAutopsy]) -> Table:
    used = [stage for stage in STAGES if any(system.stages[stage] for system in systems)]
    rows = [
        [STAGES[stage], *(_part(system.stages[stage], sum(system.stages.values())) for system in systems)]
        for stage in used
    ]
    totals = ["wrong, not answered or not judged", *(str(sum(system.stages.values())) for system in systems)]
    return Table.of("Wrong answers by stage", ["stage", *_names(systems)], [*rows, totals], totals=1)


def _names(systems: Sequence[SystemAutopsy]) -> list[str]:
    """Return the systems' names, with their files where two have the same."""
    names = [each.name for each in systems]
    return [
        name if names.count(name) == 1 else f"{name} ({each.file})"
        for name, each in zip(names, systems, strict=True)
    ]


def _part(count: int, total: int) -> str:
    return f"{count} ({100 * count / total:.0f} %)" if total else "0"


def _lost(system: SystemAutopsy) -> Iterator[str]:
    wrong = system.wrong
    if not wrong:
        yield f"{system.name}: no answer is {'wrong' if system.graded else 'judged'}."
        return
    amounts = {amount: sum(each.evidence == amount for each in wrong) for amount in ("all", "part", "none")}
    known = sum(amounts.values())
    said = f"{system.name}: {counted(len(wrong), 'wrong answer')}"
    if known:
        said += (
            f"; of {known} whose evidence and context are known, {amounts['all']} have all evidence word for word"
            f" in the context, {amounts['part']} a part, {amounts['none']} none"
        )
        said += f"; {sum(bool(each.held) for each in wrong)} contexts hold the answer in some form"
    timed = sum(each.asks_for_time for each in wrong)
    if timed:
        said += f"; {timed} ask for a time"
        when = sum(each.question.strip().lower().startswith("when") for each in wrong)
        said += f", {when} of them with “When”" if when else ""
    yield f"{said}."
    if undated := system.stages["undated"]:
        yield (
            f"{system.name}: {counted(undated, 'wrong answer')} had the evidence but not the date of its session:"
            " not retrieval, but lost dates."
        )
    if named := sum(each.names_day_of_asking for each in wrong):
        yield (
            f"{system.name}: {counted(named, 'wrong answer')} name the day on which the question was asked, or one"
            " of the three before: the reader took the day of asking for the day of saying."
        )


def _contexts(system: SystemAutopsy) -> Iterator[str]:
    given = [each for each in system.findings if each.context_tokens is not None]
    if not given:
        yield f"{system.name}: the file does not give the contexts."
        return
    mean = mean_of([each.context_tokens for each in given])
    ratio = mean_of(
        [each.context_tokens / each.full_tokens for each in given if each.context_tokens and each.full_tokens]
    )
    full = mean_of([each.full_tokens for each in given])
    said = f"{system.name}: a context has {number(mean)} tokens on average"
    if full is not None:
        said += f", the whole conversation with its dates {number(full)}"
    if ratio is not None:
        said += f" ({100 * ratio:.0f} %)"
    yield f"{said}."
    if system.quotes is False:
        yield (
            f"{system.name}: most contexts quote no turn: they are in the memory's own words, in which the answer"
            " is looked for, and evidence word for word says nothing."
        )
    dated = [each for each in given if each.session_dates is not None]
    if dated:
        having = sum(bool(each.session_dates) for each in dated)
        yield f"{system.name}: {having} of {counted(len(dated), 'context')} name the date of any session."


def _sizes(systems: Sequence[SystemAutopsy]) -> Iterator[Table]:
    known = [each for each in systems if each.evidence_at(BUDGETS[-1])[1]]
    if not known:
        return
    rows = []
    for system in known:
        found = [system.evidence_at(budget) for budget in BUDGETS]
        total = found[0][1]
        whole = sum(each.evidence == "all" for each in system.findings)
        held = sum(bool(each.held) for each in system.findings if each.evidence is not None)
        rows.append(
            [
                system.name,
                *(share(n / total) for n, _ in found),
                share(whole / total),
                share(held / total),
                str(total),
            ]
        )
    yield Table.of(
        "All evidence word for word in the first N tokens of the context",
        ["system", *(f"{budget:,}" for budget in BUDGETS), "whole context", "answer in any words", "questions"],
        rows,
    )


def _judging(system: SystemAutopsy) -> Iterator[str]:
    lacking = system.said_to_lack
    if lacking:
        giving = sum(each.gives for each in lacking)
        bare = sum(each.abstains for each in lacking)
        rest = f"; {bare} of them say nothing else" if bare else ""
        rest += f"; {giving} of them give the expected answer all the same" if giving else ""
        yield (
            f"{system.name}: {counted(len(lacking), 'answer')} judged right {_verb(lacking)} that the context"
            f" does not have it{rest}."
        )


def _closed_book(system: SystemAutopsy) -> Iterator[str]:
    guessed, unsupported = system.without_memory
    if not guessed and not unsupported:
        return
    of_all = sum(each.guessable for each in system.graded)
    asked = f"{of_all:,} of {counted(len(system.graded), 'question')}"
    said = f"{system.name}: {asked} can be guessed: with yes or no, or with words of their own"
    if guessed:
        said += f"; {len(guessed):,} of {counted(len(system.right), 'right answer')} are to these"
    if unsupported:
        said += (
            f"; {len(unsupported):,} others rest on a context with neither the answer nor any of the evidence:"
            " the model may give them without any memory"
        )
    yield f"{said}. An estimate: no model was asked."


def _verb(answers: Sequence[Finding]) -> str:
    return "says" if len(answers) == 1 else "say"


def _agreement(systems: Sequence[SystemAutopsy]) -> Table:
    rows = []
    for system in systems:
        judged = [each for each in system.graded if each.by_rules is not None]
        both = sum(bool(each.is_right and each.by_rules) for each in judged)
        only_judge, only_rules = (len(each) for each in system.disagreements)
        neither = len(judged) - both - only_judge - only_rules
        kappa = cohens_kappa(both, only_judge, only_rules, neither)
        rows.append([system.name, str(both), str(only_judge), str(only_rules), str(neither), number(kappa, 2)])
    headings = [
        "system",
        "both right",
        "right by the judge alone",
        "right by the rules alone",
        "both wrong",
        "kappa",
    ]
    return Table.of("The published judgement and our rules", headings, rows)


def _disagreements(system: SystemAutopsy) -> Iterator[str]:
    by_judge, by_rules = system.disagreements
    lacking = [each for each in by_judge if each.lacks]
    shown = [*by_rules[:_MOST_EXAMPLES], *lacking, *(each for each in by_judge if not each.lacks)]
    for each in shown[: 2 * _MOST_EXAMPLES]:
        yield f"{system.name}: {_example(each)}"


def _example(each: Finding) -> str:
    side = "judged right, wrong by the rules" if each.is_right else "judged wrong, right by the rules"
    reason = f" The judge: {_short(each.judge_reason)}" if each.judge_reason else ""
    return (
        f"{each.question_id}: {side}. Asked {_short(each.question)}, expected {_short(each.expected)},"
        f" answered {_short(each.reply)}.{reason}"
    )


def _oddities(autopsy: Autopsy) -> Iterator[str]:
    for system in autopsy.systems:
        if repeated := system.repeated:
            ids = ", ".join(dict.fromkeys(each.question_id for each in repeated[:_MOST_EXAMPLES]))
            answers = counted(len(repeated), "answer")
            yield f"{system.name}: {answers} to a question that was answered before ({ids})."
        for (written, meant), count in system.mixed_up.most_common():
            questions = counted(count, "question")
            yield f"{system.name}: {questions} of the dataset's category {meant} called {written}."
        graded = system.graded
        counted_share = len(system.right) / len(graded) if graded else None
        stated = system.published_accuracy
        if stated is not None and counted_share is not None and abs(stated - counted_share) > _ROUNDING:
            yield f"{system.name}: the file states {share(stated)} right, its rows give {share(counted_share)}."
        for problem in system.problems[:_MOST_EXAMPLES]:
            yield f"{system.name}: not read: {problem}."
        if len(system.problems) > _MOST_EXAMPLES:
            yield f"{system.name}: {len(system.problems) - _MOST_EXAMPLES:,} more parts could not be read."


_ROUNDING = 0.0015


def autopsy_text(sections: Sequence[Section]) -> Iterator[str | Table]:
    """Yield the lines and tables for a terminal."""
    for section in sections:
        if not (section.sentences or section.tables or section.examples):
            continue
        yield section.title.upper()
        yield from section.sentences
        yield from section.tables
        yield from (f"- {example}" for example in section.examples[: 2 * _MOST_EXAMPLES])
        if len(section.examples) > 2 * _MOST_EXAMPLES:
            yield f"- and {len(section.examples) - 2 * _MOST_EXAMPLES:,} more, which an HTML page has"
        yield ""
