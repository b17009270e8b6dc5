"""Join published answers with the public dataset, and record them as an ordinary run.

What stands in no file stays unknown: what memory stored, how it ranked, and tokens, times and prices that the
harness did not write down.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memory_backends.base import Cut, Hit, MemoryDescription, PanelInfo
from memory_backends.controls import CONTROLS
from memory_backends.storable import storable
from memreplay.conversations.formats.longmemeval import as_published
from memreplay.conversations.models import NOT_ANSWERABLE, Conversation, Question
from memreplay.conversations.registry import load
from memreplay.conversations.validation_errors import SILENT, OnWarning
from memreplay.engine.answers import ask_fields, score_answer
from memreplay.engine.events import (
    AnswerJudged,
    AnswerScored,
    ConversationClosed,
    ConversationOpened,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
    TurnPlayed,
)
from memreplay.grading import RetrievalScore, Score
from memreplay.llm.judging import Judgement
from memreplay.llm.model import PromptMessage, Reply
from memreplay.llm.tokens import token_counter
from memreplay.numbers import counted
from memreplay.published.answers import PublishedAnswer, PublishedRun
from memreplay.published.contexts import SaidTurns
from memreplay.published.formats import FORMATS
from memreplay.recording.writer import RunRecorder, fingerprint
from memreplay.text import normalised

IMPORTED_FROM: Final = "imported_from"
"""The setting that names the harness of an imported run."""

PUBLISHED_RUBRIC: Final = "as published"
"""The rubric of a judgement that the file brings: the harness's own."""

_UNNAMED: Final = "unnamed"
_MEMORY: Final = MemoryDescription(panels=(PanelInfo(panel="retrievals", weight=1),), is_known=False)
_QUESTION: Final = "\n\nQuestion: "
_NO_ANSWER: Final = "the file has no answer"


@dataclass
class Joined:
    """Numbers of answers that were joined with a question of the dataset, and why the others were not.

    ``other_key`` counts joined questions whose expected answer is another one in the file than in the dataset.
    """

    by_id: int = 0
    by_text: int = 0
    not_found: list[str] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)
    other_key: int = 0
    has_dataset: bool = False

    @property
    def joined(self) -> int:
        return self.by_id + self.by_text

    @property
    def sentence(self) -> str:
        """Return the counts in one sentence."""
        total = self.joined + len(self.not_found) + len(self.ambiguous)
        if not self.has_dataset:
            return (
                f"none of {counted(total, 'question')} is joined with a dataset, so that nothing is known of their"
                " evidence: give the dataset with --evidence"
            )
        said = (
            f"{self.joined:,} of {counted(total, 'question')} joined with the dataset"
            f" ({self.by_id:,} by id, {self.by_text:,} by text)"
        )
        if self.not_found:
            said += f"; {len(self.not_found):,} not found in it"
        if self.ambiguous:
            said += f"; {len(self.ambiguous):,} occur in several conversations of it"
        if self.other_key:
            said += f"; {self.other_key:,} have another expected answer in the file"
        return said


@dataclass(frozen=True)
class Imported:
    """A run that was written to a recording. ``answers`` are by conversation, question and repeat."""

    run_id: str
    published: PublishedRun
    joined: Joined
    answers: Mapping[tuple[str, str, int], PublishedAnswer]

    @property
    def repeated(self) -> int:
        """Return how many answers are to a question that was answered before."""
        return sum(repeat > 0 for _, _, repeat in self.answers)


@dataclass(frozen=True)
class _Placed:
    """An answer with the question that it belongs to."""

    answer: PublishedAnswer
    question: Question
    repeat: int


def import_published_run(
    published: PublishedRun,
    recording: Path,
    evidence: Sequence[Path] = (),
    on_warning: OnWarning = SILENT.on_warning,
) -> Imported:
    """Add a published run to a recording, which is created if it does not exist.

    Raises:
        MemreplayError: a dataset is invalid, or the recording cannot be written.
    """
    title = next(each.title for each in FORMATS if each.name == published.format)
    joined = Joined(has_dataset=bool(evidence))
    places, known_ids = _joined(published, evidence, joined, on_warning)
    backend = _backend_of(published)
    settings: dict[str, Any] = {
        "backend": [backend],
        "model": [published.model],
        IMPORTED_FROM: title,
        "published_file": published.path.name,
        "published_judge": published.judge,
        "joined": joined.sentence,
        **({"evidence": [path.name for path in evidence]} if evidence else {}),
        **({} if published.accuracy is None else {"published_accuracy": published.accuracy}),
        **({"not_read": list(published.problems)} if published.problems else {}),
        **({"read_as": list(published.remarks)} if published.remarks else {}),
    }
    datasets: list[str] = []
    recorder = RunRecorder.start(recording, settings, [], fingerprint(settings))
    answers: dict[tuple[str, str, int], PublishedAnswer] = {}
    try:
        for conversation, placed in _conversations(published, evidence, places, known_ids):
            datasets.append(conversation.dataset)
            recorder.add_conversation(conversation)
            for event in _events(conversation, placed, published, backend):
                recorder.record(event)
            answers |= {(conversation.id, each.question.id, each.repeat): each.answer for each in placed}
        recorder.describe(settings, list(dict.fromkeys(datasets)))
    except BaseException:
        recorder.finish("interrupted")
        raise
    recorder.finish("finished")
    return Imported(recorder.run_id, published, joined, answers)


def _backend_of(published: PublishedRun) -> str:
    name = storable(published.system)
    return f"{name} (published)" if name in CONTROLS else name


# ---- joining --------------------------------------------------------------------------------------------------

_Place = tuple[int, str]
"""The number of a conversation in the dataset, and the id of a question."""


def _loaded(evidence: Sequence[Path], on_warning: OnWarning = SILENT.on_warning) -> Iterator[Conversation]:
    return load([str(path) for path in evidence], on_warning=on_warning) if evidence else iter(())


def _joined(
    published: PublishedRun, evidence: Sequence[Path], joined: Joined, on_warning: OnWarning
) -> tuple[list[_Place | None], dict[int, str]]:
    """Return the place of each answer's question, None where it is in no dataset, and the conversations' ids."""
    by_id: dict[str, list[tuple[_Place, str]]] = defaultdict(list)
    by_text: dict[str, list[_Place]] = defaultdict(list)
    names: dict[int, str] = {}
    expected: dict[_Place, str] = {}
    for number, conversation in enumerate(_loaded(evidence, on_warning)):
        names[number] = conversation.id
        for question in conversation.questions:
            place = (number, question.id)
            text = normalised(as_published(question.text))
            by_id[question.id].append((place, text))
            by_text[text].append(place)
            expected[place] = question.expected
    taken: Counter[_Place] = Counter()
    places: list[_Place | None] = []
    for answer in published.answers:
        found = _place_of(answer, by_id, by_text, names, taken, joined)
        places.append(found)
        if found is not None:
            taken[found] += 1
            if answer.expected and normalised(answer.expected) != normalised(expected[found]):
                joined.other_key += expected[found] != NOT_ANSWERABLE
    return places, names


def _place_of(
    answer: PublishedAnswer,
    by_id: dict[str, list[tuple[_Place, str]]],
    by_text: dict[str, list[_Place]],
    names: dict[int, str],
    taken: Counter[_Place],
    joined: Joined,
) -> _Place | None:
    text = normalised(as_published(answer.question))
    for place, said in by_id.get(answer.question_id or "", ()):
        if not text or said == text:
            joined.by_id += 1
            return place
    places = by_text.get(text, []) if text else []
    within = [place for place in places if _is_sample(answer.sample, place[0], names[place[0]])]
    # A question that a conversation asks twice is answered twice: the first answer belongs to the first.
    candidates = within or ([] if len({number for number, _ in places}) > 1 else places)
    if candidates:
        joined.by_text += 1
        return min(candidates, key=lambda place: taken[place])
    (joined.ambiguous if places else joined.not_found).append(answer.place)
    return None


def _is_sample(sample: str | None, number: int, name: str) -> bool:
    """Return whether a file's name of a conversation means that one: its id, or its 0-based number."""
    if sample is None:
        return False
    return sample == name or sample.rpartition("_")[2] == str(number)


def _conversations(
    published: PublishedRun, evidence: Sequence[Path], places: Sequence[_Place | None], names: dict[int, str]
) -> Iterator[tuple[Conversation, list[_Placed]]]:
    """Yield each conversation with its answers; those without a dataset in conversations of their own."""
    by_number: dict[int, list[tuple[str, PublishedAnswer]]] = defaultdict(list)
    alone: dict[str, list[PublishedAnswer]] = defaultdict(list)
    for answer, place in zip(published.answers, places, strict=True):
        if place is None:
            alone[storable(answer.sample or _UNNAMED)].append(answer)
        else:
            by_number[place[0]].append((place[1], answer))
    for number, conversation in enumerate(_loaded(evidence)):
        if number not in by_number and conversation.id not in alone:
            continue
        answered = by_number.get(number, [])
        questions = {question.id: question for question in conversation.questions}
        asked = dict.fromkeys(question_id for question_id, _ in answered)
        placed = _with_repeats((answer, questions[question_id]) for question_id, answer in answered)
        rest = _own_questions(alone.pop(conversation.id, []), taken=questions)
        order = {question.id: place for place, question in enumerate(conversation.questions)}
        kept = sorted((questions[each] for each in asked), key=lambda question: order[question.id])
        own = list({each.question.id: each.question for each in rest}.values())
        yield conversation.model_copy(update={"questions": (*kept, *own)}), [*placed, *rest]
    taken = set(names.values())
    for sample, answers in alone.items():
        placed = _own_questions(answers, taken=())
        yield (
            Conversation(
                id=sample if sample not in taken else f"{sample} ({published.system})",
                dataset=storable(published.path.name.split(".")[0]) or "results",
                sessions=(),
                turns=(),
                questions=tuple({each.question.id: each.question for each in placed}.values()),
            ),
            placed,
        )


def _with_repeats(pairs: Iterable[tuple[PublishedAnswer, Question]]) -> list[_Placed]:
    counts: Counter[str] = Counter()
    placed = []
    for answer, question in pairs:
        placed.append(_Placed(answer, question, counts[question.id]))
        counts[question.id] += 1
    return placed


def _own_questions(answers: Sequence[PublishedAnswer], taken: Iterable[str]) -> list[_Placed]:
    """Return questions made of what the file says of them: nothing is known of their evidence."""
    used = set(taken)
    by_key: dict[tuple[str, str], Question] = {}
    pairs = []
    for answer in answers:
        key = (answer.question_id or "", normalised(answer.question))
        question = by_key.get(key)
        if question is None:
            id_ = answer.question_id or f"q{len(by_key)}"
            while id_ in used:
                id_ += "'"
            used.add(id_)
            expected = answer.expected or ""
            question = by_key[key] = Question(
                id=id_,
                kind="recall",
                type=answer.category or "question",
                text=answer.question or f"(question {id_})",
                expected=expected,
            )
        pairs.append((answer, question))
    return _with_repeats(pairs)


# ---- events ---------------------------------------------------------------------------------------------------


def _events(
    conversation: Conversation, placed: Sequence[_Placed], published: PublishedRun, backend: str
) -> Iterator[ReplayEvent]:
    end = len(conversation.turns)
    yield ConversationOpened(conversation=conversation.id, backend=backend, turn=0, memory=_MEMORY)
    for number in range(1, end + 1):
        yield TurnPlayed(conversation=conversation.id, turn=number)
    said = SaidTurns(conversation)
    count = token_counter(published.model)
    for each in placed:
        asked = _asked(each, said, published, backend, end, count)
        yield asked
        yield from _answered(each, asked, published)
    yield ConversationClosed(conversation=conversation.id, backend=backend, turn=end + 1, status="resolved")


def _asked(
    placed: _Placed, said: SaidTurns, published: PublishedRun, backend: str, turn: int, count: Any
) -> QuestionAsked:
    answer = placed.answer
    given = said.said_by(answer.turn_ids) if answer.memories is None else answer.memories
    memories = given or ()
    hits = tuple(
        Hit(
            id=f"memory {rank}",
            store="context",
            place="context",
            rank=rank,
            score=None,
            text=text,
            turns=said.within(text),
            tokens=count(text),
        )
        for rank, text in enumerate(memories, start=1)
    )
    held = {turn_id for hit in hits for turn_id in hit.turns}
    missing = [turn_id for turn_id in placed.question.evidence if turn_id not in held]
    broken = said.broken_off_in(memories[-1], missing) if memories and missing else ()
    context = "\n".join(memories)
    tokens = answer.context_tokens
    return QuestionAsked(
        conversation=said.conversation.id,
        turn=turn,
        backend=backend,
        model=published.model,
        question_id=placed.question.id,
        repeat=placed.repeat,
        hits=hits,
        cut=(Cut(place="context", turns=broken, tokens=0),) if broken else (),
        context_tokens=sum(hit.tokens for hit in hits) if tokens is None else tokens,
        prompt=()
        if given is None
        else (PromptMessage(role="user", segments=(context, f"{_QUESTION}{placed.question.text}")),),
        recall_ms=answer.recall_ms or 0.0,
        measured=False,
    )


def _answered(placed: _Placed, asked: QuestionAsked, published: PublishedRun) -> Iterator[ReplayEvent]:
    answer, question = placed.answer, placed.question
    reply = (
        Reply(text=answer.answer, ms=answer.answer_ms or 0.0)
        if answer.answer is not None
        else Reply(text=None, error=answer.error or _NO_ANSWER)
    )
    yield ReplyReceived(**ask_fields(asked), reply=reply)
    judgement = None
    if answer.judgement is not None and reply.error is None:
        judgement = Judgement(
            judge=published.judge,
            rubric=PUBLISHED_RUBRIC,
            prompt=(),
            reply=Reply(text=answer.judge_reason or answer.judgement),
            verdict=answer.judgement,
        )
        yield AnswerJudged(**ask_fields(asked), judgement=judgement)
    if question.expected or question.abstain or reply.error is not None:
        score = score_answer(question, asked, reply, judgement).score
    else:
        score = _without_key(answer)
    yield AnswerScored(**ask_fields(asked), score=score, retrieval=_retrieval(question, asked))


def _without_key(answer: PublishedAnswer) -> Score:
    """Return the score of an answer to which nobody names the right one: the published judgement, or none."""
    if answer.judgement is None:
        return Score(outcome="error", score=None, predicted=answer.answer)
    is_right = answer.judgement == "right"
    return Score(
        outcome="correct" if is_right else "wrong",
        score=float(is_right),
        predicted=answer.answer,
        decided_by="judge",
    )


def _retrieval(question: Question, asked: QuestionAsked) -> RetrievalScore:
    """Return whether all evidence is in the context. The file does not say how memory ranked what it gave."""
    if question.evidence_role != "supports" or not question.evidence or not asked.prompt:
        return RetrievalScore()
    held = frozenset(turn for hit in asked.hits for turn in hit.turns)
    return RetrievalScore(evidence_in_prompt=held >= frozenset(question.evidence))
