"""The Python API behind ``import memreplay``."""
