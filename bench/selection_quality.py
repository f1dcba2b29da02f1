"""Measure how good selection is on public data, against the original's algorithm.

    export WINDOWPANE_BENCH_DATA=/path/to/data
    python bench/selection_quality.py            # the shipped parameters
    python bench/selection_quality.py --crossed  # fitted on half of the sets, the other half reported, then swapped
    python bench/selection_quality.py --fit      # prints the parameters to ship

The data is not part of the repository. Each set is a folder with `items.jsonl`, `queries.jsonl` and `meta.json`.
Vectors are kept in `WINDOWPANE_BENCH_CACHE` (default: a folder of the system's temporary directory).
"""

import argparse
import json
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windowpane.context.items import ItemRef
from windowpane.context.messages import Utterance
from windowpane.search.base import Measurements, SearchQuery
from windowpane.search.corpus import Corpus
from windowpane.search.documents import Document
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import Key, Stored, VectorCache, stored, vector_key
from windowpane.search.query import query
from windowpane.search.select import CALIBRATION, Calibration, evidence, select
from windowpane.search.settings import SelectSettings

HALVES = (
    ("metatool_single", "metatool_multi", "metatool_aware", "sgd", "cursorrules"),
    ("apibank", "bfcl_multiturn", "bfcl_pool", "banking77", "stackfaq"),
)
"""Sets that share their items are in the same half."""

NAME_HIDDEN = ("cursorrules",)
"""Sets whose queries were made from names and descriptions: those are left out of the items."""

SILENCE_UNLEARNABLE = ("apibank",)
"""Turns without a call there are mostly requests that still lack an argument: their tools are relevant."""

ENOUGH_SILENT = 50
"""So many queries of a set must need nothing for its silence to be reported."""

Answers = tuple[list[list[int]], list[list[int]]]
"""For each query the positions of the items that are ranked, best first, and of those that are taken."""


@dataclass(frozen=True)
class BenchQuery:
    """One query, with the positions of the items it needs."""

    text: str
    gold: frozenset[int]
    history: tuple[Utterance, ...]


class Texts:
    """Vectors by text, from the cache or from the model."""

    def __init__(self, folder: Path) -> None:
        self._model = MiniLM(folder)
        self._cache = VectorCache(folder, most_vectors=5_000_000)
        self._known: dict[Key, Stored] = {}

    @property
    def model(self) -> str:
        return self._model.model

    def load(self, texts: Sequence[str]) -> dict[Key, Stored]:
        """Return the vectors of texts, by key."""
        wanted = {vector_key(self.model, text): text for text in texts}
        missing = [key for key in wanted if key not in self._known]
        self._known |= self._cache.read(missing)
        missing = [key for key in missing if key not in self._known]
        for start in range(0, len(missing), 256):
            some = missing[start : start + 256]
            vectors = stored(self._model.embed_now([wanted[key] for key in some]))
            fresh = dict(zip(some, vectors, strict=True))
            self._cache.write(fresh)
            self._known |= fresh
        return {key: self._known[key] for key in wanted}

    def of(self, texts: Sequence[str]) -> list[Stored]:
        """Return the vectors of texts, in their order."""
        found = self.load(texts)
        return [found[vector_key(self.model, text)] for text in texts]


class BenchSet:
    """One set, measured."""

    def __init__(self, folder: Path, texts: Texts) -> None:
        self.name = folder.name
        self._texts = texts
        rows = [json.loads(line) for line in (folder / "items.jsonl").open()]
        self.documents = tuple(_document(row, self.name in NAME_HIDDEN) for row in rows)
        positions = {row["id"]: i for i, row in enumerate(rows)}
        self.queries = [
            BenchQuery(
                row["query"],
                frozenset(positions[gold] for gold in row["gold"]),
                tuple(Utterance(turn["role"], turn["content"]) for turn in row.get("history") or ()),
            )
            for row in (json.loads(line) for line in (folder / "queries.jsonl").open())
        ]
        domain = self.documents[0].domain
        self.corpus = Corpus(domain, self.documents, texts.model)
        self.corpus.fill(texts.load(self.corpus.texts))
        self.searches = [query(q.text, q.history) for q in self.queries]
        texts.load([text for search in self.searches for text in search.texts])
        self.measured = [self.measure(search) for search in self.searches]

    @property
    def silent_count(self) -> int:
        return sum(not q.gold for q in self.queries)

    def measure(self, search: SearchQuery) -> Measurements:
        return self.corpus.measure(search, self._texts.of(search.texts))


def _document(row: dict[str, Any], name_hidden: bool) -> Document:
    name, description = ("", "") if name_hidden else (row["name"], row["description"])
    if row["type"] == "tool":
        body = "\n".join(part.strip() for part in row["params"].split(";") if part.strip())
        return Document(ItemRef("tool", row["id"], row["server"]), name, description, body)
    body = row["text"] if row["text"] != row["name"] else ""
    return Document(ItemRef("reference", row["id"]), name, description, body)


# The original: paragraphs of at most 500 characters, cosine, the 20 nearest, best per item, five of them.


def original(bench: BenchSet, texts: Texts) -> Answers:
    """Answer as the original does."""
    owners: list[int] = []
    chunk_texts: list[str] = []
    for number, doc in enumerate(bench.documents):
        found = _original_chunks((doc.head if doc.domain == "tool" else doc.text).strip())
        owners += [number] * len(found)
        chunk_texts += found
    matrix = np.stack(texts.of(chunk_texts)).astype(np.float32)
    rankings: list[list[int]] = []
    for vector in texts.of([q.text for q in bench.queries]):
        nearest = np.argsort(-(matrix @ vector.astype(np.float32)), kind="stable")[:20]
        rankings.append(list(dict.fromkeys(owners[int(chunk)] for chunk in nearest)))
    return rankings, [ranked[:5] for ranked in rankings]


def _original_chunks(text: str) -> list[str]:
    chunks: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        current = ""
        for sentence in [paragraph] if len(paragraph) <= 500 else re.split(r"(?<=[.!?])\s+", paragraph):
            if current and len(current) + 1 + len(sentence) > 500:
                chunks.append(current)
                current = sentence
            else:
                current = f"{current} {sentence}".strip()
        if current.strip():
            chunks.append(current.strip())
    return chunks


def plain_fusion(bench: BenchSet) -> Answers:
    """Rank by 0.7 meaning and 0.3 words, each in standard deviations; the message alone, and always five items."""
    rankings: list[list[int]] = []
    for q in bench.queries:
        measured = bench.measure(SearchQuery(q.text))
        columns = (measured.meaning, measured.words)
        meaning, words = ((column - column.mean()) / (column.std() + 1e-9) for column in columns)
        rankings.append([int(i) for i in np.argsort(-(0.7 * meaning + 0.3 * words), kind="stable")[:10]])
    return rankings, [ranked[:5] for ranked in rankings]


def ours(
    bench: BenchSet,
    settings: SelectSettings,
    calibration: Calibration = CALIBRATION,
    *,
    words_alone: bool = False,
) -> Answers:
    """Answer as Windowpane does."""
    ranked: list[list[int]] = []
    taken: list[list[int]] = []
    for measured, search in zip(bench.measured, bench.searches, strict=True):
        choices = select(without_meaning(measured) if words_alone else measured, search, settings, calibration)
        ranked.append(list(choices.order[:10]))
        taken.append(list(choices.order[: len(choices.kept)]))
    return ranked, taken


def without_meaning(measured: Measurements) -> Measurements:
    """Return what is left when there is no model."""
    return replace(measured, meaning=np.full(len(measured.words), np.nan))


# What is reported.


def ranking_figures(rankings: Sequence[Sequence[int]], queries: Sequence[BenchQuery]) -> dict[str, float]:
    """Return recall@1/5/10 and nDCG@10 in per cent, over the queries that need something."""
    figures: dict[str, list[float]] = {"recall@1": [], "recall@5": [], "recall@10": [], "nDCG@10": []}
    for ranked, q in zip(rankings, queries, strict=True):
        if not q.gold:
            continue
        hits = [position in q.gold for position in ranked[:10]]
        for k in (1, 5, 10):
            figures[f"recall@{k}"].append(sum(hits[:k]) / len(q.gold))
        ideal = sum(1 / np.log2(i + 2) for i in range(min(len(q.gold), 10)))
        figures["nDCG@10"].append(float(sum(hit / np.log2(i + 2) for i, hit in enumerate(hits)) / ideal))
    return {name: 100 * float(np.mean(values)) for name, values in figures.items()}


def selection_figures(taken: Sequence[Sequence[int]], queries: Sequence[BenchQuery]) -> dict[str, float]:
    """Return precision, recall, F1 and items taken where something is needed, and correct silence where nothing is."""
    figures: dict[str, list[float]] = {"precision": [], "recall": [], "F1": [], "taken": [], "silence": []}
    for chosen, q in zip(taken, queries, strict=True):
        if not q.gold:
            figures["silence"].append(not chosen)
            continue
        right = len(q.gold.intersection(chosen))
        figures["precision"].append(right / len(chosen) if chosen else 0.0)
        figures["recall"].append(right / len(q.gold))
        figures["F1"].append(2 * right / (len(chosen) + len(q.gold)))
        figures["taken"].append(len(chosen))
    enough = len(figures["silence"]) >= ENOUGH_SILENT
    return {
        name: float("nan") if name == "silence" and not enough else (1 if name == "taken" else 100) * float(np.mean(v))
        for name, v in figures.items()
    }


# Fitting, from what `select.evidence` says and nothing else.

Rows = NDArray[np.float64]
Foreign = dict[str, list[Measurements]]
CONSIDERED = 2
"""Candidates that are learnt from: the best two, where it is decided whether one, several or none are taken."""
GAP_COLUMN = {4: 2, 2: 1}
NOTHING = SearchQuery("")


def fit(sets: Sequence[BenchSet], foreign: Foreign) -> Calibration:
    """Return the weights that fit these sets best; every set counts the same, its foreign queries half of that."""
    base, slopes = _fitted(sets, foreign, words_alone=False)
    words_base, words_slopes = _fitted(sets, foreign, words_alone=True)
    return Calibration(*(round(value, 2) for value in (base, *slopes, words_base, *words_slopes)))


def _fitted(sets: Sequence[BenchSet], foreign: Foreign, *, words_alone: bool) -> tuple[float, tuple[float, ...]]:
    rows: list[Rows] = []
    labels: list[NDArray[np.bool_]] = []
    weights: list[Rows] = []

    def learn(measured: Measurements, share: float, gold: frozenset[int], weight: float) -> None:
        found = evidence(without_meaning(measured) if words_alone else measured, share)
        top = np.argsort(found[:, GAP_COLUMN[found.shape[1]]], kind="stable")[:CONSIDERED]
        rows.append(found[top])
        labels.append(np.isin(top, list(gold)))
        weights.append(np.full(len(top), weight))

    for bench in sets:
        own = [
            (measured, search.context_share, q.gold)
            for measured, search, q in zip(bench.measured, bench.searches, bench.queries, strict=True)
            if not search.small_talk and (q.gold or bench.name not in SILENCE_UNLEARNABLE)
        ]
        for measured, share, gold in own:
            learn(measured, share, gold, 1 / len(own))
        for measured in foreign[bench.name]:
            learn(measured, 0.0, frozenset(), 0.5 / len(foreign[bench.name]))
    return _logistic(np.concatenate(rows), np.concatenate(labels), np.concatenate(weights))


def _logistic(x: Rows, y: NDArray[np.bool_], weight: Rows, ridge: float = 1e-3) -> tuple[float, tuple[float, ...]]:
    """Fit a logistic regression by Newton's method."""
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
    design = np.column_stack([np.ones(len(x)), (x - mean) / spread])
    weight = weight / weight.sum()
    beta = np.zeros(design.shape[1])
    penalty = ridge * np.diag([0.0, *np.ones(x.shape[1])])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (weight * (p - y)) + penalty @ beta
        hessian = (design * (weight * p * (1 - p))[:, None]).T @ design + penalty
        step = np.linalg.solve(hessian, gradient)
        beta -= step
        if np.abs(step).max() < 1e-9:
            break
    slopes = beta[1:] / spread
    return float(beta[0] - slopes @ mean), tuple(float(slope) for slope in slopes)


def fitted_floor(sets: Sequence[BenchSet], foreign: Foreign, calibration: Calibration) -> float:
    """Return the lowest floor with 80 per cent of correct silence: the mean over sets that have such queries, and over
    foreign queries as one more set.
    """
    own = [bench for bench in sets if bench.name not in SILENCE_UNLEARNABLE and bench.silent_count >= ENOUGH_SILENT]
    for floor in np.arange(0.05, 0.5, 0.01):
        settings = SelectSettings(floor=round(float(floor), 2))
        silence = [selection_figures(ours(bench, settings, calibration)[1], bench.queries)["silence"] for bench in own]
        other = [foreign_silence(foreign[bench.name], settings, calibration) for bench in sets]
        if np.mean([*silence, np.mean(other)]) >= 80:
            return settings.floor
    return 0.5


def foreign_silence(foreign: Sequence[Measurements], settings: SelectSettings, calibration: Calibration) -> float:
    """Return how often nothing is taken for queries of other sets, which need nothing here."""
    return 100 * float(np.mean([not select(m, NOTHING, settings, calibration).kept for m in foreign]))


def foreign_queries(sets: Sequence[BenchSet], each: int = 40) -> Foreign:
    """Return for every set some queries of the sets that it shares nothing with, measured."""
    rng = np.random.default_rng(0)
    found: Foreign = {}
    for bench in sets:
        others = [other for other in sets if other.name.split("_")[0] != bench.name.split("_")[0]]
        found[bench.name] = [
            bench.measure(query(other.queries[int(i)].text))
            for other in others
            for i in rng.choice(len(other.queries), each, replace=False)
        ]
    return found


# Tables.

COLUMNS = ("recall@1", "recall@5", "recall@10", "nDCG@10", "precision", "recall", "F1", "taken", "silence")


def report(title: str, sets: Sequence[BenchSet], method: Callable[[BenchSet], Answers]) -> None:
    """Print one method's figures for every set and their mean."""
    print(f"\n{title}\n")
    print("| set | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    lines: list[list[float]] = []
    for bench in sets:
        ranked, taken = method(bench)
        figures = ranking_figures(ranked, bench.queries) | selection_figures(taken, bench.queries)
        lines.append([figures[column] for column in COLUMNS])
        print(f"| {bench.name} | " + " | ".join(_shown(value) for value in lines[-1]) + " |", flush=True)
    means = (float(np.nanmean(column)) for column in zip(*lines, strict=True))
    print("| **mean** | " + " | ".join(_shown(value) for value in means) + " |")


def _shown(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.1f}"


def main() -> None:
    """Print tables for the sets in the data folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--crossed", action="store_true")
    arguments = parser.parse_args()
    if "WINDOWPANE_BENCH_DATA" not in os.environ:
        print("Selection quality skipped: WINDOWPANE_BENCH_DATA does not name a folder with the data.")
        return
    data = Path(os.environ["WINDOWPANE_BENCH_DATA"])
    cache = os.environ.get("WINDOWPANE_BENCH_CACHE") or Path(tempfile.gettempdir()) / "windowpane-bench"
    texts = Texts(Path(cache))
    sets = {name: BenchSet(data / name, texts) for half in HALVES for name in half if (data / name).is_dir()}
    everything = [*sets.values()]
    if arguments.fit:
        foreign = foreign_queries(everything)
        calibration = fit(everything, foreign)
        print(calibration)
        print("floor", fitted_floor(everything, foreign, calibration))
        return
    if arguments.crossed:
        halves = [[sets[name] for name in half] for half in HALVES]
        for train, test in (halves, halves[::-1]):
            foreign = foreign_queries(train)
            calibration = fit(train, foreign)
            settings = SelectSettings(floor=fitted_floor(train, foreign, calibration))
            print(calibration, settings)
            report("Fitted on the other half", test, partial(ours, settings=settings, calibration=calibration))
        return
    settings = SelectSettings()
    report("The original's algorithm", everything, partial(original, texts=texts))
    report("Words alone", everything, partial(ours, settings=settings, words_alone=True))
    report("Plain fusion, five items", everything, plain_fusion)
    report("Windowpane", everything, partial(ours, settings=settings))


if __name__ == "__main__":
    main()
