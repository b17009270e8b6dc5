"""The sentences below the tables of results: what each comparison says, and caveats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from memory_backends.controls import CLOSED_BOOK, CONTROLS, ORACLE, can_be_retried
from memreplay.conversations.option_style import OptionStyle
from memreplay.llm import AGENT_MODEL, EXTRACTIVE_MODEL
from memreplay.numbers import UNKNOWN, counted, dollars, share
from memreplay.printable import printable
from memreplay.scoring.agreement import RATERS, Disagreement, JudgeResults
from memreplay.scoring.attribution import verdict_failure
from memreplay.scoring.comparisons import NEARLY_ALL, contestants_of, unequal_prompts
from memreplay.scoring.counterfactuals import Ceiling
from memreplay.scoring.groups import facts_of, key_of
from memreplay.scoring.results import BackendResults, Comparison, Results
from memreplay.scoring.verdicts import WRONG
from memreplay.scoring.writer import CAUSES
from memreplay.text import shortened
from memreplay.views.judges import stages_sentences

_DISAGREEMENTS = 5
_LONGEST_TEXT = 120
_MOST_IN_DOUBT = 20
_REASONS = 3


def remarks(results: Results) -> list[str]:
    """Return the sentences below the tables: each comparison, and caveats."""
    sentences = _partial_sentences(results)
    sentences += _sample_sentences(results)
    sentences += _prompt_sentences(results)
    sentences += _reader_sentences(results)
    sentences += _fit_sentences(results)
    sentences += _twin_sentences(results)
    sentences += _estimate_sentences(results)
    sentences += [f"{each.words}." for each in (*results.prompt_comparisons, *results.comparisons)]
    sentences += _comparison_sentences(results)
    sentences += [*_judge_sentences(results), *_disagreement_sentences(results)]
    sentences += _error_sentences(results)
    sentences += stages_sentences(results.questions)
    sentences += _verdict_sentences(results)
    sentences += _writer_sentences(results)
    sentences += _abstention_sentences(results)
    sentences += [_style_sentence(dataset, style) for dataset, style in results.option_style.items()]
    sentences += _evidence_sentences(results)
    sentences += _f1_sentences(results)
    if any(row.failure == "guessed" and row.closed_book_correct is None for row in results.questions):
        sentences.append("guessed: or lucky; without a closed_book answer the two cannot be told apart.")
    if results.answer_key is not None:
        key = results.answer_key
        sentences.append(
            f"adjusted: by {key.file}, which corrects {key.questions} of the questions asked"
            f" ({counted(key.corrections, 'correction')} in all)."
        )
    if any(backend.model == EXTRACTIVE_MODEL for backend in results.backends.values()):
        sentences.append(f"{EXTRACTIVE_MODEL} picks sentences and options; it is not a language model.")
    return [*sentences, *_test_sentences(results), *_what_if_sentences(results)]


def _writer_sentences(results: Results) -> Iterator[str]:
    """Yield what became of the calls of the models that write, and of the facts that were never written."""
    for name, backend in results.backends.items():
        writing = backend.writing
        if writing is not None and writing.writer_calls:
            chats = writing.writer_calls
            reason = shortened(writing.unusable or "no reason given", _LONGEST_TEXT)
            if writing.unusable_calls == chats:
                yield (
                    f"writer: none of {counted(chats, 'call')} of {name} to write gave a usable reply ({reason}):"
                    " its figures are those of a memory whose writer did not work."
                )
            elif writing.unanswered_calls:
                yield (
                    f"writer: {writing.unanswered_calls:,} of {counted(chats, 'call')} of {name} to write failed,"
                    f" so that it knows less; most common reason: {reason}."
                )
            if writing.cut_calls:
                yield (
                    f"writer: {writing.cut_calls:,} of {counted(chats, 'call')} of {name} to write were cut by the"
                    f" limit of {writing.cut_at:,} tokens."
                )
            if writing.unread_calls:
                yield f"writer: {writing.unread_calls:,} of {counted(chats, 'reply')} to {name} could not be read."
            if writing.unread_facts:
                yield f"writer: {counted(writing.unread_facts, 'fact')} in replies to {name} could not be read."
            if writing.empty_calls:
                yield f"writer: {writing.empty_calls:,} of {counted(chats, 'reply')} to {name} named no fact."
    causes = Counter(
        (row.backend, row.failure_writer) for row in results.questions if row.failure_writer is not None
    )
    for memory in dict.fromkeys(name for name, _ in causes):
        said = [f"{count:,}: {CAUSES[cause]}" for (name, cause), count in causes.most_common() if name == memory]
        yield f"never written by {memory}: {'; '.join(said)}."


_MOST_CONCLUSIONS = 3


def headline_remarks(results: Results) -> list[str]:
    """Return what stands below the one table for a terminal: where facts were lost, and which memory is better.

    What makes figures partial or wrong is said too: a run that is not over, a sample, errors.
    """
    sentences = _partial_sentences(results)
    sentences += _sample_sentences(results)
    sentences += _prompt_sentences(results)
    sentences += _judge_sentences(results)
    sentences += _interval_sentences(results)
    sentences += _uncertain_sentences(results)
    sentences += list(_lost_sentences(results))
    sentences += conclusions(results)
    sentences += _error_sentences(results)
    sentences += stages_sentences(results.questions)
    sentences += _verdict_sentences(results)
    sentences += _writer_sentences(results)
    if any(backend.model == EXTRACTIVE_MODEL for backend in results.backends.values()):
        sentences.append(f"{EXTRACTIVE_MODEL} picks sentences and options; it is not a language model.")
    return sentences


def _estimate_sentences(results: Results) -> list[str]:
    """Return which memories' figures at equal tokens are estimates, and what measures them."""
    named = [
        name
        for name, backend in results.backends.items()
        if backend.retrieval is not None
        and any(held.estimated for held in (backend.retrieval.at_tokens or {}).values())
    ]
    if not named:
        return []
    return [
        f"~: estimated for {', '.join(named)}, since such a memory composes its prompt anew for each budget;"
        " memreplay sweep FILE --over context-tokens=N asks it."
    ]


_FEW_CONVERSATIONS = 5


def _interval_sentences(results: Results) -> list[str]:
    """Return that intervals are over conversations, where these are so few that the intervals are very wide."""
    numbers = {
        backend.headline.conversations
        for backend in results.backends.values()
        if backend.headline.ci95_clustered is not None and backend.headline.conversations < _FEW_CONVERSATIONS
    }
    return [f"95 %: intervals over {max(numbers)} conversations; so few make them wide."] if numbers else []


def _uncertain_sentences(results: Results) -> list[str]:
    """Return how many right answers each memory has if its uncertain grades are all wrong, and all right."""
    found = [
        f"{name} {uncertain.right[0]} to {uncertain.right[1]}"
        for name, backend in results.backends.items()
        if (uncertain := backend.headline.uncertain) is not None
    ]
    if not found:
        return []
    return [f"uncertain grades leave open how many are right: {', '.join(found)}; --judge decides."]


def conclusions(results: Results) -> list[str]:
    """Return in at most three everyday sentences what a run says of its memories."""
    found = [*_reader_sentences(results), *_fit_sentences(results), *_everyday_conclusions(results)]
    return found[:_MOST_CONCLUSIONS]


def _lost_sentences(results: Results) -> Iterator[str]:
    """Yield for each memory at which stage its wrong answers were lost, and how many of these are uncertain; then
    what decides.
    """
    is_uncertain = False
    for name, rows in contestants_of(results.questions).items():
        counts = Counter(row.failure for row in rows)
        uncertain = Counter(row.failure for row in rows if row.failure_doubt is not None)
        lost = [
            f"{counts[label]} {label.replace('_', ' ')}"
            + (f" ({uncertain[label]} uncertain)" if uncertain[label] else "")
            for label in WRONG
            if label != "error" and counts[label]
        ]
        if lost:
            yield f"{name} lost: {', '.join(lost)}."
        is_uncertain |= bool(uncertain) and all(row.failure_judge is None for row in rows)
    if is_uncertain:
        yield "uncertain stages: memreplay rejudge --rubric stages asks a judge where these answers were lost."


_FLOOR = 0.6
"""Accuracy with the evidence itself below which it tells more of the reader than of the memories."""


def _reader_sentences(results: Results) -> list[str]:
    """Say of each model that fails even with the evidence that what reaches the prompt comes first."""
    return [
        f"{_reader_of(results, oracle)} finds only {found.in_prompt_right} of {counted(found.total, 'answer')}"
        f" ({share(found.in_prompt_right / found.total)}) with the evidence in front of it (oracle), so that"
        f" accuracy says little of the memories.{_held_in_prompts(results, oracle.model)}"
        for oracle in results.backends.values()
        if oracle.backend == ORACLE and (found := oracle.headline.evidence_by_answer) is not None
        if found.in_prompt_right < _FLOOR * found.total
    ]


def _reader_of(results: Results, of: BackendResults) -> str:
    several = len({backend.model for backend in results.backends.values()}) > 1
    return of.model if several else "The reader"


def _held_in_prompts(results: Results, model: str) -> str:
    held = [
        f"{name} {share(backend.retrieval.answer_in_prompt)}"
        for name, backend in results.backends.items()
        if backend.retrieval is not None and backend.backend not in CONTROLS and backend.model == model
    ]
    return f" Compare what reaches the prompt: {', '.join(held)} of the answers." if held else ""


def _everyday_conclusions(results: Results) -> list[str]:
    """Return which memory is better than which on these questions, the widest lead first, and where that cannot be
    told. Nothing is concluded of a pair with a control, which has a p of its own but none in the family.

    Where a reader fails even with the evidence, what reaches the prompt stands before accuracy, lead by lead; where
    accuracy tells nothing apart, it stands behind that sentence.
    """
    memories = [each for each in results.comparisons if each.n and each.p_holm is not None]
    prompts = [each for each in results.prompt_comparisons if each.n and each.metric == "answer_in_prompt"]
    right, held = _leads(memories), _leads(prompts)
    if not _reader_sentences(results):
        return right or ([_undecided(memories), *held] if memories else [])
    if prompts and not held and not _fit_sentences(results):
        held = [_undecided(prompts)]
    return [lead for pair in zip_longest(held, right) for lead in pair if lead is not None]


def _leads(compared: Iterable[Comparison]) -> list[str]:
    widest_first = sorted(filter(_is_clear, compared), key=lambda each: -abs(each.difference or 0))
    return [*map(_in_everyday_words, widest_first)]


def _undecided(compared: Sequence[Comparison]) -> str:
    """Return why none of these pairs has a clear lead."""
    widest = max(compared, key=lambda each: abs(each.only_a - each.only_b))
    is_prompt = widest.metric != "accuracy"
    if widest.smallest_p is not None and widest.smallest_p >= _CLEAR and widest.only_a != widest.only_b:
        return (
            f"{_counts(widest)}, but they differ in only {counted(widest.conversations_differing, 'conversation')}"
            f" of {widest.conversations}: too few to say whether that holds for others."
        )
    asked, better = ("facts", "brings more into the prompt") if is_prompt else ("questions", "answers better")
    return f"These {asked} are too few, or the memories too alike, to say which of them {better}."


_CLEAR = 0.05


def _is_clear(compared: Comparison) -> bool:
    return compared.p_holm is not None and compared.p_holm < _CLEAR and not compared.decided_by_default_limit


def _in_everyday_words(compared: Comparison) -> str:
    parts = [_counts(compared), unequal_prompts(compared)]
    if not compared.significant:
        parts.append("other conversations may give another result")
    return f"{'; '.join(filter(None, parts))}."


def _counts(compared: Comparison) -> str:
    a, b = (compared.both_right + only for only in (compared.only_a, compared.only_b))
    better, worse = (compared.a, compared.b) if a > b else (compared.b, compared.a)
    if compared.metric == "answer_in_prompt":
        return (
            f"{better} brings more answers into the prompt than {worse} here: {max(a, b)} against {min(a, b)} of"
            f" the same {counted(compared.n, 'fact')}"
        )
    return (
        f"{better} is better than {worse} here: {max(a, b)} against {min(a, b)} right of the same"
        f" {counted(compared.n, 'question')}"
    )


_TESTS = {
    "mcnemar_exact": "McNemar's test",
    "sign_flip_facts": "(approximately) the sign-flip test over facts",
    "sign_flip_exact": "(approximately) the sign-flip test over conversations",
}


def _comparison_sentences(results: Results) -> list[str]:
    """Return how the sentences on pairs are to be read."""
    compared = [*results.prompt_comparisons, *results.comparisons]
    if not any(comparison.detectable is not None for comparison in compared):
        return []
    family = max(comparison.family for comparison in compared)
    parts = []
    level = ".05"
    if family > 1:
        parts.append(f"adjusted for {family} pairs of memories, p by Holm and intervals by Bonferroni")
        controls = any(comparison.family == 0 and comparison.n for comparison in compared)
        level = f".05/{family}{' (.05 for a pair with a control)' if controls else ''}"
    if any(row.repeat for row in results.questions):
        parts.append("a question counts as right if more than half of its repeats are")
    tests = {comparison.test for comparison in compared if comparison.detectable is not None}
    names = [name for test, name in _TESTS.items() if test in tests]
    parts.append(
        f"detectable is the smallest difference that {' or '.join(names)} at {level} finds with a power of 80 %"
    )
    return [f"comparisons: {'; '.join(parts)}."]


def _partial_sentences(results: Results) -> list[str]:
    """Say so if the run is not over."""
    if results.run.status == "finished":
        return []
    what = "is still running" if results.run.status == "running" else "was interrupted"
    return [f"partial: the run {what}, and these are the answers that it has so far."]


def _sample_sentences(results: Results) -> list[str]:
    """Say so if the run was told not to ask everything."""
    settings, tests = results.run.settings, any(row.kind == "test" for row in results.questions)
    asked, drawn_by = ("tests", "dataset") if tests else ("questions", "type")
    if (size := settings.get("sample")) is not None:
        drawn = len({key_of(row) for row in results.questions})
        is_all = drawn < size and results.run.status == "finished"
        return [
            f"sample: all {drawn} {asked} were asked, which are fewer than the {size} of --sample."
            if is_all
            else f"sample: {size} {asked} were drawn, stratified by {drawn_by}, with seed {settings['seed']}."
        ]
    if (first := settings.get("limit")) is not None:
        return [f"limit: only the first {first} {asked} were asked."]
    return []


def _prompt_sentences(results: Results) -> list[str]:
    """Say in which words language models were asked: published figures depend on them."""
    name = results.run.settings.get("prompt")
    is_asked = {backend.model for backend in results.backends.values()} - {EXTRACTIVE_MODEL, AGENT_MODEL}
    if not name or not is_asked:
        return []
    return [f"prompt: {printable(str(name))}, the wording of the questions to models (--prompt)."]


def _f1_sentences(results: Results) -> list[str]:
    """Say so if LoCoMo's own F1 is that of replies to other words than LoCoMo's."""
    has_f1 = any(
        found.recall is not None and found.recall.locomo_f1 is not None for found in results.backends.values()
    )
    if not has_f1 or results.run.settings.get("prompt") == "locomo":
        return []
    return [
        "LoCoMo's own F1: it stands beside published figures only under --prompt locomo. Of replies to adversarial"
        " questions it takes two phrases alone for right, which other prompts do not ask for."
    ]


def _fit_sentences(results: Results) -> list[str]:
    """Say so if nearly everything was in every prompt, so that memories cannot differ in what they find."""
    fit = results.fit
    if fit is None or fit.in_every_prompt < NEARLY_ALL * fit.questions:
        return []
    what_to_change = "To tell them apart, give a smaller --context-tokens or --top-k, or longer histories."
    asked = counted(fit.questions, "question")
    if fit.in_every_prompt == fit.questions:
        return [
            f"everything fits: every prompt of every memory held the answer to {fit.questions} of {asked} with"
            " evidence, so that these architectures cannot differ here in what they find, only in what else they"
            f" give to the model. {what_to_change}"
        ]
    return [
        f"nearly everything fits: every memory's prompts held the answer to {fit.in_every_prompt} of {asked} with"
        " evidence, so that what these architectures find can differ on only"
        f" {fit.questions - fit.in_every_prompt}; on the others, only what else they give to the model differs."
        f" {what_to_change}"
    ]


def _twin_sentences(results: Results) -> list[str]:
    """Say so if facts are asked more than once."""
    asked = Counter(facts_of(results.questions).values())
    twins = sum(number > 1 for number in asked.values())
    if not twins:
        return []
    return [
        f"asked more than once: {twins} of {counted(len(asked), 'fact')}, in words and with options or in the same"
        " words. Accuracy counts each answer; intervals, p and the detectable difference take them as one."
    ]


def _error_sentences(results: Results) -> list[str]:
    """Return the number of answers that ended in an error, and the most common reasons."""
    failed = [row for row in results.questions if row.outcome == "error"]
    reasons = Counter(row.error or "no reason given" for row in failed)
    if not failed:
        return _baseline_sentences(results)
    retry = " To retry, run the same command with --resume --retry-errors."
    if all(row.judge is not None and row.judge.model != results.run.settings.get("judge") for row in failed):
        retry = " To ask the judge again, run memreplay rejudge with it."
    advice = retry if any(can_be_retried(reason) and "--judge" not in reason for reason in reasons) else ""
    return [
        f"errors: {reasons.total()} of {counted(len(results.questions), 'answer')} ended in one, which is neither"
        f" right nor wrong: {listed_reasons(reasons)}.{advice}",
        *_baseline_sentences(results),
    ]


def _baseline_sentences(results: Results) -> list[str]:
    """Return on how many questions closed_book ended in an error, where it runs as a control without rows."""
    failed, asked = results.errors_of_control
    if not failed:
        return []
    return [
        f"errors: the control {CLOSED_BOOK} failed on {failed} of"
        f" {counted(asked, 'question')}: whether the model knows their answers without memory is unknown."
    ]


def listed_reasons(reasons: Counter[str]) -> str:
    """Return the most common reasons, each with how often it was given."""
    listed = [f"{shortened(reason, _LONGEST_TEXT)} ({number})" for reason, number in reasons.most_common(_REASONS)]
    others = len(reasons) - _REASONS
    rest = f"; and {others} other reason{'s' * (others > 1)}" if others > 0 else ""
    return f"{'; '.join(listed)}{rest}"


def _verdict_sentences(results: Results) -> list[str]:
    """Return the number of graded answers of which it cannot be said where the fact was lost, because the rules
    failed.
    """
    found = [reason for row in results.questions if (reason := verdict_failure(row.failure_detail)) is not None]
    if not found:
        return []
    return [f"verdicts: {counted(len(found), 'answer')} got none: {listed_reasons(Counter(found))}."]


def _abstention_sentences(results: Results) -> list[str]:
    """Return how many right answers need only say that it was never said: so much can be earned without finding
    anything.
    """
    if not any(row.abstain for row in results.questions):
        return []
    counts = []
    for name, rows in contestants_of(results.questions).items():
        right = [row for row in rows if row.outcome == "correct"]
        counts.append(f"{name} {sum(row.abstain for row in right)} of {len(right)}")
    return [
        f"abstentions: so many right answers are to questions of which nothing was ever said: {', '.join(counts)}."
        " Without any memory these can be had by always saying so; the column answerable leaves such questions out."
    ]


def _evidence_sentences(results: Results) -> list[str]:
    """Say how many questions name no evidence for their answer, if a verdict needed it."""
    if not any(row.failure == "no_evidence" for row in results.questions):
        return []
    unnamed = [
        row
        for row in results.questions
        if row.kind != "test" and not row.abstain and not (row.evidence and row.evidence_role == "supports")
    ]
    joined = " (--evidence joins LoCoMo's to an MC10 file)" if any(row.kind == "choice" for row in unnamed) else ""
    number, asked = (len(set(map(key_of, rows))) for rows in (unnamed, results.questions))
    return [
        f"no evidence: for {number} of {counted(asked, 'question')} the dataset names no turns that support the"
        f" answer; of wrong answers to them it may be unknown where the fact was lost{joined}."
    ]


def _style_sentence(dataset: str, style: OptionStyle) -> str:
    return (
        f"{dataset}: a single option differs in case or full stop in {style.odd_one_out} of"
        f" {counted(style.questions, 'question')}, and is the right one in {style.leaks}; a blind guesser that"
        f" sees only the options gets {share(style.blind_guesser)} (chance {share(style.chance)})."
    )


def _judge_sentences(results: Results) -> list[str]:
    """Return who decided, at which cost, and how far the raters agree."""
    sentences = []
    judges = [backend.judge for backend in results.backends.values() if backend.judge is not None]
    if judges:
        models = ", ".join(dict.fromkeys(model for judge in judges for model in judge.models))
        rubrics = ", ".join(dict.fromkeys(rubric for judge in judges for rubric in judge.rubrics))
        sentences.append(
            f"judge: {models} decides on the replies to recall questions (rubric: {rubrics}), for"
            f" {_price_of(judges)}; the rules say {sum(judge.right_by_grader for judge in judges)} of the same"
            f" {sum(judge.graded_by_grader for judge in judges)} are right, the judge"
            f" {sum(judge.right for judge in judges)} of {sum(judge.graded for judge in judges)}."
        )
    for found in results.agreement:
        kappa = "undefined" if found.kappa is None else f"{found.kappa:.2f}"
        alike = found.both_right + found.both_wrong
        sentences.append(
            f"agreement: {RATERS[found.a]} and {RATERS[found.b]} agree on {alike} of {counted(found.n, 'answer')}"
            f" ({share(found.share)}), Cohen's kappa {kappa}; {found.only_a} right only by"
            f" {RATERS[found.a]}, {found.only_b} only by {RATERS[found.b]}."
        )
    return sentences


def _price_of(judges: Sequence[JudgeResults]) -> str:
    costs = [judge.cost_usd for judge in judges]
    return "an unknown price" if None in costs else dollars(sum(filter(None, costs)))


def _disagreement_sentences(results: Results) -> list[str]:
    """Return the first answers on which the raters do not agree."""
    sentences = [disagreement_sentence(each) for each in results.disagreements[:_DISAGREEMENTS]]
    if (others := len(results.disagreements) - _DISAGREEMENTS) > 0:
        sentences.append(f"disagreement: {others} more; results.json and the Markdown report list all of them.")
    return sentences


def disagreement_sentence(one: Disagreement) -> str:
    said = ", ".join(f"{RATERS[rater]}: {verdict}" for rater, verdict in one.verdicts.items())
    expected, predicted = (shortened(text, _LONGEST_TEXT) for text in (one.expected, one.predicted or ""))
    return printable(
        f"disagreement: {one.question_id} ({one.backend}): {said}; expected “{expected}”, answered “{predicted}”."
    )


def _test_sentences(results: Results) -> list[str]:
    """Remarks on an imported run, and on the cost of writing the tests."""
    sentences = []
    for part in (backend.tests for backend in results.backends.values() if backend.tests is not None):
        if part.differing:
            sentences.append(f"score differs from the recorded one: {', '.join(part.differing)}")
        if part.not_recomputed:
            sentences.append(f"not rescored, the recorded score counts: {', '.join(part.not_recomputed)}")
    if results.tests_written_usd is not None:
        sentences.append(f"writing the tests cost {dollars(results.tests_written_usd)}, paid once for all memories")
    return sentences


def _what_if_sentences(results: Results) -> Iterator[str]:
    """Yield the ceilings of each backend in a sentence, and the questions whose published answer is in doubt."""
    for name, backend in results.backends.items():
        found = backend.what_if
        if found is None:
            continue
        yield (
            f"{name}: {share(backend.accuracy)} today; with perfect retrieval {_ceiling(found.perfect_retrieval)},"
            f" with a perfect reader {_ceiling(found.perfect_reader)}, if all that is right today stays right;"
            f" {found.asked} of {found.wrong} wrong answers were asked again"
        )
        if found.cures:
            counts = ", ".join(f"{number} {cure.replace('_', ' ')}" for cure, number in found.cures.items())
            yield f"{name}: {counts}"
        if refuted := found.cures.get("refuted"):
            yield f"{name}: {refuted} of {counted(found.asked, 'verdict')} refuted by asking again"
    doubted = dict.fromkeys(
        f"{row.conversation} {row.question_id}" for row in results.questions if row.cure == "key_in_doubt"
    )
    if doubted:
        shown = list(doubted)[:_MOST_IN_DOUBT]
        more = f" and {len(doubted) - len(shown)} more" if len(doubted) > len(shown) else ""
        yield f"key in doubt, to be checked by hand: {', '.join(shown)}{more}"


def _ceiling(ceiling: Ceiling | None) -> str:
    if ceiling is None:
        return UNKNOWN
    return share(ceiling.low) + (f" to {share(ceiling.high)}" if ceiling.undetermined else "")
