"""Replace personal data in the recording of an agent: names, numbers, addresses of mail and the web, and keys.

Equal things stay equal, so that the copy fails where the original did: a word that is written with a capital inside
a sentence becomes the same invented name everywhere, and a number another one of as many digits. The copy is made
of the journal alone, and says that it was redacted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memreplay.capture.journal import Journal, JournalReader, Note
from memreplay.errors import UsageError
from memreplay.llm.secrets import scrubbed

_NAMES: Final = (
    *("Alba", "Boro", "Cleo", "Dara", "Enzo", "Fara", "Gil", "Hana", "Ivo", "Jara", "Kito", "Lena", "Milo", "Nora"),
    *("Oton", "Pia", "Quim", "Rosa", "Sina", "Tomas", "Ulla", "Vito", "Wanda", "Xenia", "Yago", "Zora"),
)
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_URL = re.compile(r"\b(?:https?://|www\.)\S+")
_NUMBER = re.compile(r"\d+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_INSIDE = re.compile(r"(?<=[\w,;:)’'][ -])[^\W\d_]\w+")
"""A word that does not begin a sentence: with a capital it is a name, a place, a company."""
_AFTER_A_SHORT = re.compile(r"\b[A-ZÀ-Þ]\w{0,3}\. (?=([^\W\d_]\w+))")
"""A word behind a dot that may end an abbreviation, such as a title or an initial, and no sentence."""
_WORD = re.compile(r"[^\W\d_]\w*")
_KEPT: Final = frozenset(
    (
        *("Mr", "Mrs", "Ms", "Mx", "Dr", "Prof", "Rev", "Capt", "St", "Jr", "Sr", "Sra", "Srta", "Dra"),
        *("I", "AI", "API", "OK", "CET", "GMT", "UTC", "URL", "PDF", "CSV", "JSON", "SQL", "HTTP"),
        *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "January", "February"),
        *("March", "April", "May", "June", "July", "August", "September", "October", "November", "December"),
    )
)
_OF_A_NOTE: Final = frozenset(("library", "memory", "method", "kind", "place", "ms", "turn", "role"))
_OF_A_SPAN: Final = frozenset(
    (
        *("traceId", "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano"),
        *("key", "event", "role", "type"),
    )
)
"""Fields, of a note and below, that say how things hang together, and nothing of a person."""
_OWNER: Final = frozenset(
    (
        *("user_id", "userId", "user", "agent_id", "agentId", "group_id", "owner", "owner_id", "conversation"),
        *("user.id", "enduser.id", "gen_ai.user.id", "memory.user_id", "everos.user_id"),
    )
)
"""Fields that say whose memory it is."""
_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass
class Redaction:
    """The replacements of names, numbers and addresses. ``names`` are replaced besides those that are found.

    A word is a name if it stands inside sentences, or behind what may be an abbreviation, with a capital more often
    than anywhere without one; it is then replaced however it is written. Numbers are replaced from ``digits``
    digits on, with ``keeps_years`` no years.
    ``first`` is the place of the invented name that is used first.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    digits: int = 3
    first: int = 0
    keeps_years: bool = False
    _large: Counter[str] = field(default_factory=Counter)
    _small: Counter[str] = field(default_factory=Counter)
    _names: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, str] = field(default_factory=dict)
    _addresses: dict[str, str] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)

    def learn(self, text: str) -> None:
        """Find the names in a text."""
        self._small.update(word.casefold() for word in _WORD.findall(text) if word[0].islower())
        self._large.update(
            word.casefold()
            for word in (*_INSIDE.findall(text), *_AFTER_A_SHORT.findall(text))
            if word[0].isupper() and not word.isupper() and word not in _KEPT
        )

    def another(self, *, digits: int, first: int) -> Redaction:
        """Return a redaction of the same names that has replaced nothing yet."""
        return Redaction(self.names, digits, first, self.keeps_years, self._large, self._small)

    def _is_name(self, word: str) -> bool:
        return word not in _KEPT and self._large[word.casefold()] > self._small[word.casefold()]

    def _renamed(self, found: re.Match[str]) -> str:
        word, key = found[0], found[0].casefold()
        if not self._is_name(word):
            return word
        if key not in self._names:
            free = [name for name in _NAMES if name.casefold() not in self._large] or _NAMES
            count = self.first + len(self._names)
            again = "" if count < len(free) else str(count // len(free) + 1)
            self._names[key] = free[count % len(free)] + again
        name = self._names[key]
        return name.lower() if word.islower() else name.upper() if word.isupper() else name

    def names_in(self, text: str) -> list[str]:
        """Return the names of a text, each once."""
        return [*dict.fromkeys(word for word in _WORD.findall(text) if self._is_name(word))]

    def numbers_left_in(self, text: str) -> list[str]:
        """Return the numbers of a text that are not replaced, each once."""
        return [*dict.fromkeys(each for each in _NUMBER.findall(text) if self._number(each) == each)]

    def doubtful_in(self, text: str) -> list[str]:
        """Return the words of a text that only ever begin sentences: each may be a name, and is not replaced."""
        invented = {name.casefold() for name in self._names.values()}
        words = dict.fromkeys(word for word in _WORD.findall(text) if word.istitle() and word.isalpha())
        return [
            word
            for word in words
            if len(word) > 1
            and word not in _KEPT
            and not self._is_name(word)
            and not self._small[word.casefold()]
            and word.casefold() not in invented
        ]

    @property
    def replaced(self) -> int:
        """Return how many different things were replaced."""
        found = (self._names, self._numbers, self._addresses, self._owners, self.names)
        return sum(map(len, found))

    def of(self, text: str) -> str:
        """Return a text without personal data. An id says nothing of a person."""
        if _ID.fullmatch(text):
            return text
        text = scrubbed(text)
        for name in sorted(self.names, key=len, reverse=True):
            text = text.replace(name, self.names[name])
        text = _URL.sub(self._address("https://example.com/"), text)
        text = _MAIL.sub(self._address("person", "@example.com"), text)
        text = _NUMBER.sub(lambda found: self._number(found[0]), text)
        return _WORD.sub(self._renamed, text)

    def owner(self, name: str) -> str:
        """Return what stands for somebody whose memory it is."""
        return self._owners.setdefault(name, f"person-{len(self._owners) + 1}")

    def _address(self, before: str, after: str = "") -> Any:
        def replaced(found: re.Match[str]) -> str:
            return self._addresses.setdefault(found[0], f"{before}{len(self._addresses) + 1}{after}")

        return replaced

    def _number(self, digits: str) -> str:
        if len(digits) < self.digits or (self.keeps_years and _YEAR.fullmatch(digits)):
            return digits
        if digits not in self._numbers:
            # Another number of as many digits: multiplied by a number that has no factor in common with ten.
            most, taken = 10 ** len(digits), {digits, *self._numbers.values()}
            other = int(digits) * 7 + 3 * (len(self._numbers) + 1)
            free = (str((other + step) % most).zfill(len(digits)) for step in range(most))
            self._numbers[digits] = next((each for each in free if each not in taken), digits)
        return self._numbers[digits]


def redacted_copy(source: Path, target: Path, names: Mapping[str, str]) -> Redaction:
    """Write a copy of an agent's recording without personal data; returns what was replaced.

    Raises:
        RecordingError: a file cannot be read or written.
        UsageError: the source has no journal, or the target exists.
    """
    if target.exists():
        raise UsageError(f"{target}: exists already; name a new file")
    reader = JournalReader(source)
    try:
        notes = reader.after()
    finally:
        reader.close()
    if not notes:
        raise UsageError(f"{source}: not a recording of a running agent; only these can be redacted")
    redaction = Redaction(names)
    for note in notes:
        for text in _texts_in(note.body):
            redaction.learn(text)
    journal = Journal(target)
    for note in notes:
        journal.note(note.source, note.at, _redacted(note, redaction))
    journal.note("redacted", notes[-1].at, {"replaced": redaction.replaced})
    journal.close()
    return redaction


def _redacted(note: Note, redaction: Redaction) -> dict[str, Any]:
    def changed(value: Any, name: str = "") -> Any:
        match value:
            case str() if name in _OWNER and value:
                return redaction.owner(value)
            case str() if name not in _OF_A_SPAN:
                return redaction.of(value)
            case {"key": str(attribute), "value": {"stringValue": str(text)}} if attribute in _OWNER:
                return {"key": attribute, "value": {"stringValue": redaction.owner(text)}}
            case dict():
                return {key: changed(each, str(key)) for key, each in value.items()}
            case list():
                return [changed(each, name) for each in value]
        return value

    return {key: value if key in _OF_A_NOTE else changed(value, str(key)) for key, value in note.body.items()}


def _texts_in(value: Any, name: str = "") -> Iterator[str]:
    match value:
        case str() if name not in _OF_A_SPAN:
            yield value
        case dict():
            for key, each in value.items():
                yield from _texts_in(each, str(key))
        case list():
            for each in value:
                yield from _texts_in(each, name)
        case _:
            pass


def named(pairs: Iterable[str]) -> dict[str, str]:
    """Return the replacements of ``NAME=OTHER``.

    Raises:
        UsageError: one of them is not of this form.
    """
    found = {}
    for pair in pairs:
        name, separator, other = pair.partition("=")
        if not (name and separator):
            raise UsageError(f"--replace {pair}: expected NAME=OTHER, such as Girona=Lena")
        found[name] = other
    return found
