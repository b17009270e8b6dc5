"""Pages for a browser, each one self-contained file: the report of a run, and the replay of a conversation."""
