"""Entry point of ``memreplay`` and ``python -m memreplay``.

``python -m`` searches the current folder first, which may hold a module of any name. This module ends that; what
Python imports before it may come from there. The installed ``memreplay`` and ``python -P -m memreplay`` never
search it.
"""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]

_INTERRUPTED = 130


def main() -> None:
    """Run the command line. An error that a user can fix is one sentence on standard error, never a traceback."""
    code: int | str | None
    try:
        # Everything is imported here, where a Ctrl-C is caught.
        code = _run()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    sys.exit(code)


def _run() -> int | str | None:
    """Run the command; returns its exit code."""
    import signal

    from memreplay.errors import EXIT_STOPPED
    from memreplay.terminal import StandardStream, protect_standard_streams

    protect_standard_streams()
    code = _command()
    out: object = sys.stdout
    sys.stdout.flush()
    sys.stderr.flush()
    if isinstance(out, StandardStream):
        if out.failure is not None:
            _print(f"standard output: {out.failure.strerror}")
            code = code or EXIT_STOPPED
        # Nothing is left to interrupt: a Ctrl-C must not print a traceback while Python ends its threads.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


def _command() -> int | str | None:
    from memreplay.cli.program import cli
    from memreplay.errors import EXIT_DONE, EXIT_STOPPED, MemreplayError, exit_code_of

    try:
        cli()
    except SystemExit as end:
        return end.code
    except MemoryError:
        _print("out of memory; what was answered is in the recording: give it more, then continue with --resume")
        return EXIT_STOPPED
    except (MemreplayError, OSError) as error:
        code = exit_code_of(error)
        if code is None:
            raise
        _print(f"{error.filename or 'a file'}: {error.strerror}" if isinstance(error, OSError) else str(error))
        return code
    return EXIT_DONE


def _print(sentence: str) -> None:
    from memreplay.llm.secrets import redact_secrets
    from memreplay.terminal import say

    say(f"memreplay: {redact_secrets(sentence)}".replace("\n", "\\n"))


if __name__ == "__main__":
    main()
