"""The command line: one module per command; ``program`` puts them together."""
