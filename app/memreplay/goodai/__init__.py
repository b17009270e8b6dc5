"""Tests in which the agent converses: GoodAI's dataset interfaces, and the runs that play them.

Dataset authors import from :mod:`memreplay.goodai.interface`, and from :mod:`memreplay.goodai.gpt_generated` for
datasets whose examples are written by a model. Conversations that are replayed need nothing of this package: a run
takes tests through the port :class:`memreplay.batch.recorded_run.Tests`, and the screen plays them as a
:class:`memreplay.engine.session.PlayableSession`.
"""
