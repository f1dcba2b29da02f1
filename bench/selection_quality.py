"""Measure how good selection is on public data, against the original's algorithm.

    export WINDOWPANE_BENCH_DATA=/path/to/data
    python bench/selection_quality.py            # the shipped parameters
    python bench/selection_quality.py --sizes    # by the size of the pool, general requests, changes of topic
    python bench/selection_quality.py --crossed  # fitted on half of the sets, the other half reported, then swapped
    python bench/selection_quality.py --fit      # prints the parameters to ship

The data is not part of the repository. Each set is a folder with `items.jsonl`, `queries.jsonl` and `meta.json`.
Vectors are kept in `WINDOWPANE_BENCH_CACHE` (default: a folder of the system's temporary directory).
"""

import argparse
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remembered import Texts, cache_folder
from windowpane.context.items import ItemRef
from windowpane.context.messages import Utterance
from windowpane.search.base import Measurements, SearchQuery
from windowpane.search.corpus import Corpus
from windowpane.search.documents import Document
from windowpane.search.embedding.vectors import SCALE
from windowpane.search.follow_up import finds_enough, goes_on, repeats, ties
from windowpane.search.query import alone, latest, with_turns, with_users_turns
from windowpane.search.select import CALIBRATION, FEWEST, Calibration, calibrated, evidence, select
from windowpane.search.settings import SearchSettings, SelectSettings

HERE = Path(__file__).parent
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


class BenchPool:
    """Documents that can be searched for messages."""

    def __init__(self, name: str, documents: tuple[Document, ...], texts: Texts) -> None:
        self.name = name
        self.documents = documents
        self._texts = texts
        self.corpus = Corpus.whole(documents[0].domain, documents, texts.model)
        self.corpus.fill(texts.load(self.corpus.texts))

    def measure(self, search: SearchQuery) -> Measurements:
        return self.corpus.measure(search, self._texts.of(search.texts))

    def search(self, message: str, history: Sequence[Utterance]) -> tuple[SearchQuery, Measurements]:
        """Search for a message as the selector does, with the turn before it where it is a follow-up."""
        asked = alone(message, history)
        found = self.measure(asked)
        mixed = with_turns(asked, history)
        if mixed is None or finds_enough(message, [calibrated(found, 0.0)]):
            return asked, found
        last = latest(history)
        first, second = (vector.astype(np.float64) for vector in self._texts.of((message, last or message)))
        if history[-1].role == "assistant" and repeats([self.measure(SearchQuery(last)).meaning]):
            mixed = with_users_turns(mixed, history) or mixed
        together = self.measure(mixed)
        nearness = float(first @ second) / (SCALE * SCALE)
        return (
            (mixed, together)
            if goes_on(ties(mixed), nearness, [found], [calibrated(together, mixed.context_share)])
            else (asked, found)
        )


class BenchSet(BenchPool):
    """One set, measured."""

    def __init__(self, folder: Path, texts: Texts) -> None:
        rows = [json.loads(line) for line in (folder / "items.jsonl").open()]
        super().__init__(folder.name, tuple(_document(row, folder.name in NAME_HIDDEN) for row in rows), texts)
        positions = {row["id"]: i for i, row in enumerate(rows)}
        self.queries = [
            BenchQuery(
                row["query"],
                frozenset(positions[gold] for gold in row["gold"]),
                tuple(Utterance(turn["role"], turn["content"]) for turn in row.get("history") or ()),
            )
            for row in (json.loads(line) for line in (folder / "queries.jsonl").open())
        ]
        texts.load([text for q in self.queries for text in alone(q.text).texts])
        found = [self.search(q.text, q.history) for q in self.queries]
        self.searches = [search for search, _ in found]
        self.measured = [measured for _, measured in found]

    def among(self, documents: Sequence[Document]) -> BenchPool:
        """Return a pool with these documents instead."""
        return BenchPool(self.name, tuple(documents), self._texts)


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


def ours(bench: BenchSet, calibration: Calibration = CALIBRATION, *, words_alone: bool = False) -> Answers:
    """Answer as Windowpane does."""
    settings = SearchSettings().of(bench.documents[0].domain)
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
SIZES = (10, 50, 200, 1000, 4000)
QUERIES_PER_POOL = 60
GENERAL_PER_POOL = 40


@dataclass(frozen=True)
class PooledQuery:
    """One query measured in a pool of a given size; `general` ones need nothing."""

    name: str
    size: int
    general: bool
    search: SearchQuery
    measured: Measurements
    gold: frozenset[int]


def pooled(
    sets: Sequence[BenchSet], fill: Mapping[str, Sequence[Document]], requests: Sequence[str]
) -> list[PooledQuery]:
    """Return queries of every set in pools of several sizes: some of its items, or all of them and others."""
    rng = np.random.default_rng(0)
    found: list[PooledQuery] = []
    for bench, size in product(sets, SIZES):
        others = [doc for doc in fill[bench.documents[0].domain] if doc not in bench.documents]
        for _ in range(3 if size < 200 else 1):
            own = rng.permutation(len(bench.documents))[:size]
            more = rng.permutation(len(others))[: max(size - len(own), 0)]
            pool = bench.among([*(bench.documents[int(i)] for i in own), *(others[int(i)] for i in more)])
            places = {int(i): place for place, i in enumerate(own)}
            fitting = [q for q in bench.queries if q.gold <= places.keys() and (q.gold or _learnable(bench, q))]
            for i in rng.permutation(len(fitting))[:QUERIES_PER_POOL]:
                q = fitting[int(i)]
                gold = frozenset(places[position] for position in q.gold)
                found.append(PooledQuery(bench.name, size, False, *pool.search(q.text, q.history), gold))
            for i in rng.permutation(len(requests))[:GENERAL_PER_POOL]:
                asked = alone(requests[int(i)])
                found.append(PooledQuery(bench.name, size, True, asked, pool.measure(asked), frozenset()))
    return [query for query in found if not query.search.small_talk]


def _learnable(bench: BenchSet, query: BenchQuery) -> bool:
    return bool(query.gold) or bench.name not in SILENCE_UNLEARNABLE


def fit(queries: Sequence[PooledQuery]) -> Calibration:
    """Return the weights of need that fit these queries best: whether the first item of the order is needed.

    Every set and size counts the same, its general requests half of that.
    """
    groups = Counter((q.name, q.size, q.general) for q in queries)
    rows = np.array([_need(q) for q in queries])
    first = [select(q.measured, q.search, SelectSettings()).order[0] for q in queries]
    labels = np.array([place in q.gold for place, q in zip(first, queries, strict=True)])
    weights = np.array([(0.5 if q.general else 1.0) / groups[q.name, q.size, q.general] for q in queries])
    base, slopes = _logistic(rows, labels, weights)
    names = ("base", "per_meaning", "per_words", "per_log_count", "per_context")
    return replace(CALIBRATION, **{name: round(v, 2) for name, v in zip(names, (base, *slopes), strict=True)})


def _need(query: PooledQuery) -> list[float]:
    meaning, words, _ = evidence(query.measured).T
    return [float(meaning.max()), float(words.max()), log(max(len(meaning), FEWEST)), query.search.context_share]


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


def report_sizes(queries: Sequence[PooledQuery], calibrations: Mapping[str, Calibration]) -> None:
    """Print what is selected by the size of the pool; `calibrations` are by set."""
    print("\n| items | size | F1 | recall | all needed | taken | silent though needed | general: silent | taken |")
    print("|---|---|---|---|---|---|---|---|---|")
    for domain, size in product(("text", "tool"), SIZES):
        own = [q for q in queries if q.size == size and q.measured.domain == domain]
        settings = SearchSettings().of(domain)
        taken = [
            {
                q.measured.keys.index(key)
                for key, _ in select(q.measured, q.search, settings, calibrations[q.name]).taken
            }
            for q in own
        ]
        needed = [(t, q.gold) for t, q in zip(taken, own, strict=True) if q.gold]
        general = [t for t, q in zip(taken, own, strict=True) if q.general]
        values = (
            100 * np.mean([2 * len(t & g) / (len(t) + len(g)) for t, g in needed]),
            100 * np.mean([len(t & g) / len(g) for t, g in needed]),
            100 * np.mean([g <= t for t, g in needed]),
            np.mean([len(t) for t, _ in needed]),
            100 * np.mean([not t for t, _ in needed]),
            100 * np.mean([not t for t in general]),
            np.mean([len(t) for t in general]),
        )
        print(f"| {domain} | {size} | " + " | ".join(_shown(float(value)) for value in values) + " |", flush=True)


def report_topics(texts: Texts) -> None:
    """Print how often a follow-up finds its item, and how often a change of topic carries the old one along."""
    rows = [json.loads(line) for line in (HERE / "data" / "topics.jsonl").read_text(encoding="utf-8").splitlines()]
    requests = general_requests()
    documents = tuple(
        Document(ItemRef("reference", row["name"]), row["name"], row["description"], row["text"]) for row in rows
    )
    pool = BenchPool("topics", documents, texts)
    rng = np.random.default_rng(0)
    print("\n| after an answer that | message | right | old item taken |\n|---|---|---|---|")
    for quoted in (False, True):
        cases: dict[str, list[tuple[bool, bool]]] = {"follow-up": [], "another topic": [], "general request": []}
        for place, row in enumerate(rows):
            answer = f"{row['answer']} {row['text']}" if quoted else row["answer"]
            history = (Utterance("user", row["question"]), Utterance("assistant", answer))
            others = [int(i) for i in rng.permutation(len(rows)) if i != place][:2]
            asked = [("follow-up", text, {place}) for text in row["follow_ups"]]
            asked += [("another topic", rows[i]["question"], {i}) for i in others]
            asked += [("general request", requests[int(i)], set[int]()) for i in rng.permutation(len(requests))[:2]]
            for kind, text, gold in asked:
                search, measured = pool.search(text, history)
                kept = {measured.keys.index(key) for key, _ in select(measured, search, SelectSettings()).taken}
                cases[kind].append((gold <= kept if gold else not kept, place in kept))
        for kind, found in cases.items():
            right, old = (100 * float(np.mean(column)) for column in zip(*found, strict=True))
            repeats_it = "repeats the item" if quoted else "does not"
            print(f"| {repeats_it} | {kind} | {right:.0f} | {'–' if kind == 'follow-up' else f'{old:.0f}'} |")


def general_requests() -> list[str]:
    """Return requests that need nothing."""
    return (HERE / "data" / "general_requests.txt").read_text(encoding="utf-8").splitlines()


def filling(data: Path, sets: Iterable[BenchSet]) -> dict[str, list[Document]]:
    """Return items to fill large pools with: real tools that no query needs, and the same as references."""
    rows = [json.loads(line) for line in (data / "toucan_mcp_pool" / "items.jsonl").open()][:4000]
    tools = [_document(row, False) for row in rows]
    texts = [doc for bench in sets for doc in bench.documents if doc.domain == "text"]
    as_texts = [replace(doc, key=ItemRef("reference", f"{doc.key.server} {doc.key.name}")) for doc in tools]
    return {"tool": tools, "text": [*texts, *as_texts]}


def main() -> None:
    """Print tables for the sets in the data folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--crossed", action="store_true")
    parser.add_argument("--sizes", action="store_true")
    arguments = parser.parse_args()
    if "WINDOWPANE_BENCH_DATA" not in os.environ:
        print("Selection quality skipped: WINDOWPANE_BENCH_DATA does not name a folder with the data.")
        return
    data = Path(os.environ["WINDOWPANE_BENCH_DATA"])
    texts = Texts(cache_folder())
    sets = {name: BenchSet(data / name, texts) for half in HALVES for name in half if (data / name).is_dir()}
    everything = [*sets.values()]
    if arguments.fit or arguments.crossed or arguments.sizes:
        queries = pooled(everything, filling(data, everything), general_requests())
        if arguments.fit:
            print(fit(queries))
        if arguments.sizes:
            report_sizes(queries, dict.fromkeys(sets, CALIBRATION))
            report_topics(texts)
        if arguments.crossed:
            crossed = {name: fit([q for q in queries if q.name not in half]) for half in HALVES for name in half}
            for half in HALVES:
                print(crossed[half[0]])
            report_sizes(queries, crossed)
            for name, bench in sets.items():
                report(f"{name}, fitted on the other half", [bench], partial(ours, calibration=crossed[name]))
        return
    report("The original's algorithm", everything, partial(original, texts=texts))
    report("Words alone", everything, partial(ours, words_alone=True))
    report("Plain fusion, five items", everything, plain_fusion)
    report("Windowpane", everything, ours)


if __name__ == "__main__":
    main()
