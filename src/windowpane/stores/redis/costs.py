"""What owners' model calls cost: for each owner and month a hash of sums by day, which expires by itself."""

from collections.abc import Iterator
from datetime import date

from windowpane.stores.append import check_name
from windowpane.stores.base import COSTS_KEPT, Cost
from windowpane.stores.redis.keys import RedisKeys
from windowpane.stores.redis.nodes import Nodes
from windowpane.stores.redis.pipeline import Command

_NANO_DOLLARS, _UNPRICED_CALLS = "nano_dollars", "unpriced_calls"
_MONTH_DAYS = 31


async def add_cost(nodes: Nodes, keys: RedisKeys, owner: str, day: date, cost: Cost) -> None:
    """Add to what an owner's model calls cost on a day."""
    check_name(owner)
    key = keys.costs(owner, day)
    kept_s = (COSTS_KEPT.days + _MONTH_DAYS) * 86_400

    def commands(_: bool) -> list[Command]:
        return [
            (b"HINCRBY", key, f"{day.day}:{_NANO_DOLLARS}".encode(), b"%d" % cost.nano_dollars),
            (b"HINCRBY", key, f"{day.day}:{_UNPRICED_CALLS}".encode(), b"%d" % cost.unpriced_calls),
            (b"EXPIRE", key, b"%d" % kept_s),
        ]

    await nodes.run(key, commands)


async def read_costs(nodes: Nodes, keys: RedisKeys, owner: str, since: date, today: date) -> dict[date, Cost]:
    """Return what an owner's model calls cost, by day."""
    check_name(owner)
    sums: dict[date, dict[str, int]] = {}
    for month in _months(since, today):
        key = keys.costs(owner, month)
        (found,) = await nodes.run(key, (b"HGETALL", key), reads=True)
        words = found if isinstance(found, list) else []
        for name, value in zip(words[::2], words[1::2], strict=True):
            if isinstance(name, bytes) and isinstance(value, bytes):
                day, _, counter = name.decode().partition(":")
                sums.setdefault(month.replace(day=int(day)), {})[counter] = int(value)
    return {
        day: Cost(counted.get(_NANO_DOLLARS, 0), counted.get(_UNPRICED_CALLS, 0))
        for day, counted in sums.items()
        if day >= since
    }


def _months(since: date, until: date) -> Iterator[date]:
    month = since.replace(day=1)
    while month <= until:
        yield month
        month = month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
