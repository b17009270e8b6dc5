"""Asking a model: prompts, the LiteLLM port, the embedded reader, reading replies, paying for each only once."""
