"""What a memory fails with."""

from __future__ import annotations


class BackendError(Exception):
    """A memory could not do what it was asked: one sentence, without secrets."""


class StoreUnavailableError(BackendError):
    """A Redis or Qdrant server does not answer, or refuses."""


class StoreAddressError(BackendError):
    """An address that no Redis or Qdrant server can have. It is not repeated: it may hold a password."""
