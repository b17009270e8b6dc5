from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_backends.base import Exchange, Message
from memory_backends.hybrid.candidates import Candidate, Heard, candidates_of
from memory_backends.hybrid.consolidation import PROMOTION_THRESHOLD
from tests.tables import failing


def said(text: str, label: str = "User", role: str = "user") -> tuple[Candidate, ...]:
    message = Message(turn_id="7", turn_number=7, session=1, role=role, label=label, text=text)
    return candidates_of(Exchange(messages=(message,)))


def slots(text: str, label: str = "User") -> dict[str, str]:
    return {candidate.slot: candidate.value for candidate in said(text, label) if candidate.slot}


FACTS = [
    ("I'm Marta Ibarra, by the way.", "user.name", "Marta Ibarra"),
    ("Hi, my name is Bob.", "user.name", "Bob"),
    ("So: I'm a backend engineer at Nimbus Labs, and it rains.", "user.employer", "Nimbus Labs"),
    ("So: I'm a backend engineer at Nimbus Labs, and it rains.", "user.is", "backend engineer"),
    ("I work for the Nimbus Foundation.", "user.employer", "Nimbus Foundation"),
    ("I've been a nurse for ten years.", "user.is", "nurse"),
    ("I'm married.", "user.is", "married"),
    ("We moved to New Haven last spring.", "user.city", "New Haven"),
    ("I'm originally from Sri Lanka.", "user.origin", "Sri Lanka"),
    ("My late wife Odile hated boats.", "user.wife", "Odile"),
    ("My dog is called Biscuit.", "user.dog", "Biscuit"),
    ("Signe, my granddaughter, is coming too.", "user.granddaughter", "Signe"),
    ("Kids are Nora and Tim.", "user.kids", "Nora and Tim"),
    ("He is allergic to walnuts.", "allergy", "walnuts"),
    ("She has a serious sesame allergy.", "allergy", "sesame"),
    ("I'm vegetarian.", "user.is", "vegetarian"),
    ("My favourite colour is dark green.", "favourite_colour", "dark green"),
    ("I can't stand coriander.", "user.dislikes", "coriander"),
    ("Please never call me Bob in front of her.", "user.instructions", "Please never call me Bob in front of her"),
    ("The deadline is now 23 September.", "deadline", "23 September"),
    ("It has to be signed off by 25 September.", "deadline", "25 September"),
    ("Our budget is £4,500 at most.", "budget", "£4,500"),
    ("The database is to be called waxledger.", "database", "waxledger"),
    ("It listens on port 5477.", "port", "5477"),
    ("We set MAX_RETRIES=5 yesterday.", "config.max_retries", "5"),
    ("It says ImportError: no module named foo", "error", "ImportError: no module named foo"),
    ("The image is python:3.11.4-slim here.", "version", "python:3.11.4-slim"),
    ("Me llamo Blanca Zubiaurre.", "user.name", "Blanca Zubiaurre"),
    ("Trabajo en Talleres Urrutia desde enero.", "user.employer", "Talleres Urrutia"),
    ("Soy enfermera y vivo en Zaragoza.", "user.is", "enfermera"),
    ("Soy enfermera y vivo en Zaragoza.", "user.city", "Zaragoza"),
    ("Nací en Quito.", "user.origin", "Quito"),
    ("Mi hermana Lucía viene el jueves.", "user.hermana", "Lucía"),
    ("Delfina Achával, mi cofundadora, no quiere.", "user.cofundadora", "Delfina Achával"),
    ("Mi color favorito es el verde.", "favourite_color", "verde"),
    ("Es alérgico a las nueces.", "allergy", "nueces"),
    ("A partir de ahora contéstame sin listas.", "user.instructions", "A partir de ahora contéstame sin listas"),
    ("El presupuesto es de 11.800 euros.", "budget", "11.800 euros"),
]


def test_reads_a_fact_into_its_slot():
    def check(sentence, slot, value):
        assert slots(sentence).get(slot) == value

    assert failing(FACTS, check) == []


def test_what_is_said_plainly_is_significant_enough_at_once():
    def check(sentence, slot, value):
        found = next(candidate for candidate in said(sentence) if candidate.slot == slot)
        assert found.certainty * found.impact >= PROMOTION_THRESHOLD

    assert failing(FACTS, check) == []


def test_fills_no_slot_of_a_person_from_what_is_no_fact():
    def check(sentence):
        assert not {slot for slot in slots(sentence) if not slot.endswith("instructions")}

    assert (
        failing(
            [
                "I'm tired.",
                "I'm here if you need me.",
                "What is the deadline?",
                "Do you like cats?",
                "Never mind.",
                "The sign-off is NOT on the 25th any more.",
                "Never give up!",
                "My brother is Spanish.",
                "She loves it.",
                "No me llames Pepe nunca más?",
            ],
            check,
        )
        == []
    )


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("The order expires after 12 seconds.", "12 seconds"),
        ("There will be fourteen of us at table.", "fourteen of us"),
        ("Production has been running VerneMQ since March.", "VerneMQ"),
        ("The rest weighs 18 kg.", "18 kg"),
        ("Look at clinic_no in the token.", "clinic_no"),
        ("I signed up for a pottery class.", "signed up for a pottery class"),
    ],
)
def test_keeps_precise_things_that_have_no_slot(sentence, value):
    assert [candidate.value for candidate in said(sentence) if candidate.slot is None] == [value]


def test_keeps_nothing_that_tells_nothing_by_itself():
    def check(sentence):
        assert said(sentence) == ()

    assert (
        failing(
            [
                "I 100% agree with that.",
                "It happened a few times.",
                "The last time we moved he stopped eating.",
                "I think so too, to be honest with you.",
                "See you John, bye!",
                "It said 404 Not Found again.",
                "The last Exit Code: 137",
                "type Panel { code: String! }",
                "COPY seatmap /src/seatmap_new",
                "There was lots of advice/assistance.",
                "I'd love to say that it was easy.",
                "If I had £500, I would repaint the hall.",
                "How do I say no without a Thing?",
                "The file, shortened: ",
            ],
            check,
        )
        == []
    )


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("Apex Legends has awesome graphics.", "Apex Legends"),
        ("The neighbour, Helka Rautiola, knocked.", "Helka Rautiola"),
        ("Llamó un albañil, Saturnino Albar, el del baño.", "Saturnino Albar"),
        ("Mrs Yelland across the landing has offered hers.", "Mrs Yelland"),
        ("I loved a book by Amy Ellis Nutt.", "Amy Ellis Nutt"),
        ("In Georgian we have that too.", "Georgian"),
    ],
)
def test_a_name_that_is_mentioned_is_the_whole_name(sentence, name):
    assert [candidate.value for candidate in said(sentence)] == [name]


def test_names_who_said_it_in_the_words_that_were_said():
    (candidate,) = said("Well. My favourite colour is green! Bye.", label="Caroline")
    assert candidate.content == "Caroline: My favourite colour is green!"
    assert candidate.sources == ("7",)


def test_slots_of_a_named_speaker_carry_the_name():
    assert slots("I moved to Oslo.", label="Caroline") == {"caroline.city": "Oslo"}


@pytest.mark.parametrize(
    ("sentence", "taken_back"),
    [
        ("There will be fourteen of us, not eleven.", "eleven"),
        ("It is Tuesday instead of Monday.", "Monday"),
        ("Seremos 14 personas, no 11.", "11"),
        ("Actually, the deadline is Friday.", None),
        ("En realidad el plazo es el viernes.", None),
    ],
)
def test_knows_a_correction_and_what_it_takes_back(sentence, taken_back):
    candidates = said(sentence)
    assert candidates
    assert all(candidate.is_correction and candidate.taken_back == taken_back for candidate in candidates)


def test_an_assistant_fills_no_slot_but_the_second_of_two_people_does():
    sentence = "The deadline is Friday."
    assert said(sentence, "AI", "assistant") == ()
    assert said(sentence, "Melanie", "assistant")[0].slot == "deadline"


def test_what_two_people_tell_each_other_to_do_is_no_instruction():
    sentence = "Don't use the side door."
    assert said(sentence)[0].is_instruction
    assert not [candidate for candidate in said(sentence, label="Caroline") if candidate.is_instruction]


def exchange_of(text: str, reply: str = "OK.") -> Exchange:
    asked = Message(turn_id="1", turn_number=1, session=1, role="user", label="User", text=text)
    replied = Message(turn_id="2", turn_number=2, session=1, role="assistant", label="AI", text=reply)
    return Exchange(messages=(asked, replied))


def test_words_that_were_heard_before_tell_less():
    heard = Heard()
    (first,) = heard.mark(candidates_of(exchange_of("The lamp came from Oslo.")))
    for _ in range(6):
        heard.hear(exchange_of("The lamp came from Oslo."))
    (again,) = heard.mark(candidates_of(exchange_of("The lamp came from Oslo.")))
    assert first.news == 1.0 > again.news


def test_what_corrects_or_has_a_slot_tells_enough_in_any_words():
    heard = Heard()
    for _ in range(4):
        heard.hear(exchange_of("My name is Ida Lund. The lamp cost £90, not £80."))
    found = heard.mark(candidates_of(exchange_of("My name is Ida Lund. The lamp cost £90, not £80.")))
    assert {candidate.news for candidate in found} == {1.0}


def test_a_short_reply_is_kept_with_the_question_that_it_answers():
    heard = Heard()
    heard.hear(exchange_of("I bought a lamp.", "Lovely. How much was the lamp?"))
    (candidate,) = candidates_of(exchange_of("£90."), heard.asked)
    assert (candidate.value, candidate.content) == ("£90", "User: (How much was the lamp?) £90.")


def test_a_very_short_sentence_is_kept_with_the_one_before_it():
    (candidate,) = said("The repair was dear in the end. £320.")
    assert (candidate.value, candidate.content) == ("£320", "User: The repair was dear in the end. £320.")


def test_doubt_makes_less_certain():
    assert said("Maybe my budget is £900.")[0].certainty < said("My budget is £900.")[0].certainty


def test_the_name_of_who_is_spoken_to_is_no_fact():
    one = Message(turn_id="1", turn_number=1, session=1, role="user", label="Mel", text="Such a great day.")
    two = Message(turn_id="2", turn_number=2, session=1, role="assistant", label="Ana", text="That is so good Mel!")
    assert candidates_of(Exchange(messages=(one, two))) == ()


def test_finds_the_same_again():
    text = "I'm Marta Ibarra and I work at Nimbus Labs. The deadline is 3 May."
    assert said(text) == said(text)
    assert len({candidate.id for candidate in said(text)}) == len(said(text)) >= 3


HOSTILE = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from([text for text, _, _ in FACTS] + ["{0}", "%s", "\x00", "[b]", "Ana ", "is "]), max_size=8
    ).map(" ".join),
)


@given(HOSTILE)
@settings(max_examples=150, deadline=None)
def test_any_text_gives_candidates_that_quote_it(text):
    for candidate in said(text):
        assert candidate.value
        assert " ".join(candidate.value.split())[:20] in " ".join(text.split())
        assert len(candidate.content) < 320


def test_a_text_that_begins_a_fact_again_and_again_is_read_to_its_end():
    def check(piece):
        assert all(len(candidate.content) < 320 for candidate in said(piece * 8000))

    assert failing(["1 ", "1.", "a-", "a.b=", "A ", "Ana and ", "my old ", "`", "error: ", "a_", "/a"], check) == []


def test_reads_no_slot_from_what_only_looks_like_a_statement():
    def check(sentence):
        filled = slots(sentence)
        assert not {slot for slot in filled if slot != "config.total"}

    assert (
        failing(
            [
                "In the book is “minä olen”.",
                "The back of the darn was “better than the front”.",
                "La otra mitad de la empresa es Delfina Achával.",
                "I talked to someone named David.",
                "The other two are Chihuahua mixes.",
                "Her name's Coco and she's adorable.",
                "My girlfriend, Toby and I are going camping.",
                "Never give up, buddy!",
                "(or whatever the service is called in your file).",
                "WHERE a.store_id = 14 AND a.state = 'PEND'",
                "adapter = HTTPAdapter(max_retries=Retry(total=5))",
                "self.next_at = 0.0",
                "See Table 2.3 for the counts.",
                "I'd rather be sick over a bigger number.",
                "I love making him happy.",
                "My favorite thing is Hawaiian pizza.",
                "The default is 90 here.",
                "La respuesta es 42.",
                "EXPLAIN ANALYZE SELECT is what you want.",
                "I'd be looking at an error, wouldn't I?",
                "Open http://localhost:<your port> then.",
                "exceeded quota, requested: limits.memory=1792Mi, used: limits.memory=17920Mi",
            ],
            check,
        )
        == []
    )


def test_still_reads_what_looks_alike_and_is_one():
    def check(sentence, slot, value):
        assert slots(sentence).get(slot) == value

    assert (
        failing(
            [
                ("This is from my daughter Sara's birthday.", "user.daughter", "Sara"),
                ("My wife Ana and I are going camping.", "user.wife", "Ana"),
                ("My wife, Ana, and I are going camping.", "user.wife", "Ana"),
                ("name's Ezekiel Oyelaran.", "user.name", "Ezekiel Oyelaran"),
                ("It was a gift in my home country, Sweden.", "user.origin", "Sweden"),
                ("Es de mi abuela Herminia, que vive sola.", "user.abuela", "Herminia"),
                ("set retry.max_delay = 30s there", "config.retry_max_delay", "30s"),
                ("The endpoint is POST /v4/labels, one call each.", "endpoint", "POST /v4/labels"),
                ("Retry(total=5, status_list=[429, 503])", "config.status_list", "429, 503"),
                ("The JVM never throws an OutOfMemoryError, and the heap is flat.", "error", "OutOfMemoryError"),
                ("It ends in ECONNREFUSED 127.0.0.1:5432", "error", "ECONNREFUSED 127.0.0.1:5432"),
                ("I love pizza too!", "user.likes", "pizza"),
            ],
            check,
        )
        == []
    )


def test_an_assistant_says_nothing_of_itself_worth_keeping():
    assert said("Don't say a word. I prefer the second of them.", "AI", "assistant") == ()


@pytest.mark.parametrize(
    ("sentence", "filled"),
    [
        ("Mi padre se llama Fermín y lleva un taxi.", {"user.padre": "Fermín"}),
        ("My side project is called Tidebook: it logs tides.", {"user.side_project": "Tidebook"}),
        ("The project is called Tidebook.", {"project": "Tidebook"}),
    ],
)
def test_what_is_somebodys_fills_no_second_slot_of_nobodys(sentence, filled):
    assert slots(sentence) == filled
