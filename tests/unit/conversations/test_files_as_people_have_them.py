"""Archives, folders, tables and transcripts open, and a file of no known format is told what it resembles."""

from __future__ import annotations

import csv
import gzip
import json
import tarfile
import time
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memreplay.conversations import archives
from memreplay.conversations.export import LOG_FORMATS
from memreplay.conversations.log_options import LogOptions
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.errors import DatasetError
from tests.unit.conversations.samples import (
    Json,
    boat_conversation,
    locomo_sample,
    longmemeval_entry,
    mc10_row,
    written,
    written_lines,
)

CHAT = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
TEXT = "User: My boat is the Petrel.\nAssistant: Noted.\n"


def read(path: Path, options: LogOptions | None = None) -> tuple[list[Conversation], list[str]]:
    warnings: list[str] = []
    found = list(load([str(path)], on_warning=warnings.append, options=options or LogOptions()))
    return found, warnings


def packed(path: Path, members: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, str) else json.dumps(content))
    return path


def said(conversation: Conversation) -> list[str]:
    return [f"{conversation.label_of(turn)}: {turn.text}" for turn in conversation.turns]


def test_an_archive_is_opened_and_says_what_it_passes_over(tmp_path: Path) -> None:
    path = packed(tmp_path / "export.zip", {"x/conversations.json": [CHAT], "users.json": [{"uuid": "u"}]})
    (conversation,), warnings = read(path)
    assert said(conversation) == ["User: Hi", "AI: Hello"]
    assert warnings == [f"{path}: 1 file passed over: users.json (name it to read it)"]


def test_an_archive_writes_only_where_it_is_unpacked(tmp_path: Path) -> None:
    (conversation,), _ = read(packed(tmp_path / "a.zip", {"../../evil.json": CHAT}))
    assert conversation.dataset == "evil"
    (path,) = archives.unpacked(tmp_path / "a.zip")
    assert path.parent.name == "a.zip" and path.parent.parent.name.startswith("memreplay-")


def test_an_archive_that_grows_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_UNSUSPICIOUS_BYTES", 1000)
    bomb = packed(tmp_path / "bomb.zip", {"conversations.json": " " * 10_000_000})
    with pytest.raises(DatasetError, match="grows more than"):
        read(bomb)
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(bomb.read_bytes()[:40])
    with pytest.raises(DatasetError, match="cannot be unpacked"):
        read(damaged)


def test_a_gzip_file_is_opened_alone_and_in_a_folder(tmp_path: Path) -> None:
    lines = "\n".join(map(json.dumps, [CHAT, CHAT]))
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "numbers.gz").write_bytes(gzip.compress(b"1 2 3"))
    alone, warnings = read(tmp_path / "log.jsonl.gz")
    assert [(each.id, said(each)) for each in alone] == [
        ("log-1", ["User: Hi", "AI: Hello"]),
        ("log-2", ["User: Hi", "AI: Hello"]),
    ]
    assert warnings == []
    in_folder, warnings = read(tmp_path)
    assert in_folder == alone
    assert warnings == [f"{tmp_path}: 1 file passed over: numbers.gz (name it to read it)"]


def test_a_gzip_file_that_grows_too_much_or_is_not_whole_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_UNSUSPICIOUS_BYTES", 1_000)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * 3_000_000))
    (tmp_path / "half.json.gz").write_bytes(gzip.compress(json.dumps(CHAT).encode())[:-12])
    written(tmp_path / "chat.json", CHAT)
    with tarfile.open(tmp_path / "chat.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "chat.json")
    for name, problem in (
        ("bomb.json", "grows more than 200 times"),
        ("half.json", "cannot be unpacked"),
        ("chat.tar", "is a tar archive"),
    ):
        with pytest.raises(DatasetError, match=problem):
            read(tmp_path / f"{name}.gz")


def test_a_folder_reads_chats_in_text_and_says_what_it_passes_over(tmp_path: Path) -> None:
    written(tmp_path / "a.json", CHAT)
    (tmp_path / "chat.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "README.md").write_text("# Notes\n\nNothing said.\n", encoding="utf-8")
    found, warnings = read(tmp_path)
    assert [each.id for each in found] == ["a", "chat"]
    assert warnings == [f"{tmp_path}: 1 file passed over: README.md (name it to read it)"]


def test_a_table_of_langfuse_is_read(tmp_path: Path) -> None:
    path = tmp_path / "traces.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "timestamp", "sessionId", "input", "output"])
        messages = json.dumps(CHAT["messages"][:1])
        rows.writerow(["t", "2025-01-01T10:00:00Z", "s", messages, json.dumps(CHAT["messages"][1])])
    (conversation,), warnings = read(path)
    assert (conversation.id, said(conversation), warnings) == ("s", ["User: Hi", "AI: Hello"], [])


@pytest.mark.parametrize("form", ["object", "list", "lines"])
@pytest.mark.parametrize("value", [locomo_sample(), boat_conversation(), CHAT], ids=["locomo", "ours", "messages"])
def test_an_object_a_list_and_lines_are_the_same(tmp_path: Path, value: Any, form: str) -> None:
    path = tmp_path / "one.json"
    text = json.dumps([value] if form == "list" else value, indent=None if form == "lines" else 1)
    path.write_text(text + "\n", encoding="utf-8")
    (conversation,), _ = read(path)
    assert conversation.turns


SPOKEN = [{"speaker": "User", "text": "My boat is the Petrel."}, {"speaker": "Assistant", "text": "Noted."}]
ASKED = {"question": "Which boat?", "answer": "The Petrel"}
BENCHMARKS: dict[str, list[Json]] = {
    "locomo": [locomo_sample(), locomo_sample() | {"sample_id": "garden-2"}],
    "mc10": [mc10_row(number) for number in range(5)],
    "longmemeval": [longmemeval_entry(), longmemeval_entry(question_id="7a_2", answer=3, question_date=None)],
    "beam": [{"conversation_id": "7", "chat": [CHAT["messages"]], "probing_questions": repr({"recall": [ASKED]})}],
    "convomem": [ASKED | {"conversations": [{"id": "a", "messages": SPOKEN}], "message_evidences": SPOKEN[:1]}],
}


def page(rows: list[Json], total: int | None = None) -> Json:
    """The rows as Hugging Face's API gives them."""
    wrapped = [{"row_idx": index, "row": row, "truncated_cells": []} for index, row in enumerate(rows)]
    return {"features": [{"name": "x"}], "rows": wrapped, "num_rows_total": len(rows) if total is None else total}


def table(path: Path, rows: list[Json], shown: Callable[[Any], str] = json.dumps) -> Path:
    """The rows as a CSV file, with lists and objects as this function writes them."""
    with path.open("w", encoding="utf-8", newline="") as file:
        cells = csv.writer(file)
        cells.writerow(rows[0])
        for row in rows:
            cells.writerow([each if isinstance(each, str | None) else shown(each) for each in row.values()])
    return path


FORMS: dict[str, Callable[[Path, list[Json]], Path]] = {
    "a page": lambda path, rows: written(path, page(rows)),
    "a list of pages": lambda path, rows: written(path, [page(rows[:1], len(rows)), page(rows[1:], len(rows))]),
    "lines of entries": lambda path, rows: written_lines(path, page(rows)["rows"]),
    "a table of JSON": table,
    "a table as Python prints it": lambda path, rows: table(path, rows, repr),
}


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.parametrize("form", FORMS)
def test_pages_and_tables_of_a_benchmark_hold_what_its_lines_hold(
    tmp_path: Path, benchmark: str, form: str
) -> None:
    rows = BENCHMARKS[benchmark]
    (tmp_path / "other").mkdir()
    path = FORMS[form](tmp_path / "other" / ("rows.csv" if "table" in form else "rows.json"), rows)
    found = read(path)
    assert found[0] and found == read(written_lines(tmp_path / "rows.jsonl", rows))


def test_a_page_says_how_many_rows_it_lacks(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.json", page(BENCHMARKS["longmemeval"], total=500))
    assert read(path)[1] == [f"{path}: holds 2 of the 500 rows of its dataset"]


@pytest.mark.parametrize(
    ("change", "pointer", "problem"),
    [
        ({"truncated_cells": ["choices"]}, "/1/rows/0", 'was cut short in "choices"'),
        ({"row": 5}, "/1/rows/0/row", "is 5"),
    ],
)
def test_an_entry_that_is_no_whole_row_is_an_error(
    tmp_path: Path, change: Json, pointer: str, problem: str
) -> None:
    pages = [page([mc10_row(0)]), page([mc10_row(1)])]
    pages[1]["rows"][0] |= change
    with pytest.raises(DatasetError) as caught:
        read(written(tmp_path / "rows.json", pages))
    assert (caught.value.pointer, caught.value.problem) == (pointer, problem)
    with pytest.raises(DatasetError, match=r'/1: is "Too many requests\."; expected a page of rows'):
        read(written(tmp_path / "rows.json", [pages[0], {"error": "Too many requests."}]))


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("['a' 'b' 'c d']", "is a list without commas, as NumPy prints it"),
        ("print('a')", "is \"print('a')\""),
        ("{'a', 'b'}", "is \"{'a', 'b'}\""),
        ("[" * 2000, 'is "' + "[" * 59 + '…"'),
        ("['a', 'it''s']", "is a list without commas, as NumPy prints it"),
    ],
)
def test_a_cell_is_read_and_never_run(tmp_path: Path, cell: str, problem: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read(table(tmp_path / "rows.csv", [mc10_row(0), mc10_row(1, choices=cell)]))
    assert (caught.value.pointer, caught.value.problem) == ("line 3/choices", problem)


@pytest.mark.parametrize(
    ("ending", "problem"),
    [
        ('"a, b', "line 2: is not valid CSV"),
        ("a," * 12 + "b", "line 3: has 13 cells; expected 12"),
    ],
)
def test_a_table_that_is_cut_short_or_too_wide_is_an_error(tmp_path: Path, ending: str, problem: str) -> None:
    path = table(tmp_path / "rows.csv", [mc10_row(0)])
    path.write_text(path.read_text(encoding="utf-8") + ending, encoding="utf-8")
    with pytest.raises(DatasetError, match=problem):
        read(path)


TRANSCRIPTS = {
    "labels": TEXT,
    "bold": "**User:** My boat is the Petrel.\n\n**Assistant:** Noted.\n",
    "headings": "# A chat\n\n## User\n\nMy boat is the Petrel.\n\n## Assistant\n\nNoted.\n",
    "times": "[2025-01-01 10:00:00] User: My boat is the Petrel.\n[2025-01-01 10:00:05] Assistant: Noted.\n",
    "times after names": "User (10:00):\nMy boat is the Petrel.\n\nAssistant (10:01):\nNoted.\n",
    "a title": "# Boats\n\n**User** (10:00): My boat is the Petrel.\n\n**Claude** (10:01): Noted.\n",
    "ChatGPT Exporter": "# Boats\n\n**User:** Ana (a@b.org)  \n**Created:** 3/23/2025 23:26  \n\n"
    "## Prompt:\nMy boat is the Petrel.\n\n## Response:\nNoted.\n\n---\nPowered by [ChatGPT Exporter](https://x.org)\n",
    "copied from the page": "You said:\nMy boat is the Petrel.\nChatGPT said:\nNoted.\n",
}


@pytest.mark.parametrize("kind", TRANSCRIPTS)
def test_a_transcript_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "chat.md"
    path.write_text(TRANSCRIPTS[kind], encoding="utf-8")
    (conversation,), _ = read(path)
    assert said(conversation) == ["User: My boat is the Petrel.", "AI: Noted."]
    assert conversation.date == (datetime(2025, 1, 1, 10) if kind == "times" else None)


DIALOGUE = "User: I live in Paris.\nAssistant: Noted, Paris."


@pytest.mark.parametrize(
    ("chat", "reply"),
    [
        ("User: Write one.\n\nAssistant: {}\n\nUser: Thanks.\n", f"Here:\n\n```\n{DIALOGUE}\n```"),
        ("User: Write one.\n\nAssistant: {}\n\nUser: Thanks.\n", f"```text\n{DIALOGUE}\n```"),
        ("## User\nWrite one.\n\n## Assistant\n{}\n\n## User\nThanks.\n", DIALOGUE),
        (
            "User: Write one.\n\nAssistant: {}\n\nUser: Thanks.\n",
            "Two headings:\n## Prompt\nHi\n## Response\nHello",
        ),
    ],
    ids=["a block", "a block at once", "another style", "headings"],
)
def test_a_dialogue_in_a_message_is_no_part_of_the_chat(tmp_path: Path, chat: str, reply: str) -> None:
    path = tmp_path / "chat.md"
    path.write_text(chat.format(reply), encoding="utf-8")
    (conversation,), warnings = read(path)
    assert said(conversation) == ["User: Write one.", f"AI: {reply}", "User: Thanks."]
    assert warnings == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "**User:** Write one.\n\n**Assistant:** Here:\n\n## Prompt:\nHi\n\n## Response:\nHello\n\n"
            "**User:** Thanks.\n",
            ["User: Write one.", "AI: Here:\n\n## Prompt:\nHi\n\n## Response:\nHello", "User: Thanks."],
        ),
        (
            "User: look\n```\ncut short\n\nAssistant: Fixed:\n```\nx = 1\n```\nUser: Thanks.\n",
            ["User: look\n```\ncut short", "AI: Fixed:\n```\nx = 1\n```", "User: Thanks."],
        ),
        (
            "User: Hi\nAssistant: Hello\n\n## User\nI live in Girona.\n\n## Assistant\nok\n",
            ["User: Hi", "AI: Hello", "User: I live in Girona.", "AI: ok"],
        ),
        (
            "## User\nHi\n\n**Assistant:** Hello\n\n## User\nI live in Girona.\n\n## Assistant\nok\n",
            ["User: Hi", "AI: Hello", "User: I live in Girona.", "AI: ok"],
        ),
        (
            "User: Hi\nAssistant: ok\nUser: my post\n\n---\nPowered by [Ghost](https://x.org)\n",
            ["User: Hi", "AI: ok", "User: my post\n\n---\nPowered by [Ghost](https://x.org)"],
        ),
    ],
    ids=["headings of an exporter", "an open fence", "a change of style", "two styles", "a footer of one's own"],
)
def test_messages_of_several_styles_are_all_read(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = tmp_path / "chat.md"
    path.write_text(text, encoding="utf-8")
    (conversation,), warnings = read(path)
    assert (said(conversation), warnings) == (expected, [])


@pytest.mark.parametrize(
    "fences",
    ["```\n" * 100_000, "~~~ a\n```\n" * 50_000, "".join("`" * n + "\n" for n in range(1200, 2, -1))],
    ids=["one kind", "two kinds", "shorter and shorter"],
)
def test_many_fences_are_read_in_linear_time(tmp_path: Path, fences: str) -> None:
    path = tmp_path / "chat.md"
    path.write_text(f"User: Hi\n{fences}Assistant: Hello\n", encoding="utf-8")
    started = time.process_time()
    (conversation,), _ = read(path)
    assert time.process_time() - started < 5
    assert [turn.role for turn in conversation.turns] == ["user", "assistant"]


def test_a_block_of_code_without_an_end_takes_no_message_with_it(tmp_path: Path) -> None:
    path = tmp_path / "chat.md"
    replies = ["```py\nx = 1", "```py\nx = 1\n```"]
    path.write_text("".join(f"User: Go on.\nAssistant: {reply}\n" for reply in replies), encoding="utf-8")
    (conversation,), _ = read(path)
    assert said(conversation) == ["User: Go on.", f"AI: {replies[0]}", "User: Go on.", f"AI: {replies[1]}"]


def test_a_name_is_the_user_where_the_other_is_a_known_assistant_or_the_caller_says_so(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text(TEXT.replace("User", "Ana").replace("Assistant", "Claude"), encoding="utf-8")
    assert [turn.role for turn in read(path)[0][0].turns] == ["user", "assistant"]
    path.write_text(TEXT.replace("User", "Ana").replace("Assistant", "Ben"), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"speakers Ana, Ben; expected --user NAME"):
        read(path)
    (conversation,), _ = read(path, LogOptions(user="Ana"))
    assert [turn.role for turn in conversation.turns] == ["user", "assistant"]
    assert said(conversation) == ["Ana: My boat is the Petrel.", "Ben: Noted."]


def test_the_gap_between_sessions_is_an_option(tmp_path: Path) -> None:
    times = ("2025-01-01T10:00:00Z", "2025-01-01T12:00:00Z")
    messages = [each | {"timestamp": at} for each, at in zip(CHAT["messages"], times, strict=True)]
    path = written(tmp_path / "a.json", {"messages": messages})
    assert len(read(path)[0][0].sessions) == 1
    assert len(read(path, LogOptions(session_gap=1))[0][0].sessions) == 2


def test_a_text_that_was_written_is_read_again_as_it_was(tmp_path: Path) -> None:
    contents = ["A log:\nUser: not me\n\\Assistant: nor me\n\nThe end.", "Noted."]
    contents += ["Cut:\n```\nUser: x", "```\nUser: y\n```\n\\```", "~~~ and ```"]
    roles = ["user", "assistant", "user", "assistant", "user"]
    messages: list[dict[str, Any]] = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=True)]
    messages.insert(1, {"type": "function_call", "call_id": "t", "name": "tide", "arguments": "{}"})
    messages.insert(2, {"type": "function_call_output", "call_id": "t", "output": "14:20"})
    (original,), _ = read(written(tmp_path / "a.json", messages))
    path = tmp_path / "again.txt"
    path.write_text(LOG_FORMATS["text"].write([original]), encoding="utf-8")
    (again,), warnings = read(path)
    assert (said(again), warnings) == (said(original), [])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"sender_uuid": 1, "mesages": []}, "it has sender_uuid, mesages"),
        ({"sender_uuid": 1, "mesages": []}, "messages.*nearest format"),
        ([1, 2], "its first value is 1"),
    ],
)
def test_a_file_of_no_known_format_is_told_what_it_has_and_resembles(
    tmp_path: Path, value: Any, words: str
) -> None:
    with pytest.raises(DatasetError, match=words):
        read(written(tmp_path / "a.json", value))


def test_a_text_without_speakers_is_not_broken_json(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Buy rope.\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"text in which no message begins with its speaker.*--user NAME"):
        read(path)


TELEGRAM = {"name": "Ana", "type": "personal_chat", "id": 1, "messages": [{"id": 1, "from_id": "u", "date": "x"}]}
DISCORD = {"guild": {}, "channel": {}, "messages": []}
SLACK = [{"type": "message", "user": "U1", "text": "Hi", "ts": "1700000000.000100"}]
META = {"participants": [], "messages": [{"sender_name": "Ana", "timestamp_ms": 1, "content": "Hi"}]}


@pytest.mark.parametrize(
    ("name", "value"),
    [("Telegram", TELEGRAM), ("Discord", DISCORD), ("Slack", SLACK), ("Messenger or Instagram", META)],
)
def test_a_messenger_is_refused_with_the_way_to_convert_it(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(DatasetError, match=rf"is an export of {name}.*User: …"):
        read(written(tmp_path / "result.json", value))


def test_whatsapp_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    for line in ("[12/01/2025, 10:00:01] Ana: Hi", "12/01/25, 10:00 - Ana: Hi", "1/12/25, 10:00\u202fAM - Ana: Hi"):
        path.write_text(line + "\n", encoding="utf-8")
        with pytest.raises(DatasetError, match="is an export of WhatsApp"):
            read(path)


def test_a_chat_has_a_title_a_date_and_first_words_for_lists(tmp_path: Path) -> None:
    said_first = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "My boat\nis the Petrel."},
    ]
    chats = [
        {"id": "a", "title": "Boats", "created_at": "2025-01-01T10:00:00Z", "messages": said_first},
        {"id": "b", "messages": [{"role": "assistant", "content": "Ahoy"}]},
    ]
    (first, second), _ = read(written(tmp_path / "chats.json", chats))
    assert (first.title, first.date, first.opening) == ("Boats", datetime(2025, 1, 1, 10), "My boat is the Petrel.")
    assert (second.title, second.date, second.opening) == (None, None, "Ahoy")
    assert "title" not in first.model_dump()
