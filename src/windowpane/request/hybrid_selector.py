"""Select by meaning and words: the index measures, `select` decides, every candidate comes back with its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.to_thread
import numpy as np

from windowpane.context.items import Item
from windowpane.context.messages import Message, Utterance
from windowpane.context.request import CandidateColumns, Evidence, Query
from windowpane.request.selector import Chosen, NoSelector, Selection
from windowpane.search.base import Floats, SearchQuery, SearchResult
from windowpane.search.documents import Document
from windowpane.search.follow_up import finds_enough, goes_on, is_tied, may_go_on, repeats, ties
from windowpane.search.index import AT_ONCE_CHARACTERS, ItemIndex
from windowpane.search.query import after_echo, alone, latest, related, said_last, with_turns, with_users_turns
from windowpane.search.select import Decision, calibrated, decide
from windowpane.search.settings import SearchSettings, search_settings, written_out

AT_ONCE = 1_000
"""So many candidates are decided about in a good half of a millisecond; more of them in a thread."""


class HybridSelector:
    """The selector that agents have unless they switch selection off."""

    def __init__(self, index: ItemIndex) -> None:
        self._index = index

    @property
    def progress(self) -> tuple[int, int] | None:
        """Return how many passages are embedded, and out of how many; None while nothing was searched."""
        return self._index.progress

    async def __aenter__(self) -> Self:
        await self._index.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._index.__aexit__(kind, error, trace)

    async def select(
        self, message: str, recent: Sequence[Message], candidates: Sequence[Item], settings: Mapping[str, Any]
    ) -> Selection:
        """Return which candidates the message needs; best first.

        Raises:
            InvalidSettingError: the search settings cannot be used.
        """
        wanted = search_settings(settings)
        if not wanted.enabled:
            off = await NoSelector().select(message, recent, candidates, settings)
            return replace(off, search=written_out(wanted))
        if not candidates:
            return Selection(
                query=Query(text=message, reason="the agent has no items to select from"), search=written_out(wanted)
            )
        documents = self._index.documents(candidates)
        read = await self._index.mended(message, documents)
        asked, result, scores = await self._searched(read.text, recent, documents, wanted)
        decided = partial(_decided, candidates, asked, result, scores, wanted)
        # Of very many in a thread, so that other requests are not held up.
        chosen, left_out = decided() if len(candidates) <= AT_ONCE else await anyio.to_thread.run_sync(decided)
        return Selection(
            query=Query(
                text=asked.context if asked.context_share else asked.message,
                reason="; ".join(note for note in (asked.reason, read.note) if note),
                context_share=asked.context_share,
                clauses=asked.clauses,
                small_talk=asked.small_talk,
            ),
            chosen=chosen,
            left_out=left_out,
            degraded=result.degraded,
            search=written_out(wanted),
        )

    async def _searched(
        self, message: str, recent: Sequence[Message], documents: Sequence[Document], wanted: SearchSettings
    ) -> tuple[SearchQuery, SearchResult, Sequence[Floats]]:
        """Search for a message by itself and, where it finds little and goes on with the turn before, with that."""
        await self._index.ready(documents)
        ends_at = anyio.current_time() + wanted.deadline_s
        turns = said_last(recent)
        asked, mixed = await _queries(message, turns, related(recent))
        result = await self._index.search(asked, documents, deadline_s=wanted.deadline_s)
        scores = _scores(result)
        if wanted.context == "off" or mixed is None or (finds_enough(message, scores) and not mixed.named):
            return asked, result, scores
        if after_echo(recent) and not is_tied(message) and not mixed.named:
            return asked, result, scores
        last = latest(turns)
        nearness = await self._index.nearness(message, last, deadline_s=_left(ends_at))
        by_user = with_users_turns(mixed, turns) if turns[-1].role == "assistant" else None
        if nearness is not None and by_user is not None:
            answer = await self._index.meanings(last, documents, deadline_s=_left(ends_at))
            mixed = by_user if repeats(answer) else mixed
        tied = ties(mixed)
        if not may_go_on(tied, nearness, result):
            return asked, result, scores
        found = await self._index.search(mixed, documents, deadline_s=_left(ends_at))
        if _lost_meaning(result, found):
            # The turn before was not embedded in time. What the message says by itself is better than words alone.
            return asked, replace(result, degraded=found.degraded), scores
        together = _scores(found)
        return (mixed, found, together) if goes_on(tied, nearness, result, together) else (asked, result, scores)


async def _queries(
    message: str, turns: Sequence[Utterance], titles: Sequence[str]
) -> tuple[SearchQuery, SearchQuery | None]:
    """Return what to search for: the message by itself, and with the turn before it."""

    def read() -> tuple[SearchQuery, SearchQuery | None]:
        asked = alone(message, turns)
        return asked, with_turns(asked, turns, titles)

    # Of a very long message in a thread, so that others are not held up.
    return read() if len(message) <= AT_ONCE_CHARACTERS else await anyio.to_thread.run_sync(read)


def _left(ends_at: float) -> float:
    return max(ends_at - anyio.current_time(), 0.0)


def _lost_meaning(before: SearchResult, after: SearchResult) -> bool:
    return any(b.by_words_alone and not a.by_words_alone for a, b in zip(before, after, strict=True))


def _scores(result: SearchResult) -> Sequence[Floats]:
    """Return the score of every candidate, domain by domain."""
    return [calibrated(measured, result.query.context_share) for measured in result]


def _decided(
    candidates: Sequence[Item],
    asked: SearchQuery,
    result: SearchResult,
    scores: Sequence[Floats],
    wanted: SearchSettings,
) -> tuple[tuple[Chosen, ...], CandidateColumns]:
    """Return what is taken and what is left out, best first."""
    domains = [
        decide(measured, found, asked, wanted.of(measured.domain))
        for measured, found in zip(result, scores, strict=True)
    ]
    kept = sorted((one for domain in domains for one in domain.kept), key=lambda one: (-one.score, one.key.sort_key))
    names = {one.key.name for one in kept}
    items = {item.ref: item for item in candidates if item.name in names}
    chosen = tuple(Chosen(items[one.key], _evidence(one), one.reason) for one in kept)
    return chosen, _merged([domain.left_out for domain in domains])


def _merged(domains: Sequence[CandidateColumns]) -> CandidateColumns:
    """Return the candidates of all domains, best first, as those of each domain are."""
    several = [columns for columns in domains if len(columns)]
    if len(several) <= 1:
        return several[0] if several else domains[0]
    scores = np.array([score for columns in several for score in columns.score or ()], float)
    # Stable: with the same score, rules and references stand before tools, as everywhere.
    pick = itemgetter(*np.argsort(-scores, kind="stable").tolist())
    merged: dict[str, Any] = {}
    for field in fields(CandidateColumns):
        found = [getattr(columns, field.name) for columns in several]
        filled = [column or [None] * len(columns) for column, columns in zip(found, several, strict=True)]
        merged[field.name] = list(pick([*chain.from_iterable(filled)])) if any(found) else None
    return CandidateColumns(**merged)


def _evidence(choice: Decision) -> Evidence:
    return Evidence(
        score=choice.score,
        meaning=choice.meaning,
        words=choice.words,
        rank=choice.rank,
        passage=choice.passage,
        cut_off=choice.cut_off,
        floor=choice.floor,
    )
