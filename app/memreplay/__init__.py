"""memreplay: replays conversations beside what each memory architecture holds and retrieves."""

__version__ = "0.1.0"
