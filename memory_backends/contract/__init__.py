"""What every memory promises, as rules that can be run: by our tests, and by ``memreplay check-backend``."""

from memory_backends.contract.check import Finding, check_memory
from memory_backends.contract.promises import PROMISES
from memory_backends.contract.rule import BrokenRuleError, Rule, Subject

__all__ = ["PROMISES", "BrokenRuleError", "Finding", "Rule", "Subject", "check_memory"]
