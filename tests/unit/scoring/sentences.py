"""What the sentence of a verdict says of a prompt, of hits and of stores, checked against these."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memreplay.grading.match import contains, enumeration
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.evidence_trail import Stages
from memreplay.scoring.stored import StoredMemory
from memreplay.text import normalised
from memreplay.timeline.timeline import Answer, Timeline

_TURN = r"[Tt]urns? (?P<turn>[\w:.-]*\w)"


def false_sentences(timeline: Timeline, attributor: Attributor, answer: Answer) -> Iterator[str]:
    """Yield the sentences of the verdict on an answer, and of its trails, that what was recorded contradicts."""
    found = attributor.attribute(answer)
    if found is None or answer.scored is None:
        return
    asked, turns = answer.asked, timeline.conversation.turns_by_id
    memory = StoredMemory(timeline.kept_until(asked.backend, asked.turn))
    memory.name_sources(asked.backend, timeline.answers())
    stages = Stages(asked, memory, turns)
    prompt = f" {normalised(''.join(part.content for part in asked.prompt))} "
    question = {one.id: one for one in timeline.conversation.questions}[asked.question_id]
    lost = [trail.sentence for trail in attributor.trails(answer) if trail.lost_at is not None]
    for said in dict.fromkeys([*re.split(r"(?<=\.) (?=[A-Z])", found.detail), *lost]):
        turn = re.search(_TURN, said)
        text = turns[turn["turn"]].text if turn is not None and turn["turn"] in turns else None
        words = f" {normalised(text or '')} "
        items = [item for item in enumeration(question.expected) if text is not None and contains(item, text)]
        named = [piece for piece in stages.retrieved if turn is not None and turn["turn"] in piece.turns]
        kept = [item.piece for item in memory.items if turn is not None and turn["turn"] in item.turns]
        given = [hit for hit in (*asked.hits, *asked.missed) if turn and turn["turn"] in (*hit.turns, *hit.sources)]
        match said:
            case _ if said in lost and len(words.split()) > 3 and words in prompt:
                yield said
            case _ if "was retrieved of that turn leaves it out" in said:
                if not named or any(contains(item, piece.text) for item in items for piece in named):
                    yield said
            case _ if "leaves the answer out" in said:
                if not kept or any(contains(item, piece.text) for item in items for piece in kept):
                    yield said
            case _ if "nothing stored names that turn" in said and kept:
                yield said
            case _ if "best candidates recorded" in said and given:
                yield said
            case _ if said.startswith("Nothing in it comes from turn") and (words in prompt or given):
                if any(hit.in_prompt for hit in given) or (len(words.split()) > 3 and words in prompt):
                    yield said
            case _ if said.startswith("The prompt held the answer"):
                if not attributor.answerable(question).held_by(stages.in_prompt):
                    yield said
            case _:
                pass
