"""The selection port: which of an agent's `agent` items one message needs.

Whatever selects, every candidate comes back, chosen or left out, with the evidence and the reason. The engine is
given one `Selector`; `NoSelector` is the one for agents that switched selection off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from windowpane.context.items import Item
from windowpane.context.messages import Message
from windowpane.context.request import Candidate, CandidateColumns, Evidence, Query, unless_empty
from windowpane.second_loop import Bring


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate that this request takes in, and why."""

    item: Item
    evidence: Evidence
    reason: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Every candidate's fate, best first, what the selection looked for, and all its settings."""

    query: Query
    chosen: tuple[Chosen, ...] = ()
    left_out: Sequence[Candidate] = ()
    degraded: tuple[str, ...] = ()
    search: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Selects(Protocol):
    """Anything that can choose, and is open."""

    async def select(
        self, message: str, recent: Sequence[Message], candidates: Sequence[Item], settings: Mapping[str, Any]
    ) -> Selection:
        """Return which candidates the message needs, given the conversation before it."""
        ...


class Selector(Selects, Protocol):
    """Anything that can choose. It is opened by `async with`."""

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...


class PlacedSelector:
    """A selector for callers on any loop. The engine opens it on the loop where it lives."""

    def __init__(self, selector: Selects, bring: Bring) -> None:
        self._selector = selector
        self._bring = bring

    async def select(
        self, message: str, recent: Sequence[Message], candidates: Sequence[Item], settings: Mapping[str, Any]
    ) -> Selection:
        """Return which candidates the message needs, given the conversation before it."""
        return await self._bring(self._selector.select, message, recent, candidates, settings)


class _Stateless:
    """Needs no opening."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class NoSelector(_Stateless):
    """Choose nothing and say so."""

    async def select(
        self, message: str, recent: Sequence[Message], candidates: Sequence[Item], settings: Mapping[str, Any]
    ) -> Selection:
        """Leave every candidate out because selection is off."""
        return Selection(
            query=Query(text=message, reason="selection is off"),
            left_out=CandidateColumns(
                type=[item.ref.type for item in candidates],
                name=[item.name for item in candidates],
                server=unless_empty([item.ref.server for item in candidates]),
                code=["selection_off"] * len(candidates),
                reason=["selection is off; add the item by hand to include it"] * len(candidates),
            ),
        )


class FixedSelector(_Stateless):
    """Choose by a table: which refs, with which score, for which message. For tests and worked examples."""

    def __init__(self, table: Mapping[str, Mapping[str, float]]) -> None:
        self._table = table

    async def select(
        self, message: str, recent: Sequence[Message], candidates: Sequence[Item], settings: Mapping[str, Any]
    ) -> Selection:
        """Return the candidates that the table names for this message."""
        scores = self._table.get(message, {})
        chosen = [item for item in candidates if str(item.ref) in scores]
        chosen.sort(key=lambda item: -scores[str(item.ref)])
        return Selection(
            query=Query(text=message),
            chosen=tuple(Chosen(item, Evidence(scores[str(item.ref)]), "named by the table") for item in chosen),
            left_out=tuple(
                Candidate(
                    type=item.ref.type,
                    name=item.name,
                    server=item.ref.server,
                    code="not_named",
                    reason="not in the table",
                )
                for item in candidates
                if item not in chosen
            ),
        )
