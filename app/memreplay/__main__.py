"""Entry point of ``memreplay`` and ``python -m memreplay``."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper

from memreplay.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_USAGE, MemreplayError

_SYSTEM_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENAMETOOLONG)
"""Errors that any command may hit and a user can fix."""


def main() -> None:
    """Run the command line. An error that a user can fix is one sentence on standard error, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Escape characters that the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    code: int | str | None = EXIT_DONE
    try:
        code = _run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the pipe has exited.
        _discard_standard_output()
    except OSError as error:
        if error.errno not in _SYSTEM_ERRORS:
            raise
        print(f"memreplay: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        if error.filename is None:
            _discard_standard_output()
        code = EXIT_USAGE
    sys.exit(code)


def _run() -> int | str | None:
    """Run the command; returns its exit code."""
    from memreplay.cli.program import cli

    try:
        cli()
    except SystemExit as end:
        # Typer turns a closed pipe into a failure; it replaces standard output when it does.
        return EXIT_DONE if type(sys.stdout).__name__.endswith("PacifyFlushWrapper") else end.code
    except MemreplayError as error:
        from memreplay.conversations.validation_errors import printable
        from memreplay.llm.secrets import redact_secrets

        print(f"memreplay: {printable(redact_secrets(str(error)))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return EXIT_DONE


def _discard_standard_output() -> None:
    """Send unwritten output to /dev/null, or the interpreter would try to flush it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
