"""The one reader of chat messages and their parts, for every format.

The shapes: OpenAI chat messages and Responses items, Anthropic blocks, Gemini and Bedrock parts, AI SDK messages,
LangChain messages (plain, serialized or as dictionaries), OpenTelemetry parts, and the fields of chat
applications. A format module only finds the messages in its file. What neither the user nor the assistant says to
the other, such as a system prompt, a tool call or a thought, becomes a turn of the role ``other``. What is not
shown is counted by a :class:`LeftOut`, never dropped silently and never taken for speech.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from memreplay.conversations.envelopes import opened
from memreplay.conversations.json_files import parsed_json
from memreplay.conversations.models import TurnRole
from memreplay.conversations.validation_errors import OnWarning, Place, shown
from memreplay.errors import DatasetError

_ROLES: Mapping[str, TurnRole] = {
    **dict.fromkeys(("user", "human", "humanmessage", "you"), "user"),
    **dict.fromkeys(
        (
            *("assistant", "ai", "gpt", "chatgpt", "bot", "model", "bing", "bard", "claude", "gemini", "copilot"),
            *("aimessage", "agent", "chatbot", "llm"),
        ),
        "assistant",
    ),
    **dict.fromkeys(
        (
            *("system", "developer", "tool", "function", "observation", "function_call", "function_response"),
            *("tool_call", "tool_result", "toolresult", "ipython", "environment", "systemmessage", "toolmessage"),
        ),
        "other",
    ),
}
"""The roles in use, folded, and what they are to a memory."""

_LABELS = {"function": "Tool", "observation": "Tool", "ipython": "Tool", "function_response": "Tool"}
_LABELS |= {"tool_result": "Tool", "toolresult": "Tool", "toolmessage": "Tool", "systemmessage": "System"}
_LABELS |= {"function_call": "Tool call", "tool_call": "Tool call"}

SYSTEM, TOOL, TOOL_CALL, THINKING, PROGRAM = "System", "Tool", "Tool call", "Thinking", "Program"


@dataclass(frozen=True)
class ChatMessage:
    """A message. ``label`` names who or what is speaking: a role that is ``other``, or a named user or assistant.

    ``at`` and ``id`` are those of the file, where it has any.
    """

    role: TurnRole
    text: str
    label: str | None = None
    at: datetime | None = None
    id: str | None = None


class LeftOut:
    """Counts what a file holds and its conversations do not show, each kind with its first place."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], Place] = {}
        self._problem: tuple[Place, str] | None = None

    def add(self, noun: str, what: str, place: Place, number: int = 1, problem: str | None = None) -> None:
        """Count something: ``noun`` is in the singular ("part"), ``what`` goes on ("of type x is not shown").

        ``problem`` says the same where it becomes the error of a file of which nothing is left.
        """
        if number:
            self._problem = self._problem or (place, problem or f"{noun} {what}")
            self._counts[noun, what] += number
            self._first.setdefault((noun, what), place)

    def include(self, other: LeftOut) -> None:
        """Add what another one counted."""
        self._problem = self._problem or other._problem
        self._counts.update(other._counts)
        self._first = {**other._first, **self._first}

    def report(self, on_warning: OnWarning) -> None:
        """Say each kind in one sentence with its number."""
        for (noun, what), number in self._counts.items():
            place = self._first[noun, what]
            first = f" (first at {place.pointer})" if place.pointer else ""
            said = f"1 {noun} {what}" if number == 1 else f"{number:,} {_plural(noun)} {_in_plural(what)}"
            on_warning(f"{place.path}: {said}{first}")

    @property
    def number(self) -> int:
        return sum(self._counts.values())

    @property
    def first_problem(self) -> tuple[Place, str] | None:
        """Return the first thing that was counted, and its sentence."""
        return self._problem


def _plural(noun: str) -> str:
    return noun[:-1] + "ies" if noun.endswith("ry") else noun + "s"


def _in_plural(what: str) -> str:
    for singular, plural in _VERBS.items():
        what = re.sub(rf"\b{singular}\b", plural, what)
    return what


_VERBS = {"is": "are", "has": "have", "holds": "hold", "stands": "stand", "was": "were", "does": "do"}


def role_of(written: object, place: Place) -> TurnRole:
    """Raises DatasetError for a role that no format knows."""
    role = known_role(written)
    if role is None:
        raise place.error(f"is {shown(written)}", "user, assistant, system or tool")
    return role


def known_role(written: object) -> TurnRole | None:
    """Return the role of a name that formats use for it, else None."""
    return _ROLES.get(written.strip().casefold()) if isinstance(written, str) else None


def label_of(role: str, name: object = None) -> str:
    """Return the label of a role that is ``other``, with the name of the tool where there is one."""
    base = _LABELS.get(role.casefold(), role.replace("_", " ").capitalize())
    return f"{base} {name}" if isinstance(name, str) and name and base != "System" else base


def tool_call(name: object, arguments: object) -> str:
    """Return a tool call as text."""
    return f"{name if isinstance(name, str) and name else 'tool'}({as_text(arguments)})"


_CALL = re.compile(r"(?P<name>[^\s()]+)\((?P<arguments>.*)\)", re.DOTALL)


def parsed_tool_call(text: str) -> tuple[str, str] | None:
    """Return the name and the arguments of a call that :func:`tool_call` wrote, else None."""
    found = _CALL.fullmatch(text)
    return (found["name"], found["arguments"]) if found else None


def as_text(value: object) -> str:
    """Return a value as text: itself, or its JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def decoded(value: Any) -> Any:
    """Return what a string of JSON holds, however often it was encoded; any other value as it is."""
    for _ in range(3):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            return value
        try:
            inside = parsed_json(value.encode("utf-8", "replace"))
        except orjson.JSONDecodeError:
            return value
        if not isinstance(inside, dict | list | str):
            return value
        value = inside
    return value


_TIME_FORMS = (
    "%B %d, %Y %I:%M%p",
    "%b %d, %Y %I:%M%p",
    "%Y-%m-%d %H:%M:%S %Z",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%d/%m/%Y, %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%B-%d-%Y",
)
_ISO_FRACTION = re.compile(r"(\.\d{6})\d+")
_NO_TIME: Sequence[object] = (None, "", 0, "0")
_SILLY_TAVERN = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@(\d{1,2})h ?(\d{1,2})m ?(?:(\d{1,2})s)?.*")


def moment(value: object) -> datetime | None:
    """Return a time as exports write it (ISO 8601, or a count since 1970), in UTC without a zone; None if it is
    none.
    """
    if isinstance(value, dict):
        value = value.get("$date")
    if isinstance(value, str):
        value = value.strip()
        if re.fullmatch(r"\d{9,}(\.\d+)?", value):
            value = float(value) if "." in value else int(value)
    try:
        if isinstance(value, str):
            return _written_moment(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            seconds = value / 1e9 if value > 1e17 else value / 1e6 if value > 1e14 else value
            seconds = seconds / 1e3 if seconds > 1e11 else seconds
            return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None, microsecond=0)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _written_moment(value: str) -> datetime | None:
    try:
        parsed = datetime.fromisoformat(_ISO_FRACTION.sub(r"\1", value.replace("Z", "+00:00")))
        return parsed.astimezone(UTC).replace(tzinfo=None) if parsed.tzinfo else parsed
    except ValueError:
        pass
    silly = _SILLY_TAVERN.fullmatch(value)
    if silly:
        return datetime(*(int(part or 0) for part in silly.groups()))  # type: ignore[arg-type]
    for form in _TIME_FORMS:
        try:
            return datetime.strptime(value, form)
        except ValueError:
            continue
    return None


# ---- parts -------------------------------------------------------------------------------------------------------

Kind = Literal["text", "thinking", "call", "result", "media", "marker"]

_PARTS: Mapping[str, Kind] = {
    **dict.fromkeys(
        (
            *(
                "text",
                "input_text",
                "output_text",
                "summary_text",
                "markdown",
                "refusal",
                "transcript",
                "message_text",
            ),
            *("audio_transcription", "text_delta", "plain_text", "input", "output", "txt"),
            *("user-prompt", "system-prompt"),
        ),
        "text",
    ),
    **dict.fromkeys(
        (
            *(
                "thinking",
                "reasoning",
                "reasoning_text",
                "thought",
                "thoughts",
                "reasoningcontent",
                "redacted_thinking",
            ),
            *("reasoning_recap", "think", "redacted-reasoning", "reasoning_content"),
        ),
        "thinking",
    ),
    **dict.fromkeys(
        (
            *("tool_use", "tool_call", "tool-call", "function_call", "functioncall", "tooluse", "server_tool_use"),
            *(
                "mcp_tool_use",
                "tool-invocation",
                "custom_tool_call",
                "executablecode",
                "executable_code",
                "function",
            ),
            *("dynamic-tool", "toolcall", "server_tool_call", "non_standard_tool_call", "mcp_approval_request"),
            *("local_shell_call", "code", "action"),
        ),
        "call",
    ),
    **dict.fromkeys(
        (
            *("tool_result", "tool-result", "tool_call_response", "function_call_output", "functionresponse"),
            *("toolresult", "function_response", "custom_tool_call_output", "codeexecutionresult", "tool-error"),
            *(
                "code_execution_result",
                "tool_response",
                "toolresponse",
                "execution_output",
                "mcp_approval_response",
            ),
            *("tool-return", "retry-prompt", "builtin-tool-return"),
            *("server_tool_call_response", "server_tool_result", "tether_browsing_display", "tether_quote"),
        ),
        "result",
    ),
    **dict.fromkeys(
        (
            *("image", "image_url", "input_image", "output_image", "image_file", "image_asset_pointer", "images"),
            *("audio", "input_audio", "output_audio", "audio_url", "audio_asset_pointer", "video", "video_url"),
            *(
                "file",
                "input_file",
                "document",
                "inlinedata",
                "inline_data",
                "filedata",
                "file_data",
                "blob",
                "uri",
            ),
            *("media", "attachment", "container_upload", "real_time_user_audio_video_asset_pointer", "input_video"),
            *("drivedocument", "driveimage", "drivevideo", "driveaudio", "inlinefile", "youtubevideo"),
            *("video_container_asset_pointer", "source-document", "image-data", "file_search", "gif", "voice"),
        ),
        "media",
    ),
    **dict.fromkeys(("step-start", "step-finish", "start-step", "finish-step", "flag", "token_budget"), "marker"),
}
"""The table of part types, for all formats; Gemini and Bedrock name the type by the key that holds the part."""

_PATTERNS: Sequence[tuple[re.Pattern[str], Kind]] = (
    (re.compile(r".*(_tool_result|_call_output|_result)"), "result"),
    (re.compile(r".*_call|tool-.+"), "call"),
)
_OF_AI_STUDIO: tuple[str, ...] = ("executableCode", "codeExecutionResult", "inlineFile", "youtubeVideo")
_OF_AI_STUDIO += ("driveDocument", "driveImage", "driveVideo", "driveAudio")
"""Parts that AI Studio writes beside the text of a message."""
_KEYED = frozenset(
    (
        *("text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "image", "video"),
        *(
            "codeExecutionResult",
            "function_call",
            "function_response",
            "inline_data",
            "file_data",
            "executable_code",
        ),
        *("code_execution_result", "toolUse", "toolResult", "document", "reasoningContent", "audio"),
        *_OF_AI_STUDIO,
    )
)
_TEXT_FIELDS = (
    "text",
    "content",
    "value",
    "refusal",
    "transcript",
    "thinking",
    "think",
    "reasoning",
    "output_text",
    "input_text",
)
_RESULT_FIELDS = (
    "output",
    "result",
    "response",
    "content",
    "json",
    "text",
    "outputs",
    "value",
    "errorText",
    "error",
)
_ARGUMENT_FIELDS = ("arguments", "args", "input", "parameters", "action", "queries", "code", "command")
_KIND_OF_MEDIA = re.compile(r"image|audio|video|document|photo|voice")


@dataclass(frozen=True)
class _Piece:
    """The reading of a part: text that is said, a text with a label of its own, or a picture or file."""

    kind: Literal["said", "other", "media"]
    text: str
    label: str = ""
    key: tuple[str, str] = ("", "")


def _type_of(part: Mapping[str, Any]) -> str:
    written = part.get("part_kind", part.get("type", part.get("content_type", part.get("kind"))))
    if isinstance(written, str) and written:
        return written
    if "toolCallId" in part and "toolName" in part:
        return "tool-result" if "result" in part or "output" in part else "tool-call"
    return next((key for key in part if key in _KEYED and (key != "text" or isinstance(part[key], str))), "")


def kind_of_part(name: str) -> Kind | None:
    """Return what a type of part is; None for an unknown one."""
    folded = name.casefold()
    if folded in _PARTS:
        return _PARTS[folded]
    return next((kind for pattern, kind in _PATTERNS if pattern.fullmatch(folded)), None)


_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_CALLS = (("tool_calls", False), ("function_call", True), ("toolInvocations", False), ("toolCalls", False))
"""Fields with calls beside the content, and whether they hold one or a list."""
_ATTACHED = ("attachments", "files", "experimental_attachments", "images", "files_v2")
_BESIDE_CONTENT = frozenset(
    (
        *_THOUGHTS,
        *_ATTACHED,
        *_OF_AI_STUDIO,
        "refusal",
        "audio",
        "thoughts",
        "toolCalls",
        "tool_calls",
        "function_call",
        "toolInvocations",
        "additional_kwargs",
    )
)
"""Fields of a message that hold something beside its content."""


@dataclass
class MessageReader:
    """Reads messages, and counts in ``left_out`` what it does not show."""

    left_out: LeftOut = field(default_factory=LeftOut)

    # ---- messages ------------------------------------------------------------------------------------------------

    def messages(self, values: object, place: Place, default: TurnRole | None = None) -> list[ChatMessage]:
        """Return the messages of a list.

        Raises:
            DatasetError: it is no list.
        """
        if not isinstance(values, list):
            raise place.error(f"is {shown(values)}", "a list of messages")
        placed = self.oldest_first([(place.at(index), value) for index, value in enumerate(values)])
        return [each for at, value in placed for each in self.message(value, at, default)]

    def oldest_first(self, values: Sequence[tuple[Place, Any]]) -> Sequence[tuple[Place, Any]]:
        """Return the messages of a list the other way round where they stand newest first, as their times say."""
        if not _stand_newest_first(value for _, value in values):
            return values
        self.left_out.add("list", "of messages stands newest first and was turned around", values[0][0])
        return values[::-1]

    def message(self, value: object, place: Place, default: TurnRole | None = None) -> list[ChatMessage]:
        """Return what a message comes to: what is said, and its thoughts, tool calls and results in their order.

        One that holds nothing, or is no message, is counted as left out.
        """
        written = _unwrapped(value)
        if isinstance(written, str) and default is not None:
            return [ChatMessage(default, written)] if written.strip() else []
        if not isinstance(written, dict):
            self.left_out.add("entry", f"of a list of messages is {shown(value)} and is not shown", place)
            return []
        written = _with_output(written)
        named, role, label = _speaker(written)
        at, message_id = time_of(written), _id_of(written)
        if at is None and (name := next((each for each in _TIME_FIELDS if written.get(each)), None)) is not None:
            self.time(written[name], place.at(name))
        before = self.left_out.number
        pieces = self._pieces_of_message(written, place, is_item=named is None)
        if not pieces and self.left_out.number > before:
            return []
        if named is None and not pieces:
            kind = _type_of(written)
            if kind and kind_of_part(kind) is None:
                self.left_out.add("item", f"of type {kind} is not shown", place)
            elif kind:
                self.left_out.add("item", f"of type {kind} without content is not shown", place)
            else:
                self.left_out.add(
                    "message", f"without a known role (it has {_fields(written)}) is not shown", place
                )
            return []
        if named is not None and role is None:
            self.left_out.add(
                "message",
                f"of the role {shown(named)} is shown as neither user nor assistant",
                place.at("role" if "role" in written else "type"),
                problem=f"is {shown(named)}",
            )
            role, label = "other", label_of(named)
        assembled = _assembled(pieces, role or "other", label, named or "")
        found = [part for each in assembled for part in self._opened(each, place)]
        if not found:
            self.left_out.add("message", "without content is not shown", place)
        return [ChatMessage(each.role, each.text, each.label, at, message_id) for each in found]

    def time(self, written: object, place: Place) -> datetime | None:
        """Return a time; count one that cannot be read."""
        at = moment(written)
        if at is None and written not in _NO_TIME:
            self.left_out.add("time", "that cannot be read is not shown", place)
        return at

    def _pieces_of_message(self, written: Mapping[str, Any], place: Place, is_item: bool) -> list[_Piece]:
        if is_item:
            return list(self._part(written, place)) if _type_of(written) else []
        if written.get("isThought") is True and isinstance(written.get("text"), str):
            return [_Piece("other", written["text"], THINKING)]
        pieces: list[_Piece] = []
        has_more = not _BESIDE_CONTENT.isdisjoint(written)
        for name in _THOUGHTS if has_more else ():
            text = written.get(name)
            if isinstance(text, dict):
                text = text.get("content")
            if isinstance(text, str) and text.strip():
                pieces.append(_Piece("other", text, THINKING))
                break
        if isinstance(written.get("thoughts"), list) and written["thoughts"]:
            pieces += self._part({"type": "thinking", "thoughts": written["thoughts"]}, place.at("thoughts"))
        field_name, content = _content_of(written)
        pieces += self.parts(content, place.at(field_name) if field_name else place)
        if not has_more:
            return pieces
        if not any(piece.kind == "said" for piece in pieces):
            pieces += self._said_elsewhere(written)
        for name, single in _CALLS:
            if written.get(name):
                pieces += self._calls(written[name], single, place.at(name))
        extra = written.get("additional_kwargs")
        if isinstance(extra, dict) and not any(piece.label == TOOL_CALL for piece in pieces):
            pieces += self._calls(extra.get("tool_calls"), False, place.at("additional_kwargs", "tool_calls"))
            pieces += self._calls(extra.get("function_call"), True, place.at("additional_kwargs", "function_call"))
        for name in _OF_AI_STUDIO:
            if isinstance(written.get(name), dict):
                pieces += self._part({name: written[name]}, place.at(name))
        for name in _ATTACHED:
            if written.get(name):
                pieces += self._attached(written[name], place.at(name))
        return list(_without_repeated_calls(pieces))

    def _said_elsewhere(self, written: Mapping[str, Any]) -> Iterator[_Piece]:
        """Return what is said outside the content: a refusal, or the transcript of a voice message."""
        if isinstance(written.get("refusal"), str) and written["refusal"].strip():
            yield _Piece("said", written["refusal"])
        audio = written.get("audio")
        if isinstance(audio, dict):
            transcript = audio.get("transcript")
            yield (
                _Piece("said", transcript) if isinstance(transcript, str) and transcript else _media("audio", audio)
            )

    def _calls(self, listed: object, single: bool, place: Place) -> Iterator[_Piece]:
        if single and isinstance(listed, dict):
            yield from self._part({"type": "function_call", **listed}, place)
        if not single and isinstance(listed, list):
            for index, call in enumerate(listed):
                if isinstance(call, dict):
                    yield from self._part({**call, "type": "tool_call"}, place.at(index))
                else:
                    self.left_out.add("tool call", f"is {shown(call)} and is not shown", place.at(index))

    def _attached(self, listed: object, place: Place) -> Iterator[_Piece]:
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, dict):
                text = each.get("extracted_content")
                piece = _media("file", each)
                yield _Piece("other", f"{piece.text}\n{text}", "File") if isinstance(text, str) and text else piece
            elif isinstance(each, str):
                yield _media(str(place.steps[-1]).rstrip("s"), {})

    def _opened(self, message: ChatMessage, place: Place) -> list[ChatMessage]:
        """Return a message of the user without what programs put into it, which becomes messages of its own."""
        if message.role != "user":
            return [message]
        return [
            replace(message, text=part.text) if part.is_the_users else self.of_the_program(part.text, place)
            for part in opened(message.text)
        ]

    def of_the_program(self, text: str, place: Place) -> ChatMessage:
        """Return a text that an agent's program sent in the user's name, and count it."""
        self.left_out.add("message", "made by the agent's program is shown as neither user nor assistant", place)
        return ChatMessage("other", text, PROGRAM)

    # ---- parts -----------------------------------------------------------------------------------------------

    def parts(self, content: object, place: Place) -> list[_Piece]:
        """Return what a content comes to: a text, a part or a list of parts."""
        if content is None:
            return []
        if isinstance(content, str):
            return [_Piece("said", content)] if content.strip() else []
        if isinstance(content, dict):
            return list(self._part(content, place))
        if isinstance(content, list):
            return [piece for i, part in enumerate(content) for piece in self._listed_part(part, place.at(i))]
        is_what = f"is {shown(content)}"
        self.left_out.add("content", f"{is_what} and is not shown", place, problem=is_what)
        return []

    def _listed_part(self, part: object, place: Place) -> Iterable[_Piece]:
        if isinstance(part, str):
            return [_Piece("said", part)] if part.strip() else []
        if isinstance(part, dict):
            return self._part(part, place)
        self.left_out.add("part", f"is {shown(part)} and is not shown", place)
        return []

    def _part(self, part: Mapping[str, Any], place: Place) -> Iterator[_Piece]:
        name = _type_of(part)
        kind = kind_of_part(name) if name else None
        inner = part.get(name)
        body: Mapping[str, Any] = inner if isinstance(inner, dict) else part
        if part.get("thought") is True and kind == "text":
            kind = "thinking"
        if not name and any(isinstance(part.get(key), str) for key in ("text", "content")):
            kind = "text"
        match kind:
            case "text" | "thinking" if name == "system-prompt":
                yield _Piece("other", _text_in(part) or "", SYSTEM)
            case "text" | "thinking":
                text = _text_in(part) or _text_in(body)
                if text is None and kind == "thinking":
                    text = _summary(part)
                if text is None:
                    has = f"without text (it has {_fields(part)})" if kind == "text" else "without text"
                    self.left_out.add("part", f"of type {name or 'text'} {has} is not shown", place)
                elif text.strip():
                    yield _Piece("said", text) if kind == "text" else _Piece("other", text, THINKING)
                elif kind == "thinking":
                    self.left_out.add("part", f"of type {name} without text is not shown", place)
            case "call":
                yield from self._call(name, part, body, place)
            case "result":
                yield self._result(name, part, body, place)
            case "media":
                transcript = _first(body, ("transcript",)) or _first(part, ("transcript",))
                yield (
                    _Piece("said", transcript) if isinstance(transcript, str) and transcript else _media(name, part)
                )
            case None:
                what = f"of type {name}" if name else f"with {_fields(part)}"
                self.left_out.add("part", f"{what} is not shown", place)

    def _call(self, name: str, part: Mapping[str, Any], body: Mapping[str, Any], place: Place) -> Iterator[_Piece]:
        """Return a call, and its result where the same part holds it, as in the AI SDK."""
        invocation = part.get("toolInvocation")
        body = invocation if isinstance(invocation, dict) else body
        function = body.get("function")
        named = function if isinstance(function, dict) else body
        called = _first(named, ("name", "toolName", "tool_name", "tool", "apiName", "function"))
        if not isinstance(called, str) or not called:
            called = name.removeprefix("tool-").removesuffix("_call") if kind_of_part(name) == "call" else "tool"
            called = "code" if name.casefold() in ("executablecode", "executable_code") else called
        arguments = _first(named, _ARGUMENT_FIELDS)
        identity = _first(body, ("id", "call_id", "toolCallId", "tool_call_id", "toolUseId"))
        yield _Piece("other", tool_call(called, arguments), TOOL_CALL, (str(identity or ""), called))
        result_fields = ("output", "result", "errorText", "outputs", "results")
        if name.casefold() not in ("tool_use", "function_call"):
            result = next((body[key] for key in result_fields if body.get(key) is not None), None)
            if result is not None:
                yield _Piece("other", self._result_text(result, place), TOOL)

    def _result(self, name: str, part: Mapping[str, Any], body: Mapping[str, Any], place: Place) -> _Piece:
        value = next((body[key] for key in _RESULT_FIELDS if body.get(key) is not None), None)
        if value is None and body is not part:
            value = next((part[key] for key in _RESULT_FIELDS if part.get(key) is not None), None)
        return _Piece("other", self._result_text(value, place) or "(empty)", TOOL)

    def _result_text(self, value: object, place: Place) -> str:
        """Return the text of a result: text, parts, or any other value as JSON."""
        if isinstance(value, dict) and value.get("type") in ("text", "json", "error-text", "error-json", "content"):
            value = value.get("value", value.get("text", value))
        if isinstance(value, dict) and isinstance(value.get("content"), list) and _are_parts(value["content"]):
            value = value["content"]
        if isinstance(value, list) and _are_parts(value):
            return "\n".join(piece.text for piece in self.parts(value, place))
        return as_text(value)


def _are_parts(values: Sequence[object]) -> bool:
    return bool(values) and all(
        isinstance(each, dict) and (kind_of_part(_type_of(each)) in ("text", "media") or "json" in each)
        for each in values
    )


def _first(value: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _text_in(part: Mapping[str, Any]) -> str | None:
    for name in _TEXT_FIELDS:
        text = part.get(name)
        if isinstance(text, dict):
            text = text.get("value", text.get("text"))
        if isinstance(text, list):
            found = [
                inner if isinstance(inner, str) else _text_in(inner)
                for inner in text
                if isinstance(inner, str | Mapping)
            ]
            text = "\n".join(each for each in found if each) if any(found) else None
        if isinstance(text, str):
            return text
    return None


def _summary(part: Mapping[str, Any]) -> str | None:
    for name in ("summary", "content", "thoughts", "reasoningText"):
        value = part.get(name)
        if isinstance(value, dict):
            value = [value]
        if isinstance(value, list):
            texts = [
                _text_in(each) or each.get("summary") or each.get("description")
                for each in value
                if isinstance(each, dict)
            ]
            texts += [each for each in value if isinstance(each, str)]
            return "\n".join(text for text in texts if isinstance(text, str)) or None
    return None


def _media(name: str, part: Mapping[str, Any]) -> _Piece:
    inner = part.get(name)
    body = {**part, **(inner if isinstance(inner, dict) else {})}
    source = body.get("source")
    body |= source if isinstance(source, dict) else {}
    mime = str(_first(body, ("mimeType", "mime_type", "mediaType", "media_type", "contentType", "modality")) or "")
    kind = _KIND_OF_MEDIA.search(f"{name} {mime}" if name.casefold() != "file" or not mime else mime)
    title = _first(body, ("file_name", "filename", "fileName", "name", "title", "displayName"))
    word = kind[0] if kind else "file"
    return _Piece(
        "media", f"[{word}: {title}]" if isinstance(title, str) and title else f"[{word}]", word.capitalize()
    )


def _assembled(pieces: Sequence[_Piece], role: TurnRole, label: str | None, named: str) -> Iterator[ChatMessage]:
    """Return the messages of the pieces: texts that follow each other are one, with the rest between them.

    The libraries of providers join what a model said without anything between its parts, since it says spaces and
    line breaks itself. Parts of other messages were put together by a program.
    """
    says = any(piece.kind == "said" for piece in pieces)
    between = "" if says and role == "assistant" else "\n"
    texts: list[str] = []
    for piece in pieces:
        if piece.kind == "said" or (piece.kind == "media" and not says and role != "other"):
            texts.append(piece.text)
        elif piece.kind == "media":
            continue
        else:
            if texts:
                yield ChatMessage(role, between.join(texts), label)
                texts = []
            yield ChatMessage(
                "other", piece.text, piece.label if role != "other" or not label else _tool_label(piece, label)
            )
    if texts:
        yield ChatMessage(role, between.join(texts), label)
    for piece in pieces:
        if piece.kind == "media" and (says or role == "other"):
            yield ChatMessage("other", piece.text, piece.label)


def _tool_label(piece: _Piece, label: str) -> str:
    """Return the label of a result, which the message of the tool may name."""
    return label if piece.label == TOOL and label.startswith(TOOL) else piece.label


def _without_repeated_calls(pieces: Sequence[_Piece]) -> Iterator[_Piece]:
    """Leave out a call that the parts and ``tool_calls`` of a message both hold, and its result beside it."""
    seen: dict[tuple[str, str], str] = {}
    repeated: tuple[str, str] | None = None
    last: tuple[str, str] | None = None
    for piece in pieces:
        if piece.label == TOOL_CALL:
            repeated = piece.key if piece.key[0] and piece.key in seen else None
            last = piece.key
            if repeated:
                continue
            seen[piece.key] = ""
        elif piece.label == TOOL:
            if repeated and seen[repeated] == piece.text:
                repeated = None
                continue
            if last is not None:
                seen[last] = piece.text
        yield piece


def _fields(value: Mapping[str, Any]) -> str:
    names = [str(name) for name in value]
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


# ---- where a message has its fields ------------------------------------------------------------------------------

_ROLE_FIELDS = (
    "role_type",
    "role",
    "sender",
    "from",
    "author",
    "speaker",
    "sender_type",
    "senderType",
    "source",
    "type",
)
_TIME_FIELDS = (
    *("create_time", "created_at", "createdAt", "timestamp", "time", "date", "send_date", "sent_at", "created"),
    *("ts", "datetime", "create_at", "time_stamp", "creation_time", "sentAt", "start_time", "startTime"),
)
_TIMES = frozenset(_TIME_FIELDS)
_ID_FIELDS = ("id", "uuid", "messageId", "message_id")
_CONTENT_FIELDS = ("parts", "content", "value", "text", "mes", "message", "body", "blocks", "utterance")
_USER_FLAGS = ("isCreatedByUser", "is_user", "isUser", "from_user", "fromUser")
_FLAGS = frozenset(_USER_FLAGS)


def _unwrapped(value: object) -> object:
    """Return the message inside a serialized one: of LangChain, of its dictionaries, or of a record with a time."""
    value = decoded(value)
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("kwargs"), dict) and ("lc" in value or isinstance(value.get("id"), list)):
        names = value.get("id")
        last = str(names[-1]) if isinstance(names, list) and names else ""
        kind = last.removesuffix("Chunk").removesuffix("Message").lower()
        return {**value["kwargs"], "type": kind or value["kwargs"].get("type")}
    data = value.get("data")
    if isinstance(data, dict) and known_role(value.get("type")) and "content" in data:
        return {**data, "type": value["type"]}
    if isinstance(value.get("message_type"), str):
        return _of_letta(value)
    if isinstance(value.get("source"), str) and isinstance(value.get("type"), str) and value["type"] in _OF_AUTOGEN:
        return _of_autogen(value)
    if "role" not in value and known_role(value.get("source")) is not None:
        return _of_openhands(value)
    if isinstance(value.get("parts"), list) and value.get("kind") in _SIDES_OF_PYDANTIC_AI:
        return {**value, "role": _SIDES_OF_PYDANTIC_AI[value["kind"]]}
    inner = value.get("message")
    if isinstance(inner, dict) and ("role" in inner or "content" in inner or "author" in inner):
        names = (*_TIME_FIELDS, *_ID_FIELDS, "role")
        outer = {name: value[name] for name in names if name in value and name not in inner}
        return {**outer, **({"role": value["type"]} if known_role(value.get("type")) else {}), **inner}
    return value


_SIDES_OF_PYDANTIC_AI = {"request": "user", "response": "assistant"}


def _of_letta(value: dict[str, Any]) -> dict[str, Any]:
    """Return a message of Letta's API, whose type says who speaks or which part of a step it is."""
    match value["message_type"]:
        case "user_message":
            return {**value, "role": "user"}
        case "assistant_message" | "system_message" as kind:
            return {**value, "role": kind.removesuffix("_message")}
        case "reasoning_message" | "hidden_reasoning_message":
            thought = {"type": "thinking", "text": value.get("reasoning")}
            return {**value, "role": "assistant", "content": [thought], "reasoning": None}
        case "tool_call_message" if isinstance(call := value.get("tool_call"), dict):
            reply = decoded(call.get("arguments")) if call.get("name") == _REPLY_OF_LETTA else None
            said = reply.get("message") if isinstance(reply, dict) else None
            content = said if isinstance(said, str) else [{**call, "type": "tool_call"}]
            return {**value, "role": "assistant", "content": content}
        case "tool_return_message":
            return {**value, "role": "tool", "content": value.get("tool_return")}
    return value


_REPLY_OF_LETTA = "send_message"
"""The tool with which Letta's agents speak to the user."""


_OF_AUTOGEN: Mapping[str, str | None] = {
    **dict.fromkeys(("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "StructuredMessage")),
    "ToolCallSummaryMessage": None,
    "ThoughtEvent": "thinking",
    "ToolCallRequestEvent": "tool_call",
    "ToolCallExecutionEvent": "tool_result",
}
"""The messages of AutoGen's agents, and the type of the parts that each one is or lists."""


def _of_autogen(value: dict[str, Any]) -> dict[str, Any]:
    """Return a message of AutoGen, whose source is the user or the name of an agent."""
    by_user = value["source"].casefold() in ("user", "user_proxy")
    kind, content = _OF_AUTOGEN[value["type"]], value.get("content")
    if kind is not None:
        listed = content if isinstance(content, list) else [{"text": content}]
        content = [{**each, "type": kind} if isinstance(each, dict) else each for each in listed]
    speaker = {"role": "user"} if by_user else {"role": "assistant", "name": value["source"]}
    return {**value, "type": None, "content": content, **speaker}


def _of_openhands(value: dict[str, Any]) -> dict[str, Any]:
    """Return an event of OpenHands: an action of the user or the agent, or what came of it; any other as it is."""
    action, observed, given = value.get("action"), value.get("observation"), value.get("args")
    if isinstance(observed, str):
        result = {"type": "tool_result", "content": value.get("content", value.get("message"))}
        return {**value, "role": "tool", "name": observed, "content": [result]}
    if not isinstance(action, str) or not isinstance(given, dict):
        return value
    if action in _SAID_IN_OPENHANDS:
        said = given.get("final_thought") or given.get(_SAID_IN_OPENHANDS[action]) or value.get("message")
        return {**value, "role": "system" if action == "system" else value["source"], "content": said}
    thought = {"type": "thinking" if action == "think" else "text", "text": given.get("thought") or ""}
    arguments = {name: each for name, each in given.items() if name != "thought" and each not in (None, "")}
    call = {"type": "tool_call", "name": action, "arguments": arguments}
    return {**value, "role": value["source"], "content": [thought, *([] if action == "think" else [call])]}


_SAID_IN_OPENHANDS = {"message": "content", "finish": "thought", "reject": "thought", "system": "content"}
"""The actions of OpenHands with which somebody says something, and the field with what is said."""

_DETAILS = re.compile(
    r'<details type="(?P<kind>reasoning|tool_calls)"[^>]*>\s*(?:<summary>.*?</summary>)?(?P<text>.*?)</details>\s*',
    re.DOTALL,
)


def _with_output(written: dict[str, Any]) -> dict[str, Any]:
    """Return the message with its thoughts and tool calls as parts: Open WebUI holds them beside or in the text."""
    output, content = written.get("output"), written.get("content")
    if "role" in written and isinstance(output, list) and output and all(map(is_message, output)):
        parts: list[Any] = []
        for item in output:
            is_text = item.get("type") == "message" and isinstance(item.get("content"), list)
            parts += item["content"] if is_text else [item]
        return {**written, "content": parts}
    if isinstance(content, str) and "<details type=" in content and _DETAILS.search(content):
        parts, end = [], 0
        for found in _DETAILS.finditer(content):
            kind = "thinking" if found["kind"] == "reasoning" else "tool_result"
            parts += [content[end : found.start()], {"type": kind, "text": html.unescape(found["text"]).strip()}]
            end = found.end()
        return {**written, "content": [*parts, content[end:]]}
    return written


def _speaker(written: Mapping[str, Any]) -> tuple[str | None, TurnRole | None, str | None]:
    """Return the role as it is written, what it is to a memory, and the label of the message.

    All are None for an item that is no message, such as a tool call among messages.
    """
    for name in _USER_FLAGS if not _FLAGS.isdisjoint(written) else ():
        if isinstance(written.get(name), bool):
            return ("user", "user", None) if written[name] else ("assistant", "assistant", None)
    for name in _ROLE_FIELDS:
        value = written.get(name)
        if isinstance(value, dict):
            value = value.get("role", value.get("type"))
        if not isinstance(value, str) or not value:
            continue
        if name in ("type", "source"):
            folded = value.removesuffix("Chunk").removesuffix("Message")
            if known_role(folded) is None or (kind_of_part(value) is not None and "content" not in written):
                continue
            value = folded
        role = known_role(value)
        person = written.get("role") if name == "role_type" else written.get("name")
        if role == "other":
            return value, role, label_of(value, person)
        return value, role, person if isinstance(person, str) and person.strip() else None
    return None, None, None


def _content_of(written: Mapping[str, Any]) -> tuple[str, object]:
    for name in _CONTENT_FIELDS:
        if written.get(name) not in (None, "", []):
            return name, written[name]
    return "", None


def time_of(written: Mapping[str, Any]) -> datetime | None:
    """Return the time of a message or a call, whatever the field is called."""
    for name in _TIME_FIELDS if not _TIMES.isdisjoint(written) else ():
        found = moment(written[name]) if written.get(name) else None
        if found is not None:
            return found
    metadata = written.get("metadata")
    if isinstance(metadata, dict):
        for name in ("createdAt", "created_at", "timestamp", "create_time"):
            found = moment(metadata[name]) if metadata.get(name) else None
            if found is not None:
                return found
    return None


def _id_of(written: Mapping[str, Any]) -> str | None:
    for name in _ID_FIELDS:
        if isinstance(written.get(name), str | int) and str(written[name]):
            return str(written[name])
    return None


def _stand_newest_first(values: Iterable[object]) -> bool:
    """Return whether each value is a message with a time, and as a rule earlier than the one before it.

    Parts of one message have its id and its time. Other messages may have the same time, if most have not. A single
    step back is one of two clocks.
    """
    steps: Counter[bool] = Counter()
    later: tuple[datetime, str | None] | None = None
    for value in values:
        written = _unwrapped(value)
        if not isinstance(written, dict) or (at := time_of(written)) is None:
            return False
        if later is not None and at > later[0]:
            return False
        this = at, _id_of(written)
        if later is not None and (this != later or this[1] is None):
            steps[at < later[0]] += 1
        later = this
    return steps[True] > max(1, steps[False])


def is_message(value: object) -> bool:
    """Return whether a value is a message by its fields: it has a role, and something that it says or does."""
    value = _unwrapped(value)
    if not isinstance(value, dict):
        return False
    named, role, _ = _speaker(value)
    if named is None:
        return is_item(value)
    says = not {*_CONTENT_FIELDS, "tool_calls", "function_call", "toolInvocations"}.isdisjoint(value)
    return says and (role is not None or "role" in value)


_ITEMS = re.compile(
    r"(function|tool|custom_tool|local_shell|mcp|web_search|file_search|computer|code_interpreter|image_generation)"
    r"_call(_output)?|reasoning|item_reference|compaction"
)


def is_item(value: object) -> bool:
    """Return whether a value is one of the items that OpenAI Responses put among messages."""
    return isinstance(value, dict) and isinstance(value.get("type"), str) and bool(_ITEMS.fullmatch(value["type"]))


# ---- inputs and outputs of calls ---------------------------------------------------------------------------------

_HISTORIES: tuple[str, ...] = (
    "chat_history",
    "history",
    "conversation_history",
    "message_history",
    "chatHistory",
    "conversation",
)
_HISTORIES += ("previous_messages", "past_messages", "memory", "context_messages", "messages_history", "dialog")
_COMPLETE = ("messages", "contents", "prompts", "items", "transcript", "message_list", "new_messages")
_NESTED: tuple[str, ...] = (
    "inputs",
    "outputs",
    "input",
    "output",
    "kwargs",
    "args",
    "request",
    "body",
    "json",
    "state",
    "values",
    "data",
)
_NESTED += (
    "message",
    "response",
    "result",
    "return_values",
    "root",
    "config",
    "params",
    "payload",
    "agent",
    "model",
)
_NESTED += ("candidates", "choices", "generations", "generation", "final_output", "raw", "event", "chunk", "delta")
_SPOKEN = frozenset(("inputs", "outputs", "input", "output", "body", "data", "payload", "kwargs", "root", "json"))
"""Those of the names above whose text a call is given or returns; the others are settings, such as its model."""
_NEWEST = re.compile(
    r"(.*_)?(question|query|message|input|prompt|utterance|msg|text|ask|contents?|user|human|task|instruction|q)"
)
_ANSWERS = re.compile(
    r"(.*_)?(output|answer|response|result|reply|completion|text|content|message|generation|assistant|ai|bot|output_text|"
    r"final_answer|return|answers?|summary)"
)
_SYSTEM_FIELDS = (
    "system",
    "systemInstruction",
    "system_instruction",
    "instructions",
    "system_prompt",
    "systemPrompt",
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def system_of(container: Mapping[str, Any], reader: MessageReader, place: Place) -> list[ChatMessage]:
    """Return the system prompt that stands beside the messages, as in Anthropic's and Gemini's requests."""
    for name in _SYSTEM_FIELDS:
        if name in container:
            written = container[name]
            written = written["parts"] if isinstance(written, dict) and "parts" in written else written
            pieces = reader.parts(written, place.at(name))
            if pieces:
                return [ChatMessage("other", "\n".join(piece.text for piece in pieces), SYSTEM)]
    return []


def side(value: Any, default: TurnRole, reader: MessageReader, place: Place) -> tuple[ChatMessage, ...]:
    """Return the messages of an input or an output, in any of the shapes in use; a bare text is one by ``default``.

    One that is not empty and holds no message is counted as left out, with its keys.
    """
    before = reader.left_out.number
    found = tuple(_side(value, default, reader, place, 0))
    inside = decoded(value)
    if not found and inside not in (None, "", [], {}) and reader.left_out.number == before:
        has = f" (with {_fields(inside)})" if isinstance(inside, dict) else ""
        name = "input" if default == "user" else "output"
        reader.left_out.add(name, f"of a call without a known message{has} is not shown", place)
    return found


_DEEPEST = 8


def _side(value: Any, default: TurnRole, reader: MessageReader, place: Place, depth: int) -> list[ChatMessage]:
    inside = decoded(value)
    if isinstance(inside, str) and (whole := _whole_messages(inside)) is not None:
        if found := _listed(whole, default, reader, place, depth):
            reader.left_out.add("list", "of messages is cut short and shown without the end", place)
            return found
        reader.left_out.add("list", "of messages is cut short in its first and shown as neither", place)
        return [ChatMessage("other", inside, "Program")]
    if isinstance(inside, str):
        return [ChatMessage(default, inside)] if inside.strip() else []
    found = []
    if depth > _DEEPEST:
        return found
    if isinstance(inside, list):
        found = _listed(inside, default, reader, place, depth)
    elif isinstance(inside, dict):
        found = _in_object(inside, default, reader, place, depth)
    if not found and isinstance(value, str) and default == "assistant" and value.strip() and depth == 0:
        return [ChatMessage(default, _outermost_text(value))]  # the model was asked for JSON, and this is it
    return found


_ROLE_IN_JSON = re.compile(r'"(?:role|type)"\s*:\s*"(?:user|human|assistant|ai|model|system|developer)"')
_OPENS_A_LIST = re.compile(r'\[|\{\s*"messages"\s*:\s*\[')
_BETWEEN_ENTRIES = re.compile(r"[\s,]*")


def _whole_messages(text: str) -> list[Any] | None:
    """Return the whole entries of a JSON list of messages that ends too early; None for any other text.

    Exporters of spans cut long attributes. What was cut is nothing that a user said.
    """
    written = text.strip()
    if written[:1] not in ("[", "{") or not _ROLE_IN_JSON.search(written) or not _ends_too_early(written):
        return None
    opening = _OPENS_A_LIST.match(written)
    decoder, whole, end = json.JSONDecoder(), list[Any](), opening.end() if opening else 0
    while opening:
        try:
            entry, end = decoder.raw_decode(written, _BETWEEN_ENTRIES.match(written, end).end())  # type: ignore[union-attr]
        except ValueError:
            break
        whole.append(entry)
    return whole


def _ends_too_early(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) or error.msg.startswith("Unterminated")
    except (ValueError, RecursionError):
        return False
    return False


def _outermost_text(value: str) -> str:
    """Return a text without the quotes around it, where it was encoded as JSON once more."""
    try:
        inside = orjson.loads(value) if value.lstrip().startswith('"') else value
    except orjson.JSONDecodeError:
        return value
    return inside if isinstance(inside, str) else value


def _listed(
    values: list[Any], default: TurnRole, reader: MessageReader, place: Place, depth: int
) -> list[ChatMessage]:
    found: list[ChatMessage] = []
    are_messages = any(is_message(each) for each in values)
    for index, each in enumerate(values):
        at = place.at(index)
        if isinstance(each, list) and len(each) == 2 and all(isinstance(one, str) for one in each):
            said, answer = each
            role = known_role(said)
            if role is not None:
                found.append(ChatMessage(role, answer, label_of(said) if role == "other" else None))
            else:
                found += [ChatMessage("user", said), ChatMessage("assistant", answer)]
        elif is_message(each):
            found += reader.message(each, at, default)
        elif (isinstance(each, dict | list) and not are_messages and not _is_known_part(each)) or (
            isinstance(each, str) and not are_messages
        ):
            found += _side(each, default, reader, at, depth + 1)
        elif isinstance(each, dict):
            pieces = list(reader._part(each, at)) if _type_of(each) else reader.parts(each, at)
            found += _assembled(pieces, default, None, default)
        elif each is not None:
            reader.left_out.add("entry", f"of a list of messages is {shown(each)} and is not shown", at)
    return found


def _is_known_part(value: object) -> bool:
    return isinstance(value, dict) and bool(_type_of(value)) and kind_of_part(_type_of(value)) is not None


def _in_object(
    value: dict[str, Any], default: TurnRole, reader: MessageReader, place: Place, depth: int
) -> list[ChatMessage]:
    if is_message(value):
        return reader.message(value, place, default)
    if _is_known_part(value):
        return list(_assembled(list(reader._part(value, place)), default, None, default))
    found = system_of(value, reader, place)
    complete = next((name for name in _COMPLETE if _holds_messages(value.get(name))), None)
    history = next((name for name in _HISTORIES if _holds_messages(value.get(name))), None)
    if complete is None and default == "user" and history is not None:
        found += _side(value[history], "user", reader, place.at(history), depth + 1)
    if complete is not None:
        found += _side(value[complete], default, reader, place.at(complete), depth + 1)
        said = [each for each in found if each.role != "other"]
        if default == "assistant" or (said and said[-1].role == "user"):
            return found
    newest = _newest(value, default, reader, place, depth, {complete, history})
    last = next((each for each in reversed(found) if each.role == "user"), None)
    if default == "user" and last is not None and found[-1] is last:
        newest = [each for each in newest if each.text.strip() != last.text.strip()]
    return found + newest


def _holds_messages(value: object) -> bool:
    value = decoded(value)
    return isinstance(value, list) or (isinstance(value, dict) and _holds_messages(value.get("messages")))


def _newest(
    value: dict[str, Any],
    default: TurnRole,
    reader: MessageReader,
    place: Place,
    depth: int,
    known: set[str | None],
) -> list[ChatMessage]:
    """Return what a call is given or returns beside the history: in a nested value, or as a text of its own."""
    if default == "assistant" and isinstance(value.get("choices", value.get("candidates")), list):
        name = "choices" if "choices" in value else "candidates"
        return _first_choice(value[name], default, reader, place.at(name), depth)
    if default == "assistant" and isinstance(value.get("generations"), list):
        return _generations(value["generations"], default, reader, place.at("generations"), depth)
    pattern = _NEWEST if default == "user" else _ANSWERS
    order = sorted(
        (name for name in value if name not in known),
        key=lambda name: (name in _SYSTEM_FIELDS, _rank(name, default)),
    )
    for name in order:
        inside = value[name]
        if name in _SYSTEM_FIELDS or name in _HISTORIES or inside in (None, "", [], {}):
            continue
        if (isinstance(inside, dict | list) and (name in _NESTED or pattern.fullmatch(_snake(name)))) or (
            isinstance(inside, str) and (name in _SPOKEN or pattern.fullmatch(_snake(name)))
        ):
            found = _side(inside, default, reader, place.at(name), depth + 1)
        else:
            continue
        if found:
            return found
    return []


_FIRST_NAMES = {
    "user": ("input", "question", "query", "prompt", "message"),
    "assistant": ("output", "answer", "response"),
}


def _rank(name: str, default: TurnRole) -> int:
    names = _FIRST_NAMES.get(default, ())
    return names.index(name) if name in names else len(names)


def _snake(name: str) -> str:
    return _CAMEL.sub("_", name).casefold()


def _first_choice(
    choices: list[Any], default: TurnRole, reader: MessageReader, place: Place, depth: int
) -> list[ChatMessage]:
    reader.left_out.add(
        "answer", "beside the first one of a call is not shown", place.at(1), max(0, len(choices) - 1)
    )
    return _side(choices[0], default, reader, place.at(0), depth + 1) if choices else []


def _generations(
    listed: list[Any], default: TurnRole, reader: MessageReader, place: Place, depth: int
) -> list[ChatMessage]:
    """Return the first of the generations of LangChain: a list, or one for each prompt."""
    if listed and isinstance(listed[0], list):
        reader.left_out.add("answer", "beside the first one of a call is not shown", place.at(1), len(listed) - 1)
        return _generations(listed[0], default, reader, place.at(0), depth)
    if not listed:
        return []
    reader.left_out.add("answer", "beside the first one of a call is not shown", place.at(1), len(listed) - 1)
    first = listed[0]
    message = first.get("message") if isinstance(first, dict) else None
    if is_message(message):
        return reader.message(message, place.at(0, "message"), default)
    return _side(first, default, reader, place.at(0), depth + 1)


def messages_beside(
    container: Mapping[str, Any], name: str, reader: MessageReader, place: Place
) -> list[ChatMessage]:
    """Return the messages of a field, after the system prompt that stands beside it.

    Raises:
        DatasetError: the field holds no list.
    """
    return system_of(container, reader, place) + reader.messages(container.get(name), place.at(name))


def error_of(left_out: LeftOut) -> DatasetError | None:
    """Return the first thing that was left out as an error, for a file of which nothing is left."""
    problem = left_out.first_problem
    return problem[0].error(problem[1], "a message of a user or an assistant") if problem else None
