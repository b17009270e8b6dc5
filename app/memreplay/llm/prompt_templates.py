"""Prompts that the user chooses for questions: those of benchmarks, or a Jinja template in a file.

A template gets these fields:

- ``context``: what the memory returned, or a line that says that it returned nothing; it occurs exactly once
- ``question``: the text of the question
- ``options``: the options of a multiple-choice question, in the order of their indices from 0; empty for recall
- ``kind``: ``recall`` or ``choice``
- ``offered``: two answers to choose from, for an adversarial question of LoCoMo; empty for others
- ``type``: the dataset's name for what kind of question it is. A prompt that uses it tells the model more than the
  question does; LoCoMo's does, for temporal questions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from memreplay.conversations.models import Question
from memreplay.errors import UsageError
from memreplay.grading.read import without_reasoning

if TYPE_CHECKING:
    from jinja2 import Template

DEFAULT_PROMPT: Final = "memreplay"
"""The name of the prompt in :mod:`memreplay.llm.prompts`."""

_CHOICES: Final = (
    "{% for option in options %}({{ loop.index0 }}) {{ option }}\n{% endfor %}"
    "Reply with the number of the right option only.\n"
)

# The wording of Maharana et al. (2024), task_eval/gpt_utils.py: QA_PROMPT, or QA_PROMPT_CAT_5 for adversarial
# questions, and what it adds to these and to temporal ones.
_LOCOMO: Final = (
    "{{ context }}\n\n"
    "Based on the above context, {% if offered %}answer the following question.{% else %}write an answer in the"
    " form of a short phrase for the following question. Answer with exact words from the context whenever"
    " possible.{% endif %}\n\n"
    "Question: {{ question }}{% if 'temporal' in type %} Use DATE of CONVERSATION to answer with an approximate"
    " date.{% endif %}{% if offered %} Select the correct answer: (a) {{ offered[0] }} (b) {{ offered[1] }}."
    "{% endif %}{% if options %}\n" + _CHOICES + "{% else %} {% endif %}Short answer:"
)

# The wording of Wu et al. (2025), src/generation/run_generation.py, without the current date, which its questions
# name only in the original files.
_LONGMEMEVAL: Final = (
    "I will give you several history chats between you and a user. Please answer the question based on the relevant"
    " chat history.\n\n\nHistory Chats:\n\n{{ context }}\n\nQuestion: {{ question }}\n"
    "{% if options %}" + _CHOICES + "{% endif %}Answer:"
)

_SHIPPED: Final = {"locomo": _LOCOMO, "longmemeval": _LONGMEMEVAL}
_LIKE_DEFAULT: Final = (DEFAULT_PROMPT, "mc10")
"""LoCoMo-MC10's prompt is the one that choice questions get anyway."""

PROMPTS: Final = (*_LIKE_DEFAULT, *_SHIPPED)
"""Names of prompts; anything else is a path."""

_MOST_CHARACTERS: Final = 100_000


NOT_MENTIONED: Final = "Not mentioned in the conversation"
"""The right one of the two answers that LoCoMo offers for an adversarial question."""

_LETTER = re.compile(r"\(?([ab])\)?[.:]?", re.IGNORECASE)


def offered_answers(question: Question) -> tuple[str, ...]:
    """Return the two answers that LoCoMo offers for an adversarial question; empty for any other.

    The order depends on the question's id, where LoCoMo's own script draws it.
    """
    if question.suggested is None:
        return ()
    pair = (NOT_MENTIONED, " ".join(question.suggested.split()))
    return pair if sha256(question.id.encode("utf-8", "surrogatepass")).digest()[0] % 2 else pair[::-1]


def without_letter(question: Question, asked: str, reply: str) -> str:
    """Return the offered answer that a reply of one letter names, if the prompt offered it; else the reply."""
    offered = offered_answers(question)
    letter = _LETTER.fullmatch(without_reasoning(reply))
    if letter is None or not offered or f"(a) {offered[0]} (b) {offered[1]}." not in asked:
        return reply
    return offered["ab".index(letter[1].lower())]


@dataclass(frozen=True)
class PromptTemplate:
    """A prompt as a Jinja template; ``name`` is that of a shipped one, or its path."""

    name: str
    text: str

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the text, in hexadecimal."""
        return sha256(self.text.encode()).hexdigest()

    @cached_property
    def _compiled(self) -> Template:
        from jinja2 import StrictUndefined, TemplateSyntaxError
        from jinja2.sandbox import SandboxedEnvironment

        environment = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
        try:
            return environment.from_string(self.text)
        except TemplateSyntaxError as error:
            raise UsageError(f"{self.name}:{error.lineno}: not a Jinja template: {error.message}") from None

    def segments(self, question: Question, context: str) -> tuple[str, str, str]:
        """Return the prompt in three parts, of which the second is the context.

        Raises:
            UsageError: the template cannot be rendered.
        """
        from jinja2 import TemplateError

        place = uuid4().hex
        try:
            text = self._compiled.render(
                context=place,
                question=" ".join(question.text.split()),
                options=[" ".join(choice.split()) for choice in question.choices],
                kind=question.kind,
                offered=offered_answers(question),
                type=question.type,
            )
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise UsageError(f"{self.name}: the prompt cannot be rendered: {error}") from None
        before, *rest = text.split(place)
        if len(rest) != 1:
            raise UsageError(
                f"{self.name}: the prompt holds {{{{ context }}}} {len(rest)} times for a {question.kind} question;"
                " expected once"
            )
        return before, context, rest[0]


_EXAMPLES: Final = (
    Question(id="1", kind="recall", type="single_fact", text="Where?", expected="here"),
    Question(
        id="2", kind="choice", type="single_fact", text="Where?", expected="a", choices=("a", "b"), correct_index=0
    ),
)


def prompt_template(named: str) -> PromptTemplate | None:
    """Return the template of a name or path, tried on a question of each kind; None for the default prompt.

    Raises:
        UsageError: there is no such file, or it is not a template that holds the question and its context.
    """
    if named in _LIKE_DEFAULT:
        return None
    template = PromptTemplate(named, _SHIPPED[named] if named in _SHIPPED else _read(Path(named)))
    for example in _EXAMPLES:
        parts = template.segments(example, "")
        for said, field in ((example.text, "question"), *((choice, "options") for choice in example.choices)):
            if said not in "".join(parts):
                raise UsageError(
                    f"{named}: the prompt of a {example.kind} question does not hold {{{{ {field} }}}}"
                )
    return template


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"--prompt {path}: no such file; expected one, or {', '.join(PROMPTS)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--prompt {path}: cannot be read: {error}") from None
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(f"--prompt {path}: longer than {_MOST_CHARACTERS:,} characters")
    return text
