"""Limit what the model calls of each owner may cost, a day and a month, for all workers together.

Every call that this server makes for an owner is counted in the store when it has ended: those of turns, summaries and
searches, those that were made again and those that broke off. A turn begins only while its owner is below every limit.
Turns that run already go on, so what an owner spends can exceed a limit by what the turns cost that ran at that moment.
Calls without a known cost are counted by number and cost nothing here.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import anyio
import anyio.to_thread

from windowpane.api.analytics import CostLimitView, Period
from windowpane.calls.recorder import current_recorder
from windowpane.context.calls import known_usage
from windowpane.context.events import CallEnded
from windowpane.context.ids import BlobHash, owner_of
from windowpane.context.messages import is_built_in
from windowpane.context.request import CallSettings, OfferedTool, ReplyOptions, RequestMessage
from windowpane.errors import CostLimitError, StoreError
from windowpane.models.base import NO_FILES, ChatModel, Models, ModelStep, ModelText
from windowpane.models.prices import FREE, cost_of_ended, price_of_answer
from windowpane.remarks import get_logger
from windowpane.stores.base import Cost, Store

NANO = 10**9
COUNT_WITHIN_S = 5.0
"""How long a turn that was stopped waits for its cost to be counted."""

log = get_logger()


@dataclass(frozen=True, slots=True)
class CostLimits:
    """What each owner's model calls may cost, in US dollars; None: any amount."""

    per_day_usd: Decimal | None = None
    per_month_usd: Decimal | None = None


class Costs:
    """What owners spend, and whether they may spend more. Without a limit nothing is counted."""

    def __init__(
        self,
        store: Store,
        models: Models,
        limits: CostLimits,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._models = models
        self._limits: dict[Period, Decimal] = {}
        if limits.per_day_usd is not None:
            self._limits["day"] = limits.per_day_usd
        if limits.per_month_usd is not None:
            self._limits["month"] = limits.per_month_usd
        self._clock = clock

    def open(self, owner: str, model: str) -> ChatModel:
        """Return a model whose calls are counted for an owner.

        Raises:
            UnknownModelError: no such provider, or it is not set up.
        """
        opened = self._models.open(model)
        return _CountedModel(opened, owner, self._count) if self._limits else opened

    async def opened(self, owner: str, model: str) -> ChatModel:
        """Return what `open` does; in a thread where that takes long: a provider's client is loaded for a second."""
        is_quick = self._models.is_open(model)
        return self.open(owner, model) if is_quick else await anyio.to_thread.run_sync(self.open, owner, model)

    async def check(self, owner: str) -> None:
        """Make sure that an owner may begin a turn.

        Raises:
            CostLimitError: a limit is reached.
        """
        reached = [limit for limit in await self.limits(owner) if limit.spent_usd >= limit.limit_usd]
        if reached:
            last = max(reached, key=lambda limit: limit.resets_at)
            raise CostLimitError(last.period, last.limit_usd, last.spent_usd, last.resets_at, now=self._clock())

    async def limits(self, owner: str) -> tuple[CostLimitView, ...]:
        """Return every limit, and how much of it an owner has used."""
        if not self._limits:
            return ()
        today = self._clock().date()
        by_day = await self._store.costs(owner_of(owner), since=today.replace(day=1))
        found: list[CostLimitView] = []
        for period, limit_usd in self._limits.items():
            first, resets_on = _span(period, today)
            spent = sum((cost for day, cost in by_day.items() if first <= day < resets_on), Cost())
            found.append(
                CostLimitView(
                    period=period,
                    limit_usd=limit_usd,
                    spent_usd=Decimal(spent.nano_dollars) / NANO,
                    unpriced_calls=spent.unpriced_calls,
                    resets_at=datetime.combine(resets_on, time(), UTC),
                )
            )
        return tuple(found)

    async def count_ended(self, owner: str, ended: Sequence[CallEnded]) -> None:
        """Add what calls cost that have ended."""
        if self._limits:
            await self._count(owner, [cost_of_ended(call) for call in ended])

    async def _count(self, owner: str, costs: Sequence[Decimal | None]) -> None:
        """Add what calls cost; None is a cost that is not known."""
        nano = sum(round(cost * NANO) for cost in costs if cost is not None)
        try:
            await self._store.add_cost(owner_of(owner), self._clock().date(), Cost(nano, costs.count(None)))
        except StoreError as error:
            # The answer is worth more than the count.
            log.warning("cost.not_counted", owner=owner_of(owner), code=error.code, why=str(error))


class _CountedModel:
    """A model whose calls are counted for an owner."""

    def __init__(
        self, model: ChatModel, owner: str, count: Callable[[str, Sequence[Decimal | None]], Awaitable[None]]
    ) -> None:
        self._model = model
        self._owner = owner
        self._count = count

    @property
    def name(self) -> str:
        """Return the name it was opened with."""
        return self._model.name

    def remember(self, text: str, own_words: str) -> None:
        """Take back the `own_words` of an earlier step of the turn; see `ChatModel.remember`."""
        self._model.remember(text, own_words)

    def ignored(self, options: ReplyOptions) -> tuple[str, ...]:
        """Return the sampling parameters that are not taken; see `ChatModel.ignored`."""
        return self._model.ignored(options)

    async def stream(
        self,
        messages: Sequence[RequestMessage],
        tools: Sequence[OfferedTool],
        settings: CallSettings,
        files: Mapping[BlobHash, str] = NO_FILES,
    ) -> AsyncGenerator[ModelText | ModelStep]:
        """Call the model once, and count what that cost before the end is told; see `ChatModel.stream`."""
        last: ModelStep | None = None
        try:
            async with aclosing(self._model.stream(messages, tools, settings, files)) as events:
                async for event in events:
                    if isinstance(event, ModelStep):
                        last = event
                    else:
                        yield event
        finally:
            # Also when the answer broke off or was stopped: the provider counts it too.
            with anyio.move_on_after(COUNT_WITHIN_S, shield=True):
                await self._count_ended(settings, last)
        if last is not None:
            yield last

    async def _count_ended(self, settings: CallSettings, last: ModelStep | None) -> None:
        recorder = current_recorder()
        ended = recorder.unpaid() if recorder is not None else []
        costs = [cost_of_ended(call) for call in ended]
        if not ended and last is not None:
            # The wire was not seen.
            step = last.step
            used = known_usage(step.usage, output_unknown=False)
            unreported = FREE if is_built_in(step.model) else None
            costs = [price_of_answer(settings.model, step.model, used, own=settings.price) if used else unreported]
        if costs:
            await self._count(self._owner, costs)


def _span(period: Period, today: date) -> tuple[date, date]:
    """Return the first day of the present period, and the first of the next."""
    if period == "day":
        return today, today + timedelta(days=1)
    first = today.replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)
