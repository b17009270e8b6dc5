"""Make conversations of traces: each call to a model repeats what was said before it.

Calls are aligned on what was *said*: without system messages, by the ids of messages where there are any, else by
the longest common run that holds a message of the assistant. A user message that contains the other is the same
message, with context added to it. What the calls of a thread say is a tree, since a call may be repeated with
another outcome, and a helper (a title, an extraction of facts) may ask about the conversation without continuing
it. The conversation is the path that later calls continue; the rest is set apart with a warning that names its
place.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

from memreplay.conversations.chat_logs import conversation_of, report_skipped, split_at_gaps
from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import SYSTEM, ChatMessage, LeftOut, MessageReader
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place
from memreplay.errors import DatasetError


@dataclass(frozen=True)
class Call:
    """A call of a model or an application: its input and its output.

    ``trace`` groups calls that serve one request, ``name`` is what the tool calls this kind of call. ``left_out``
    counts what is not shown of it, and matters only if the call is chosen.
    """

    thread: str
    at: datetime | None
    order: str
    given: tuple[ChatMessage, ...]
    returned: tuple[ChatMessage, ...]
    place: Place
    name: str = ""
    trace: str = ""
    is_root: bool = True
    is_model: bool = True
    left_out: LeftOut | None = None


FindCalls = Callable[[Any, Place, MessageReader], Iterable[Call | DatasetError]]
"""Finds the calls in one value of a file. It raises DatasetError for a value that is none, and yields one in the
place of an entry that is none, which costs nothing but that entry.
"""
ChooseCalls = Callable[[list[Call], LeftOut], Iterable[Call]]
"""Picks the calls that count, where a trace holds a call and those that it made, and counts the others."""


def _all_calls(calls: list[Call], _left_out: LeftOut) -> Iterable[Call]:
    return calls


def read_calls(
    file: DatasetFile,
    callbacks: LoadCallbacks,
    find: FindCalls,
    choose: ChooseCalls = _all_calls,
) -> Iterator[Conversation]:
    """Yield a conversation for each thread in the values of a file. A value that is no call is skipped."""
    reader, calls = MessageReader(), list[Call]()
    skipped: list[DatasetError] = []
    broken: list[DatasetError] = []
    pool: dict[ChatMessage, ChatMessage] = {}
    for place, value in file.values(replace(callbacks, on_error=broken.append)):
        skipped += broken
        broken.clear()
        try:
            for found in find(value, place, reader):
                if isinstance(found, DatasetError):
                    skipped.append(found)
                else:
                    calls.append(_pooled(found, pool))
        except DatasetError as error:
            skipped.append(error)
    if calls and file.container == "lines":
        skipped += broken  # the last line may be half written
    else:
        for broken_line in broken:
            callbacks.on_error(broken_line)
    chosen = list(choose(calls, reader.left_out))
    for call in chosen:
        if call.left_out is not None:
            reader.left_out.include(call.left_out)
    yield from conversations_of(file, chosen, reader.left_out, skipped, callbacks)


def _pooled(call: Call, pool: dict[ChatMessage, ChatMessage]) -> Call:
    """Return the call with messages that equal ones share: a history is repeated by every call."""
    given = tuple(pool.setdefault(each, each) for each in call.given)
    return replace(call, given=given, returned=tuple(pool.setdefault(each, each) for each in call.returned))


def conversations_of(
    file: DatasetFile,
    calls: Iterable[Call],
    left_out: LeftOut,
    skipped: list[DatasetError],
    callbacks: LoadCallbacks,
) -> Iterator[Conversation]:
    """Yield a conversation for each thread of the calls, then report what was left out."""
    by_thread: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.given or call.returned:
            by_thread[call.thread].append(call)
    count = 0
    for thread, of_thread in by_thread.items():
        messages = aligned(of_thread, left_out)
        begun = min((call.at for call in of_thread if call.at is not None), default=None)
        try:
            sessions = split_at_gaps(messages, begun, callbacks.options.session_gap)
            conversation = conversation_of(thread, file.dataset, sessions, of_thread[0].place)
        except DatasetError as error:
            skipped.append(error)
            continue
        count += 1
        yield conversation
    if not count:
        place = Place(file.path)
        problem = left_out.first_problem
        why = f"has no call with messages; {problem[1]} at {problem[0].pointer}" if problem else ""
        errors = skipped or [place.error(why or "has no call with messages", "inputs and outputs with messages")]
        callbacks.on_error(errors[0])
        skipped = errors[1:]
    report_skipped(skipped, callbacks.on_warning)
    left_out.report(callbacks.on_warning)


# ---- alignment ---------------------------------------------------------------------------------------------------

_SPACE = re.compile(r"\s+")
_Key = tuple[str, str]


@dataclass
class _Said:
    """A message of a strand, and the call that it came from."""

    message: ChatMessage
    key: _Key
    call: int
    system: tuple[ChatMessage, ...] = ()


@dataclass
class _Strand:
    """A path of the tree: the messages from where it leaves its parent."""

    number: int
    said: list[_Said]
    parent: _Strand | None = None
    fork: int = 0
    """Number of messages of the parent's path before it."""
    calls: list[int] = field(default_factory=list)
    children: list[_Strand] = field(default_factory=list)

    def path(self) -> list[_Said]:
        return (self.parent.path()[: self.fork] if self.parent else []) + self.said

    def all_calls(self) -> list[int]:
        return sorted([*self.calls, *(call for child in self.children for call in child.all_calls())])


def aligned(calls: Iterable[Call], left_out: LeftOut) -> list[ChatMessage]:
    """Return the messages of a thread, each once and in order, with system messages where they change."""
    return _Alignment(_in_order(list(calls)), left_out).messages()


def _in_order(calls: Sequence[Call]) -> list[Call]:
    """Return calls in the order of their times. One without a time stays behind the call before it in the file."""
    last = (datetime.min, "")
    places: list[tuple[datetime, str]] = []
    is_dated = any(call.at is not None for call in calls)
    for call in calls:
        if call.at is not None or not is_dated:
            last = (call.at or datetime.min, call.order)
        places.append(last)
    return [calls[number] for number in sorted(range(len(calls)), key=places.__getitem__)]


def _is_system(message: ChatMessage) -> bool:
    return message.role == "other" and message.label is not None and message.label.partition(" ")[0] in _SYSTEM


_SYSTEM = frozenset((SYSTEM, "Developer"))
_SHORTEST_CONTAINED = 2


class _Alignment:
    """The calls of a thread in the order of their times, and the tree of what they say."""

    def __init__(self, calls: Sequence[Call], left_out: LeftOut) -> None:
        self._calls, self._left_out = calls, left_out
        self._strands: list[_Strand] = []
        self._by_key: dict[_Key, dict[int, None]] = defaultdict(dict)
        self._key_of_id: dict[str, _Key] = {}
        self._repeats = False
        self._ends: dict[tuple[int, int], int] = {}
        """The place on the path of a strand at which the input of a call ends, by strand and call."""
        for number, call in enumerate(calls):
            self._add(number, call)

    # ---- the tree ------------------------------------------------------------------------------------------------

    def _key(self, message: ChatMessage) -> _Key:
        text = _SPACE.sub(" ", message.text).strip()
        kind = message.role if message.role != "other" else (message.label or "").partition(" ")[0]
        if message.label == "Tool call":
            kind = "call"
        key = (kind, text)
        if message.id is not None and message.role != "other":
            return self._key_of_id.setdefault(message.id, key)
        return key

    def _add(self, number: int, call: Call) -> None:
        system = tuple(each for each in (*call.given, *call.returned) if _is_system(each))
        given = [self._said(each, number, system) for each in call.given if not _is_system(each)]
        returned = [self._said(each, number, system) for each in call.returned if not _is_system(each)]
        asks_again = any(each.message.role == "user" for each in returned)
        if asks_again and _is_within([each.key for each in given], [each.key for each in returned]):
            given = []  # the output is the whole state, as that of a graph
        strand = self._continue(None, given, number, returned=False)
        if returned:
            strand = self._continue(strand, returned, number, returned=True)
        if strand is not None:
            strand.calls.append(number)

    def _said(self, message: ChatMessage, number: int, system: tuple[ChatMessage, ...]) -> _Said:
        call = self._calls[number]
        dated = message if message.at is not None else replace(message, at=call.at)
        return _Said(dated, self._key(message), number, system)

    def _continue(self, current: _Strand | None, said: list[_Said], number: int, returned: bool) -> _Strand | None:
        """Add what a call is given or returns, and return the strand that it is on."""
        if not said:
            return current
        if returned and current is not None and not any(each.message.role == "user" for each in said):
            return self._append_answer(current, said, number)
        best: tuple[tuple[int, int, int], _Strand, _Match] | None = None
        for strand in self._candidates(said) if current is None else [current]:
            match = _match(strand.path(), said)
            if match.count and self._accepts(match, strand, number):
                score = (match.count - match.rest_said, match.count, strand.number)
                if best is None or score > best[0]:
                    best = (score, strand, match)
        if best is None:
            if current is not None:
                self._extend(current, len(current.path()), said)
                return current
            return self._new_strand(said)
        _, strand, match = best
        return self._merge(strand, match, said)

    def _candidates(self, said: Sequence[_Said]) -> list[_Strand]:
        numbers: dict[int, int] = defaultdict(int)
        for each in said:
            for number in list(self._by_key.get(each.key, ()))[-8:]:
                numbers[number] += 1
        chosen = sorted(numbers, key=lambda number: (numbers[number], number), reverse=True)[:8]
        if not chosen and self._strands and len(said) == 1:
            return self._strands[-1:]  # the newest message may hold the same one with context
        return [self._strands[number] for number in chosen]

    def _accepts(self, match: _Match, strand: _Strand, number: int) -> bool:
        """Return whether a match shows that a call belongs to a strand, and does not only repeat its words."""
        if match.holds_answer:
            self._repeats = True
            return True
        if not match.rest_said or strand.calls == []:
            return match.exact > 0 or self._same_request(strand, number)
        if match.new and match.given_says_no_answer and match.exact and not match.rest_asks:
            return match.exact == match.first_new
        return self._same_request(strand, number) and match.exact > 0

    def _same_request(self, strand: _Strand, number: int) -> bool:
        trace = self._calls[number].trace
        return bool(trace) and any(self._calls[each].trace == trace for each in strand.calls)

    def _new_strand(self, said: list[_Said], parent: _Strand | None = None, fork: int = 0) -> _Strand:
        strand = _Strand(len(self._strands), [], parent, fork)
        self._strands.append(strand)
        if parent is not None:
            parent.children.append(strand)
            for each in parent.path()[:fork]:
                self._by_key[each.key][strand.number] = None
        self._extend(strand, fork, said)
        return strand

    def _extend(self, strand: _Strand, position: int, said: Iterable[_Said]) -> None:
        """Put messages at a position of the strand's path."""
        added = list(said)
        at = position - strand.fork
        strand.said[at:at] = added
        for each in added:
            self._by_key[each.key][strand.number] = None
        for child in strand.children:
            if child.fork >= position and at < len(strand.said) - len(added):
                child.fork += len(added)

    def _append_answer(self, strand: _Strand, said: list[_Said], number: int) -> _Strand:
        """Add an answer after the messages that the call was given; another answer to them is a fork."""
        path = strand.path()
        position = self._ends.get((strand.number, number), len(path))
        rest = path[position:]
        if not any(each.message.role != "other" or each.key == said[0].key for each in rest):
            self._extend(strand, len(path), said)
            return strand
        keys = [each.key for each in rest]
        if all(each.key in keys for each in said if each.message.role == "assistant"):
            new = [each for each in said if each.key not in keys]
            first = next((i for i, each in enumerate(rest) if each.key in {one.key for one in said}), 0)
            self._extend(strand, position + first, new)
            return strand
        return self._new_strand(said, strand, position)

    def _merge(self, strand: _Strand, match: _Match, said: list[_Said]) -> _Strand:
        """Add to a strand what a call says more, and return the strand of the call."""
        path = strand.path()
        number = said[0].call
        self._shorten(path, match, said)
        inserted = self._insert(strand, match, said)
        end = match.last_known + 1 + inserted
        new = said[match.last_given + 1 :]
        rest = strand.path()[end:]
        if not new:
            self._ends[strand.number, number] = end
            return strand
        if any(each.message.role != "other" for each in rest) and not match.rest_is_unseen_answer:
            fork = self._new_strand(new, strand, end)
            self._ends[fork.number, number] = len(fork.path())
            return fork
        self._extend(strand, len(strand.path()), new)
        self._ends[strand.number, number] = len(strand.path())
        return strand

    def _shorten(self, path: list[_Said], match: _Match, said: list[_Said]) -> None:
        """Keep the shorter of two forms of a user message: the longer one has context added by the application."""
        for mine, given in match.contained:
            known, other = path[mine], said[given]
            long, short = (known, other) if len(known.message.text) > len(other.message.text) else (other, known)
            self._left_out.add("user message", "has context that is not shown", self._calls[long.call].place)
            known.message = replace(known.message, text=short.message.text)

    def _insert(self, strand: _Strand, match: _Match, said: list[_Said]) -> int:
        """Put what a call has between known messages at its place, and return how many messages that were.

        Tool calls and results are new facts; what a user or an assistant would have said there is context.
        """
        inserted = 0
        for position, index in match.between:
            each = said[index]
            if position + inserted < strand.fork:
                continue
            if each.message.role != "other":
                label = f"Context ({each.message.role})"
                self._left_out.add(
                    "message",
                    "stands among known ones of an earlier call and is shown as context",
                    self._calls[each.call].place,
                )
                each = replace(each, message=replace(each.message, role="other", label=label))
            self._extend(strand, position + inserted, [each])
            inserted += 1
        return inserted

    # ---- the conversation ----------------------------------------------------------------------------------------

    def messages(self) -> list[ChatMessage]:
        """Return the messages of the conversation: of each root its main path, in the order of their times."""
        roots = [strand for strand in self._strands if strand.parent is None]
        if not roots:
            return []
        main = max(roots, key=lambda root: (len(root.all_calls()), -root.number))
        paths = {root.number: self._main_path(root) for root in roots}
        kept: list[_Strand] = []
        main_keys = [each.key for each in paths[main.number]]
        for root in roots:
            said = paths[root.number]
            if root is not main and self._repeats and _is_within([each.key for each in said], main_keys):
                continue
            if root is not main and self._is_helper(root, main, main_keys):
                self._set_apart(said, "does not continue the conversation", root.all_calls()[0])
                continue
            kept.append(root)
        found: list[ChatMessage] = []
        known: set[str] = set()
        for each in (each for root in kept for each in paths[root.number]):
            system = {message.text for message in each.system}
            new = [message for message in each.system if message.text not in known]
            if each.system:
                known = system
            found += new
            found.append(each.message)
        return found

    def _main_path(self, strand: _Strand) -> list[_Said]:
        """Return the path of the tree that later calls continue, and set the others apart."""
        path = strand.said
        for child in sorted(strand.children, key=lambda child: child.number):
            position = child.fork - strand.fork
            beyond = path[position:]
            own = [call for call in strand.calls if call >= min((e.call for e in beyond), default=0)]
            theirs = child.all_calls()
            chosen = self._prefers_child(own, theirs, beyond, child)
            branch = self._main_path(child)
            if chosen:
                self._set_apart(beyond, "was replaced by a later call", (own or [theirs[0]])[0])
                return path[:position] + branch
            known = {each.key for each in beyond}
            self._set_apart(
                [each for each in branch if each.key not in known], "does not continue the conversation", theirs[0]
            )
        return path

    def _prefers_child(self, own: list[int], theirs: list[int], beyond: list[_Said], child: _Strand) -> bool:
        first_own = min((each.call for each in beyond), default=0)
        continuing = [call for call in own if call > first_own]
        if len(theirs) > 1 or continuing:
            return ((max(theirs), len(theirs)) > (max(own, default=0), len(continuing)) and len(theirs) > 1) or (
                not continuing and bool(theirs) and not self._looks_like_helper(theirs[0]) and len(theirs) > 1
            )
        if self._looks_like_helper(theirs[0]):
            return False
        if self._looks_like_helper(first_own):
            return True
        return self._calls[first_own].name == self._calls[theirs[0]].name or bool(
            child.said and child.said[0].message.role == "user"
        )

    def _set_apart(self, said: Sequence[_Said], what: str, call: int) -> None:
        count = sum(each.message.role != "other" for each in said)
        self._left_out.add("message", f"{what} and is not shown", self._calls[call].place, count)
        self._left_out.add(
            "tool call or result", f"{what} and is not shown", self._calls[call].place, len(said) - count
        )

    def _is_helper(self, root: _Strand, main: _Strand, main_keys: Sequence[_Key]) -> bool:
        """Return whether a strand is about the conversation and no part of it."""
        theirs, ours = root.all_calls(), main.all_calls()
        if len(theirs) == 1 and self._looks_like_helper(theirs[0]):
            return True
        is_within = any(call < theirs[0] for call in ours) and any(call > theirs[-1] for call in ours)
        if self._repeats and is_within and len(ours) > len(theirs):
            return True
        return self._repeats and len(theirs) == 1 and self._quotes(root, main_keys)

    def _quotes(self, root: _Strand, main_keys: Sequence[_Key]) -> bool:
        """Return whether a user message of the strand holds what the assistant said in the conversation."""
        answers = [text for kind, text in main_keys if kind == "assistant" and len(text) >= _SHORTEST_QUOTE]
        asked = [each.key[1] for each in root.path() if each.message.role == "user"]
        return any(answer in text for text in asked for answer in answers)

    def _looks_like_helper(self, number: int) -> bool:
        """Return whether a call says of itself that it makes a title, tags, a summary or facts."""
        call = self._calls[number]
        if call.name and _HELPER_NAME.search(call.name):
            return True
        instructions = [each.text for each in call.given if _is_system(each)]
        instructions += [each.text for each in call.given if each.role == "user"][-1:]
        return any(_HELPER.search(text[:600]) for text in instructions)


_SHORTEST_QUOTE = 6
_HELPER_NAME = re.compile(
    r"title|summar|extract|follow.?up|tags?\b|classif|moderat|guardrail|rerank|embed|condense|query.?rewrit|rewrite"
    r"|fact|intent|router",
    re.IGNORECASE,
)
_HELPER = re.compile(
    r"\b(generate|create|write|suggest|extract|summari[sz]e|condense|rephrase|classify|produce|provide|give|identify"
    r"|list|make)\b[^.\n]{0,60}"
    r"\b(titles?|summary|facts|tags|memories|follow[- ]?ups?|follow[- ]up questions|entities|standalone question"
    r"|this (?:conversation|chat|dialogue?)|the (?:conversation|chat|dialogue?))\b",
    re.IGNORECASE,
)


def _is_within(keys: Sequence[_Key], others: Sequence[_Key]) -> bool:
    remaining = iter(others)
    return all(key in remaining for key in keys)


@dataclass
class _Match:
    """The alignment of a call with a path. Positions are those of the last messages that both have."""

    last_known: int = -1
    last_given: int = -1
    count: int = 0
    exact: int = 0
    holds_answer: bool = False
    contained: list[tuple[int, int]] = field(default_factory=list)
    between: list[tuple[int, int]] = field(default_factory=list)
    rest_said: int = 0
    rest_asks: bool = False
    new: int = 0
    given_says_no_answer: bool = False

    @property
    def first_new(self) -> int:
        return self.last_given + 1

    @property
    def rest_is_unseen_answer(self) -> bool:
        """Return whether the rest of the path is answers that calls without any answers do not repeat."""
        return self.given_says_no_answer and not self.rest_asks


def _match(path: Sequence[_Said], said: Sequence[_Said]) -> _Match:
    pairs = _pairs(path, said)
    match = _Match()
    if pairs:
        match.last_known, match.last_given = pairs[-1][0], pairs[-1][1]
    match.count = len(pairs)
    previous = (-1, -1)
    for known, given in pairs:
        match.between += [(known, index) for index in range(previous[1] + 1, given)]
        previous = (known, given)
        if path[known].key == said[given].key:
            match.exact += 1
            match.holds_answer |= path[known].message.role != "user"
        else:
            match.contained.append((known, given))
    rest = [each.message.role for each in path[match.last_known + 1 :]]
    match.rest_said = sum(role != "other" for role in rest)
    match.rest_asks = "user" in rest
    match.new = len(said) - match.last_given - 1
    match.given_says_no_answer = all(each.message.role == "user" for each in said)
    return match


def _pairs(path: Sequence[_Said], said: Sequence[_Said]) -> list[tuple[int, int]]:
    """Return the positions of the same messages, in order: equal ones, then users' that contain each other."""
    mine, given = [each.key for each in path], [each.key for each in said]
    if given[: len(mine)] == mine:
        return [(index, index) for index in range(len(mine))]
    if mine[: len(given)] == given:
        return [(index, index) for index in range(len(given))]
    common = 0
    while common < min(len(mine), len(given)) and mine[common] == given[common]:
        common += 1
    matcher = SequenceMatcher(None, mine[common:], given[common:], autojunk=False)
    pairs = [(index, index) for index in range(common)]
    for block in matcher.get_matching_blocks():
        pairs += [(common + block.a + i, common + block.b + i) for i in range(block.size)]
    window = [] if common else _window(mine, given)
    return _with_contained(path, said, window if len(window) >= len(pairs) else pairs)


def _window(mine: Sequence[_Key], given: Sequence[_Key]) -> list[tuple[int, int]]:
    """Return the end of a path that a call begins with: an application may send the latest messages alone."""
    for start in range(max(0, len(mine) - len(given)), len(mine)):
        if mine[start] == given[0] and mine[start:] == given[: len(mine) - start]:
            return [(start + i, i) for i in range(len(mine) - start)]
    return []


def _with_contained(
    path: Sequence[_Said], said: Sequence[_Said], pairs: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    previous = (-1, -1)
    for known, given in [*pairs, (len(path), len(said))]:
        start = previous[0] + 1
        for index in range(previous[1] + 1, given):
            for position in range(start, known):
                if _contains(path[position].message, said[index].message):
                    found.append((position, index))
                    start = position + 1
                    break
        if known < len(path):
            found.append((known, given))
        previous = (known, given)
    return found


def _contains(one: ChatMessage, other: ChatMessage) -> bool:
    if one.role != "user" or other.role != "user":
        return False
    short, long = sorted((one.text.strip(), other.text.strip()), key=len)
    if len(short) < _SHORTEST_CONTAINED or short not in long:
        return False
    return re.search(rf"(?<!\w){re.escape(short)}(?!\w)", long) is not None
