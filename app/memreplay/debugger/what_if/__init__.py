"""What if: prompts under one change at a time, made from recorded traces without asking anything."""
