"""The plainest fold of a trace, as the contract has it."""

from memory_backends.contract.trial import fold

__all__ = ["fold"]
