"""Measure what selection costs, beside the original's stack, in one run.

    python bench/selection_speed.py

The original's stack is measured when it is there: run `npm install --ignore-scripts` in `bench/xenova` and name in
`WINDOWPANE_BENCH_XENOVA` a folder that holds `model/` with `tokenizer.json`, `tokenizer_config.json`, `config.json` and
`onnx/model_quantized.onnx` as published for it. Times are CPU times of one thread: ratios hold on a busy machine too.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import numpy as np
from numpy.typing import NDArray

from windowpane.context.items import Reference, reference_ref
from windowpane.search.base import SearchQuery
from windowpane.search.corpus import Corpus
from windowpane.search.documents import Document
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import VectorCache, stored
from windowpane.search.index import ItemIndex
from windowpane.search.select import select
from windowpane.search.settings import SelectSettings

HERE = Path(__file__).parent
CHUNKS = 151
QUERIES = (
    "How do I reset my password?",
    "move the report into the archive folder and tell Ann about it",
    "what about resizing?",
    "Find a restaurant in Rome for tonight",
    "Which rule says how commits are written?",
) * 8


def sample() -> dict[str, list[str]]:
    """Return 151 passages of 500 characters from this repository, and some queries."""
    files = sorted((HERE.parent / "src").rglob("*.py"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return {"chunks": [text[i * 500 : (i + 1) * 500] for i in range(CHUNKS)], "queries": list(QUERIES)}


def embed_here(cache: str, file: str) -> None:
    """Embed the sample in this process and print CPU times as JSON."""
    texts = json.loads(Path(file).read_text(encoding="utf-8"))
    model = MiniLM(Path(cache))
    start = time.process_time()
    model.embed_now(["warm"])
    load_s = time.process_time() - start
    start = time.process_time()
    model.embed_now(texts["chunks"])
    chunks_s = time.process_time() - start
    start = time.process_time()
    for query in texts["queries"]:
        model.embed_now([query])
    query_ms = 1000 * (time.process_time() - start) / len(texts["queries"])
    # Not `ru_maxrss`, which a new process inherits from the one that started it.
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    memory_mb = int(peak.split()[1]) / 1000
    print(json.dumps({"load_s": load_s, "chunks_s": chunks_s, "query_ms": query_ms, "memory_mb": memory_mb}))


def compare_embedding(cache: Path) -> None:
    """Print our figures beside those of the original's stack."""
    file = cache / "sample.json"
    file.write_text(json.dumps(sample()), encoding="utf-8")
    MiniLM(cache).embed_now(["build the graph ahead"])
    ours = _json([sys.executable, __file__, "--embed", str(cache), str(file)])
    models = os.environ.get("WINDOWPANE_BENCH_XENOVA")
    node = shutil.which("node")
    theirs: dict[str, float] = {}
    if models and node and (HERE / "xenova" / "node_modules").is_dir():
        theirs = _json([node, str(HERE / "xenova" / "embed.mjs"), models, str(file)])
    print("\n| one thread, CPU time | Windowpane | original's stack | ratio |\n|---|---|---|---|")
    labels = {
        "load_s": "load, s",
        "chunks_s": f"{CHUNKS} passages, s",
        "query_ms": "query, ms",
        "memory_mb": "memory, MB",
    }
    for name, label in labels.items():
        other = f"{theirs[name]:.2f} | {theirs[name] / ours[name]:.1f} ×" if theirs else "not installed | –"
        print(f"| {label} | {ours[name]:.2f} | {other} |")


def _json(command: list[str]) -> dict[str, float]:
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def compare_sizes() -> None:
    """Print what a search costs beyond the query's embedding, by the number of passages."""
    print("\n| passages | make the corpus, s | measure and select, ms | with two clauses, ms | matrix, MB |")
    print("|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for count in (100, 1_000, 10_000, 100_000):
        start = time.perf_counter()
        corpus = Corpus.whole("text", tuple(_document(i) for i in range(count // PASSAGES)), "bench")
        made_s = time.perf_counter() - start
        vectors = rng.standard_normal((corpus.passage_count, 384), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        corpus.fill(dict(zip(corpus.passage_keys, stored(vectors), strict=True)))
        plain = SearchQuery("rename the archive of last year")
        double = SearchQuery(plain.message, clauses=("rename the archive", "of last year"))
        query = list(stored(vectors[:3]))
        times = [
            _median_ms(lambda: select(corpus.measure(search, found), search, SelectSettings()).kept)  # noqa: B023
            for search, found in ((plain, query[:1]), (double, query))
        ]
        size_mb = corpus.passage_count * 384 * 4 / 1e6
        print(f"| {count:,} | {made_s:.2f} | {times[0]:.2f} | {times[1]:.2f} | {size_mb:.0f} |")


class Anything:
    """An embedder that takes no time: vectors by chance."""

    model, language = "anything", None

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.random.default_rng(0).standard_normal((len(texts), 384), np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    async def vocabulary(self) -> dict[str, int]:
        return {"the": 1}


async def _sets(count: int, sets: int) -> list[float]:
    """Return the processor time in ms of each search, sessions that hold three items each taking turns."""
    items = [Reference(f"note-{i}", _document(i).body) for i in range(count)]
    index = ItemIndex(Anything())
    await index.search(SearchQuery("the archive"), index.documents(items), deadline_s=600)
    spent: list[float] = []
    for number in range(2 * sets):
        held = {(number % sets * 3 + k) % count for k in range(3)}
        candidates = [item for i, item in enumerate(items) if i not in held]
        before = time.process_time()
        documents = index.documents(candidates)
        await index.mended("rename the archive of last year", documents)
        await index.search(SearchQuery("rename the archive of last year"), documents)
        spent.append(1000 * (time.process_time() - before))
    return spent[sets:]


def compare_sets() -> None:
    """Print what a search costs where sessions hold different items, by how many different sets there are."""
    print("\n| items | 1 set, ms | 8 sets | 100 sets |\n|---|---|---|---|")
    for count in (100, 1_000):
        spent = [statistics.median(anyio.run(_sets, count, sets)) for sets in (1, 8, 100)]
        print(f"| {count:,} | {' | '.join(f'{ms:.2f}' for ms in spent)} |")


WORDS = ("archive", "year", "mail", "image", "report", "file", "user", "ticket", "page", "search", "rename", "send")


PASSAGES = 4


def _document(number: int) -> Document:
    """Return a reference of four passages: its name and three paragraphs."""
    words = [WORDS[(number * k + k * k) % len(WORDS)] for k in range(1, 9)]
    paragraph = (
        f"Note {number} is about {' '.join(words)} and says so at some length, again and again, until it is long."
    )
    name = f"note-{number}"
    return Document(
        reference_ref(name), name, "", "\n\n".join([f"{paragraph} Part {part}." for part in range(PASSAGES - 1)])
    )


def _median_ms(work: Callable[[], object]) -> float:
    work()
    times: list[float] = []
    for _ in range(15):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


async def _search(cache: Path) -> float:
    items = [Reference(f"note-{i}", f"Note {i} is about {WORDS[i % len(WORDS)]} number {i}.") for i in range(300)]
    index = ItemIndex(MiniLM(cache), VectorCache(cache))
    start = time.perf_counter()
    result = await index.search(SearchQuery("the archive"), index.documents(items), deadline_s=120)
    assert not result.degraded
    return time.perf_counter() - start


def compare_starts(cache: Path) -> None:
    """Print how long the first search of a process takes, without and with vectors on disk."""
    runs = [_json([sys.executable, __file__, "--search", str(cache)])["search_s"] for _ in range(3)]
    print("\n| first search of a new process, 300 items | s |\n|---|---|")
    print(f"| nothing on disk | {runs[0]:.2f} |\n| vectors on disk | {min(runs[1:]):.2f} |")


def main() -> None:
    """Print all tables, or do one measurement for them."""
    match sys.argv[1:]:
        case ["--embed", cache, file]:
            embed_here(cache, file)
        case ["--sets"]:
            compare_sets()
        case ["--search", cache]:
            print(json.dumps({"search_s": anyio.run(_search, Path(cache))}))
        case _:
            with tempfile.TemporaryDirectory() as folder:
                compare_embedding(Path(folder))
                compare_starts(Path(folder))
            compare_sizes()
            compare_sets()


if __name__ == "__main__":
    main()
