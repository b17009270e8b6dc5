"""What a reply to a yes-or-no question says: yes, no, or neither. English and Spanish."""

from __future__ import annotations

import re
from typing import Final, Literal

from memreplay.grading.denial import NEGATIONS
from memreplay.grading.lexing import folded
from memreplay.grading.superseding import CORRECTS_ITSELF
from memreplay.grading.tokens import content_of, same_token, tokens_of

Polarity = Literal["yes", "no"]

_MAYBE: Final = r"(?:(?:most |very )?(?:likely|probably|presumably|possibly)|probablemente|seguramente)"
_EXPECTED: Final = re.compile(
    rf"\W*(?:{_MAYBE}\W+)?(?P<says>yes|no|si)(?:\W+{_MAYBE})?(?P<rest>\W*\Z|\s*[,.;:(—–-]|\s(?=because|since|porque))"
)
_LEAD_IN: Final = re.compile(
    r"\W*(?:(?:(?:the |my )?answer(?: is)?|(?:la )?respuesta(?: es)?|well|so|pues|bueno"
    rf"|based on [^,.]*|according to [^,.]*)\W+|{_MAYBE}\W+)*"
)
_YES: Final = re.compile(
    r"(?:yes|yeah|yep|yup|correct|indeed|certainly|definitely|absolutely|of course|that is right|thats right"
    r"|affirmative|true|si|claro|exacto|efectivamente|por supuesto|cierto)\b"
)
_NO: Final = re.compile(
    r"(?:no|nope|nah|not (?:really|at all|anymore|any more|yet)|not|never|negative|incorrect|unlikely|false"
    r"|i doubt|i (?:do not|dont) think so|para nada|tampoco|nunca|en absoluto|negativo|falso|incorrecto)\b"
)
_SHORT_YES: Final = re.compile(
    r"(?:he|she|it|they|you|we|i|that|those|these|there|[a-z]+) (?:is|are|was|were|do|does|did|has|have|had|can"
    r"|could|will|would|should)\W*\Z"
)
_YES_OR_NO: Final = re.compile(
    r"\W*(?:[^?]*, )?(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|am|might|may"
    r"|must)(?:nt)? "
)
_SPANISH_QUESTION: Final = re.compile(
    r"\W*(?:que|cual|cuales|quien|quienes|donde|cuando|como|cuant\w+|por que|a que|en que|de que|con quien)\b"
)
_PRONOUNS: Final = frozenset("it that them there lo la los las alli".split())
_OR: Final = re.compile(r"\bor (?!not\b)|\bo\b (?!no\b)")


def expected_polarity(expected: str, question: str) -> tuple[Polarity | None, bool]:
    """What the expected answer of a yes-or-no question says, and whether it says nothing else."""
    asked = folded(question)
    is_spanish = "¿" in question and not _SPANISH_QUESTION.match(asked)
    found = _EXPECTED.match(folded(expected))
    if found is None or not (_YES_OR_NO.match(asked) or is_spanish) or _OR.search(asked):
        return None, False
    return ("no" if found["says"] == "no" else "yes"), not re.search(r"\w", folded(expected)[found.end() :])


def polarity_of(reply: str, question: str) -> Polarity | None:
    """What a reply to a yes-or-no question says; None where its form does not show it."""
    plain = folded(reply)
    corrections = list(CORRECTS_ITSELF.finditer(plain))
    if corrections and re.search(r"\w", plain[corrections[-1].end() :]):
        plain = plain[corrections[-1].end() :]
    first = next((part for part in re.split(r"(?<=[.!?;])\s|\n", plain) if re.search(r"\w", part)), "")
    said = first[lead.end() :] if (lead := _LEAD_IN.match(first)) else first
    if _NO.match(said):
        return "no"
    if _YES.match(said):
        return "yes"
    main = re.split(r"\b(?:but|although|because|since|so|pero|aunque|porque)\b|[,;]", said)[0]
    if any(token.text in NEGATIONS for token in tokens_of(main)):
        return "no"
    if _SHORT_YES.match(said):
        return "yes"
    names = frozenset(map(folded, re.findall(r"(?<=\s)[^\W\d_a-zà-ÿ]\w+", question)))
    asked = [token for _, token in content_of(tokens_of(question)) if token.text not in names][1:]
    missing = [one for one in asked if not any(same_token(one, token) for token in tokens_of(said))]
    has_pronoun = bool(set(re.findall(r"\w+", said)) & _PRONOUNS - set(re.findall(r"\w+", folded(question))))
    return "yes" if asked and len(missing) <= min(int(has_pronoun), len(asked) - 1) else None
