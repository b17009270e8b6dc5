"""A grade says where it is uncertain, and the right answers get bounds."""

from __future__ import annotations

import pytest

from memreplay.engine.answers import score_reply
from memreplay.grading.judge import is_quotation, score_quotation, score_recall
from memreplay.scoring.aggregates import headline_of
from tests.unit.scoring.samples import choice, recall, reply, row


@pytest.mark.parametrize(
    "text",
    ["Ida and Bo", "Ida and Bo were invited last summer, with the neighbours.", "Cy comes along.", "I don't know."],
)
def test_a_grade_is_certain_where_a_reply_says_the_answer_or_another_value(text: str) -> None:
    assert not score_recall(recall(), text).uncertain


def test_an_answer_in_other_words_is_doubtful_and_a_rejected_reply_the_more_the_closer_it_is() -> None:
    question = recall(
        text="Why did Ana sell the van?", expected="it was too expensive to keep on the road", expected_entities=()
    )
    scores = [
        score_recall(question, text)
        for text in (
            "Because it had become too expensive for her to drive it on that road.",
            "Because the expenses of the roads had grown.",
            "Her sister.",
            "She never said.",
        )
    ]
    assert [(score.outcome, score.decided_by, score.uncertain) for score in scores] == [
        ("correct", "overlap", True),
        ("wrong", "no_match", True),
        ("wrong", "no_match", False),
        ("wrong", "abstention", False),
    ]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("under the blue pot by the shed", "Under the green pot by the shed."),
        ("a torch, two blankets and a map", "A torch, three blankets and a map."),
        ("a marsh walk in May 2024", "A walk in the marsh in May 2023."),
        ("dinner by the harbour with Odd Berg", "Dinner by the harbour with Odd Borg."),
        ("brown sugar and flour", "Brown sugar."),
        ("that asking for help is no weakness", "Asking for help is a weakness."),
    ],
)
def test_words_in_common_do_not_make_another_value_right(expected: str, text: str) -> None:
    assert score_recall(recall(text="What?", expected=expected, expected_entities=()), text).outcome == "wrong"


def test_a_reply_that_names_both_of_two_offered_values_is_uncertain() -> None:
    asked = recall(text="Which opened first, the shop or the forge?", expected="the forge", expected_entities=())
    both = score_recall(asked, "The shop opened first, followed by the forge.")
    assert (both.outcome, both.uncertain) == ("correct", True)
    assert not score_recall(asked, "The forge.").uncertain


@pytest.mark.parametrize(
    ("expected", "text", "uncertain"),
    [
        ("12 May 2025", "A week after 12 May 2025.", True),
        ("12 May 2025", "On 12 May 2025.", False),
        ("nurse", "A former nurse, now a florist.", True),
        ("de Soria a Burgos", "De Burgos a Soria.", True),
        ("de Soria a Burgos", "De Soria a Burgos.", False),
        ("the canoe, not the kayak", "The kayak, not the canoe.", True),
        ("pottery and camping", "Camping and pottery.", False),
        ("€1,500", "Over 1,500 euros.", True),
        ("Oslo", "She moved away from Oslo.", True),
    ],
)
def test_a_reply_that_moves_the_answer_or_turns_it_around_is_uncertain(
    expected: str, text: str, uncertain: bool
) -> None:
    asked = recall(text="Which one is it?", expected=expected, expected_entities=())
    scored = score_recall(asked, text)
    assert (scored.outcome, scored.uncertain) == ("correct", uncertain)


@pytest.mark.parametrize(
    ("text", "uncertain"),
    [("On 16 December.", True), ("In December 2023.", True), ("16 December 2022.", False), ("In 2023.", False)],
)
def test_a_time_that_is_said_less_precisely_is_uncertain(text: str, uncertain: bool) -> None:
    asked = recall(text="When is the exam?", expected="16 December 2023", expected_entities=())
    scored = score_recall(asked, text)
    assert (scored.outcome, scored.uncertain) == ("wrong", uncertain)


def test_a_choice_and_an_error_are_never_uncertain() -> None:
    assert not score_reply(choice(), reply("3")).uncertain
    assert not score_reply(recall(), reply(None, error="timed out")).uncertain


def test_right_answers_are_bounded_by_what_the_uncertain_ones_can_be() -> None:
    rows = [
        row(recall(), reply(text))
        for text in (
            "Ida and Bo",
            "Cy",
            "Ida, with others whom nobody knew.",
        )
    ]
    uncertain = headline_of(rows).uncertain
    assert uncertain is not None and (uncertain.answers, uncertain.right) == (1, (1, 2))
    assert str(uncertain) == "1 uncertain: 1 to 2"
    assert headline_of(rows[:2]).uncertain is None


def test_an_answer_is_read_with_other_spaces_signs_and_a_clause_behind() -> None:
    rows = [
        ("B17", "Gate B 17"),
        ("LS8 3QT", "ls83qt"),
        ("30 September", "30/09"),
        ("every 9 days", "every nine days or it dries"),
    ]
    assert [row for row in rows if _outcome("Which?", *row) != "correct"] == []


def test_a_second_answer_that_is_also_acceptable_is_accepted() -> None:
    expected = "18 days. 19 days (including the last day) is also acceptable."
    said = {text: _outcome("How many days?", expected, text) for text in ("18 days", "It was 19 days.", "20 days")}
    assert said == {"18 days": "correct", "It was 19 days.": "correct", "20 days": "wrong"}


def test_a_fraction_is_no_date() -> None:
    question = recall(text="When?", expected="3 April", expected_entities=())
    assert score_recall(question, "3/4 of them").outcome == "wrong"


def test_another_figure_beside_the_answer_does_not_take_its_place() -> None:
    rows = [
        ("300", "300; the 450 was only a wish"),
        ("9 June", "9 June; 2 June was the mock"),
        ("84", "Not 80; 84 guests are coming"),
    ]
    assert [row for row in rows if _outcome("Which one?", *row) != "correct"] == []


def _outcome(question: str, expected: str, text: str) -> str:
    return score_recall(recall(text=question, expected=expected, expected_entities=()), text).outcome


@pytest.mark.parametrize(
    ("reply", "quotes"),
    [
        ("Ida came along.", True),
        ("Ida came  along. The others, whom nobody knew, did not.", True),
        ("The others, whom nobody knew, did not. Ida came along.", True),
        ("Ida came along, I think.", False),
        ("Ida came along (7 May 2023).", True),
        ("Ida came along (I think).", False),
        ("Ida came along. I think so.", False),
        ("", False),
    ],
)
def test_a_quotation_consists_of_sentences_of_its_source(reply: str, quotes: bool) -> None:
    assert is_quotation(reply, "User: Ida came\nalong. The others, whom nobody knew, did not.") is quotes


@pytest.mark.parametrize(
    ("asked", "expected", "reply", "outcome"),
    [
        (
            "How much is the reserve for bad boards?",
            "£450",
            "Ask for a reserve, say £450, so that you need not meet again.\nEven ten bad boards would be £70 more.",
            "correct",
        ),
        ("Which book did Ada praise?", "Blue Hour", 'I loved "Blue Hour" by Amy Ellis.\nDo read it!', "correct"),
        ("Which flat burst?", "Flat 16", "Was it Flat 16?\nNo.", "wrong"),
        ("Which flat burst?", "Flat 16", "Flat 12 burst.\nIt was not Flat 16.", "wrong"),
        ("Who mended the roof?", "Ola Berg", "Ola Berg did not mend the roof.\nIt was Tom.", "wrong"),
    ],
)
def test_a_sentence_that_is_quoted_does_not_deny_what_another_says(
    asked: str, expected: str, reply: str, outcome: str
) -> None:
    question = recall(text=asked, expected=expected, expected_entities=())
    scored = score_quotation(question, reply, score_recall(question, reply))
    assert (scored.outcome, scored.predicted, scored.uncertain) == (outcome, reply, False)
