"""Builds a run from its settings: models, memories with their stores and embedders, recording."""
