"""Measure by what an answer that draws on an item in other words can be told from one that does not.

    python bench/use.py

`bench/data/paraphrases.jsonl` has twelve questions, each with two items, an answer that says each of them in other
words, and an answer from general knowledge. None of these answers has a trace of words. The threshold was chosen on
the first six questions; the other six are the unseen part.
"""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from windowpane.insight.probable import NEAR
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.index import ItemIndex

HERE = Path(__file__).parent
PATIENCE_S = 120.0


async def cosines(index: ItemIndex, row: dict[str, Any]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return the cosine of answer and item and that of question and item, for pairs that belong together and others."""
    items = [item["text"] for item in row["items"]]
    asked = await index.nearest(row["question"], items, deadline_s=PATIENCE_S)
    right: list[tuple[float, float]] = []
    wrong: list[tuple[float, float]] = []
    for place, answer in [*enumerate(item["answer"] for item in row["items"]), (-1, row["general"])]:
        found = await index.nearest(answer, items, deadline_s=PATIENCE_S)
        for other, pair in enumerate(zip(found, asked, strict=True)):
            (right if other == place else wrong).append((pair[0] or 0.0, pair[1] or 0.0))
    return right, wrong


def auc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Return how often a value of the first kind is above one of the second."""
    return float(np.mean([(a > b) + 0.5 * (a == b) for a in right for b in wrong]))


async def measure() -> None:
    """Print the figures of both halves."""
    cache = Path(os.environ.get("WINDOWPANE_BENCH_CACHE") or Path(tempfile.gettempdir()) / "windowpane-bench")
    index = ItemIndex(MiniLM(cache))
    rows = [json.loads(line) for line in (HERE / "data" / "paraphrases.jsonl").read_text(encoding="utf-8").splitlines()]
    print("| part | AUC of the cosine | AUC of the lift over the question | found | wrongly found |")
    print("|---|---|---|---|---|")
    for name, part in (("chosen on", rows[:6]), ("unseen", rows[6:])):
        pairs = [await cosines(index, row) for row in part]
        right, wrong = ([pair for each in pairs for pair in each[kind]] for kind in (0, 1))
        near, lift = (
            auc([own - weight * asked for own, asked in right], [own - weight * asked for own, asked in wrong])
            for weight in (0, 1)
        )
        found, wrongly = (sum(own >= NEAR for own, _ in each) for each in (right, wrong))
        print(f"| {name} | {near:.2f} | {lift:.2f} | {found} of {len(right)} | {wrongly} of {len(wrong)} |")


if __name__ == "__main__":
    anyio.run(measure)
