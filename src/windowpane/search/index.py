"""Measure documents against a query, and never keep the reply waiting for it.

A search embeds the query and whatever passages are new, in worker threads, until its
deadline. What is not embedded by then is judged by its words, the result says so, and
embedding goes on in the background for the searches to come. When meaning cannot be
measured at all, words decide alone, and the embedder is tried again after a while.
"""

from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from types import TracebackType
from typing import Self, TypeVar, cast

import anyio
import anyio.abc
import anyio.to_thread
import numpy as np

from windowpane.calls.recorder import recording_apart
from windowpane.context.items import Domain, Item
from windowpane.errors import EmbedderError
from windowpane.remarks import get_logger
from windowpane.search.base import Floats, SearchQuery, SearchResult
from windowpane.search.chunks import chunks
from windowpane.search.corpus import DECIMALS, Corpus
from windowpane.search.documents import DOMAINS, Document, document
from windowpane.search.embedding.base import Embedder
from windowpane.search.embedding.vectors import SCALE, Key, Stored, VectorCache, stored, vector_key
from windowpane.search.languages import ENGLISH, language_of
from windowpane.search.mend import Mended, mend
from windowpane.search.pool import Pool
from windowpane.supervise import supervised

log = get_logger()

READY = "ready"
"""What the model is asked first."""

DEADLINE_S = 1.0
"""How long a search waits for vectors, unless it is told otherwise."""

TEXTS_AT_ONCE = 16
"""How many passages are embedded between two looks at the clock."""

TEXTS_IN_A_ROW = 64
"""How many passages one search embeds before another one that waits has its turn."""

SOON_PASSAGES = 500
"""The first message of a process waits for so many passages: they take some seconds."""

AT_ONCE_PASSAGES = 5_000
"""Up to here a corpus is measured in well under a millisecond."""

AT_ONCE_CHARACTERS = 20_000
"""Up to here a message is read in a millisecond or two."""

MULTILINGUAL = "`embeddings_url` or `weights` (docs/selection.md)"
"""How another model is set, for people."""

FIRST_RETRY_S = 2.0
LAST_RETRY_S = 300.0
KEPT_CORPORA = 64
"""How many sets of candidates are kept ready. Another set of known documents is ready in a moment, too."""

KEPT_PASSAGES = 20_000
"""How many passages of pools are kept, some 1.5 kB each; `FEWEST_POOLS` are kept however many they have."""

FEWEST_POOLS = 8
KEPT_QUERIES = 256

Progress = Callable[[int, int], None]
"""Is told how many passages are embedded, and out of how many."""

Clock = Callable[[], float]
T = TypeVar("T")


class ItemIndex:
    """All that is known about documents, shared by every search of a process.

    Entered as a context manager it goes on embedding in the background; otherwise only while a search runs.
    `progress` is how many passages were embedded, and out of how many, when that was last told. A message waits up to
    `loading_s` for a model that is being loaded, and for passages that are being embedded where they are few.
    """

    def __init__(
        self,
        embedder: Embedder | None,
        cache: VectorCache | None = None,
        *,
        on_progress: Progress | None = None,
        clock: Clock = anyio.current_time,
        loading_s: float = 0.0,
    ) -> None:
        self._embedder = embedder
        self._loading_s = loading_s
        self._cache = cache
        self._on_progress = on_progress
        self._clock = clock
        self._documents: dict[int, tuple[Item, Document]] = {}
        self._corpora: dict[Domain, list[Corpus]] = {"text": [], "tool": []}
        self._pools: dict[Domain, list[Pool]] = {"text": [], "tool": []}
        self._latest: tuple[tuple[Item, ...], tuple[Document, ...]] = ((), ())
        self._split: tuple[tuple[Document, ...], list[Corpus]] = ((), [])
        self._queries: dict[Key, Stored] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._embedding = anyio.Lock()
        self._trouble: Trouble | None = None
        self._answered = False
        self.progress: tuple[int, int] | None = None

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            return None
        tasks.cancel_scope.cancel()
        return await tasks.__aexit__(kind, error, trace)

    async def ready(self, documents: Sequence[Document]) -> None:
        """Wait for a model that is being loaded and for a few passages: the first message is judged by meaning."""
        if not self._loading_s or self._trouble is not None:
            return
        with anyio.move_on_after(self._loading_s):
            if not self._answered:
                await self._embed([READY])
            docs = tuple(documents)
            corpora = await self._corpora_of(docs)
            missing = sum(corpus.passage_count - corpus.embedded_count for corpus in corpora)
            if 0 < missing <= SOON_PASSAGES:
                await self.search(SearchQuery(READY), docs, deadline_s=self._loading_s)

    def documents(self, items: Sequence[Item]) -> tuple[Document, ...]:
        """Return the searchable side of items; the same item gives the same document again."""
        latest, docs = self._latest
        if len(latest) == len(items) and all(map(is_, latest, items)):
            return docs
        if len(self._documents) > 4 * len(items) + 10_000:
            # Grown far beyond what is in use: started afresh.
            self._documents = {}
        found: list[Document] = []
        for item in items:
            known = self._documents.get(id(item))
            if known is None or known[0] is not item:
                known = self._documents[id(item)] = (item, document(item))
            found.append(known[1])
        self._latest = (tuple(items), tuple(found))
        return self._latest[1]

    async def search(
        self, query: SearchQuery, documents: Sequence[Document], *, deadline_s: float = DEADLINE_S
    ) -> SearchResult:
        """Measure documents against a query; `deadline_s` is how long to wait for vectors at most.

        Never raises for want of a model: what is amiss is in `degraded`.
        """
        corpora, vectors = await self._asked(query, documents, deadline_s)
        measured = tuple([await _at_once_or_apart(corpus, corpus.measure, query, vectors) for corpus in corpora])
        count = sum(corpus.embedded_count for corpus in corpora)
        total = sum(corpus.passage_count for corpus in corpora)
        notes = (*self._notes(query, vectors, count, total, deadline_s), *self._item_notes(query, corpora))
        return SearchResult(query, measured, count, total, notes)

    async def meanings(
        self, text: str, documents: Sequence[Document], *, deadline_s: float = DEADLINE_S
    ) -> Sequence[Floats]:
        """Return how near documents are to a text in meaning, for each domain; nan where it was not measured."""
        query = SearchQuery(text)
        corpora, vectors = await self._asked(query, documents, deadline_s)
        return [await _at_once_or_apart(corpus, corpus.meaning, query, vectors) for corpus in corpora]

    async def _asked(
        self, query: SearchQuery, documents: Sequence[Document], deadline_s: float
    ) -> tuple[Sequence[Corpus], Sequence[Stored]]:
        """Return what a query is measured against, and its vectors, as far as they come in time."""
        corpora = await self._corpora_of(tuple(documents))
        vectors: Sequence[Stored] = ()
        with anyio.move_on_after(deadline_s):
            vectors = await self._query_vectors(query)
            if vectors:
                for corpus in corpora:
                    corpus.expect(len(vectors[0]))
                await self._embed_or_leave(corpora)
        return corpora, vectors

    async def mended(self, text: str, documents: Sequence[Document]) -> Mended:
        """Return a message with its mistyped words read as words of the documents or of the model."""
        model: Mapping[str, int] = await self._embedder.vocabulary() if self._embedder is not None else {}
        if not model or language_of(text) not in (None, ENGLISH):
            return Mended(text)
        corpora = await self._corpora_of(tuple(documents))
        # A chain asks for dictionaries, to write to the first; it is only read here.
        known = [cast("dict[str, int]", corpus.vocabulary) for corpus in corpora]
        return mend(text, ChainMap(*known), model)

    async def nearness(self, text: str, other: str, *, deadline_s: float = DEADLINE_S) -> float | None:
        """Return the cosine between two texts, or None when it cannot be measured in time."""
        with anyio.move_on_after(deadline_s):
            vectors = await self._query_vectors(SearchQuery(text, clauses=(other,)))
            if vectors:
                first, second = (vector.astype(np.float64) for vector in vectors)
                return round(float(first @ second) / (SCALE * SCALE), DECIMALS)
        return None

    async def nearest(
        self, text: str, others: Sequence[str], *, deadline_s: float = DEADLINE_S
    ) -> tuple[float | None, ...]:
        """Return for each other text the cosine of its passage and the text's that are nearest.

        None for one that cannot be measured in time, or that is not in the model's language. The passages of the others
        are kept on disk like those of items; the text's are not.
        """
        own = [] if self._embedder is None or self._foreign(text) else [chunk.text for chunk in chunks(text)]
        theirs = [[] if self._foreign(other) else [chunk.text for chunk in chunks(other)] for other in others]
        kept = [passage for passages in theirs for passage in passages]
        vectors: dict[str, Stored] = {}
        with anyio.move_on_after(deadline_s):
            if own and kept:
                vectors = await self._vectors_of(kept, kept=True)
                vectors |= await self._vectors_of(own, kept=False) if vectors else {}
        if not all(passage in vectors for passage in own):
            return (None,) * len(theirs)
        return tuple(_cosine(own, passages, vectors) for passages in theirs)

    async def _vectors_of(self, texts: Sequence[str], *, kept: bool) -> dict[str, Stored]:
        """Return the vectors of texts, as many as can be had; with `kept`, by way of the disk."""
        model = self._embedder.model if self._embedder is not None else ""
        keys = {vector_key(model, text): text for text in texts}
        cache = self._cache if kept else None
        found: dict[Key, Stored] = {}
        if cache is not None:
            found |= await anyio.to_thread.run_sync(cache.read, list(keys))
        missing = [text for key, text in keys.items() if key not in found]
        for start in range(0, len(missing), TEXTS_AT_ONCE):
            made = await self._embed(missing[start : start + TEXTS_AT_ONCE])
            if made is None:
                break
            found |= made
            if cache is not None:
                await anyio.to_thread.run_sync(cache.write, made)
        return {text: found[key] for key, text in keys.items() if key in found}

    async def _corpora_of(self, docs: tuple[Document, ...]) -> list[Corpus]:
        """Return the corpus of each domain. A turn asks several times for the same documents."""
        latest, corpora = self._split
        if latest is not docs:
            corpora = [await self._corpus(domain, docs) for domain in _domains(docs)]
            self._split = (docs, corpora)
        return corpora

    async def _corpus(self, domain: Domain, docs: tuple[Document, ...]) -> Corpus:
        """Return the corpus of one domain, made only when its documents are not those of an earlier search."""
        chosen = tuple(doc for doc in docs if doc.domain == domain)
        kept, pools = self._corpora[domain], self._pools[domain]
        if (known := _taken(kept, chosen)) is not None:
            return known
        corpus = await anyio.to_thread.run_sync(self._made, domain, chosen, tuple(pools))
        if (known := _taken(kept, chosen)) is not None:
            # Another search made the same one meanwhile, and may be embedding it.
            return known
        kept.insert(0, corpus)
        del kept[KEPT_CORPORA:]
        pools[:] = [corpus.pool, *(pool for pool in pools if pool is not corpus.pool)]
        while len(pools) > FEWEST_POOLS and sum(len(pool.texts) for pool in pools) > KEPT_PASSAGES:
            gone = pools.pop()
            kept[:] = [other for other in kept if other.pool is not gone]
        return corpus

    def _made(self, domain: Domain, docs: tuple[Document, ...], pools: Sequence[Pool]) -> Corpus:
        """Return documents as a part of a pool, or make one, with every vector that is known already."""
        for pool in pools:
            if (part := Corpus.part(pool, docs)) is not None:
                return part
        model = self._embedder.model if self._embedder is not None else ""
        pool = Pool(domain, _together(pools, docs), model, self._language)
        corpus = Corpus.part(pool, docs) or Corpus.whole(domain, docs, model, self._language)
        if self._embedder is None:
            return corpus
        for other in pools:
            if not (missing := corpus.missing()):
                break
            corpus.fill(other.vectors(missing))
        if self._cache is not None and corpus.embedded_count < corpus.passage_count:
            corpus.fill(self._cache.read(list(corpus.missing())))
        return corpus

    async def _query_vectors(self, query: SearchQuery) -> Sequence[Stored]:
        """Return the vectors of the query's texts, or none when the embedder is not to be had."""
        if self._embedder is None or not query.message.strip() or self._foreign(query.message):
            return ()
        model, texts = self._embedder.model, query.texts
        keys = [vector_key(model, text) for text in texts]
        known = {key: self._queries[key] for key in keys if key in self._queries}
        if len(known) < len(keys):
            vectors = await self._embed([text for key, text in zip(keys, texts, strict=True) if key not in known])
            if vectors is None:
                return ()
            self._queries |= vectors
            while len(self._queries) > KEPT_QUERIES:
                self._queries.pop(next(iter(self._queries)))
            known |= vectors
        return [known[key] for key in keys]

    async def _embed_or_leave(self, corpora: Sequence[Corpus]) -> None:
        """Embed what is missing; with a task group to hand it to, a caller that runs out of time leaves it there."""
        unfinished = [corpus for corpus in corpora if corpus.embedded_count < corpus.passage_count]
        if not unfinished:
            return
        if self._tasks is None:
            await self._embed_missing(unfinished)
            return
        done = anyio.Event()

        async def embed() -> None:
            try:
                async with recording_apart():
                    await self._embed_missing(unfinished)
            finally:
                done.set()

        self._tasks.start_soon(supervised, "items.index", embed)
        await done.wait()

    async def _embed_missing(self, corpora: Sequence[Corpus]) -> None:
        for corpus in corpora:
            while await self._embed_some(corpus, corpora):
                pass

    async def _embed_some(self, corpus: Corpus, corpora: Sequence[Corpus]) -> bool:
        """Embed some passages of one corpus for all of them; False where none was missing or none could be had."""
        # One at a time: a second search that needs the same passages finds them done when its turn comes.
        async with self._embedding:
            before = corpus.embedded_count
            missing = list(corpus.missing().values())[:TEXTS_IN_A_ROW]
            for start in range(0, len(missing), TEXTS_AT_ONCE):
                vectors = await self._embed(missing[start : start + TEXTS_AT_ONCE])
                if vectors is None:
                    return False
                for other in corpora:
                    other.fill(vectors)
                if self._cache is not None:
                    await anyio.to_thread.run_sync(self._cache.write, corpus.to_keep(vectors))
                self._report(corpora)
            return corpus.embedded_count > before

    async def _embed(self, texts: Sequence[str]) -> Mapping[Key, Stored] | None:
        """Return vectors by key, or None when that fails or failed a moment ago."""
        if self._embedder is None:
            return None
        if not texts:
            return {}
        if self._trouble is not None and self._clock() < self._trouble.retry_at:
            return None
        model = self._embedder.model
        keys = [vector_key(model, text) for text in texts]
        try:
            vectors = dict(zip(keys, stored(await self._embedder.embed(texts)), strict=True))
        except Exception as error:  # noqa: BLE001 (whatever a model fails with, the reply does not depend on it)
            self._trouble = _worse(self._trouble, why_not(error), self._clock())
            return None
        self._trouble, self._answered = None, True
        return vectors

    def _report(self, corpora: Sequence[Corpus]) -> None:
        self.progress = (sum(c.embedded_count for c in corpora), sum(c.passage_count for c in corpora))
        if self._on_progress is not None:
            self._on_progress(*self.progress)

    @property
    def _language(self) -> str | None:
        return self._embedder.language if self._embedder is not None else None

    def _foreign(self, text: str) -> str | None:
        """Return the language of a text that the model does not understand; None where it does, or may."""
        language = language_of(text)
        return language if None not in (language, self._language) and language != self._language else None

    def _item_notes(self, query: SearchQuery, corpora: Sequence[Corpus]) -> Iterable[str]:
        """Say which items the model does not understand, unless the message is one that it does not."""
        foreign = sum((corpus.foreign for corpus in corpora if corpus.foreign), Counter[str]())
        if foreign and not self._foreign(query.message):
            named = " and ".join(sorted(language.capitalize() for language in foreign))
            count = sum(len(corpus.documents) for corpus in corpora)
            yield f"{foreign.total()} of {count} items matched by keywords only: they are in {named}{self._remedy}"

    @property
    def _remedy(self) -> str:
        known = (self._language or "").capitalize()
        return f", and the embedding model understands {known} only. Set a multilingual model: {MULTILINGUAL}"

    def _notes(
        self, query: SearchQuery, vectors: Sequence[Stored], count: int, total: int, deadline_s: float
    ) -> Iterable[str]:
        """Say what was amiss in this search."""
        if self._embedder is None:
            yield "matched by keywords only: no embedding model is configured"
        elif (language := self._foreign(query.message)) is not None:
            yield f"matched by keywords only: the message is in {language.capitalize()}{self._remedy}"
        elif self._trouble is not None:
            yield f"matched by keywords only: {self._trouble.why}"
        elif not vectors and total:
            yield f"matched by keywords only: {too_slow(self._answered, deadline_s)}"
        elif count < total:
            yield f"{total - count} of {total} passages matched by keywords only: they are still being indexed"


def too_slow(answered: bool, deadline_s: float) -> str:
    """Return why there was no vector in time; `answered` says whether the model has given any yet."""
    if answered:
        return f"the embedding model did not answer within {deadline_s:g} s"
    return "the embedding model was still loading"


def why_not(error: Exception) -> str:
    """Return what an embedder failed with, for people."""
    if isinstance(error, EmbedderError):
        return str(error)
    log.warning("embedder.failed", exc_info=error)
    return f"the embedding model failed ({type(error).__name__}); the log says more"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the embedder failed, how long it is left alone, and until when."""

    why: str
    pause_s: float
    retry_at: float


def _worse(before: Trouble | None, why: str, now: float) -> Trouble:
    """Return the trouble after one more failure: each pause is twice as long as the one before."""
    pause_s = FIRST_RETRY_S if before is None else min(2 * before.pause_s, LAST_RETRY_S)
    return Trouble(why, pause_s, now + pause_s)


def _cosine(own: Sequence[str], theirs: Sequence[str], vectors: Mapping[str, Stored]) -> float | None:
    """Return the cosine of the nearest two passages, or None where none of theirs has a vector."""
    known = [vectors[text] for text in theirs if text in vectors]
    if not known or not own:
        return None
    first, second = (np.stack(some).astype(np.float64) for some in ([vectors[text] for text in own], known))
    return round(float((first @ second.T).max()) / (SCALE * SCALE), DECIMALS)


def _together(pools: Sequence[Pool], docs: tuple[Document, ...]) -> tuple[Document, ...]:
    """Return what a new pool is made of: documents, and those of the latest pool if they are mostly the same.

    So sets that differ in what their sessions hold end up in one pool. Documents of one session stay apart.
    """
    if not pools or not all(doc.shared for doc in docs):
        return docs
    given = set(map(id, docs))
    others = [doc for doc in pools[0].documents if id(doc) not in given]
    common = len(pools[0].documents) - len(others)
    return (*docs, *others) if all(doc.shared for doc in others) and common >= len(docs) / 2 > len(others) / 2 else docs


def _taken(kept: list[Corpus], documents: tuple[Document, ...]) -> Corpus | None:
    """Return the corpus of these documents, which is the latest to be used now; None where there is none."""
    for position, corpus in enumerate(kept):
        if corpus.documents == documents:
            kept.insert(0, kept.pop(position))
            return corpus
    return None


def _domains(docs: Sequence[Document]) -> list[Domain]:
    present = {doc.domain for doc in docs}
    return [domain for domain in DOMAINS if domain in present]


async def _at_once_or_apart(
    corpus: Corpus,
    measure: Callable[[SearchQuery, Sequence[Stored]], T],
    query: SearchQuery,
    vectors: Sequence[Stored],
) -> T:
    """Measure at once what takes less than a thread would, and the rest in one."""
    if corpus.passage_count <= AT_ONCE_PASSAGES and len(query.message) <= AT_ONCE_CHARACTERS:
        return measure(query, vectors)
    return await anyio.to_thread.run_sync(measure, query, vectors)
