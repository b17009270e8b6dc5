"""The plainest fold of a trace, as the contract has it."""

from memory_backends.contract.fold import fold

__all__ = ["fold"]
