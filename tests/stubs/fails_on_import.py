"""A module that cannot be imported."""

raise RuntimeError("half configured")
