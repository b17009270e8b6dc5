"""Telling an abstention from an answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memreplay.conversations.models import Question
from memreplay.grading.judge import is_abstention, score_recall
from memreplay.llm.prompts import NOT_SAID

SAYS_SO = [
    NOT_SAID,
    "Not answerable",
    "Not answerable.",
    "**Not answerable**",
    "Unanswerable",
    "Not mentioned",
    "Unknown.",
    "I don't know.",
    "I do not know",
    "I don’t have that information.",
    "I cannot determine this from the conversation.",
    "I'm sorry, I couldn't find that.",
    "No information available.",
    "There is no information about her sister.",
    "There's no mention of a dog in the conversation.",
    "There isn't any information about that.",
    "It was not mentioned.",
    "It is not stated in the conversation.",
    "It isn't specified.",
    "That is unknown.",
    "Her favourite colour is not mentioned.",
    "Caroline's surname was never mentioned in the conversation.",
    "The conversation does not mention his age.",
    "The provided context doesn't specify that.",
    "Based on the conversation, it is not mentioned.",
    "Melanie never mentions where she works.",
    "Answer: Not answerable",
    "The question cannot be answered.",
    "Insufficient information.",
    "<think>It might be Rome.</think>Not mentioned.",
    "No se menciona.",
    "No se menciona en la conversación.",
    "No lo sé.",
    "No sé cuál es su apellido.",
    "La conversación no lo dice.",
    "En la conversación no se menciona su edad.",
    "No hay información sobre eso.",
    "No tengo esa información.",
    "No se ha mencionado.",
    "No consta.",
    "Se desconoce.",
    "You've told me about the dog, but you never mentioned when its birthday is.",
    "Hmm, I looked through everything you've shared and I can't find it. You only ever called him Tom.",
    "**Unknown** – the horse came up once, but its breed was not discussed.",
    "Nothing you've said tells me what the cat is called.",
    "Your landlord's number? You haven't given it to me.",
    "Esa información no la tengo, pero si me la dices puedo recordarla.",
    "En lo que hemos hablado no aparece cuánto costó la boda.",
    "I have not found an answer to that.",
    "I've not found such information.",
]

ANSWERS = [
    "I can't wait to see your pottery project.",
    "I couldn't find a better place than Lisbon.",
    "I've never seen such a sunset as in Oslo.",
    "",
    "Norway",
    "No",
    "No, she did not.",
    "Nothing",
    "He doesn't know how to swim.",
    "The unknown soldier's tomb",
    "Unknown Pleasures by Joy Division is her favourite record.",
    "I don't know the exact day, but it was in May 2023.",
    "It is not mentioned by name, however it was Norway.",
    "She is not available on Mondays.",
    "There was no snow.",
    "She has no information desk job any more.",
    "It is clear that she moved to Norway.",
    "The answer is known: Norway.",
    "Melanie said that she never mentioned the trip to Caroline",
    "No se cayó de la bici.",
    "No, se mudó a Utebo.",
    "Sin azúcar",
    "Norway, but I don't know which city.",
    "He never told his boss that he was leaving.",
    "We agreed not to talk about the budget.",
    "They couldn't agree on a name, so the dog is still called Puppy.",
    "Si no recuerdo mal, fue Nuria.",
    "No hay pan",
    " ".join(["She said that nobody had mentioned it and went on to tell the whole story of the journey,"] * 4),
    "Not mentioned " + "and then she told him all about the long way they had gone together " * 4,
]


def test_an_abstention_is_recognised() -> None:
    assert [reply for reply in SAYS_SO if not is_abstention(reply)] == []


def test_an_answer_is_not_an_abstention() -> None:
    assert [reply for reply in ANSWERS if is_abstention(reply)] == []


NEVER_SAID = {
    "How old is Priya's nephew?": (
        (
            "Priya talks of a niece; a nephew doesn't appear anywhere.",
            "I'm unable to find the age of Priya's nephew.",
        ),
        ("Five years old, and no information on his birthday.", "Priya's nephew is not in school; he is five."),
    ),
    "Who does James support in cricket?": (
        ("James is a Liverpool fan. Cricket isn't discussed at all.", "James does not support anyone in cricket."),
        ("He doesn't support India in cricket but England.", "England. He didn't mention any other team."),
    ),
    "¿Qué estudió la prima de Andrés?": (
        ("Andrés habla de su prima, pero no cuenta qué estudió.", "Andrés no tiene ninguna prima."),
        ("No estudió Medicina, sino Derecho.", "Estudió Derecho, aunque no terminó."),
    ),
}


def test_where_nothing_was_said_any_denial_of_what_is_asked_is_right_and_an_answer_is_wrong() -> None:
    for text, (right, wrong) in NEVER_SAID.items():
        question = Question(id="q", kind="recall", type="x", text=text, expected="Not mentioned", abstain=True)
        graded = {reply: score_recall(question, reply).outcome for reply in (*right, *wrong)}
        assert graded == dict.fromkeys(right, "correct") | dict.fromkeys(wrong, "wrong")


@given(st.text(max_size=300))
def test_it_never_raises(reply: str) -> None:
    assert is_abstention(reply) in (True, False)
