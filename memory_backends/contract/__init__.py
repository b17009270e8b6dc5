"""What every memory promises, as rules that can be run: by our tests, and by ``memreplay check-backend``."""

from memory_backends.contract.promises import PROMISES, Finding, check_memory
from memory_backends.contract.trial import BrokenRuleError, Rule, Subject

__all__ = ["PROMISES", "BrokenRuleError", "Finding", "Rule", "Subject", "check_memory"]
