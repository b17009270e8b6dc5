"""The start screen: open a recording, or pick a conversation, memories and a model for a live replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Button, Input, OptionList
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from memory_backends.registry import about_backend, missing_package
from memreplay.errors import MemreplayError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.settings import budget_words
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.launch import Launch, ListedDataset
from memreplay.tui.requests import ComparisonWanted, ResultsWanted
from memreplay.tui.screens import KeyBar
from memreplay.tui.screens.dialogs import PickList
from memreplay.tui.tour import was_offered
from memreplay.tui.widgets.lines_view import Bar
from memreplay.views.text import Span, cells, one_line, pad


class MemoryList(OptionList):
    """A list of memories with checkboxes."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "select", "Toggle", show=False)]

    def __init__(self, names: Sequence[str], ticked: Iterable[str], *, id: str) -> None:
        self._names = tuple(names)
        self._width = max((cells(one_line(name)) for name in names), default=0)
        self._ticked = {name for name in ticked if name in self._names}
        super().__init__(*(Option(self._prompt(name)) for name in self._names), id=id, compact=True)

    @property
    def ticked(self) -> tuple[str, ...]:
        return tuple(name for name in self._names if name in self._ticked)

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        self._ticked ^= {self._names[message.option_index]}
        name = self._names[message.option_index]
        self.replace_option_prompt_at_index(message.option_index, self._prompt(name))

    def _prompt(self, name: str) -> Content:
        """Return the name, what the memory is, and before it the command that installs it if it is missing."""
        ticked = Content(f"[{'x' if name in self._ticked else ' '}] {pad(one_line(name), self._width)}  ")
        missing = missing_package(name)
        if missing is not None:
            return Content.assemble(ticked, (missing, "$text-warning"), "  ", (about_backend(name), "dim"))
        return Content.assemble(ticked, (about_backend(name), "dim"))


_WHAT_IT_IS = (
    "A debugger for the memory of LLM agents: replay a conversation, see what each memory stores and finds."
)

_AFTER_MARKING = (
    "",
    "Marked as the first. Mark another one with space; then d compares them.",
    "Two are marked: d compares them.",
)
"""Status lines with no, one or two recordings marked."""

_KINDS = ("identity", "technical", "multi", "", "edge")
_WIDEST_ID = 12
"""Descriptions align after ids up to this length: a few tests have longer ones."""
_RECORDING_SUFFIX = ".sqlite3"
_KEYS_OF_RECORDINGS = "enter plays, space marks"
_TITLES = (
    ("recordings", "play a recording", _KEYS_OF_RECORDINGS),
    ("datasets", "replay a conversation live", "enter starts"),
    ("backends", "memories", "space ticks"),
)


class StartScreen(Screen[None]):
    """Asks what to replay. It lists files after its first paint; the app opens them.

    It is composed when it comes into sight: what the command line asks for opens over it.
    """

    PLACE: ClassVar[Place] = "start"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-tall")]

    class ReplayWanted(Message):
        """Start a live replay of a dataset, by its id or path."""

        def __init__(self, dataset: str, backends: tuple[str, ...], model: str) -> None:
            super().__init__()
            self.dataset = dataset
            self.backends = backends
            self.model = model

    class RecordingWanted(Message):
        """Open a recording."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    def __init__(self, launch: Launch) -> None:
        super().__init__()
        self._launch = launch
        self._datasets: Sequence[ListedDataset] = ()
        self._recordings: Sequence[Path] = ()
        self._seen: dict[Path, Content] = {}
        self._marked: list[Path] = []
        self._status: Span | None = None

    @property
    def _in_sight(self) -> bool:
        """Return whether nothing but dialogs is open over it."""
        stack = self.app.screen_stack
        return self in stack and all(above.is_modal for above in stack[stack.index(self) + 1 :])

    def compose(self) -> ComposeResult:
        if not self._in_sight:
            return
        launch = self._launch
        yield Bar(id="header")
        with Horizontal(id="choices"):
            with Vertical(id="recorded"):
                yield PickList(id="recordings", compact=True)
            with Vertical(id="live"):
                yield Input(placeholder="filter, or the path of your own log", id="filter", compact=True)
                yield PickList(id="datasets", compact=True)
                yield MemoryList(launch.all_backends, launch.backends, id="backends")
                yield Input(launch.model, placeholder="a LiteLLM model name", id="model", compact=True)
                yield Button("Start the replay", id="start", variant="primary", compact=True, flat=True)
        yield Bar(id="status")
        yield KeyBar()

    def on_mount(self) -> None:
        self._begin()

    async def on_screen_resume(self) -> None:
        """List the recordings again, since a session may have been saved; compose what was never in sight."""
        if not self._shows_lists and self._in_sight:
            await self.recompose()
            self._begin()
        elif self._datasets:
            self.read_lists()

    def _begin(self) -> None:
        """Name what was composed, if anything was, and read the lists after the first paint."""
        if not self._shows_lists:
            return
        self.query_one("#header", Bar).say(Span(" memreplay ", "recorded"), Span(f"  {_WHAT_IT_IS}", "dim"))
        for name, title, note in _TITLES:
            widget = self.query_one(f"#{name}")
            widget.border_title = Content(title)
            widget.border_subtitle = Content(note)
        self._label_model(self._launch.model)
        self.query_one("#recordings").focus()
        self._show_status()
        self.call_after_refresh(self.read_lists)

    def say(self, sentence: str, *, trouble: bool = False) -> None:
        """Show a status or an error, as soon as the screen is in sight."""
        self._status = Span(f" {one_line(sentence)}", "bad" if trouble else "dim") if sentence else None
        self._show_status()

    def _show_status(self) -> None:
        for status in self.query("#status").results(Bar):
            status.say(*filter(None, [self._status]))

    @work(thread=True, group="lists", exclusive=True)
    def read_lists(self) -> None:
        """List the files, then say of each recording what is in it, which takes longer."""
        try:
            recordings, datasets = tuple(self._launch.recordings()), tuple(self._launch.datasets())
        except MemreplayError as error:
            self.app.call_from_thread(self.say, str(error), trouble=True)
            return
        self.app.call_from_thread(self._fill, recordings, datasets)
        from memreplay.tui.sources import described

        worker = get_current_worker()
        for number, path in enumerate(recordings, start=1):
            if worker.is_cancelled:
                return
            self.app.call_from_thread(self._describe, path, described(path), number)

    @property
    def _shows_lists(self) -> bool:
        """Return whether the lists are there: a thread may be done when the app is about to end."""
        return self.is_attached and bool(self.query("#recordings"))

    def _fill(self, recordings: Sequence[Path], datasets: Sequence[ListedDataset]) -> None:
        if not self._shows_lists:
            return
        first_time = not self._datasets
        listed = self.query_one("#recordings", OptionList)
        chosen = None if listed.highlighted is None else self._recordings[listed.highlighted]
        self._recordings, self._datasets = recordings, sorted(datasets, key=_by_kind)
        listed.clear_options()
        self._marked = [path for path in self._marked if path in recordings]
        listed.add_options(Option(self._prompt(path)) for path in recordings)
        if recordings:
            listed.highlighted = recordings.index(chosen) if chosen in recordings else 0
        elif first_time:
            self.query_one("#datasets").focus()
        if first_time:
            self._list_datasets("")
            if self._status is not None:
                return
            if not recordings:
                self.say("There is no recording yet: start a live replay.")
            elif self._launch.demo is not None and not was_offered():
                self.say("New here? T starts a tour of ten keys on the demo; ? offers it again.")

    def _describe(self, path: Path, content: Content, number: int) -> None:
        if not self._shows_lists or path not in self._recordings:
            return
        listed = self.query_one("#recordings", OptionList)
        self._seen[path] = content
        self._draw(path)
        total = len(self._recordings)
        listed.border_subtitle = Content(f"reading {number} of {total}" if number < total else _KEYS_OF_RECORDINGS)

    def _draw(self, path: Path) -> None:
        listed = self.query_one("#recordings", OptionList)
        listed.replace_option_prompt_at_index(self._recordings.index(path), self._prompt(path))

    def _prompt(self, path: Path) -> Content:
        """Return an entry; a marked one begins with its place in the comparison."""
        content = self._seen.get(path, _unread(path))
        if path not in self._marked:
            return content
        return Content.assemble((f" {self._marked.index(path) + 1} ", "bold reverse"), " ", content)

    def _list_datasets(self, wanted: str) -> None:
        listed = self.query_one("#datasets", OptionList)
        words = wanted.casefold().split()
        matching = [
            entry
            for entry in self._datasets
            if all(word in f"{entry.id} {entry.description}".casefold() for word in words)
        ]
        listed.clear_options()
        width = max((len(entry.id) for entry in matching if len(entry.id) <= _WIDEST_ID), default=0)
        listed.add_options(Option(_entry(entry, width), id=f"d{self._datasets.index(entry)}") for entry in matching)
        if matching:
            listed.highlighted = 0

    # ---- what the user does --------------------------------------------------------------------------------

    @on(Input.Changed, "#filter")
    def _filtered(self, message: Input.Changed) -> None:
        self._list_datasets(message.value)
        typed = message.value.strip()
        nothing = typed and self._highlighted() == ""
        self.say(
            f"No conversation here has these words: enter opens the file or folder {typed}." if nothing else ""
        )

    @on(Input.Submitted, "#filter")
    def _filter_entered(self, message: Input.Submitted) -> None:
        """Open a path that was typed. Else go to the list: enter there starts what is highlighted."""
        typed = message.value.strip()
        if typed.endswith(_RECORDING_SUFFIX) or (typed and self._highlighted() == "") or Path(typed).is_file():
            self._start(typed)
        else:
            self.query_one("#datasets").focus()

    @on(Input.Changed, "#model")
    def _model_changed(self, message: Input.Changed) -> None:
        self._label_model(message.value.strip())

    @on(Input.Submitted, "#model")
    @on(Button.Pressed, "#start")
    def _start_pressed(self) -> None:
        self.action_start()

    @on(OptionList.OptionSelected, "#datasets")
    def _dataset_selected(self) -> None:
        self.action_start()

    @on(OptionList.OptionSelected, "#recordings")
    def _recording_selected(self, message: OptionList.OptionSelected) -> None:
        self._play(self._recordings[message.option_index])

    def action_start(self) -> None:
        self._start(self._highlighted() or self.query_one("#filter", Input).value.strip())

    def action_filter(self) -> None:
        self.query_one("#filter").focus()

    def action_to_list(self) -> None:
        """Move the focus from the filter to the list below it."""
        if self.query_one("#filter").has_focus:
            self.query_one("#datasets").focus()

    def action_leave(self) -> None:
        """Leave the filter and show everything again; from elsewhere, go to the recordings."""
        typed = self.query_one("#filter", Input)
        if typed.has_focus or typed.value:
            typed.value = ""
            self.query_one("#datasets").focus()
        else:
            self.query_one("#recordings" if self._recordings else "#datasets").focus()

    def action_run(self) -> None:
        chosen = self._highlighted_recording()
        if chosen is None:
            self.say("There is no recording yet: start a live replay.")
        else:
            self.post_message(ResultsWanted(chosen))

    def action_mark(self) -> None:
        """Mark the highlighted recording as the first or the second of a comparison, or take its mark away."""
        chosen = self._highlighted_recording()
        if chosen is None or not self.query_one("#recordings").has_focus:
            self.say("Go to the list of recordings first: there space marks one to compare.")
            return
        if chosen in self._marked:
            before = tuple(self._marked)
            self._marked.remove(chosen)
        elif len(self._marked) < 2:
            self._marked.append(chosen)
            before = tuple(self._marked)
        else:
            self.say("Two recordings are marked: d compares them, space on one of them takes its mark away.")
            return
        for path in before:
            self._draw(path)
        self.say(_AFTER_MARKING[len(self._marked)])

    def action_compare(self) -> None:
        """Compare the marked recordings; the highlighted one is the second if only one is marked."""
        chosen = self._highlighted_recording()
        pair = list(self._marked)
        if len(pair) == 1 and chosen is not None and chosen not in pair:
            pair.append(chosen)
        if len(pair) < 2:
            self.say("Mark two recordings with space; then d compares them.")
        else:
            self.post_message(ComparisonWanted(*pair))

    def _highlighted_recording(self) -> Path | None:
        place = self.query_one("#recordings", OptionList).highlighted
        return None if place is None else self._recordings[place]

    def action_help(self) -> None:
        from memreplay.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen())

    def _play(self, recording: Path) -> None:
        self.say(f"reading {recording} …")
        self.post_message(self.RecordingWanted(recording))

    def _start(self, dataset: str) -> None:
        if dataset.endswith(_RECORDING_SUFFIX):
            self._play(Path(dataset))
            return
        backends = self.query_one("#backends", MemoryList).ticked
        model = self.query_one("#model", Input).value.strip()
        if not dataset:
            self.say("Choose a conversation, or type a file path.", trouble=True)
        elif not backends:
            self.say("Choose at least one memory.", trouble=True)
        elif not model:
            self.say("Name a model; memreplay/extractive needs no key.", trouble=True)
        else:
            self.say(f"opening {dataset} …")
            self.post_message(self.ReplayWanted(dataset, backends, model))

    def _highlighted(self) -> str:
        listed = self.query_one("#datasets", OptionList)
        if listed.highlighted is None:
            return ""
        option = listed.get_option_at_index(listed.highlighted)
        assert option.id is not None
        return self._datasets[int(option.id[1:])].id

    def _label_model(self, model: str) -> None:
        label = "model"
        if model == EXTRACTIVE_MODEL:
            label += " · embedded reader, no model"
        settings, tokens = self._launch.settings, self._launch.settings.context_tokens
        self.query_one("#model").border_title = Content(label)
        self.query_one("#model").border_subtitle = Content(
            f"top {settings.top_k} · context {budget_words(tokens, [model])}"
        )


def _by_kind(entry: ListedDataset) -> int:
    """Conversations with a story first, those that only test edge cases last."""
    kind = entry.id.split("-")[0]
    return _KINDS.index(kind) if kind in _KINDS else _KINDS.index("")


def _entry(entry: ListedDataset, width: int) -> Content:
    return Content.assemble((one_line(entry.id).ljust(width), "bold"), "  ", (one_line(entry.description), "dim"))


def _unread(path: Path) -> Content:
    """Return a recording of which nothing is known yet; as high as one of which it is."""
    return Content.assemble((one_line(path.stem), "bold"), ("\n  …\n\n", "dim"))
