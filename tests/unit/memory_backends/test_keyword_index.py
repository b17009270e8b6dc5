from __future__ import annotations

import bm25s
import numpy as np
import pytest

from memory_backends.retrieval.keyword import KeywordIndex, terms_of

TURNS = [
    (1, "I adopted a cat called Tofu"),
    (1, "Cats are lovely, what colour is it?"),
    (1, "Grey with white paws"),
    (2, "The deadline of the report is Friday"),
    (2, "Friday, noted"),
]


@pytest.fixture
def index() -> KeywordIndex:
    made = KeywordIndex()
    for session, text in TURNS:
        made.add(session, text)
    return made


def test_scores_single_turns_as_bm25s_does(index):
    reference = bm25s.BM25()
    reference.index([list(terms_of(text)) for _, text in TURNS], show_progress=False)
    query = "What colour is the grey cat?"
    expected = reference.get_scores(list(dict.fromkeys(terms_of(query))))
    np.testing.assert_allclose(index.scores(query, reach=0), expected, rtol=1e-5)


def test_finds_other_forms_of_a_word(index):
    scores = index.scores("deadlines", reach=0)
    assert scores.argmax() == 3
    assert scores[3] > 0


def test_a_turn_read_with_its_neighbours_has_their_words(index):
    assert index.scores("Tofu", reach=0)[1] == 0
    assert index.scores("Tofu", reach=1)[1] > 0
    assert index.scores("Tofu", reach=1)[2] == 0
    assert index.scores("Tofu", reach=2)[2] > 0


def test_neighbours_are_of_the_same_session(index):
    assert index.scores("grey", reach=2)[3] == 0


def test_words_that_were_never_said_score_nothing(index):
    assert not index.scores("zeppelin", reach=1).any()
    assert not index.scores("the of and", reach=0).any()


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Trabajaba como enfermera en el hospital", "enfermeras"),
        ("Me encantan las montañas de la sierra", "montaña"),
    ],
)
def test_spanish_is_stemmed_as_spanish(said, asked):
    index = KeywordIndex()
    index.add(1, said)
    index.add(1, "otra cosa que no es de la misma clase")
    assert index.scores(f"¿cuáles son las {asked} de la señora?", reach=0)[0] > 0
