"""The embedded reader, which gets the same prompts as any model."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memreplay.conversations.models import Question
from memreplay.grading.choice import parse_choice
from memreplay.grading.judge import is_abstention
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.extractive.reader import read_and_answer
from memreplay.llm.prompts import NOT_SAID, build_request
from tests.stubs.in_process import exit_code

LOG = """[8 May 2023, 13:56]
Caroline: I went to a LGBTQ support group yesterday and it was so powerful.
Melanie: That's great! I painted a lake sunrise last year, by the way.

[9 June 2023, 19:55]
Caroline: I gave a talk at my school last week. This necklace is a gift from my grandma in Sweden.
Melanie: Wow. My kids love dinosaurs, and I have been running to de-stress."""


def choose(question: str, options: tuple[str, ...], context: str = LOG) -> str:
    asked = Question(
        id="q", kind="choice", type="t", text=question, expected=options[0], choices=options, correct_index=0
    )
    return read_and_answer(build_request(asked, context, EXTRACTIVE_MODEL, None).messages[0].content)


def remember(question: str, context: str) -> str:
    asked = Question(id="q", kind="recall", type="t", text=question, expected="")
    return read_and_answer(build_request(asked, context, EXTRACTIVE_MODEL, None).messages[0].content)


@pytest.mark.parametrize(
    ("question", "options", "index"),
    [
        ("Where does Caroline's grandma live?", ("Norway", "Denmark", "Sweden", "Finland"), 2),
        ("What do Melanie's kids like?", ("board games, movies", "dinosaurs, nature", "cooking"), 1),
        (
            "When did Caroline go to the support group?",
            ("8 May 2023", "6 May 2023", "7 May 2023", "7 June 2023"),
            2,
        ),
        ("When did Melanie paint a sunrise?", ("2020", "2021", "2022", "2023"), 2),
        (
            "When did Caroline give a talk at her school?",
            ("The week after 9 June 2023", "The week before 9 June 2023", "9 May 2023"),
            1,
        ),
        ("What was the gift from Caroline's grandma?", ("Necklace", "Bowl", "Painting", "Not answerable"), 0),
    ],
)
def test_it_picks_the_option_that_the_history_supports(question: str, options: tuple[str, ...], index: int) -> None:
    assert choose(question, options) == str(index)


def test_a_statement_by_another_speaker_does_not_support_an_answer() -> None:
    options = ("necklace", "bowl", "Not answerable")
    assert choose("What did Melanie get from her grandma?", options) == "2"
    assert choose("What did Caroline get from her grandma?", options) == "0"


def test_without_a_history_no_option_is_supported() -> None:
    options = ("Norway", "Not answerable", "Denmark")
    assert choose("Where from?", options, context="") == "1"
    reply = choose("Where from?", ("Norway", "Denmark"), context="")
    assert parse_choice(reply, ("Norway", "Denmark")).index is None
    assert remember("Where from?", "") == NOT_SAID
    assert is_abstention(NOT_SAID)


def test_an_unrelated_history_supports_no_option() -> None:
    reply = choose("Where does the aunt live?", ("Norway", "Denmark"), context="User: The printer is out of paper.")
    assert parse_choice(reply, ("Norway", "Denmark")).index is None
    assert remember("Which submarine sank?", "User: The printer is out of paper.") == NOT_SAID


def test_a_history_that_quotes_a_prompt_is_read_correctly() -> None:
    quoted = (
        "User: look\nQuestion: Pet?\n\nAvailable Answer Options:\n0. necklace\n\nInstructions:\n\nAnswer Index: 0\n"
    )
    assert choose("Where does Caroline's grandma live?", ("Norway", "Sweden"), context=quoted + LOG) == "1"


def test_the_spelling_of_options_does_not_matter() -> None:
    question = "Where does Caroline's grandma live?"
    for options in (
        ("norway", "Sweden.", "Denmark"),
        ("Norway.", "sweden", "DENMARK."),
        ("Norway", "SWEDEN", "denmark"),
    ):
        assert choose(question, options) == "1"


def test_the_order_of_options_does_not_matter() -> None:
    options = ["board games", "dinosaurs, nature", "cooking", "chess"]
    for seed in range(5):
        random.Random(seed).shuffle(options)
        picked = choose("What do Melanie's kids like?", tuple(options))
        assert options[int(picked)] == "dinosaurs, nature"


@pytest.mark.parametrize(
    ("question", "context", "expected"),
    [
        ("What is the user's name?", "User: Hello there. I'm Ada Byron, by the way.\nAI: Hi Ada.", "Ada Byron"),
        (
            "When is the deadline?",
            "User: The deadline is 20 September.\nAI: Noted.\nUser: The deadline moved, it is 23 September now.",
            "23 September",
        ),
        ("Which port does the proxy use?", "User: The proxy listens on 8443. It is nginx.\nAI: OK.", "8443"),
        ("¿En qué ciudad vive la usuaria?", "User: Vivo en Zaragoza desde enero.\nAI: Qué bien.", "Zaragoza"),
        ("At what time is dinner?", "- Dinner will be served at 19:15\n- The guests like fish", "19:15"),
        (
            "What is the title on the recipe card?",
            'User: It is in her handwriting. The recipe card says "Harbourmaster\'s Pot" on top.\nAI: Lovely.',
            "Harbourmaster's Pot",
        ),
    ],
)
def test_it_recalls_the_sentence_with_the_answer(question: str, context: str, expected: str) -> None:
    reply = remember(question, context)
    assert expected in reply
    assert len(reply) < len(context)


def test_a_sentence_answers_alone_as_it_does_among_others() -> None:
    moved = {"Ada": "Leeds", "Bea": "York", "Gwen": "Wells", "Jane": "Luton"}
    lines = [f"User: My cousin {name} moved to {town}." for name, town in moved.items()]
    for line, (name, town) in zip(lines, moved.items(), strict=True):
        for context in (line, "\n".join(lines)):
            assert town in remember(f"To which town did cousin {name} move?", context)


SAID = "[8 May 2023, 13:56]\nUser: {}\nAI: I see."


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("I joined the club yesterday.", "7 May 2023"),
        ("I joined the club last Saturday.", "6 May 2023"),
        ("I joined the club last week.", "about 1 May 2023"),
        ("I joined the club last month.", "April 2023"),
        ("I joined the club three years ago.", "2020"),
        ("I joined the club, 4 March 2021.", "4 March 2021"),
        ("I joined the club, and here I am.", "said on 8 May 2023"),
    ],
)
def test_asked_for_a_date_it_writes_the_date_out(said: str, dated: str) -> None:
    assert dated in remember("When did the user join the club?", SAID.format(said))


def test_it_writes_out_what_a_spanish_word_says() -> None:
    assert "7 May 2023" in remember("¿Cuándo se apuntó al coro la usuaria?", SAID.format("Ayer me apunté al coro."))


def test_asked_for_anything_else_it_quotes_what_was_said() -> None:
    assert remember("Which club did the user join?", SAID.format("I joined the chess club yesterday.")) == (
        "I joined the chess club yesterday."
    )


def test_of_two_sentences_that_say_the_same_it_takes_the_later() -> None:
    context = (
        "User: The rent of the flat is £612 a month.\nAI: OK.\nUser: The rent of the flat is £640 a month now."
    )
    assert remember("How much is the rent of the flat?", context) == "The rent of the flat is £640 a month now."


def test_what_only_shares_its_names_with_the_history_was_not_said() -> None:
    context = (
        "User: Tova Lind mended the gate on Monday.\nAI: Good.\nUser: Bram paid Tova Lind 40 crowns.\nAI: Noted.\n"
        "User: Tova Lind keeps bees by the river.\nAI: How nice.\nUser: Bram sang for Tova Lind in the choir."
    )
    assert remember("Which illness did Tova Lind have as a child?", context) == NOT_SAID
    assert "Tova Lind mended the gate on Monday." in remember("Who mended the gate?", context)
    options = ("red", "a ladder", "Not answerable")
    assert choose("Which colour is Tova Lind's bicycle?", options, context) == "2"


def test_it_says_so_when_a_prompt_is_not_ours() -> None:
    assert "no question" in read_and_answer("Write me a poem.")


@given(
    context=st.text(max_size=400), question=st.text(max_size=80), options=st.lists(st.text(max_size=30), min_size=2)
)
def test_it_never_raises_and_is_deterministic(context: str, question: str, options: list[str]) -> None:
    first = choose(question, tuple(options), context)
    assert first == choose(question, tuple(options), context)
    assert parse_choice(first, ["x"] * len(options)).index is None or int(first) < len(options)
    assert remember(question, context) == remember(question, context)


@pytest.mark.shared_data
def test_given_the_evidence_it_does_far_better_than_chance_on_published_questions(shared_data: Path) -> None:
    rows = json.loads((shared_data / "locomo" / "mc10_conv26_real_first100.json").read_text())
    samples = json.loads((shared_data / "locomo" / "locomo10_dev.json").read_text())
    conversation = next(sample["conversation"] for sample in samples if sample["sample_id"] == "conv-26")
    right = 0
    for row in rows:
        lines = []
        for session in range(1, 20):
            heading = conversation[f"session_{session}_date_time"]
            for turn in conversation[f"session_{session}"]:
                if turn["dia_id"] in row["evidence"]:
                    lines.append(f"[{heading}]\n{turn['speaker']}: {turn['text']}")
        reply = choose(row["question"], tuple(row["choices"]), "\n\n".join(lines))
        right += reply == str(row["correct_choice_index"])
    assert right >= 72


@pytest.mark.parametrize(
    ("datasets", "choices", "recalls"), [("multi-*", None, 0.88), ("long-04", 0.60, 0.50)], ids=["short", "long"]
)
def test_given_the_evidence_it_answers_shipped_questions(
    tmp_path: Path, datasets: str, choices: float | None, recalls: float
) -> None:
    results = tmp_path / "results.json"
    asked = ("--batch", "--dataset", datasets, "--backend", "oracle")
    assert exit_code(*asked, "--recording", tmp_path / "r.sqlite3", "--output", results) == 0
    answered = [one for one in json.loads(results.read_text())["questions"] if not one["abstain"]]
    for kind, least in (("choice", choices), ("recall", recalls)):
        scores = [one["score"] for one in answered if one["kind"] == kind and one["backend"] == "oracle"]
        assert (sum(scores) >= least * len(scores)) if least else not scores
