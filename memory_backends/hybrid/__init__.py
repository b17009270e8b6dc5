"""The hybrid architecture (DD-01)."""
