"""``memreplay``, and ``python -m memreplay``."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper

from memreplay.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_USAGE, MemreplayError

_OF_THE_SYSTEM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENAMETOOLONG)
"""What no command can foresee everywhere, and a user can mend."""


def main() -> None:
    """Run the command line; what a user can mend is one sentence on standard error, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # What the terminal's encoding lacks is shown escaped.
            stream.reconfigure(errors="backslashreplace")
    code: int | str | None = EXIT_DONE
    try:
        code = _run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has read enough.
        _let_go_of_standard_output()
    except OSError as error:
        if error.errno not in _OF_THE_SYSTEM:
            raise
        print(f"memreplay: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        if error.filename is None:
            _let_go_of_standard_output()
        code = EXIT_USAGE
    sys.exit(code)


def _run() -> int | str | None:
    """The exit code of what was asked for."""
    from memreplay.cli.program import cli

    try:
        cli()
    except SystemExit as end:
        # Typer makes a failure of a reader that has read enough, and can be known by what it puts in the way.
        return EXIT_DONE if type(sys.stdout).__name__.endswith("PacifyFlushWrapper") else end.code
    except MemreplayError as error:
        from memreplay.conversations.validation_errors import printable
        from memreplay.llm.secrets import redact_secrets

        print(f"memreplay: {printable(redact_secrets(str(error)))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return EXIT_DONE


def _let_go_of_standard_output() -> None:
    """Let what is left unwritten go nowhere, or the interpreter would try it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
