from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.context.items import Item, Reference, Tool
from windowpane.search import corpus
from windowpane.search.base import SearchQuery
from windowpane.search.corpus import Corpus
from windowpane.search.documents import document
from windowpane.search.embedding.vectors import Stored, stored
from windowpane.search.pool import Pool


def test_few_and_many_passages_are_measured_alike_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = tuple(document(Reference(f"note-{number}", f"Text number {number}.")) for number in range(200))
    made = Corpus.whole("text", documents, "model")
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
        made = Corpus.whole(domain, (document(one),), "model")
        made.fill(dict.fromkeys(made.passage_keys, cue))
        alone, cued = made.measure(SearchQuery(query.message), [message]), made.measure(query, [message, cue])
        found.append((float(alone.meaning[0]), float(cued.meaning[0])))

    (tool_alone, tool_cued), (text_alone, text_cued) = found
    assert tool_cued == pytest.approx(0.4 * tool_alone + 0.6, abs=1e-3)
    assert text_cued == text_alone


SENTENCES = (
    "An invoice is paid within thirty days.",
    "Who paid the invoices of the server room?",
    "Die Rechnung wird nach dem Rockkonzert bezahlt, und das Konzert ist vorbei.",
    "Das Rechnungswesen prüft die Konzertkarten.",
    "Les factures sont payées dans les trente jours.",
    "getUserById reads an user's invoice",
    "42",
)
SAID = st.lists(st.sampled_from(SENTENCES), max_size=4).map(" ".join)
REFERENCES = st.builds(Reference, st.text("ab", min_size=1), SAID, title=SAID)
TOOLS = st.builds(Tool, st.sampled_from(["files", "mail", "web"]), st.text("ab", min_size=1), SAID)


@settings(max_examples=150)
@given(
    data=st.data(),
    items=st.one_of(
        st.lists(REFERENCES, min_size=1, max_size=12, unique_by=lambda item: item.ref),
        st.lists(TOOLS, min_size=1, max_size=12, unique_by=lambda item: item.ref),
    ),
    language=st.sampled_from([None, "english"]),
    message=SAID,
    earlier=SAID,
)
def test_a_part_of_a_pool_is_measured_to_the_bit_as_if_there_were_no_other_documents(
    data: st.DataObject, items: list[Item], language: str | None, message: str, earlier: str
) -> None:
    documents = tuple(document(item) for item in items)
    chosen = tuple(data.draw(st.permutations(documents))[: data.draw(st.integers(1, len(documents)))])
    domain = documents[0].domain
    random = np.random.default_rng(len(documents))
    pool = Pool(domain, documents, "model", language)
    kept = data.draw(st.sets(st.sampled_from(pool.passage_keys)))
    vectors = {key: stored(_unit(random, 1))[0] for key in pool.passage_keys if key in kept}
    query = SearchQuery(message, context="more", context_share=0.4, earlier=earlier, clauses=("one",), cues=("two",))
    asked = list(stored(_unit(random, 4)))

    part, alone = Corpus.part(pool, chosen), Corpus.whole(domain, chosen, "model", language)
    if part is None:
        # Texts that do not show their language are read in the one that most have: another one without the others.
        assert None in pool.words.shown
        return
    for each in (part, alone):
        each.fill(vectors)
    found, expected = part.measure(query, asked), alone.measure(query, asked)

    assert (part.texts, part.passage_keys, part.foreign) == (alone.texts, alone.passage_keys, alone.foreign)
    assert (part.passage_count, part.embedded_count) == (alone.passage_count, alone.embedded_count)
    assert list(part.missing().items()) == list(alone.missing().items())
    assert dict(part.vocabulary) == dict(alone.vocabulary)
    assert all(word in part.vocabulary for word in alone.vocabulary)
    assert found.keys == expected.keys
    assert found.meaning.tobytes() == expected.meaning.tobytes()
    assert found.words.tobytes() == expected.words.tobytes()
    assert found.name_ranks.tolist() == expected.name_ranks.tolist()
    places = range(len(chosen))
    assert [found.passage(place) for place in places] == [expected.passage(place) for place in places]


def _unit(random: np.random.Generator, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    vectors = random.standard_normal((count, 384)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
