"""Select by meaning and words: the index measures, `select` decides, every candidate comes back with its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import anyio.to_thread

from windowpane.context.items import Item, ItemRef
from windowpane.context.messages import Message
from windowpane.context.request import Candidate, Evidence, Query
from windowpane.request.selector import Chosen, NoSelector, Selection
from windowpane.search.base import SearchQuery
from windowpane.search.index import AT_ONCE_CHARACTERS, ItemIndex
from windowpane.search.query import query, related, said
from windowpane.search.select import Decision, select
from windowpane.search.settings import search_settings, written_out


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
        asked = await self._asked(message, recent)
        items = {item.ref: item for item in candidates}
        result = await self._index.search(asked, self._index.documents(candidates), deadline_s=wanted.deadline_s)
        choices = [
            choice for measured in result.domains for choice in select(measured, asked, wanted.of(measured.domain))
        ]
        choices.sort(key=lambda choice: (-choice.score, choice.key.sort_key))
        return Selection(
            query=Query(
                text=asked.context if asked.context_share else asked.message,
                reason=asked.reason,
                context_share=asked.context_share,
                clauses=asked.clauses,
                small_talk=asked.small_talk,
            ),
            chosen=tuple(_chosen(items, choice) for choice in choices if choice.kept),
            left_out=tuple(_left_out(choice) for choice in choices if not choice.kept),
            degraded=result.degraded,
            search=written_out(wanted),
        )

    async def _asked(self, message: str, recent: Sequence[Message]) -> SearchQuery:
        """Work out what is asked; of a very long message in a thread, so that others are not held up."""
        if len(message) <= AT_ONCE_CHARACTERS:
            return query(message, said(recent), related(recent))
        return await anyio.to_thread.run_sync(query, message, said(recent), related(recent))


def _chosen(items: Mapping[ItemRef, Item], choice: Decision) -> Chosen:
    return Chosen(items[choice.key], _evidence(choice), choice.reason)


def _left_out(choice: Decision) -> Candidate:
    return Candidate(
        type=choice.key.type,
        name=choice.key.name,
        server=choice.key.server,
        code=choice.code,
        reason=choice.reason,
        evidence=_evidence(choice),
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
