"""Measure how well a long conversation is remembered, on public data and on planted facts.

    export WINDOWPANE_BENCH_DATA=/path/to/data
    python bench/memory.py             # recall, hard facts, follow-ups
    python bench/memory.py --fit       # prints the calibration to ship
    python bench/memory.py --large     # what a conversation of 10,000 messages costs

Recall: the share of the evidence that a token budget holds, mean over the questions of `locomo`. Parameters were chosen
on two of its five conversations (`CHOSEN_ON`) and are reported on the other three. Hard facts: conversations with
planted facts, summed up ten times without a model; a fact counts when it stands in the key facts or is recalled by a question.
Follow-ups: how well `turn/query.py` tells a message that leans on the one before from a change of subject.

The data is not part of the repository. Vectors are kept in `WINDOWPANE_BENCH_CACHE` (default: a folder of the system's
temporary directory).
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from numpy.typing import NDArray

from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage, Message, ModelReply, Step, UserMessage
from windowpane.search.base import SearchQuery
from windowpane.search.history import HistoryIndex, HistoryResult, Past
from windowpane.search.minilm import MiniLM
from windowpane.search.vectors import SCALE, Key, Stored, VectorCache, stored, vector_key
from windowpane.turn.extract import extract
from windowpane.turn.facts import FACT_LIMITS, FactLimits, facts
from windowpane.turn.query import Said, query
from windowpane.turn.recall import FLOOR, Calibration, choose, recall, score
from windowpane.turn.tokens import count
from windowpane.turn.window import due, window

CHOSEN_ON = ("conv-26", "conv-30")
REPORTED_ON = ("conv-41", "conv-42", "conv-43")
BUDGETS = (500, 1000, 2000)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

Floats = NDArray[np.float64]


class Texts:
    """Vectors by text, from the cache or from the model."""

    def __init__(self, folder: Path) -> None:
        self.minilm = MiniLM(folder)
        self.cache = VectorCache(folder, most_vectors=5_000_000)

    def load(self, wanted: dict[Key, str]) -> dict[Key, Stored]:
        """Return the vectors of texts, by key."""
        found = self.cache.read(list(wanted))
        missing = [key for key in wanted if key not in found]
        for start in range(0, len(missing), 128):
            some = missing[start : start + 128]
            fresh = dict(zip(some, stored(self.minilm.embed_now([wanted[key] for key in some])), strict=True))
            self.cache.write(fresh)
            found |= fresh
        return found

    def of(self, texts: Sequence[str]) -> list[Stored]:
        """Return the vectors of texts, in their order."""
        keys = [vector_key(self.minilm.model, text) for text in texts]
        found = self.load(dict(zip(keys, texts, strict=True)))
        return [found[key] for key in keys]


# Recall.


class Talk:
    """One conversation of the set, with its questions and where their evidence stands."""

    def __init__(self, folder: Path, name: str, texts: Texts) -> None:
        rows = [row for row in _rows(folder / "items.jsonl") if row["server"] == name]
        position = {row["id"]: number for number, row in enumerate(rows)}
        asked = [row for row in _rows(folder / "queries.jsonl") if row["conv"] == name and row["gold"]]
        self.name = name
        self.texts = [f"{row['name']}: {row['text']}" for row in rows]
        self.messages = [
            UserMessage(content=text, seq=number + 1, at=BEGAN + timedelta(minutes=number))
            for number, text in enumerate(self.texts)
        ]
        self.tokens = np.array([count(text) + 1 for text in self.texts])
        self.questions = [row["query"] for row in asked]
        self.evidence = [[position[gold] for gold in row["gold"]] for row in asked]
        self.past = Past(texts.minilm.model)
        self.past.add(self.messages)
        self.past.fill(texts.load(self.past.missing(len(self.texts))))
        self.alone = np.stack(texts.of(self.texts)).astype(np.float32) / SCALE
        self.vectors = texts.of(self.questions)
        self.results = [self.measure(q, v) for q, v in zip(self.questions, self.vectors, strict=True)]

    def measure(self, question: str, vector: Stored | None) -> HistoryResult:
        return self.past.measure(SearchQuery(question), vector, len(self.texts))

    def nearness(self, number: int) -> Floats:
        return (self.alone @ (self.vectors[number].astype(np.float32) / SCALE)).astype(float)


Ranking = Callable[[Talk, int], Floats]


def recency(talk: Talk, number: int) -> Floats:
    return np.arange(len(talk.texts), dtype=float)


def by_words(talk: Talk, number: int) -> Floats:
    return talk.results[number].words


def by_meaning(talk: Talk, number: int) -> Floats:
    return talk.nearness(number)


def plain_fusion(talk: Talk, number: int) -> Floats:
    return 0.7 * _standard(talk.nearness(number)) + 0.3 * _standard(_evidence(talk.results[number]))


def words_and_neighbours(talk: Talk, number: int) -> Floats:
    return talk.measure(talk.questions[number], None).fused


def ours(talk: Talk, number: int) -> Floats:
    return talk.results[number].fused


def shares(talk: Talk, ranking: Ranking, budget: int) -> list[float]:
    """Return for each question the share of its evidence among the best messages that fit the budget."""
    found: list[float] = []
    for number, gold in enumerate(talk.evidence):
        order = np.argsort(-ranking(talk, number), kind="stable")
        fitting = set(order[np.cumsum(talk.tokens[order]) <= budget].tolist())
        found.append(sum(position in fitting for position in gold) / len(gold))
    return found


def recalled_shares(talk: Talk, budget: int, *, floor: float = FLOOR) -> list[float]:
    """Return the same for what the product really recalls: the floor applied, groups paid for, long messages cut."""
    found: list[float] = []
    for result, gold in zip(talk.results, talk.evidence, strict=True):
        taken = {m.seq - 1 for group in choose(result, budget, floor) for m in group.messages}
        found.append(sum(position in taken for position in gold) / len(gold))
    return found


def report_recall(title: str, talks: Sequence[Talk]) -> None:
    print(f"\n{title}: {', '.join(talk.name for talk in talks)}\n")
    print("| method | " + " | ".join(f"{budget:,} tokens" for budget in BUDGETS) + " |\n|---|---|---|---|")
    methods: list[tuple[str, Callable[[Talk, int], list[float]]]] = [
        ("most recent", lambda talk, budget: shares(talk, recency, budget)),
        ("BM25 alone", lambda talk, budget: shares(talk, by_words, budget)),
        ("MiniLM alone", lambda talk, budget: shares(talk, by_meaning, budget)),
        ("plain fusion 0.7/0.3", lambda talk, budget: shares(talk, plain_fusion, budget)),
        ("Windowpane without a model", lambda talk, budget: shares(talk, words_and_neighbours, budget)),
        ("Windowpane, ranking", lambda talk, budget: shares(talk, ours, budget)),
        ("**Windowpane, as recalled**", recalled_shares),
    ]
    for name, method in methods:
        means = [100 * np.mean([share for talk in talks for share in method(talk, budget)]) for budget in BUDGETS]
        print(f"| {name} | " + " | ".join(f"{mean:.1f}" for mean in means) + " |", flush=True)


def foreign(data: Path, each: int = 150) -> list[str]:
    """Return questions that no conversation of the set has anything to do with."""
    rng = random.Random(0)
    found: list[str] = []
    for name in ("banking77", "bfcl_pool", "stackfaq", "metatool_single"):
        if (data / name).is_dir():
            found += rng.sample([row["query"] for row in _rows(data / name / "queries.jsonl")], each)
    return [text for text in found if len(text) <= 300]


def report_silence(talks: Sequence[Talk], questions: Sequence[str], texts: Texts) -> None:
    vectors = texts.of(questions)
    silent = [
        not choose(talk.measure(question, vector))
        for talk in talks
        for question, vector in zip(questions, vectors, strict=True)
    ]
    own = [bool(choose(result)) for talk in talks for result in talk.results]
    print(f"\nNothing recalled for {100 * np.mean(silent):.1f} % of {len(questions)} questions from elsewhere; ", end="")
    print(f"something for {100 * np.mean(own):.1f} % of the conversations' own.")


def fit(talks: Sequence[Talk], questions: Sequence[str], texts: Texts) -> Calibration:
    """Return the weights that fit these conversations, their questions and as many from elsewhere."""
    vectors = texts.of(questions)
    rows: list[Floats] = []
    labels: list[NDArray[np.bool_]] = []
    bare: list[Floats] = []
    bare_labels: list[NDArray[np.bool_]] = []
    for talk in talks:
        own = [(r, talk.measure(q, None), g) for r, q, g in zip(talk.results, talk.questions, talk.evidence, strict=True)]
        other = [(talk.measure(q, v), talk.measure(q, None), []) for q, v in zip(questions, vectors, strict=True)]
        for result, by_words_alone, gold in [*own, *other]:
            top = np.argsort(-result.fused)[:40]
            top_words = np.argsort(-by_words_alone.fused)[:40]
            rows.append(np.column_stack([result.fused, result.meaning, result.coverage])[top])
            labels.append(np.isin(top, gold))
            alone = by_words_alone
            bare.append(np.column_stack([alone.fused, alone.coverage])[top_words])
            bare_labels.append(np.isin(top_words, gold))
    full = _logistic(np.concatenate(rows), np.concatenate(labels))
    words = _logistic(np.concatenate(bare), np.concatenate(bare_labels))
    return Calibration(*(round(float(value), 2) for value in (*full, *words)))


def _logistic(x: Floats, y: NDArray[np.bool_], ridge: float = 1e-3) -> Floats:
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
    design = np.column_stack([np.ones(len(x)), (x - mean) / spread])
    # Evidence is rare; weighted as if half of all messages were some, a score of 0.5 means "as likely as not".
    weight = np.where(y, 0.5 / y.sum(), 0.5 / (~y).sum())
    beta = np.zeros(design.shape[1])
    penalty = ridge * np.diag([0.0, *np.ones(x.shape[1])])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (weight * (p - y)) + penalty @ beta
        hessian = (design * (weight * p * (1 - p))[:, None]).T @ design + penalty
        beta -= np.linalg.solve(hessian, gradient)
    slopes = beta[1:] / spread
    return np.array([beta[0] - slopes @ mean, *slopes])


def _evidence(result: HistoryResult) -> Floats:
    return result.words / (1 - result.words)


def _standard(values: Floats) -> Floats:
    return (values - values.mean()) / (values.std() + 1e-9)


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.open()]


# What is run.


def main() -> None:
    """Print tables for what is in the data folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    cache = os.environ.get("WINDOWPANE_BENCH_CACHE") or Path(tempfile.gettempdir()) / "windowpane-bench"
    texts = Texts(Path(cache))
    named = os.environ.get("WINDOWPANE_BENCH_DATA")
    if not named:
        sys.exit("skipped: WINDOWPANE_BENCH_DATA does not name a folder with the data")
    data = Path(named)
    chosen_on = [Talk(data / "locomo", name, texts) for name in CHOSEN_ON]
    if arguments.fit:
        print(fit(chosen_on, foreign(data), texts))
        return
    report_recall("Parameters chosen on", chosen_on)
    report_silence(chosen_on, foreign(data), texts)
    reported_on = [Talk(data / "locomo", name, texts) for name in REPORTED_ON]
    report_recall("Unseen", reported_on)
    report_silence(reported_on, foreign(data), texts)


if __name__ == "__main__":
    main()
