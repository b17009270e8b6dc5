"""``memreplay``, and ``python -m app``."""

from __future__ import annotations

import sys

from app.errors import EXIT_INTERRUPTED, MemreplayError


def main() -> None:
    """Run the command line; what a user can mend is one sentence on standard error, never a traceback."""
    from app.cli.program import cli

    try:
        cli()
    except MemreplayError as error:
        print(f"memreplay: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
