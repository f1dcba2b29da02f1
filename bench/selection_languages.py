"""Measure selection with messages and items in other languages, and with typos.

    python bench/selection_languages.py

The data is in `bench/languages`; its README says where it is from. Everything goes through the selector that turns use.
Vectors are kept in `WINDOWPANE_BENCH_CACHE` (default: a folder of the system's temporary directory).
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase

import anyio
import numpy as np

from remembered import Texts, cache_folder
from selection_quality import BenchQuery, ranking_figures, selection_figures
from windowpane.context.items import Item, Reference, Tool
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.base import Embedder, Vectors
from windowpane.search.index import ItemIndex

DATA = Path(__file__).parent / "languages"
LANGUAGES = {"en": "English", "de": "German", "nl": "Dutch", "it": "Italian", "zh": "Chinese", "ja": "Japanese"}
COLUMNS = ("nDCG@10", "precision", "recall", "F1", "taken")
TYPO_SHARE = 0.25
PATIENCE_S = 60.0
"""So long that no search runs out of time: a measurement is not about the deadline."""


def tools(language: str) -> list[Tool]:
    """Return the pool with its descriptions in one language."""
    rows = [json.loads(line) for line in (DATA / "items.jsonl").open()]
    return [Tool("", row["name"], row[language], include="agent") for row in rows]


def queries(language: str, items: Sequence[Item]) -> list[BenchQuery]:
    """Return the messages in one language, with the positions of what each needs."""
    positions = {item.name: i for i, item in enumerate(items)}
    rows = [json.loads(line) for line in (DATA / "messages.jsonl").open()]
    return [BenchQuery(row[language], frozenset(positions[name] for name in row["needs"]), ()) for row in rows]


async def figures(selector: HybridSelector, items: Sequence[Item], asked: Sequence[BenchQuery]) -> dict[str, float]:
    """Return how well these messages are answered, `silence` and the share that was `degraded` included."""
    positions = {item.ref: i for i, item in enumerate(items)}
    ranked: list[list[int]] = []
    taken: list[list[int]] = []
    degraded = 0
    for one in asked:
        selection = await selector.select(one.text, (), items, {"deadline_s": PATIENCE_S})
        taken.append([positions[chosen.item.ref] for chosen in selection.chosen])
        rest = sorted(selection.left_out, key=lambda left: (left.evidence and left.evidence.rank) or 0)
        ranked.append([*taken[-1], *(positions[left.ref] for left in rest)][:10])
        degraded += bool(selection.degraded)
    silent = [not chosen for chosen, one in zip(taken, asked, strict=True) if not one.gold]
    found = ranking_figures(ranked, asked) | selection_figures(taken, asked)
    return found | {"silence": 100 * float(np.mean(silent or [np.nan])), "degraded": 100 * degraded / len(asked)}


async def report(embedder: Embedder) -> None:
    """Print one line for each language: messages and items both in it, then the messages with English items."""
    columns = (*COLUMNS, "silence", "degraded")
    print(f"\n| messages | items | {' | '.join(columns)} | of English F1 |\n|---|---|{'---|' * (len(columns) + 1)}")
    english = float("nan")
    async with HybridSelector(ItemIndex(embedder)) as selector:
        for of_items in ("own", "English"):
            for language, name in LANGUAGES.items():
                items = tools(language if of_items == "own" else "en")
                found = await figures(selector, items, queries(language, items))
                english = found["F1"] if language == "en" else english
                shown = " | ".join(f"{found[column]:.1f}" for column in columns)
                print(f"| {name} | {of_items} | {shown} | {found['F1'] / english:.0%} |", flush=True)
        # What of this is the cut of tools, which prefers a spare one to a missing one.
        items = [Reference(name=tool.name, text=tool.description, include="agent") for tool in tools("en")]
        found = await figures(selector, items, queries("en", items))
        shown = " | ".join(f"{found[column]:.1f}" for column in columns)
        print(f"| English | as references | {shown} | {found['F1'] / english:.0%} |", flush=True)


def mistyped(text: str, rng: random.Random) -> str:
    """Return a text with one random edit in a quarter of its words."""

    def edited(found: re.Match[str]) -> str:
        word = found[0]
        if rng.random() > TYPO_SHARE:
            return word
        at, letter = rng.randrange(len(word) - 1), rng.choice(ascii_lowercase)
        before, after = word[:at], word[at:]
        edits = (after[1:], after[1] + after[0] + after[2:], letter + after[1:], letter + after)
        return before + rng.choice(edits)

    return re.sub(r"[A-Za-z]{4,}", edited, text)


async def report_typos(embedder: Embedder) -> None:
    """Print how the English messages do as they are and with typos, as they are read and as they are written."""
    items = tools("en")
    rng = random.Random(0)
    clean = queries("en", items)
    typos = [replace(one, text=mistyped(one.text, rng)) for one in clean]
    print(f"\n| messages | mended | {' | '.join(COLUMNS)} |\n|---|---|{'---|' * len(COLUMNS)}")
    for mended, used in (("yes", embedder), ("no", WithoutVocabulary(embedder))):
        async with HybridSelector(ItemIndex(used)) as selector:
            for name, asked in (("clean", clean), ("typos", typos)):
                found = await figures(selector, items, asked)
                print(f"| {name} | {mended} | {' | '.join(f'{found[column]:.1f}' for column in COLUMNS)} |", flush=True)


class WithoutVocabulary:
    """The same model without its list of words, so that nothing is mended."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model = embedder.model
        self.language = embedder.language

    async def vocabulary(self) -> Mapping[str, int]:
        """Return none."""
        return {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text."""
        return await self._embedder.embed(texts)


def main() -> None:
    """Print the tables."""
    texts = Texts(cache_folder())
    anyio.run(report, texts)
    anyio.run(report_typos, texts)


if __name__ == "__main__":
    main()
