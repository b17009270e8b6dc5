"""Plain text and Markdown: the speaker stands before each message (``User:``, ``**Claude:**``, ``## User``).

A time may stand before or after the speaker. Names are speakers too, once it is known who the user is: the one that
the caller names, or the one who talks to a known assistant (``Ana`` and ``Claude``). A message may have several
lines; a line that would be read as the beginning of another message is written with a backslash before it. Nothing
inside a fenced block of code begins a message.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from memreplay.conversations.chat_logs import Chat, ChatLog
from memreplay.conversations.formats.messengers import is_whatsapp, refusal
from memreplay.conversations.json_files import DatasetFile, first_bytes, read_text
from memreplay.conversations.messages import ChatMessage, known_role, label_of, moment
from memreplay.conversations.models import Conversation, TurnRole
from memreplay.conversations.validation_errors import LoadCallbacks, Place

NAME = "plain text"
SIGNATURE = 'text that begins with "User:" or "Assistant:"'

_ALWAYS = frozenset(
    ("user", "human", "assistant", "ai", "bot", "chatgpt", "system", "tool", "tool call", "thinking")
)
"""Labels that begin a message anywhere; others that are roles do so only if the text begins with them."""
_SHOWN_LABELS = {"tool call": "Tool call", "tool": "Tool", "thinking": "Thinking", "system": "System"}
_TOOL_LABEL = re.compile(r"tool(?! call$) \S+")

_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?"
_DATE = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
_STAMP = rf"(?:(?:{_DATE})(?:,?[ T]{_CLOCK})?|{_CLOCK})(?:Z|[+-]\d\d:?\d\d| UTC)?"
_HEADER = re.compile(
    r"^(?P<escape>\\*)[ \t]*(?P<mark>\*\*|__|#{1,6}[ \t]+)?"
    rf"(?:[\[(<]?(?P<before>{_STAMP})[\])>]?[ \t]*(?:[-–—|][ \t]*)?)?(?:\*\*)?"
    r"(?:[^\w\s*#\[(:\\`'\"$<>/+=|.,-]+[ \t]*)?"
    r"(?P<name>[^\W\d_][^\n:*\[\](){}<>#|`\"]{0,39}?)(?:\*\*|__)?"
    rf"(?:[ \t]+[\[(]?(?P<after>{_STAMP})[\])]?(?:\*\*)?)?[ \t]*(?:(?P<colon>:(?:\*\*|__)?[ \t]*)|$)",
    re.MULTILINE,
)
_FENCE = re.compile(r"(?:^[ \t]*|(?<=[:*-] ))(?P<fence>`{3,}+|~{3,}+)(?P<rest>[^\n]*)", re.MULTILINE)
"""Matches a fence of code at the beginning of a line, or after a speaker or a bullet."""
_LONE_FENCE = re.compile(r"(?:^[ \t]*|(?<=[:*-] ))(?=\\*(?:```|~~~))", re.MULTILINE)
_ESCAPED_FENCE = re.compile(r"(?P<before>^[ \t]*|(?<=[:*-] ))\\(?=\\*(?:```|~~~))", re.MULTILINE)
_IN_HEADINGS = {"prompt": "User", "response": "Assistant"}
"""The headings of ChatGPT Exporter."""
_FOOTER = re.compile(r"\n---\s+(?:Powered|Exported) by \[ChatGPT Exporter\]\([^)\n]*\)\s*\Z")
_SNIFFED_BYTES = 1 << 16
_LONGEST_PREAMBLE = 12
_MOST_WORDS = 4


@dataclass(frozen=True)
class _Header:
    """The beginning of a message: where it stands, and who speaks when. ``mark`` is ``#`` or ``*``, or empty."""

    start: int
    end: int
    name: str
    stamp: str
    has_colon: bool
    mark: str

    @property
    def folded(self) -> str:
        return re.sub(r"\s+", " ", self.name.casefold()).removesuffix(" said").strip()


def begins_with_label(text: str) -> bool:
    """Return whether the first line with content begins with a label that is known without its surroundings."""
    headers = _headers(text.lstrip())
    return bool(headers) and headers[0].start == 0 and headers[0].folded in _ALWAYS


def is_shown_label(label: str) -> bool:
    """Return whether a label of what nobody says is read again as it is written."""
    return label.casefold() in _SHOWN_LABELS or _TOOL_LABEL.fullmatch(label.casefold()) is not None


def escaped(text: str) -> str:
    """Return a message with a backslash before each line but the first that would be read as another message, and
    before each fence that is not one of a block.
    """
    blocks = _blocks_of_code(text)
    text = _LONE_FENCE.sub(lambda found: found[0] if _is_within(found.end(), blocks) else found[0] + "\\", text)
    first, *lines = text.splitlines() or [""]
    return "\n".join([first, *("\\" + line if _HEADER.match(line) else line for line in lines)])


def _headers(text: str) -> list[_Header]:
    """Return the beginnings of messages, none of which is in a block of code.

    Where marked ones, in headings or bold, have both sides, plain ones among them are words of a message.
    """
    blocks = _blocks_of_code(text)
    headers = [each for each in _all_headers(text) if not _is_within(each.start, blocks)]
    exported = [each for each in headers if each.mark == "#" and each.folded in _IN_HEADINGS]
    before = [each for each in headers if exported and each.start < exported[0].start and each.mark != "#"]
    if _IN_HEADINGS.keys() <= {each.folded for each in exported} and not _sides(before) & {"assistant"}:
        # Before them stands who exported the chat, in bold; what is no heading is a word of a message.
        return [
            replace(each, name=_IN_HEADINGS.get(each.folded, each.name))
            for each in headers
            if each.mark == "#" and each.start >= exported[0].start
        ]
    marked, plain = [each for each in headers if each.mark], [each for each in headers if not each.mark]
    if not (plain and _sides(marked) >= _SIDES):
        return headers
    are_apart = plain[-1].start < marked[0].start or marked[-1].start < plain[0].start
    return headers if are_apart and _sides(plain) >= _SIDES else marked


def _sides(headers: Iterable[_Header]) -> set[TurnRole | None]:
    return {_role_of(each.folded) for each in headers}


_SIDES: set[TurnRole | None] = {"user", "assistant"}


def _blocks_of_code(text: str) -> list[tuple[int, int]]:
    """Return where the blocks between two fences begin and end. A fence without an end belongs to none: a reply may
    have been cut short.

    Where a block would hold the beginning of a message, and the fences from there on are odd in number, its first
    fence is the one without an end.
    """
    fences = list(_FENCE.finditer(text))
    if not fences:
        return []
    speakers = [each.start for each in _all_headers(text) if _role_of(each.folded) in _SIDES]
    alike = {mark: [each for each in fences if each["fence"][0] == mark] for mark in "`~"}
    longest = {
        mark: list(accumulate((len(each["fence"]) for each in reversed(found)), max))[::-1]
        for mark, found in alike.items()
    }
    blocks: list[tuple[int, int]] = []
    passed = Counter[str]()
    for opening in fences:
        mark = opening["fence"][0]
        later = passed[mark] = passed[mark] + 1
        if (blocks and opening.start() < blocks[-1][1]) or "`" in opening["rest"]:
            continue
        if later == len(alike[mark]) or longest[mark][later] < len(opening["fence"]):
            continue
        while not alike[mark][later]["fence"].startswith(opening["fence"]):
            later += 1
        other = alike[mark][later]
        if other["rest"].strip(f"{mark} \t") or not _is_first_in_line(text, other):
            continue
        is_even = (len(alike[mark]) - passed[mark] + 1) % 2 == 0
        if is_even or bisect_right(speakers, opening.end()) == bisect_right(speakers, other.start()):
            blocks.append((opening.start(), other.end()))
    return blocks


def _is_first_in_line(text: str, fence: re.Match[str]) -> bool:
    return fence.start() == 0 or text[fence.start() - 1] == "\n"


def _is_within(place: int, blocks: Sequence[tuple[int, int]]) -> bool:
    before = bisect_right(blocks, (place, len(blocks) and blocks[-1][1]))
    return before > 0 and place < blocks[before - 1][1]


def _all_headers(text: str) -> Iterator[_Header]:
    for found in _HEADER.finditer(text):
        stamp = found["before"] or found["after"] or ""
        is_marked = found["mark"] is not None
        alone = found.end() == len(text) or text[found.end()] == "\n"
        if found["colon"] is None and not (alone and (is_marked or stamp)):
            continue
        if found["escape"] or len(found["name"].split()) > _MOST_WORDS:
            continue
        mark, has_colon = (found["mark"] or "")[:1], found["colon"] is not None
        yield _Header(found.start(), found.end(), found["name"].strip(), stamp, has_colon, mark)


def _role_of(name: str) -> TurnRole | None:
    return "other" if name in _SHOWN_LABELS or _TOOL_LABEL.fullmatch(name) else known_role(name)


def _roles(headers: list[_Header], user: str | None) -> dict[str, TurnRole]:
    """Return the role of each speaker, by its folded name; nothing if nobody is known to be the user."""
    numbers = Counter(each.folded for each in headers)
    titles = {
        each.folded for each in headers if not each.has_colon and not each.stamp and numbers[each.folded] == 1
    }
    numbers = Counter({name: n for name, n in numbers.items() if name not in titles or _role_of(name) is not None})
    stamped = {each.folded for each in headers if each.stamp}
    first = list(numbers)[:2]
    roles = {
        name: role
        for name in numbers
        if (role := _role_of(name)) is not None
        and (name in _ALWAYS or _TOOL_LABEL.fullmatch(name) or name in first)
    }
    likely = {*stamped, *first, *(name for name, number in numbers.items() if number > 1)}
    others = [name for name in numbers if name in likely and name not in roles]
    if user is not None and user.casefold() in numbers:
        return {**dict.fromkeys(others, "assistant"), **roles, user.casefold(): "user"}
    if set(roles.values()) >= {"user"} or not others:
        return roles
    if "assistant" in roles.values() and len(others) == 1:
        return {**roles, others[0]: "user"}
    return roles


def detect(file: DatasetFile) -> bool:
    if file.container != "text":
        return False
    text = first_bytes(file.path, _SNIFFED_BYTES).decode("utf-8", "replace").replace("\r\n", "\n")
    headers = _headers(text)
    if is_whatsapp(text):
        return True
    if not headers:
        return False
    before = [line for line in text[: headers[0].start].splitlines() if line.strip()]
    if _roles(headers, None):
        return len(before) <= _LONGEST_PREAMBLE
    return not before and len(headers) > 1 and _are_speakers(headers, text)


def _are_speakers(headers: list[_Header], text: str) -> bool:
    lines = sum(bool(line.strip()) for line in text.splitlines())
    return all(each.stamp for each in headers) or 2 * len(headers) >= lines


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield the one conversation of the file."""
    text, footers = _FOOTER.subn("", read_text(file.path))
    place = Place(file.path)
    headers = _headers(text)
    roles = _roles(headers, callbacks.options.user)
    if callbacks.options.user is None and is_whatsapp(text) and not roles:
        raise refusal("WhatsApp", place, "; or name with --user NAME who is the user")
    if "user" not in roles.values() and "assistant" not in roles.values():
        names = ", ".join(dict.fromkeys(each.name for each in headers if each.has_colon or each.stamp))
        raise place.error(f"has the speakers {names}", "--user NAME, which says who of them is the user")
    log = ChatLog(file, callbacks)
    kept = [each for each in headers if each.folded in roles]
    before = sum(bool(line.strip()) for line in text[: kept[0].start].splitlines())
    log.reader.left_out.add("line", "before the first message is not shown", place, before)
    log.reader.left_out.add("line", "of the program that exported the chat is not shown", place, footers)
    ends = [each.start for each in kept[1:]] + [len(text)]
    messages = []
    for header, end in zip(kept, ends, strict=True):
        said = _unescaped(text[header.end : end]).strip()
        if said:
            messages.append(_message(header, said, roles))
        else:
            log.reader.left_out.add("message", "without content is not shown", place)
    yield from log.conversations(Chat(messages, place))
    log.finish()


def _message(header: _Header, said: str, roles: Mapping[str, TurnRole]) -> ChatMessage:
    role, name = roles[header.folded], header.folded
    if role == "other":
        tool = f"Tool {header.name[5:]}" if name.startswith("tool ") else label_of(header.name)
        return ChatMessage(role, said, _SHOWN_LABELS.get(name, tool), moment(header.stamp))
    named = None if known_role(name) is not None else header.name
    return ChatMessage(role, said, named, moment(header.stamp))


def _unescaped(text: str) -> str:
    """Return the text without the backslashes that :func:`escaped` put in it."""
    blocks = _blocks_of_code(text)
    text = _ESCAPED_FENCE.sub(lambda found: found[0 if _is_within(found.end(), blocks) else "before"], text)
    lines = text.split("\n")
    return "\n".join(line[1:] if line.startswith("\\") and _HEADER.match(line) else line for line in lines)
