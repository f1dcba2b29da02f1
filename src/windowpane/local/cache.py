"""What a session's calls read from the provider's cache, and what broke the prefix, read from the ledger."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import anyio.to_thread

from windowpane.api.comparison import BlamedItem, CacheReport, CallCache, PrefixBreak
from windowpane.api.turns import CallView, WireSpan
from windowpane.calls.ledger import RecordedCall
from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.engine import Engine
from windowpane.insight.cache.report import SeenCache, SeenCall, follow, with_owner, with_rebase
from windowpane.insight.wire import spans_of
from windowpane.local.calls import CallBuilder, priced, to_compare
from windowpane.local.parts import owner_spans
from windowpane.models.prices import cost_of

PURPOSES = ("answer", "summary")
"""Calls that send a prompt."""


async def cache_of_session(engine: Engine, session_id: SessionId) -> CacheReport:
    """Return the calls of a session as the provider's cache saw them.

    Raises:
        SessionNotFoundError: no such session.
    """
    recorded = await engine.calls.of_session(session_id)
    views = priced(recorded).calls
    calls = [(call, view) for call, view in zip(recorded, views, strict=True) if call.purpose in PURPOSES]
    sent = [await _seen(engine, session_id, call, view.number) for call, view in calls]
    seen = await anyio.to_thread.run_sync(follow, sent)
    owners = _Owners(engine, session_id, {view.number: call for call, view in calls})
    named = [await owners.named(each, sent) for each in seen]
    return _report([view for _, view in calls], named)


async def _seen(engine: Engine, session_id: SessionId, call: RecordedCall, number: int) -> SeenCall:
    wire = await engine.calls.wire(session_id, call)

    def price(usage: Usage) -> Decimal | None:
        return cost_of(replace(call, usage=usage))

    return SeenCall(
        number=number,
        purpose=call.purpose,
        model=call.model,
        url=wire.head.url if wire else "",
        at=call.started_at,
        body=wire.body.decode("utf-8", "replace") if wire and wire.body is not None else None,
        failed=call.outcome in ("error", "retried"),
        usage=call.usage,
        price=price,
    )


class _Owners:
    """Tells whose the bytes of a session's calls are, and which calls are re-bases.

    A call is compared with what it was built of when it is asked.
    """

    def __init__(self, engine: Engine, session_id: SessionId, calls: dict[int, RecordedCall]) -> None:
        self._engine = engine
        self._session_id = session_id
        self._calls = calls
        self._builders: dict[int, CallBuilder] = {}

    async def named(self, seen: SeenCache, sent: Sequence[SeenCall]) -> SeenCache:
        """Return what is known of a call with the name of what broke its prefix, and the re-base if it was one."""
        if seen.broke is None:
            return seen
        before = next(call for call in sent if call.number == seen.broke.since)
        if seen.difference is not None:
            spans = {call.number: await self._spans(call) for call in (before, seen.call)}
            seen = await anyio.to_thread.run_sync(with_owner, seen, before, spans)
        call = self._calls[seen.call.number]
        builder = await self._builder(call)
        rebase = builder.rebase(call, since=self._calls[before.number]) if builder is not None else None
        return with_rebase(seen, rebase)

    async def _builder(self, call: RecordedCall) -> CallBuilder | None:
        if call.turn is None:
            return None
        if call.turn not in self._builders:
            self._builders[call.turn] = await CallBuilder.of(self._engine, self._session_id, call.turn)
        return self._builders[call.turn]

    async def _spans(self, sent: SeenCall) -> tuple[WireSpan, ...]:
        call = self._calls[sent.number]
        builder = await self._builder(call)
        built = await builder.built(call) if builder is not None else None
        if sent.body is None:
            return ()
        if built is None:
            return await anyio.to_thread.run_sync(owner_spans, sent.body)
        as_built = await to_compare(self._engine, self._session_id, built)
        return await anyio.to_thread.run_sync(spans_of, sent.body, as_built)


def _report(views: Sequence[CallView], seen: Sequence[SeenCache]) -> CacheReport:
    calls = tuple(_line(view, each) for view, each in zip(views, seen, strict=True))
    breaks = [call.broke for call in calls if call.broke is not None]
    return CacheReport(
        calls=calls,
        read_tokens=sum(call.read_tokens or 0 for call in calls),
        written_tokens=sum(call.written_tokens or 0 for call in calls),
        plain_tokens=sum(call.plain_tokens or 0 for call in calls),
        lost_tokens=sum(broke.lost_tokens for broke in breaks),
        lost_usd=_together(breaks),
        blamed=_blamed(breaks),
    )


def _line(view: CallView, seen: SeenCache) -> CallCache:
    used = view.usage
    return CallCache(
        call=view,
        read_tokens=used.cache_read_tokens if used else None,
        written_tokens=used.cache_write_tokens if used else None,
        plain_tokens=max(used.input_tokens - used.cache_read_tokens - used.cache_write_tokens, 0) if used else None,
        expected_tokens=seen.expected_tokens,
        broke=seen.broke,
        collapse=seen.collapse,
    )


def _blamed(breaks: Sequence[PrefixBreak]) -> tuple[BlamedItem, ...]:
    by_name: dict[str, list[PrefixBreak]] = {}
    for broke in breaks:
        by_name.setdefault(broke.blamed, []).append(broke)
    found = [
        BlamedItem(
            name=name,
            breaks=len(own),
            lost_tokens=sum(broke.lost_tokens for broke in own),
            cost_usd=_together(own),
        )
        for name, own in by_name.items()
    ]
    return tuple(sorted(found, key=lambda item: (-(item.cost_usd or 0), -item.lost_tokens, item.name)))


def _together(breaks: Sequence[PrefixBreak]) -> Decimal | None:
    known = [broke.cost_usd for broke in breaks if broke.cost_usd is not None]
    return sum(known, Decimal(0)) if known else None
