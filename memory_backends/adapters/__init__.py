"""Adapters for memories that people use. Each imports its library when a memory is created, never before."""
