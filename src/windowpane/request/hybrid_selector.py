"""Select by meaning and words: the index measures, `select` decides, every candidate comes back with its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.to_thread

from windowpane.context.items import Item
from windowpane.context.messages import Message, Utterance
from windowpane.context.request import CandidateColumns, Evidence, Query, unless_empty
from windowpane.request.selector import Chosen, NoSelector, Selection
from windowpane.search.base import SearchQuery, SearchResult
from windowpane.search.documents import Document
from windowpane.search.follow_up import finds_enough, goes_on, may_go_on, repeats
from windowpane.search.index import AT_ONCE_CHARACTERS, ItemIndex
from windowpane.search.query import alone, latest, related, said, with_turns
from windowpane.search.select import Decision, select
from windowpane.search.settings import SearchSettings, search_settings, written_out

AT_ONCE = 300
"""More candidates than this are decided about in a thread."""


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
        asked, result = await self._searched(read.text, recent, documents, wanted)
        decide = partial(_decided, candidates, asked, result, wanted)
        # Of very many in a thread, so that other requests are not held up.
        chosen, left_out = decide() if len(candidates) <= AT_ONCE else await anyio.to_thread.run_sync(decide)
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
    ) -> tuple[SearchQuery, SearchResult]:
        """Search for a message by itself and, where it finds little and goes on with the turn before, with that."""
        await self._index.ready(documents)
        ends_at = anyio.current_time() + wanted.deadline_s
        turns = said(recent)
        asked, mixed, by_user = await _queries(message, turns, related(recent))
        result = await self._index.search(asked, documents, deadline_s=wanted.deadline_s)
        if wanted.context == "off" or mixed is None or (finds_enough(message, result) and not mixed.named):
            return asked, result
        last = latest(turns)
        nearness = await self._index.nearness(message, last, deadline_s=_left(ends_at))
        if nearness is not None and by_user is not None and turns[-1].role == "assistant":
            answer = await self._index.search(SearchQuery(last), documents, deadline_s=_left(ends_at))
            mixed = by_user if repeats(answer) else mixed
        if not may_go_on(mixed, nearness, result):
            return asked, result
        found = await self._index.search(mixed, documents, deadline_s=_left(ends_at))
        if _lost_meaning(result, found):
            # The turn before was not embedded in time. What the message says by itself is better than words alone.
            return asked, replace(result, degraded=found.degraded)
        return (mixed, found) if goes_on(mixed, nearness, result, found) else (asked, result)


async def _queries(
    message: str, turns: Sequence[Utterance], titles: Sequence[str]
) -> tuple[SearchQuery, SearchQuery | None, SearchQuery | None]:
    """Return what to search for: the message by itself, with the turn before it, with what the user said before."""

    def read() -> tuple[SearchQuery, SearchQuery | None, SearchQuery | None]:
        by_user = with_turns(message, turns, titles, answers=False)
        return alone(message, turns), with_turns(message, turns, titles), by_user

    # Of a very long message in a thread, so that others are not held up.
    return read() if len(message) <= AT_ONCE_CHARACTERS else await anyio.to_thread.run_sync(read)


def _left(ends_at: float) -> float:
    return max(ends_at - anyio.current_time(), 0.0)


def _lost_meaning(before: SearchResult, after: SearchResult) -> bool:
    return any(b.by_words_alone and not a.by_words_alone for a, b in zip(before, after, strict=True))


def _decided(
    candidates: Sequence[Item], asked: SearchQuery, result: SearchResult, wanted: SearchSettings
) -> tuple[tuple[Chosen, ...], CandidateColumns]:
    """Return what is taken and what is left out, best first."""
    choices = [choice for measured in result.domains for choice in select(measured, asked, wanted.of(measured.domain))]
    choices.sort(key=lambda choice: (-choice.score, choice.key.sort_key))
    kept = {choice.key: choice for choice in choices if choice.kept}
    items = {item.ref: item for item in candidates if item.ref in kept}
    chosen = tuple(Chosen(items[key], _evidence(choice), choice.reason) for key, choice in kept.items())
    return chosen, _left_out([choice for choice in choices if not choice.kept])


def _left_out(choices: Sequence[Decision]) -> CandidateColumns:
    keys = [choice.key for choice in choices]
    return CandidateColumns(
        type=[key.type for key in keys],
        name=[key.name for key in keys],
        code=[choice.code for choice in choices],
        reason=[choice.reason for choice in choices],
        server=unless_empty([key.server for key in keys]),
        score=unless_empty([choice.score for choice in choices]),
        meaning=unless_empty([choice.meaning for choice in choices]),
        words=unless_empty([choice.words for choice in choices]),
        rank=unless_empty([choice.rank for choice in choices]),
        passage=unless_empty([choice.passage for choice in choices]),
        cut_off=unless_empty([choice.cut_off for choice in choices]),
        floor=unless_empty([choice.floor for choice in choices]),
    )


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
