"""Read published results: a file, packed or not, or the folder of a run. What cannot be read is named.

A file may be of any size and depth, hostile or cut off: sizes are counted while it is unpacked, and nothing that it
says decides where anything is read or written.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import orjson

from memory_backends.storable import storable
from memreplay.conversations.archives import is_archive, unpacked
from memreplay.conversations.json_files import DEEPEST, NestingGuard
from memreplay.conversations.validation_errors import Place, shown
from memreplay.errors import DatasetError, UsageError
from memreplay.files import NOT_REGULAR, is_irregular
from memreplay.llm.judging import Verdict
from memreplay.numbers import counted, finite
from memreplay.published.answers import PublishedAnswer, PublishedRun, merged
from memreplay.published.formats import FORMATS, Format, Node, Paths, found, rows_in

AS_PUBLISHED: Final = "as published"
"""The name of a model that the file does not name."""

_GZIP = b"\x1f\x8b"
_SQLITE = b"SQLite format 3\0"
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".gz", ".eval", ".zip")
_MOST_BYTES = 1 << 30
_LARGEST_RATIO = 200
"""Times that a file may be larger than its packed form; contexts that repeat shrink to a thirtieth."""
_UNSUSPICIOUS_BYTES = 16 << 20
_CHUNK = 1 << 20
_MOST_FILES = 2_000
_MOST_PROBLEMS = 1_000
_MOST_NAMED = 5
_STRUCTURE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
_BREAKS_TRIED = 64
_LONGEST_TEXT = 1 << 22
_LONGEST_NAME = 120
_MOST_MEMORIES = 10_000


def read_source(source: Path) -> list[PublishedRun]:
    """Return the runs in a file or folder. Files of one folder about the same answers are one run.

    Raises:
        MemreplayError: there is nothing of a known format.
    """
    if source.is_dir():
        return _runs_in(source)
    if not source.exists():
        raise UsageError(f"There is no file or folder {source}.")
    return _runs_of(source)


def _runs_in(folder: Path) -> list[PublishedRun]:
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in _SUFFIXES
        and path.is_file()
        and not any(part.startswith(".") for part in path.parts)
    )
    if len(files) > _MOST_FILES:
        raise UsageError(f"{folder}: holds {len(files):,} files; name the folder of one run")
    runs: list[PublishedRun] = []
    broken: list[str] = []
    strange: list[str] = []
    for path in files:
        try:
            runs += _runs_of(path)
        except _NoResultsError:
            strange.append(str(path.relative_to(folder)))
        except DatasetError as error:
            broken.append(str(error))
    if not runs:
        reason = f" ({broken[0]})" if broken else ""
        raise UsageError(f"{folder}: holds no results of a known format{reason}")
    groups: dict[tuple[Path, str], list[PublishedRun]] = {}
    for run in runs:
        groups.setdefault((run.path.parent, run.format.partition("/")[0]), []).append(run)
    made = [each for group in groups.values() for each in _joined(group)]
    first = made[0]
    if strange:
        names = ", ".join(strange[:_MOST_NAMED]) + (" …" if len(strange) > _MOST_NAMED else "")
        first = replace(first, notes=(*first.notes, f"{counted(len(strange), 'file')} without answers: {names}"))
    return [replace(first, problems=(*first.problems, *broken)), *made[1:]]


def _joined(runs: Sequence[PublishedRun]) -> list[PublishedRun]:
    """Return one run if each file says another thing of the same answers, else each as a run of its own."""
    if len(runs) == 1 or len({run.format for run in runs}) < len(runs):
        return list(runs)
    return [merged(sorted(runs, key=lambda run: [each.name for each in FORMATS].index(run.format)))]


class _NoResultsError(DatasetError):
    """A file that can be read, and in which there are no answers."""


def _runs_of(path: Path) -> list[PublishedRun]:
    """Return the runs of one file: several if it has answers from contexts of several sizes.

    Raises:
        DatasetError: it cannot be read, or has no known format.
    """
    place = Place(path)
    if is_irregular(path):
        raise place.error(NOT_REGULAR, "a results file")
    problems: list[str] = []
    documents = _documents(path, problems)
    # A file of one line is an object, and may be a list of one row.
    for document in (documents, [documents]):
        for format_ in FORMATS:
            if runs := list(_read(document, format_, path)):
                return [replace(run, problems=(*problems, *run.problems)[:_MOST_PROBLEMS]) for run in runs]
    titles = list(dict.fromkeys(each.title for each in FORMATS if each.signature))
    shape = next((each.title for each in FORMATS if each.root and _has_root((documents,), each)), None)
    raise _NoResultsError(
        path.name,
        "/",
        "has no known format" if shape is None else f"looks like {shape}, and has no row with an answer",
        f"per-question results of {', '.join(titles)}, or rows with a question, an answer and the expected one",
    )


# ---- bytes to values ------------------------------------------------------------------------------------------


def _documents(path: Path, problems: list[str]) -> Any:
    """Return the value of a file; of JSON Lines, or of an archive, the list of its values."""
    place = Place(path)
    if is_archive(path):
        return _log_of([_json(member, member.read_bytes(), problems) for member in unpacked(path)])
    try:
        with path.open("rb") as file:
            begins = file.read(len(_SQLITE))
            if begins == _SQLITE:
                raise place.error("is a recording", f"a results file; memreplay {path} opens it")
            packed = begins.startswith(_GZIP)
            file.seek(0)
            data = _unpacked(file.read, place) if packed else _bounded(file.read, place)
    except OSError as error:
        raise place.error(f"cannot be read ({error.strerror})", "a results file") from None
    return _json(path, data, problems)


def _log_of(members: list[Any]) -> Any:
    """Return the log of inspect_ai that an archive holds in pieces; of any other archive its values."""
    objects = [each for each in members if isinstance(each, dict)]
    head = next((each for each in objects if "eval" in each), None)
    samples = [each for each in objects if "input" in each and "target" in each]
    return members if head is None or not samples else {**head, "samples": samples}


def _bounded(read: Callable[[int], bytes], place: Place) -> bytes:
    data = read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise place.error(f"is larger than {_MOST_BYTES >> 20:,} MB", "the results of one run")
    return data


def _unpacked(read: Callable[[int], bytes], place: Place) -> bytes:
    """Return what a gzip file holds, as far as it goes. Its size is counted while it is unpacked."""
    parts: list[bytes] = []
    taken = made = 0
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        while chunk := read(_CHUNK):
            taken += len(chunk)
            while chunk:
                part = unpacker.decompress(chunk, _CHUNK)
                made += len(part)
                parts.append(part)
                if made > _MOST_BYTES or (made > _UNSUSPICIOUS_BYTES and made > _LARGEST_RATIO * taken):
                    raise place.error(
                        f"grows to more than {made >> 20:,} MB when it is unpacked", "the results of one run"
                    )
                chunk = unpacker.unconsumed_tail
                if unpacker.eof:
                    chunk = unpacker.unused_data
                    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    except zlib.error as error:
        raise place.error(f"cannot be unpacked ({error})", "a gzip file") from None
    return b"".join(parts)


def _json(path: Path, data: bytes, problems: list[str]) -> Any:
    place = Place(path)
    text = data.removeprefix(b"\xef\xbb\xbf").strip()
    if not text:
        raise place.error("is empty", "a results file")
    guard = NestingGuard()
    if any(guard.too_deep(text[start : start + _CHUNK]) for start in range(0, len(text), _CHUNK)):
        raise place.error(f"is nested more than {DEEPEST:,} deep", "a results file")
    try:
        return _parsed(text)
    except orjson.JSONDecodeError as error:
        if b"\n" in text and text[:1] == b"{":
            values = list(_lines(path, text, problems))
            if len(values) > 1 or (values and not problems):
                return values
        whole = _whole_entries(text)
        if not whole:
            raise place.error(f"is not valid JSON (line {error.lineno}: {error.msg})", "a results file") from None
        problems.append(f"{path.name}: is cut off or damaged at line {error.lineno}: {error.msg}")
        return whole


def _parsed(text: bytes) -> Any:
    """Return a JSON value. Python writes NaN and half surrogate pairs, which JSON has not.

    Raises:
        orjson.JSONDecodeError: it is no JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        with suppress(ValueError, RecursionError):
            return json.loads(text)
        raise


def _lines(path: Path, text: bytes, problems: list[str]) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield _parsed(line)
        except orjson.JSONDecodeError as error:
            problems.append(f"{path.name}: line {number}: is not valid JSON ({error.msg})")


def _whole_entries(text: bytes) -> Any:
    """Return what stands before the break in a file that ends too early; nothing where nothing whole does."""
    opened: list[bytes] = []
    ends: deque[tuple[int, bytes]] = deque(maxlen=_BREAKS_TRIED)
    for token in _STRUCTURE.finditer(text):
        match token[0]:
            case b"[" | b"{":
                opened.append(b"]" if token[0] == b"[" else b"}")
            case b"]" | b"}" if opened:
                opened.pop()
                if opened:
                    ends.append((token.end(), b"".join(reversed(opened))))
            case _:
                pass
    for end, closing_brackets in reversed(ends):
        try:
            return _parsed(text[:end] + closing_brackets)
        except orjson.JSONDecodeError:
            continue
    return None


# ---- values to answers ----------------------------------------------------------------------------------------


def _read(document: Any, format_: Format, path: Path) -> Iterator[PublishedRun]:
    """Yield the runs of a document; none if it has not this format."""
    if not _has_root((document,), format_):
        return
    rows = list(rows_in(document, format_.rows))
    fits = [row for row in rows if isinstance(row[1][-1], dict) and _has(row[1], format_)]
    if not fits:
        return
    if format_.each is not None:
        names = dict.fromkeys(str(name) for _, node, _ in fits for name in _entries_of(node[-1], format_.each))
        for name in names:
            run = _run([(at, _only(node, format_.each, name), keys) for at, node, keys in rows], format_, path)
            yield replace(run, system=f"{run.system} {name}")
    elif format_.prefixed is not None:
        ending = format_.prefixed
        names = dict.fromkeys(
            key.removesuffix(ending) for _, node, _ in fits for key in node[-1] if key.endswith(ending)
        )
        for name in names:
            alone = [(at, _with_prefix(node, name, names), keys) for at, node, keys in rows]
            given = [row for row in alone if isinstance(row[1][-1], dict) and "prediction" in row[1][-1]]
            notes = []
            if left_out := len(rows) - len(given):
                notes.append(f"{counted(left_out, 'row')} without an answer of it")
            if "_dialog" not in name and any(found(node, format_.turn_ids) for _, node, _ in given):
                # The ids are then those of the turns that observations were made of, or of sessions.
                given = [(at, _without(node, format_.turn_ids), keys) for at, node, keys in given]
                notes.append("its contexts are observations or summaries, whose texts are not in the file")
            yield replace(_run(given, format_, path), system=_name(name) or _stem(path), notes=tuple(notes))
    else:
        yield from _apart(rows, format_, path)


def _has_root(root: Node, format_: Format) -> bool:
    return all(found(root, (each,)) is not None for each in format_.root)


def _apart(rows: Sequence[_Row], format_: Format, path: Path) -> Iterator[PublishedRun]:
    """Yield a run of the rows of each system, where a file has rows of several."""
    groups: dict[tuple[str, ...], list[_Row]] = {}
    for row in rows:
        groups.setdefault(tuple(_text(found(row[1], paths)) or "" for paths in format_.apart), []).append(row)
    differ = [place for place in range(len(format_.apart)) if len({key[place] for key in groups}) > 1]
    for key, group in groups.items():
        run = _run(group, format_, path)
        name = _name(" ".join(key[place] for place in differ if key[place]))
        yield replace(run, system=name) if name else run


def _without(node: Node, fields: Paths) -> Node:
    return (*node[:-1], {key: value for key, value in node[-1].items() if key not in fields})


def _with_prefix(node: Node, name: str, names: Iterable[str]) -> Node:
    """Return a row with the fields of one system under their plain names, and those of no other."""
    row = node[-1]
    if not isinstance(row, dict):
        return node
    # A name may begin with another one: "gpt-4" and "gpt-4_dialog_top_5".
    others = sorted((other for other in names if other != name), key=len, reverse=True)
    longer = tuple(f"{other}_" for other in others if other.startswith(f"{name}_"))
    own = {
        key.removeprefix(f"{name}_"): value
        for key, value in row.items()
        if key.startswith(f"{name}_") and not (longer and key.startswith(longer))
    }
    shared = {
        key: value
        for key, value in row.items()
        if not key.startswith(tuple(f"{each}_" for each in (name, *others)))
    }
    return (*node[:-1], {**shared, **own})


def _entries_of(row: Any, field: str) -> Mapping[str, Any]:
    entries = row.get(field) if isinstance(row, dict) else None
    return entries if isinstance(entries, dict) else {}


def _only(node: Node, field: str, name: str) -> Node:
    """Return a row with one of its answers, and the memories that this one was given."""
    if not isinstance(node[-1], dict):
        return node
    answer = _entries_of(node[-1], field).get(name)
    return (*node[:-1], {**node[-1], field: {} if answer is None else {name: answer}})


_Row = tuple[str, Node, Mapping[str, str]]
"""The place of a row in its file, the row, and the keys that its path names."""


def _run(rows: Sequence[_Row], format_: Format, path: Path) -> PublishedRun:
    first = next((node for _, node, _ in rows if isinstance(node[-1], dict)), rows[0][1])
    root = first[:1]
    answers: list[PublishedAnswer] = []
    problems: list[str] = []
    for pointer, node, keys in rows:
        try:
            answers.append(_answer(pointer, node, keys, format_, path))
        except DatasetError as error:
            problems.append(str(error))

    def named(paths: Paths) -> str:
        return _name(_text(found(root, paths) or found(first, paths)))

    # A field "judge" has a model, or what it said of the answer.
    judge = name if _verdict(name := named(format_.judge)) is None else ""
    is_own = format_.signature and found(first, format_.judgement) == found(first, format_.judgement[:1])
    return PublishedRun(
        path=path,
        format=format_.name,
        system=named(format_.system) or _stem(path),
        model=named(format_.model) or AS_PUBLISHED,
        judge=judge or (f"{format_.title}'s judge" if is_own else "an unnamed judge"),
        answers=tuple(answers),
        problems=tuple(problems),
        accuracy=finite(found(root, format_.accuracy), 0, 1),
        unused=_unused([node[-1] for _, node, _ in rows], format_),
        notes=(note,) if (note := format_.advice if format_.signature else _taken(first, format_)) else (),
    )


def _unused(rows: Sequence[Any], format_: Format) -> Mapping[str, int]:
    """Return how many rows say something in each field that the format does not name."""
    counts = Counter(
        str(name)
        for row in rows
        if isinstance(row, dict)
        for name, value in row.items()
        if value not in (None, "", [], {})
    )
    known = format_.fields
    return {
        storable(name)[:_LONGEST_NAME]: count
        for name, count in counts.most_common()
        if not any(fnmatchcase(name, field) for field in known)
    }


def _has(node: Node, format_: Format) -> bool:
    if format_.signature:
        return all(found(node, (each,)) is not None for each in format_.signature)
    fields = [_field(node, paths) for paths in (format_.question, format_.answer, format_.expected)]
    # A dataset has questions and expected answers, and nobody's answers.
    return None not in fields and len(set(fields)) == len(fields)


def _field(node: Node, paths: Paths) -> str | None:
    """Return the first of the paths that leads to a text, or to a list of texts."""
    return next((path for path in paths if _text(found(node, (path,))) is not None), None)


def _taken(node: Node, format_: Format) -> str:
    """Return which fields were taken for what in a file of no known harness."""
    taken = {
        "question": format_.question,
        "answer": format_.answer,
        "expected": format_.expected,
        "judgement": format_.judgement,
        "context": format_.memories,
    }
    fields = [
        f"{name} = {path}"
        for name, paths in taken.items()
        if (path := next((each for each in paths if _judgement(node, format_, (each,)) not in (None, "")), None))
    ]
    return f"of no harness that is known here; read by the names of its fields: {', '.join(fields)}"


def _stem(path: Path) -> str:
    name = path.name
    for suffix in (".gz", ".json", ".jsonl", ".eval"):
        name = name.removesuffix(suffix)
    return storable(name)[:_LONGEST_NAME] or "results"


def _name(value: Any) -> str:
    return " ".join(storable(value).split())[:_LONGEST_NAME] if isinstance(value, str) else ""


def _answer(pointer: str, node: Node, keys: Mapping[str, str], format_: Format, path: Path) -> PublishedAnswer:
    row = node[-1]
    if not isinstance(row, dict):
        raise DatasetError(path.name, pointer, f"is {shown(row)}", "an object with a question and its answer")
    if isinstance(attached := row.get("attachments"), dict):
        node = (*node[:-1], _attached(row, attached))
    question = _text(found(node, format_.question))
    question_id = _text(found(node, format_.question_id))
    if not question and not question_id:
        raise DatasetError(path.name, pointer, "has no question", " or ".join(format_.question))
    answer = _text(found(node, format_.answer))
    error = _text(found(node, format_.error))
    if found(node, format_.invalid) is True:
        answer, error = None, error or f"{format_.title} does not count this answer"
    sample = _text(found(node, format_.sample)) or keys.get("sample")
    times = {
        name: finite(found(node, paths), 0, 1e9)
        for name, paths in (("recall_ms", format_.recall_ms), ("answer_ms", format_.answer_ms))
    }
    if format_.seconds:
        times = {name: None if value is None else value * 1000 for name, value in times.items()}
    tokens = finite(found(node, format_.context_tokens), 0, 1e9)
    return PublishedAnswer(
        place=f"{path.name}: {pointer or '/'}",
        question=question or "",
        question_id=question_id,
        sample=sample,
        category=_text(found(node, format_.category)),
        asked_at=_text(found(node, format_.asked_at)),
        expected=_text(found(node, format_.expected)),
        answer=answer,
        error=error if not answer else None,
        memories=_memories(found(node, format_.memories), format_, _first(found(node, format_.most_memories))),
        turn_ids=_turn_ids(found(node, format_.turn_ids)),
        context_tokens=None if tokens is None else int(tokens),
        judgement=_verdict(_judgement(node, format_, format_.judgement)),
        judge_reason=_text(found(node, format_.judge_reason)),
        **times,
    )


def _text(value: Any) -> str | None:
    """Return a text or a number as a text; of several, joined by a comma; None for nothing or anything else."""
    match value:
        case bool() | None:
            return None
        case str():
            return storable(value)[:_LONGEST_TEXT].strip() or None
        case int() | float():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case list() if any(isinstance(each, dict) and "role" in each for each in value):
            asked = [each for each in value if isinstance(each, dict) and each.get("role") == "user"]
            return _text(asked[-1].get("content")) if asked else None
        case list():
            texts = [text for each in value[:_MOST_MEMORIES] if (text := _text(each))]
            return ", ".join(texts) or None
        case {"text": str(text)}:
            return _text(text)
        case _:
            return None


_ATTACHMENT: Final = "attachment://"


def _attached(value: Any, attached: Mapping[str, Any], deep: int = 6) -> Any:
    """Return a value with the texts that its log keeps apart put back where they belong."""
    match value:
        case str() if value.startswith(_ATTACHMENT):
            return attached.get(value.removeprefix(_ATTACHMENT), value)
        case list() if deep:
            return [_attached(each, attached, deep - 1) for each in value]
        case dict() if deep:
            return {
                key: inside if key == "attachments" else _attached(inside, attached, deep - 1)
                for key, inside in value.items()
            }
        case _:
            return value


def _turn_ids(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(text for each in value[:_MOST_MEMORIES] if (text := _text(each)))


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


_MEMORY_TEXTS: Final = (
    *("memory", "content", "text", "chunk", "fact", "summary", "episode"),
    *("memories", "chunks", "facts", "edges", "episodes", "source_facts"),
)
"""Fields of a memory that have its text, or memories of their own."""
_MEMORY_DATES: Final = ("timestamp", "created_at", "date", "event_date", "occurred_start", "mentioned_at")


def _memories(value: Any, format_: Format, most: Any) -> tuple[str, ...] | None:
    """Return the memories in a context: a text, taken apart at the format's mark; or a list's first ``most``."""
    match value:
        case None:
            return None
        case str():
            text = storable(value)[:_LONGEST_TEXT]
            if not text.strip():
                return ()
            if format_.memory_mark is None or not (marks := list(re.finditer(format_.memory_mark, text))):
                return (text,)
            starts = [mark.start() for mark in marks]
            head = [text[: starts[0]]] if text[: starts[0]].strip() else []
            ends = [*starts[1:], len(text)]
            return (*head, *(text[start:end] for start, end in zip(starts, ends, strict=True)))
        case list():
            limit = most if isinstance(most, int) else _MOST_MEMORIES
            return tuple(text for each in _flat(value)[:limit] if (text := _memory(each)))
        case dict():
            text = _memory(value)
            return (text,) if text else ()
        case _:
            return None


def _flat(values: list[Any]) -> list[Any]:
    return [inside for each in values for inside in (_flat(each) if isinstance(each, list) else [each])]


def _memory(value: Any) -> str:
    """Return the text of a memory, with the date that it has; of an unknown object all of it, as JSON."""
    if isinstance(value, str):
        return storable(value)[:_LONGEST_TEXT]
    if not isinstance(value, dict):
        return _text(value) or ""
    texts: list[str] = []
    for name in _MEMORY_TEXTS:
        inside = value.get(name)
        parts = inside if isinstance(inside, list) else [inside]
        found_ = [_memory(part) for part in parts[:_MOST_MEMORIES] if isinstance(part, str | dict)]
        texts += [text for text in found_ if text.strip() and text not in texts]
    if not texts:
        try:
            return storable(orjson.dumps(value).decode())[:_LONGEST_TEXT]
        except orjson.JSONEncodeError:
            return ""
    text = "\n".join(texts)
    date = next((_text(value[name]) for name in _MEMORY_DATES if isinstance(value.get(name), str)), None)
    return storable(f"{date}: {text}" if date and date not in text else text)[:_LONGEST_TEXT]


def _judgement(node: Node, format_: Format, paths: Paths) -> Any:
    """Return what the judge said. None for what is kept of the judge itself, such as its model and settings, and
    for a text "correct" that may be the expected answer, where nothing else is.
    """
    judged = found(node, paths)
    if isinstance(judged, dict) and judged == found(node, ("judge",)):
        return None
    is_key = isinstance(judged, str) and judged == found(node, ("correct",)) and not found(node, format_.expected)
    return None if is_key else judged


_RIGHT: Final = frozenset(["true", "correct", "yes", "right", "pass", "passed", "c", "1", "1.0"])
_WRONG: Final = frozenset(
    ["false", "incorrect", "wrong", "no", "fail", "failed", "i", "0", "0.0", "unparsed", "refused"]
)


def _verdict(value: Any) -> Verdict | None:
    """Return a judgement as it is written in any harness; of several, what most say. None for anything between."""
    match value:
        case bool():
            return "right" if value else "wrong"
        case int() | float():
            return "right" if value == 1 else "wrong" if value == 0 else None
        case str():
            word = value.strip().lower()
            return "right" if word in _RIGHT else "wrong" if word in _WRONG else None
        case list() | dict():
            each = [_verdict(one) for one in (value.values() if isinstance(value, dict) else value)]
            votes = each.count("right") - each.count("wrong")
            return "right" if votes > 0 else "wrong" if votes < 0 else None
        case _:
            return None
