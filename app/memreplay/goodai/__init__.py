"""Tests in which the agent converses: GoodAI's dataset interfaces, and the scheduler that runs them.

Dataset authors import from :mod:`memreplay.goodai.interface`, and from
:mod:`memreplay.goodai.gpt_generated` for datasets whose examples are written by a model. Nothing here
imports a provider or a screen.
"""
