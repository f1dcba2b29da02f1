"""Decide whether a request goes on with the last one, or begins from another base.

Going on means that everything stands where it stood and is read from the provider's cache; what is not needed any more
is carried along at the price of reading it. A re-base drops what was idle and writes what stays again. It is forced
when an item that stands there may not be sent any more, when the conversation was summed up, and when the cache is
lost anyway. Otherwise it is a choice, and follows the rule of renting or buying: pay the rent of what is idle until the
next payment would make it more than rewriting costs, then rewrite. So the choice never costs more than twice what the
best one in hindsight would have cost.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from windowpane.context.carried import Carried, CarriedItem, DroppedItem, Rebase, RebaseCode
from windowpane.context.items import ItemRef
from windowpane.models.base import CacheRules

CHEAP_READ = 0.1
"""What reading costs where carrying is cheap: the price at which these sizes were measured (docs/lab-notes.md)."""

IDLE_TURNS = 4
"""An item is idle when so many turns have neither selected nor called it, where carrying is cheap; else fewer."""

MOST_TOOLS = 40
"""How many tools a re-base takes along, those that were used last."""

WINDOW_SHARE = 0.4
"""How much of the window the history may take."""

CHEAP_SIZE, SIZE_POWER = 8000, 0.65
"""How many tokens of history are carried where that is cheap, and how fast that falls with the price of reading."""

FRESH_TOKENS = 3000
"""How many tokens of history are sent whole where nothing is kept."""

SHRINKS_BY = 0.25
"""A history that is too long is worth a re-base only when that drops at least this share of what it may be."""


def history_limit(rules: CacheRules | None, window_tokens: int) -> int:
    """Return how many tokens of history are carried before it is summed up.

    Rent grows with the square of the length, rewriting only with it, so the best length falls about with the root of
    the price of reading: 8,000 tokens at 0.1, 2,800 at 0.5. `rules` is None where nothing is kept.
    """
    read = max(rules.read, CHEAP_READ) if rules else 1.0
    size = FRESH_TOKENS if rules is None else int(CHEAP_SIZE * (CHEAP_READ / read) ** SIZE_POWER)
    return min(size, int(window_tokens * WINDOW_SHARE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a decision depends on.

    `listed`: all tools stand in one list before everything else. `chosen` is what this message needs, `gone` what may
    not be sent any more and why. `history_tokens` is what the messages take that are sent whole, from `first_turn` on;
    `through_seq` is where the summary ends. `broken` says that the request does not go on with the last one, whatever
    is decided here.
    """

    turn: int
    at: datetime
    model: str
    rules: CacheRules
    window_tokens: int
    listed: bool = False
    history_tokens: int = 0
    first_turn: int = 0
    through_seq: int = 0
    chosen: Collection[ItemRef] = ()
    gone: Mapping[ItemRef, str] = field(default_factory=dict[ItemRef, str])
    broken: tuple[RebaseCode, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryPlan:
    """What stands in the request from before. `moved` are tools that go to the head of the history."""

    standing: tuple[CarriedItem, ...] = ()
    dropped: tuple[DroppedItem, ...] = ()
    moved: tuple[ItemRef, ...] = ()
    rebase: Rebase | None = None
    rent_tokens: float = 0.0


def decide(carried: Carried, now: Circumstances) -> CarryPlan:
    """Return what stands of what is carried, and the re-base if there is one."""
    items = tuple(item for item in carried.items if item.turn < now.turn)
    if carried.prefix is None:
        return CarryPlan()
    idle = {item.ref for item in items if _is_idle(item, now)}
    idle_tokens = sum(item.tokens for item in items if item.ref in idle)
    reason = _forced(carried, items, idle_tokens, now)
    rent = now.rules.read * idle_tokens
    rewritten = _rewritten(carried, reason[0] if reason else "carrying_cost", items, idle | set(now.gone), now.listed)
    if reason is None and pays(carried.rent_tokens, rent, _price(now.rules, rewritten)):
        paid = f"carrying {idle_tokens} idle tokens would have cost more than writing {rewritten} tokens again"
        reason = ("carrying_cost", paid)
    if reason is None:
        return CarryPlan(standing=items, rent_tokens=carried.rent_tokens + rent)
    return _rebased(carried, items, idle, now, reason, rewritten)


def pays(paid_tokens: float, rent_tokens: float, price_tokens: float) -> bool:
    """Tell whether to rewrite instead of paying the rent once more: the next payment would make it the dearer way."""
    return rent_tokens > 0 and paid_tokens + rent_tokens > price_tokens


def is_cold(carried: Carried, rules: CacheRules, at: datetime) -> bool:
    """Tell whether the provider has forgotten what it read."""
    return rules.ttl is not None and carried.at is not None and at - carried.at > rules.ttl


def idle_turns(rules: CacheRules) -> int:
    """Return how many turns an item may be unused before it is idle: the dearer carrying is, the fewer."""
    return max(1, round(IDLE_TURNS * CHEAP_READ / max(rules.read, CHEAP_READ)))


def _is_idle(item: CarriedItem, now: Circumstances) -> bool:
    return item.ref not in now.chosen and now.turn - item.used > idle_turns(now.rules)


def _forced(
    carried: Carried, items: Iterable[CarriedItem], idle_tokens: int, now: Circumstances
) -> tuple[RebaseCode, str] | None:
    if now.broken is not None:
        return now.broken
    if carried.turn >= now.turn:
        return "size", "the model refused the request as too long"
    if gone := next((item for item in items if item.ref in now.gone), None):
        return "item", f"{gone.ref} {now.gone[gone.ref]}"
    if carried.model != now.model:
        return "model", f"the model was {carried.model} before"
    if carried.through_seq != now.through_seq:
        return "size", "the conversation had grown long, and its beginning was summed up"
    limit = history_limit(now.rules, now.window_tokens)
    if idle_tokens and is_cold(carried, now.rules, now.at):
        return "cold", "the provider had forgotten the conversation"
    standing = now.history_tokens + sum(item.tokens for item in items)
    if standing > limit and idle_tokens >= limit * SHRINKS_BY:
        return "size", f"the history had {standing} tokens and {limit} is the limit"
    return None


def _rewritten(
    carried: Carried, code: RebaseCode, items: Iterable[CarriedItem], left: Collection[ItemRef], listed: bool
) -> int:
    """Return how many tokens that were read from the cache would be written again."""
    prefix = carried.prefix
    if prefix is None:
        return 0
    leaving = [item for item in items if item.ref in left]
    first = code in ("tools", "model", "cold") or (listed and any(item.type == "tool" for item in leaving))
    kept = 0 if first else prefix.tools_tokens
    kept += 0 if first or code == "system" else prefix.system_tokens
    return max(prefix.tokens - kept - sum(item.tokens for item in leaving), 0)


def _price(rules: CacheRules, rewritten_tokens: int) -> float:
    return (rules.write - rules.read) * rewritten_tokens


def _rebased(
    carried: Carried,
    items: Iterable[CarriedItem],
    idle: Collection[ItemRef],
    now: Circumstances,
    reason: tuple[RebaseCode, str],
    rewritten: int,
) -> CarryPlan:
    code, why = reason
    left: dict[ItemRef, str] = {}
    for item in items:
        if item.ref in now.gone:
            left[item.ref] = now.gone[item.ref]
        elif item.ref in idle:
            left[item.ref] = f"not needed since turn {item.used}"
        elif item.type != "tool" and item.turn < now.first_turn:
            left[item.ref] = f"the message of turn {item.turn}, which it was for, was summed up"
    tools = [item for item in items if item.type == "tool" and item.ref not in left]
    latest = sorted(tools, key=lambda item: (item.ref in now.chosen, item.used, item.turn), reverse=True)
    left |= {item.ref: f"the {MOST_TOOLS} tools that were used last stay" for item in latest[MOST_TOOLS:]}
    # What the provider has forgotten is written again whether this is a re-base or not.
    lost = code == "model" or is_cold(carried, now.rules, now.at)
    price = 0.0 if lost else round(_price(now.rules, rewritten), 1)
    dollars = None if now.rules.input_usd is None else round(price * now.rules.input_usd, 8)
    return CarryPlan(
        standing=tuple(
            replace(item, place=0) if item.type == "tool" else item for item in items if item.ref not in left
        ),
        dropped=tuple(dropped_item(item, left[item.ref]) for item in items if item.ref in left),
        moved=tuple(item.ref for item in tools if item.ref not in left),
        rebase=Rebase(
            code=code,
            reason=why,
            rewritten_tokens=0 if lost else rewritten,
            price_tokens=price,
            price_usd=dollars,
            item=next((str(item.ref) for item in items if item.ref in now.gone), "") if code == "item" else "",
        ),
    )


def dropped_item(item: CarriedItem, reason: str) -> DroppedItem:
    """Return a carried item as one that left."""
    return DroppedItem(
        type=item.type, name=item.name, server=item.server, turn=item.turn, tokens=item.tokens, reason=reason
    )
