"""The promises of every memory as executable rules, for our tests and for ``memreplay check-backend``."""

from memory_backends.contract.promises import PROMISES, Finding, check_memory
from memory_backends.contract.trial import BrokenRuleError, Rule, Subject

__all__ = ["PROMISES", "BrokenRuleError", "Finding", "Rule", "Subject", "check_memory"]
