"""Tests in which the agent really converses: GoodAI's dataset interfaces, and the scheduler that runs them.

Whoever writes a dataset imports from :mod:`app.dataset_interfaces.interface`, and for datasets whose examples a
model writes from :mod:`app.dataset_interfaces.gpt_generated`. Nothing here knows a provider, a screen or a store.
"""
