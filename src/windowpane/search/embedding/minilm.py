"""The local embedder: all-MiniLM-L6-v2 in ONNX Runtime, without network, key or torch."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Lock

import anyio
import anyio.to_thread
import numpy as np

from windowpane.errors import WeightsDamagedError
from windowpane.search.embedding.base import Vectors
from windowpane.search.embedding.weights import MODEL, Weights, find_weights, model_name, read_vocabulary
from windowpane.search.languages import ENGLISH

MOST_TOKENS = 256
"""What the model was trained on: the rest of a longer text is not read."""

MOST_CHARACTERS = 20_000
"""Far more than so many tokens of any language. The tokenizer would take all of a text apart, and no other task could
run meanwhile."""

AT_ONCE = 8
"""How many searches are embedded for at once; the others wait for one of them."""

Encode = Callable[[str], Vectors]


class MiniLM:
    """One shared model for all searches of a process, loaded at the first one.

    Texts are embedded one at a time (see `graph.py` for why that is fastest) in a worker thread. Several threads
    may use the model at once, so a query never waits for indexing.
    """

    def __init__(self, cache_dir: Path, directory: Path | None = None, threads: int = 1) -> None:
        self._cache_dir = cache_dir
        self._directory = directory
        self._threads = threads
        # Threads of its own: to hand work to one of anyio's takes the event loop half as long again, and a turn does so
        # several times. None is started before it is needed, so that a process may load the model and fork.
        self._workers = ThreadPoolExecutor(AT_ONCE, "windowpane-embedding")
        self._lock = Lock()
        self._encode: Encode | None = None
        self._vocabulary: Mapping[str, int] | None = None

    @property
    def model(self) -> str:
        """Return the name that vectors are cached under."""
        return model_name(self._directory)

    @property
    def language(self) -> str | None:
        """Return English for the published weights; what others understand is not known."""
        return ENGLISH if self._directory is None or MODEL in self._directory.name else None

    @property
    def loaded(self) -> bool:
        """Tell whether the model is in memory."""
        return self._encode is not None

    def load(self) -> None:
        """Load the model in the calling thread, unless it is loaded.

        Raises:
            WeightsMissingError: there are no weights.
            WeightsDamagedError: the weights cannot be used.
        """
        self._loaded()

    async def vocabulary(self) -> Mapping[str, int]:
        """Return the words that the tokenizer does not take apart; none without a tokenizer."""
        if self._vocabulary is None:
            self._vocabulary = await anyio.to_thread.run_sync(read_vocabulary, self._directory)
        return self._vocabulary

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text; the first call loads the model.

        Raises:
            WeightsMissingError: there are no weights.
            WeightsDamagedError: the weights cannot be used.
        """
        # Abandoned on cancellation: the caller that ran out of time goes on, and the model is there for the next one.
        return await asyncio.get_running_loop().run_in_executor(self._workers, self.embed_now, texts)

    def embed_now(self, texts: Sequence[str]) -> Vectors:
        """Do what `embed` does, in the calling thread."""
        encode = self._loaded()
        return np.concatenate([encode(text) for text in texts]) if texts else np.zeros((0, 0), np.float32)

    def _loaded(self) -> Encode:
        with self._lock:
            if self._encode is None:
                weights = find_weights(self._directory, self._cache_dir)
                self._encode = _encoder(weights, self._threads)
            return self._encode


def _encoder(weights: Weights, threads: int) -> Encode:
    """Load a graph and its tokenizer."""
    # Official builds of the runtime report to their maker unless this is set before they are imported.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    # Imported here: a process that never searches never pays for them. By name: neither has complete types.
    onnxruntime, tokenizers = import_module("onnxruntime"), import_module("tokenizers")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    # A spinning thread is quick to wake up and takes a whole core from all others.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(weights.tokenizer))
        session = onnxruntime.InferenceSession(str(weights.graph), options, providers=["CPUExecutionProvider"])
    # Both libraries raise bare Exception subclasses of their own for whatever is wrong with a file.
    except Exception as error:
        raise WeightsDamagedError(str(weights.graph.parent), str(error).splitlines()[0]) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(MOST_TOKENS)
    names = [node.name for node in session.get_inputs()]

    def encode(text: str) -> Vectors:
        # Half a character, which JSON can smuggle in, is read as a question mark.
        whole = text[:MOST_CHARACTERS].encode(errors="replace").decode()
        ids = np.array([tokenizer.encode(whole).ids], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        output = np.asarray(session.run(None, {name: feed[name] for name in names})[0], np.float32)
        # A graph of the usual export gives a vector for each token; the mean of them is the text's.
        vector = output.mean(axis=1) if output.ndim == 3 else output
        return vector / np.linalg.norm(vector, axis=1, keepdims=True)

    try:
        encode("ready")
    except (KeyError, RuntimeError) as error:
        raise WeightsDamagedError(str(weights.graph.parent), f"the graph does not run: {error}") from error
    return encode
