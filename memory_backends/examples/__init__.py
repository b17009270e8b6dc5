"""Memories to start your own from."""
