"""What ``import memreplay`` offers, and what ``memreplay --batch`` is built on."""
