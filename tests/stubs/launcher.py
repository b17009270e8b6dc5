"""Runs the command line in processes of their own that can be killed, importing what is slow to import only once.

A helper process imports everything and then forks a child for each run requested of it, one JSON object a line.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any

_SLOW_TO_IMPORT = (
    "memreplay.cli.program", "memreplay.cli.batch", "memory_backends.hybrid.backend",
    "fakeredis", "qdrant_client", "onnxruntime",
    "bm25s",
)  # fmt: skip

TIMEOUT_S = 120.0
"""Seconds to wait for a run to reach an expected state."""

LONGEST_RUN_S = 600.0
"""Seconds after which a run that does not end is killed."""


@dataclass
class Run:
    """A child at work. ``log`` holds what it prints, standard output and standard error together."""

    pid: int
    log: Path
    helper: subprocess.Popen[str]
    code: int | None = None

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until something is true, or fail with what the run has said."""
        given_up = monotonic() + TIMEOUT_S
        while not condition():
            assert monotonic() < given_up, self.said
            sleep(0.005)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it is over."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return

    def wait(self) -> int:
        """Its exit code; minus the signal where one ended it."""
        if self.code is None:
            assert self.helper.stdout is not None
            ended, _, _ = select.select([self.helper.stdout], [], [], LONGEST_RUN_S)
            if not ended:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"still running after {LONGEST_RUN_S:g} s: {self.said}")
            self.code = int(json.loads(self.helper.stdout.readline())["code"])
        return self.code

    @property
    def is_over(self) -> bool:
        """Whether it has ended by itself or by a signal."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    @property
    def said(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""


class Launcher:
    """Starts one child at a time, for as long as its ``with`` block lasts; one that is still at work is ended."""

    _last: Run | None = None

    def __enter__(self) -> Launcher:
        command = [sys.executable, "-m", "tests.stubs.launcher"]
        root = Path(__file__).resolve().parents[2]
        self._helper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_last()
        self._helper.communicate()

    def _end_last(self) -> None:
        if self._last is not None and self._last.code is None:
            self._last.signal(signal.SIGKILL)
            self._last.wait()

    def start(
        self,
        log: Path,
        *arguments: object,
        largest_file: int | None = None,
        modules: Path | None = None,
        streams: Mapping[int, Path | None] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Run:
        """Run ``memreplay`` with these arguments, in the environment as it now is.

        ``largest_file`` in bytes; to ``modules`` are written, one a line, those that it has loaded by its end.
        ``streams`` sends a standard stream (0, 1, 2) to a file, a pipe or a device, not to the log; None closes it.
        """
        self._end_last()
        order = {
            "arguments": list(map(str, arguments)),
            "environment": {**os.environ, **(environment or {})},
            "log": str(log),
            "largest_file": largest_file,
            "modules": None if modules is None else str(modules),
            "streams": [(number, path and str(path)) for number, path in (streams or {}).items()],
        }
        assert self._helper.stdin is not None and self._helper.stdout is not None
        self._helper.stdin.write(json.dumps(order) + "\n")
        self._helper.stdin.flush()
        self._last = Run(json.loads(self._helper.stdout.readline())["pid"], log, self._helper)
        return self._last

    def run(self, log: Path, *arguments: object, **more: Any) -> int:
        """The exit code of a run that is left alone; ``more`` is for :meth:`start`."""
        return self.start(log, *arguments, **more).wait()


def _child(order: dict[str, Any]) -> None:
    """Become the command line; never return."""
    code = 1
    try:
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, path in order["streams"]:
            stream = None
            os.close(number)
            if path is not None:
                opened = os.open(path, os.O_WRONLY | os.O_CREAT)
                if opened != number:
                    os.dup2(opened, number)
                # As Python opens it at its start: a stream knows what kind of file it writes to.
                stream = os.fdopen(number, "w", buffering=1, encoding="utf-8", closefd=False)
            name = ("stdin", "stdout", "stderr")[number]
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        os.environ.clear()
        os.environ.update(order["environment"])
        if order["largest_file"]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (order["largest_file"], order["largest_file"]))
        sys.argv = ["memreplay", *order["arguments"]]
        from memreplay.__main__ import main

        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        except KeyboardInterrupt:
            # It came before any line of memreplay ran.
            os._exit(130)
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        if order["modules"]:
            Path(order["modules"]).write_text("\n".join(sys.modules), encoding="utf-8")
        os._exit(code)


def _serve() -> None:
    for name in _SLOW_TO_IMPORT:
        import_module(name)
    from memory_backends.hybrid.candidates import candidates_of
    from memreplay.conversations.models import exchanges_of
    from memreplay.conversations.registry import load
    from memreplay.llm.litellm_setup import loaded_litellm
    from memreplay.llm.tokens import context_window, token_counter

    loaded_litellm()
    token_counter("openai/stub")("warm")
    context_window("openai/stub")
    # The patterns of hybrid's rules, which take over a second to compile, are compiled when a text may match them.
    for exchange in exchanges_of(next(load(["identity-01"]))):
        candidates_of(exchange)
    for line in sys.stdin:
        order = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        pid = os.fork()
        if pid == 0:
            _child(order)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        print(json.dumps({"pid": pid}), flush=True)
        _, status = os.waitpid(pid, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    _serve()
