"""``--estimate``: a run whose models count their calls and ask nobody (see :mod:`memreplay.runtime.counting`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from memory_backends.base import BackendError, MemoryBackend, Recall
from memory_backends.registry import works_elsewhere
from memreplay.conversations.models import Conversation
from memreplay.engine.answers import AnswerJudge, is_for_a_judge, judgement_of
from memreplay.engine.events import ReplayEvent, TurnPlayed
from memreplay.engine.play import EmbeddingAhead, play
from memreplay.engine.remote.addresses import is_agent, models_asked_of
from memreplay.engine.session import Ask, ReplaySession
from memreplay.llm.counting import Estimate
from memreplay.llm.model import AnswerModel
from memreplay.llm.tokens import token_counter
from memreplay.numbers import UNKNOWN, dollars
from memreplay.printable import printable
from memreplay.rich_console import terminal_console
from memreplay.runtime.changes import Change, Selection, WrongAnswers, changes_of
from memreplay.runtime.counting import Counting, Estimates, Failures, OccasionalLines, unknown_reply
from memreplay.runtime.run import Run
from memreplay.scoring.verdicts import INTERVENTIONS
from memreplay.timeline.timeline import Timeline


async def estimate(run: Run, *, perceive: bool = False, why: bool = False) -> Estimates:
    """Return what a run that ``estimates`` would take. It is over afterwards.

    With ``why``, as many calls more as if each answer that is not known to be right were wrong.
    """
    assert run.counting is not None
    try:
        return await _Estimating(run, run.counting, perceive=perceive, why=why).all()
    finally:
        await run.finish("interrupted")


class _Estimating:
    """The estimate of a run, one conversation after another."""

    def __init__(self, run: Run, counting: Counting, *, perceive: bool, why: bool) -> None:
        self._run, self._counting, self._asking = run, counting, run.asking()
        self._perceive, self._why = perceive, why
        self._lines, self._failures = OccasionalLines(), Failures()
        backends = (*self._asking.backends, *self._asking.baselines)
        self._rows = {(name, each): Estimate() for name in backends for each in models_asked_of(name, run.models)}
        self._absent = [name for name in backends if is_agent(name) or works_elsewhere(name)]
        self._present = [name for name in backends if name not in self._absent]

    async def all(self) -> Estimates:
        """Estimate all conversations."""
        conversations = self._run.work.conversations
        ahead = EmbeddingAhead(conversations, self._present, self._run.embed, filled=self._run.filled_before)
        try:
            for number, conversation in enumerate(conversations, start=1):
                await self._add(conversation, ahead, f"conversation {number} of {len(conversations)}")
        finally:
            await ahead.end()
        return self._result()

    async def _add(self, conversation: Conversation, ahead: EmbeddingAhead, where: str) -> None:
        """Play a conversation, and ask its questions. ``where`` says which one it is."""
        memories = self._run.backends_for(conversation, self._present)
        timeline = Timeline(conversation)

        def keep(event: ReplayEvent) -> None:
            timeline.append(event)
            self._failures.note(event)
            if isinstance(event, TurnPlayed):
                self._lines.say(f"{where}, turn {event.turn} of {len(conversation.turns)}")

        session = self._run.unrecorded_session(conversation, memories, keep, perceive=self._perceive)
        # A memory that stand-ins wrote is not kept.
        await play(session, lambda stretch: ahead.of(conversation, stretch), lambda: False)
        asks = self._asking.asks_of(conversation)
        for place, ask in enumerate(asks, start=1):
            await self._ask(session, ask)
            self._lines.say(f"{where}, question {place} of {len(asks)}")
        if self._why:
            await self._ask_why(timeline, memories)
        await session.close("resolved")

    async def _ask(self, session: ReplaySession, ask: Ask) -> None:
        row = self._rows[ask.backend, ask.model]
        row.asked += ask.repeat == 0
        if ask.backend in self._absent:
            row.calls += 1
            row.certainty = "tokens unknown"
            await self._judge_unknown(ask)
        else:
            self._counting.read_for(ask.backend, row)
            await session.ask(ask.question, ask.backend, ask.model, repeat=ask.repeat)

    async def _judge_unknown(self, ask: Ask) -> None:
        """Count the judging of a reply whose prompt is unknown."""
        judge, reply = self._run.answer_judge, unknown_reply(f"{ask.backend} {ask.model} {ask.repeat}")
        if judge is not None and is_for_a_judge(ask.question, reply):
            await judge.judge(ask.question, reply.text or "")

    async def _ask_why(self, timeline: Timeline, memories: Mapping[str, MemoryBackend]) -> None:
        wrong = WrongAnswers(timeline, Selection())
        for answer in wrong.chosen:
            asked = answer.asked
            self._counting.read_for(asked.backend, self._rows[asked.backend, asked.model])
            changes = await changes_of(
                wrong.case(answer), INTERVENTIONS, lambda name: _Played(memories[name]), self._run.settings
            )
            for change in changes:
                await estimate_change(change, self._counting.reader, self._run.answer_judge)

    def _result(self) -> Estimates:
        """Return all rows; those of memories that failed say so."""
        present = {key: row for key, row in self._rows.items() if key[0] not in self._absent}
        rows = self._rows | self._counting.finished(present)
        for key in present if self._why else ():
            # How many of its answers are wrong is not known either.
            rows[key].certainty = "at most" if rows[key].certainty == "exact" else "about"
        notes = self._failures.marked(rows)
        if self._absent:
            notes.append("Agents, and memories in a server or process of their own, are not called.")
        return Estimates(rows, notes)


async def estimate_change(change: Change, model: AnswerModel, judge: AnswerJudge | None) -> None:
    """Count the call of a change, and that which judges its reply."""
    if change.request is not None:
        reply = await model.answer(change.request)
        await judgement_of(change.case.question, change.case.asked, reply, judge)


@dataclass(frozen=True)
class _Played:
    """A memory that has ingested its conversation."""

    memory: MemoryBackend

    @property
    def limited_by_top_k(self) -> bool:
        return self.memory.limited_by_top_k

    async def recall(self, question: str, top_k: int, context_tokens: int, model: str, turn: int) -> Recall | str:
        self.memory.set_token_counter(token_counter(model))
        try:
            return await self.memory.recall(question, top_k, context_tokens)
        except BackendError as error:
            return str(error)


def print_estimate(estimates: Estimates, counted: str = "questions") -> None:
    """Print a table on standard output. ``counted`` heads the column of ``asked``."""
    rows = estimates.rows
    is_bound = all(row.certainty in ("exact", "at most") for row in rows.values())
    bound = "at most" if is_bound else "about"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("part")
    table.add_column("model")
    for heading in (counted, "calls", "reused", "prompt\ntokens", "reply\ntokens", f"price\n{bound}"):
        table.add_column(heading, justify="right")
    table.add_column("numbers")
    prices = []
    for (part, model), row in rows.items():
        prices.append(row.price(model))
        tokens = (row.prompt_tokens, row.reply_tokens)
        numbers = [f"{row.asked:,}" if row.asked else UNKNOWN, f"{row.calls:,}", f"{row.reused:,}"]
        numbers += [UNKNOWN] * 2 if row.certainty == "tokens unknown" else [f"{number:,}" for number in tokens]
        table.add_row(Text(part), Text(model), *numbers, dollars(prices[-1]), row.certainty)
    console = terminal_console(width=150)
    console.print(table)
    known = sum(price for price in prices if price is not None)
    unknown = ", where the price is known" if None in prices else ""
    console.print(f"In all {bound} {dollars(known)}{unknown}; providers' caches reduce it.")
    print("The last column says how sure calls and prompt tokens are. Replies are counted as long as they may be.")
    if not is_bound:
        print(
            "What is about depends on replies, vectors or scores that no model has given yet; a memory that a model"
            " writes holds, and returns, less here than in a run."
        )
    for note in estimates.notes:
        print(printable(note))
