"""A judge of stages: what it is asked, and what follows from what it says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from memreplay.conversations.models import Question
from memreplay.llm.judging import Judgement, Stage, Verdict
from memreplay.llm.model import Reply
from memreplay.scoring.attribution import Attribution, Attributor
from memreplay.scoring.stage_judge import StageCase
from memreplay.timeline.timeline import Timeline
from tests.stubs.facts_memory import FactsMemory, Fate
from tests.unit.scoring.planted import answer_of, played, question, real

PURPLE, NOTHING = Reply(text="purple"), Reply(text="It was not mentioned.")
YES, NO = "right", "wrong"


def judgement(verdict: Verdict | None) -> Judgement:
    return Judgement(judge="openai/judge", rubric="stages/prompt", reply=Reply(text="…"), verdict=verdict)


def judged(timeline: Timeline, name: str, said: Mapping[Stage, Verdict | None]) -> Attribution:
    answer = answer_of(timeline, name)
    answer.stages_judged = {stage: judgement(verdict) for stage, verdict in said.items()}
    found = Attributor(timeline).attribute(answer)
    assert found is not None
    return found


def case_of(timeline: Timeline, name: str) -> StageCase:
    case = Attributor(timeline).stage_case(answer_of(timeline, name))
    assert case is not None
    return case


async def by_facts(memory: FactsMemory, reply: Reply = PURPLE, asked: Question | None = None) -> Timeline:
    return await played(asked or question(), {"facts": memory}, {"facts": reply})


def lost() -> FactsMemory:
    return FactsMemory({"5": Fate("a colour")}, given=("5",))


def held() -> FactsMemory:
    return FactsMemory({"5": Fate("green")}, given=("5",))


@pytest.mark.parametrize(
    ("memory", "reply", "said", "by_rules", "label"),
    [
        (lost(), PURPLE, {"prompt": YES}, "not_written", "misread"),
        (lost(), NOTHING, {"prompt": YES}, "not_written", "abstained"),
        (lost(), PURPLE, {"prompt": NO, "stored": YES}, "not_written", "not_retrieved"),
        (lost(), PURPLE, {"prompt": NO, "stored": NO}, "not_written", "not_written"),
        (held(), PURPLE, {"prompt": YES}, "misread", "misread"),
        (held(), PURPLE, {"prompt": NO, "stored": NO}, "misread", "not_written"),
        (held(), PURPLE, {"prompt": NO, "stored": YES}, "misread", "not_retrieved"),
        (
            FactsMemory({"5": Fate("green")}),
            PURPLE,
            {"prompt": NO, "stored": NO},
            "not_retrieved",
            "not_written",
        ),
    ],
)
async def test_the_judge_decides_and_the_rules_are_a_second_opinion(
    memory: FactsMemory, reply: Reply, said: Mapping[Stage, Verdict | None], by_rules: str, label: str
) -> None:
    found = judged(await by_facts(memory, reply), "facts", said)
    assert (found.by_rules, found.label, found.judge) == (by_rules, label, "openai/judge")
    assert (found.loss is not None) is (label == "not_written")
    if label == by_rules:
        assert found.doubt is None and "openai/judge agrees." in found.detail
    else:
        assert found.doubt == "second_opinion" and found.detail.startswith("By openai/judge, ")
        assert (
            "By the rules it was" in found.detail and "Uncertain: the judge and the rules differ." in found.detail
        )


async def test_a_judge_that_agrees_settles_what_the_rules_are_not_sure_of() -> None:
    asked = question("What am I likely?", expected="a keen sailor", evidence=("3",))
    timeline = await by_facts(FactsMemory({}), Reply(text="A cook."), asked)
    assert judged(timeline, "facts", {}).doubt == "conclusion"
    assert judged(timeline, "facts", {"prompt": NO, "stored": NO}).doubt is None


@pytest.mark.parametrize("said", [{"prompt": None}, {"prompt": NO, "stored": None}])
async def test_without_a_verdict_of_the_judge_the_rules_decide(said: Mapping[Stage, Verdict | None]) -> None:
    found = judged(await by_facts(lost()), "facts", said)
    assert (found.label, found.judge, found.by_rules) == ("not_written", None, None)


async def test_a_judge_reads_the_prompt_first_and_what_is_stored_only_if_that_does_not_tell() -> None:
    timeline = await by_facts(FactsMemory({"5": Fate("a colour"), "7": Fate("a wet Tuesday")}, given=("7",)))
    case = case_of(timeline, "facts")
    assert case.said == ["User: Actually, my favourite colour is green."] and not case.known
    prompt, stored = case.notes("prompt"), case.notes("stored")
    assert "wet Tuesday" in prompt and "a colour" not in prompt
    assert "a colour" in stored and "wet Tuesday" in stored
    assert case.to_ask({}) == "prompt"
    assert case.to_ask({"prompt": judgement(YES)}) is None
    assert case.to_ask({"prompt": judgement(NO)}) == "stored"
    assert case.to_ask({"prompt": judgement(NO), "stored": judgement(NO)}) is None


async def test_no_judge_is_asked_what_provenance_knows() -> None:
    timeline = await played(question(), real("rag", "full_context"), {"rag": PURPLE, "full_context": PURPLE})
    assert case_of(timeline, "full_context").known == {"prompt": True, "stored": True}
    assert case_of(timeline, "rag").known == {"prompt": True, "stored": True}
    assert case_of(await by_facts(FactsMemory({})), "facts").known == {"prompt": False, "stored": False}


async def test_right_answers_and_those_without_memory_have_no_stage_to_judge() -> None:
    timeline = await played(
        question(), real("rag", "closed_book"), {"rag": Reply(text="green"), "closed_book": PURPLE}
    )
    for name in ("rag", "closed_book"):
        assert Attributor(timeline).stage_case(answer_of(timeline, name)) is None
