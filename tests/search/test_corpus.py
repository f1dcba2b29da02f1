from __future__ import annotations

import numpy as np
import pytest

from windowpane.context.items import Reference, Tool
from windowpane.search import corpus
from windowpane.search.base import SearchQuery
from windowpane.search.corpus import Corpus
from windowpane.search.documents import document
from windowpane.search.embedding.vectors import Stored, stored


def test_few_and_many_passages_are_measured_alike_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = tuple(document(Reference(f"note-{number}", f"Text number {number}.")) for number in range(200))
    made = Corpus("text", documents, "model")
    random = np.random.default_rng(7)
    made.fill({key: stored(_unit(random, 1))[0] for key in made.passage_keys})
    query = SearchQuery("a question", context="more", context_share=0.4, clauses=("one", "two"))
    vectors = list(stored(_unit(random, 4)))

    few = made.measure(query, vectors)
    monkeypatch.setattr(corpus, "MANY_PASSAGES", 1)
    many = made.measure(query, vectors)

    assert few.meaning.tobytes() == many.meaning.tobytes()
    assert not np.isnan(few.meaning).any()


def test_a_cue_brings_tools_nearer_and_leaves_texts_where_they_are() -> None:
    random = np.random.default_rng(7)
    vectors: list[Stored] = list(stored(_unit(random, 2)))
    message, cue = vectors
    query = SearchQuery("Show notes.txt", cues=("read or write a file",))
    item = (Tool("files", "read", "Read a file."), Reference("reading", "How files are read."))
    found: list[tuple[float, float]] = []
    for domain, one in zip(("tool", "text"), item, strict=True):
        made = Corpus(domain, (document(one),), "model")
        made.fill(dict.fromkeys(made.passage_keys, cue))
        alone, cued = made.measure(SearchQuery(query.message), [message]), made.measure(query, [message, cue])
        found.append((float(alone.meaning[0]), float(cued.meaning[0])))

    (tool_alone, tool_cued), (text_alone, text_cued) = found
    assert tool_cued == pytest.approx(0.4 * tool_alone + 0.6, abs=1e-3)
    assert text_cued == text_alone


def _unit(random: np.random.Generator, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    vectors = random.standard_normal((count, 384)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
