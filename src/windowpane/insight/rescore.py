"""The selection of a past turn from its record: every candidate's score, to be decided about under any settings.

Scores are those that were recorded, never measured again: the same record gives the same decisions for good, also when
the embedding model or the weights of the evidence have changed since.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windowpane.context.items import Domain, ItemRef
from windowpane.context.request import Evidence, Query, RequestContext
from windowpane.search.base import Measurements, PassageFinder, SearchQuery
from windowpane.search.chunks import Chunk
from windowpane.search.documents import DOMAINS
from windowpane.search.select import DomainSelection, decide
from windowpane.search.settings import SearchSettings, SelectSettings, search_settings

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scored:
    """The candidates of one domain, with the scores that they got."""

    measured: Measurements
    scores: Floats
    query: SearchQuery

    def under(self, settings: SelectSettings) -> DomainSelection:
        """Return what is decided about each under these settings."""
        return decide(self.measured, self.scores, self.query, settings)


def scored(context: RequestContext) -> dict[Domain, Scored]:
    """Return the candidates of a past turn that had a score, taken or not, by domain."""
    return scored_candidates(_evidence(context), context.query)


def scored_candidates(candidates: Iterable[tuple[ItemRef, Evidence]], asked: Query) -> dict[Domain, Scored]:
    """Return candidates with their scores, by domain."""
    found = sorted(candidates, key=lambda pair: pair[0].sort_key)
    query = search_query(asked)
    by_domain: dict[Domain, list[tuple[ItemRef, Evidence]]] = {
        domain: [pair for pair in found if domain_of(pair[0]) == domain] for domain in DOMAINS
    }
    return {
        domain: Scored(_measured(domain, pairs), np.array([evidence.score for _, evidence in pairs]), query)
        for domain, pairs in by_domain.items()
        if pairs
    }


def settings_of(context: RequestContext) -> SearchSettings | None:
    """Return the settings that a past selection had, or None when its record does not say."""
    return search_settings(context.search) if context.search else None


def domain_of(ref: ItemRef) -> Domain:
    """Return which settings apply to an item."""
    return "tool" if ref.type == "tool" else "text"


def search_query(query: Query) -> SearchQuery:
    """Return what a past selection looked for, as far as decisions depend on it."""
    return SearchQuery(
        query.text,
        context_share=query.context_share,
        clauses=query.clauses,
        small_talk=query.small_talk,
        reason=query.reason,
    )


def _evidence(context: RequestContext) -> Iterator[tuple[ItemRef, Evidence]]:
    for item in context.items:
        if item.evidence is not None:
            yield item.ref, item.evidence
    for candidate in context.candidates:
        if candidate.evidence is not None:
            yield candidate.ref, candidate.evidence


def _measured(domain: Domain, pairs: list[tuple[ItemRef, Evidence]]) -> Measurements:
    passages = tuple(
        (Chunk(e.passage.start, e.passage.end, e.passage.text) if e.passage else Chunk(0, 0, ""),) for _, e in pairs
    )
    places = np.arange(len(pairs), dtype=np.intp)
    return Measurements(
        domain,
        tuple(ref for ref, _ in pairs),
        np.array([np.nan if evidence.meaning is None else evidence.meaning for _, evidence in pairs], float),
        np.array([evidence.words or 0.0 for _, evidence in pairs], float),
        places,
        PassageFinder(passages, places, np.zeros(len(pairs), np.float32)),
    )
