"""Tests in which the agent really converses: GoodAI's dataset interfaces, and the scheduler that runs them.

Dataset authors import from :mod:`memreplay.dataset_interfaces.interface`, and from
:mod:`memreplay.dataset_interfaces.gpt_generated` for datasets whose examples a model writes. Nothing here imports a
provider, a screen or a store.
"""
