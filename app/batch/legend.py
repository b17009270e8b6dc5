"""What the headings of the tables mean, and of what each number is a share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from app.scoring.attribution import Label

_SCORES: Final[Mapping[str, str]] = {
    "right": "right answers of graded ones; an answer that ended in an error is not graded",
    "accuracy": "share of graded answers that are right",
    "95 %": "Wilson interval of the accuracy, questions taken as independent",
    "95 % clustered": "the same where questions of one conversation are taken to be alike",
    "adjusted": "share of graded answers that are right by the corrected key, without the questions it voids",
    "not adversarial": "accuracy without adversarial questions",
    "errors": "answers that ended in an error, which are neither right nor wrong",
    "repeats agree": "share of pairs of repeats of a question that gave the same answer",
    "closed book": "share of the same questions that the same model gets right without any memory",
    "gain": "(accuracy − closed book) / (1 − closed book): how much of what the model alone leaves, memory gains",
    "evidence in prompt": "share of questions with evidence for which all of it stood in the prompt, word for word",
    "grounded": "share of graded questions with evidence that are right with the evidence in the prompt, word for"
    " word or distilled",
    "recall@10": "share of a question's evidence turns among the first ten hits, on average",
    "tokens/right": "tokens of all prompts and replies for each right answer",
    "cost": "US dollars for all replies; – where a price is not known",
    "cost/right": "the same for each right answer",
}

_LABELS: Final[Mapping[Label, str]] = {
    "error": "no answer came",
    "unparsed": "the reply gives no answer that can be read",
    "refused": "the provider refused",
    "key_suspect": "wrong by a published answer that the answer key corrects",
    "no_evidence": "wrong, and the dataset names no evidence",
    "not_written": "wrong: memory never held the fact, or not any more",
    "not_retrieved": "wrong: memory held it, and did not find it",
    "cut": "wrong: found, and cut from the prompt by the budget",
    "stale": "wrong: a value that was superseded was answered",
    "false_attribution": "wrong: it was never said, and something was answered",
    "misread": "wrong, with the evidence in the prompt",
    "grounded": "right, with the evidence in the prompt",
    "guessed": "right without the evidence, and without memory too",
    "lucky": "right without the evidence, but not without memory",
}


def meaning_of_scores(headings: Iterable[str]) -> list[tuple[str, str]]:
    """Each of these headings with what it means, in their order."""
    return [(heading, _SCORES[heading]) for heading in headings]


def meaning_of_failures(headings: Iterable[str]) -> list[tuple[str, str]]:
    """The same of the table of where facts were lost, whose cells are numbers of answers."""
    by_heading = {label.replace("_", " "): meaning for label, meaning in _LABELS.items()}
    return [(heading, by_heading[heading]) for heading in headings]
