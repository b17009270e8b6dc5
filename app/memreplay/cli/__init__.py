"""What the command line declares: one module a command or a group of them, put together in ``program``."""
