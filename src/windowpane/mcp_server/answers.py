"""What a request contains and why, as an MCP host is told it: from a preview, or from the record of a turn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from windowpane.context.items import IncludeMode
from windowpane.context.request import ContextItem, ItemStatus, RequestContext
from windowpane.errors import InvalidInputError
from windowpane.insight.view import summary


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFate:
    """An item of a request: how it came in, what became of it and why."""

    item: str
    include_mode: IncludeMode
    status: ItemStatus
    reason: str
    tokens: int
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An item that was considered for a request and left out, or that its session does not have."""

    item: str
    reason: str
    score: float | None


# Without slots: the library takes the slots of a tool's result for default values.
@dataclass(frozen=True, kw_only=True)
class SearchAnswer:
    """What a message would bring into a request. `query` is what was searched for on its behalf."""

    query: str
    summary: str
    items: tuple[ItemFate, ...]
    left_out: tuple[LeftOut, ...]
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFate:
    """A stretch of a request that is not an item."""

    kind: str
    name: str
    status: str
    reason: str
    tokens: int


# Without slots: the library takes the slots of a tool's result for default values.
@dataclass(frozen=True, kw_only=True)
class Explained:
    """What a turn's request contained, from its record. With an item in the question, only that item is in it."""

    turn: int
    query: str
    summary: str
    items: tuple[ItemFate, ...]
    left_out: tuple[LeftOut, ...]
    parts: tuple[PartFate, ...]
    used_tokens: int
    window_tokens: int
    degraded: tuple[str, ...]


def found(context: RequestContext) -> SearchAnswer:
    """Return what a message would bring into its request."""
    return SearchAnswer(
        query=context.query.text,
        summary=summary(context),
        items=_fates(context.items),
        left_out=_left_out(context),
        degraded=context.degraded,
    )


def explained(context: RequestContext, item: str | None = None) -> Explained:
    """Return what a turn's request contained, or what became of one item in it.

    Raises:
        InvalidInputError: the request did not consider the item.
    """
    whole = Explained(
        turn=context.turn,
        query=context.query.text,
        summary=summary(context),
        items=_fates(context.items),
        left_out=_left_out(context),
        parts=tuple(
            PartFate(kind=part.kind, name=part.name, status=part.status, reason=part.reason, tokens=part.tokens)
            for part in context.parts
        ),
        used_tokens=context.budget.used_tokens,
        window_tokens=context.budget.window_tokens,
        degraded=context.degraded,
    )
    return whole if item is None else _about(whole, item)


def _about(whole: Explained, item: str) -> Explained:
    known = [fate.item for fate in (*whole.items, *whole.left_out)]
    if item not in known:
        close = get_close_matches(item, known, n=3)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise InvalidInputError(f"turn {whole.turn} did not consider {item!r}{hint}")
    return replace(
        whole,
        items=tuple(fate for fate in whole.items if fate.item == item),
        left_out=tuple(fate for fate in whole.left_out if fate.item == item),
        parts=(),
    )


def _fates(items: Sequence[ContextItem]) -> tuple[ItemFate, ...]:
    return tuple(
        ItemFate(
            item=str(item.ref),
            include_mode=item.include_mode,
            status=item.status,
            reason=item.reason,
            tokens=item.tokens,
            score=item.similarity_score,
        )
        for item in items
    )


def _left_out(context: RequestContext) -> tuple[LeftOut, ...]:
    asked_for = {item.ref for item in context.items if item.found}
    absent = tuple(LeftOut(item=str(absent.ref), reason=absent.reason, score=None) for absent in context.absent)
    return absent + tuple(
        LeftOut(
            item=str(candidate.ref),
            reason=candidate.reason,
            score=candidate.evidence.score if candidate.evidence else None,
        )
        for candidate in context.candidates
        if candidate.ref not in asked_for
    )
