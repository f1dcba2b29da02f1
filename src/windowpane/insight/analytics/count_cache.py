"""Count what broke the beginning of prompts, and whether providers read what they should have from their caches.

Both are in the log: each request says why it does not go on with the last one and how much of it should be read again,
each step what the provider reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from windowpane.context.carried import CarryChange, Rebase
from windowpane.context.events import Recorded, RequestBuilt
from windowpane.context.messages import Step
from windowpane.insight.analytics.count_calls import NANO
from windowpane.insight.cache.report import collapsed


@dataclass(frozen=True, slots=True)
class CountedCache:
    """What a turn adds: counters of the turn, and those of each re-base by its code and its item."""

    counters: dict[str, int] = field(default_factory=dict[str, int])
    rebases: tuple[tuple[str, str, dict[str, int]], ...] = ()


def count_cache(events: Sequence[Recorded], steps: Sequence[Step]) -> CountedCache:
    """Return what the events of one turn say about the cache."""
    changes = [entry.event.carry for entry in events if isinstance(entry.event, RequestBuilt) and entry.event.carry]
    rebases = [change.rebase for change in changes if change.rebase is not None]
    counters = _reads(changes[0], steps[0]) if changes and steps else {}
    if rebases:
        counters |= {"rebases": len(rebases), "rebase_nano": sum(map(_nano, rebases))}
    return CountedCache(counters, tuple((rebase.code, rebase.item, _counted(rebase)) for rebase in rebases))


def _reads(change: CarryChange, first: Step) -> dict[str, int]:
    """Return what should have been read by the first call of a turn, and what was, where the provider tells."""
    expected, usage = change.prefix.expected_tokens, first.usage
    told = change.prefix.input_usd is not None or usage.cache_read_tokens or usage.cache_write_tokens
    if not usage.input_tokens or not told:
        return {}
    counters = {"expected_tokens": expected, "expected_read_tokens": usage.cache_read_tokens}
    missing = expected - usage.cache_read_tokens
    return counters | ({"collapses": 1, "missing_tokens": missing} if collapsed(expected, missing) else {})


def _counted(rebase: Rebase) -> dict[str, int]:
    return {"rebases": 1, "rewritten_tokens": rebase.rewritten_tokens, "cost_nano": _nano(rebase)}


def _nano(rebase: Rebase) -> int:
    return round((rebase.price_usd or 0.0) * NANO)
