"""Count calls: what they used and cost, by purpose, and what each stretch of a request cost at its own price.

A provider reads a prompt from its beginning: first what it has in its cache, then what it writes there, then the rest.
So where a stretch stands decides which of the three prices it has. Calls of a turn are counted with it. A call without
a turn, such as one for a summary, is counted as unknown when it was sent, and as what it was when its end is told.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from windowpane.calls.ledger import RecordedCall
from windowpane.context.calls import CallPurpose
from windowpane.context.events import CallEnded, CallSent, Recorded
from windowpane.context.items import ItemRef
from windowpane.context.messages import Usage
from windowpane.context.request import PartKind
from windowpane.insight.compare import place_of, sent_items
from windowpane.insight.past import PastTurn
from windowpane.insight.usage import spending
from windowpane.models.prices import cost_of, cost_of_ended
from windowpane.text.render import render_step
from windowpane.text.tokens import message_tokens

NANO = 10**9
"""Money is counted in billionths of a dollar, so that sums are exact."""

AddCounters = Callable[[CallPurpose, dict[str, int]], None]


def count_calls(calls: Sequence[RecordedCall], asked: str, add: AddCounters) -> bool:
    """Count the calls of a turn; tell whether the cost of every one is known. `asked` is the model of the request."""
    by_purpose: dict[CallPurpose, list[RecordedCall]] = {}
    for call in calls:
        by_purpose.setdefault(call.purpose, []).append(call)
    for purpose, own in by_purpose.items():
        spent = spending(own, asked)
        counted = {"calls": spent.calls, "without_usage": spent.without_usage, "without_price": spent.without_price}
        add(purpose, {**counted, **_tokens(spent.usage), "cost_nano": _nano(spent.cost_usd)})
    return all(cost_of(call, asked) is not None for call in calls)


def count_call_without_turn(entry: Recorded, add: AddCounters) -> None:
    """Count what an event tells about a call that belongs to no turn."""
    match entry.event:
        case CallSent(turn=None) as sent:
            add(sent.purpose, {"calls": 1, "without_usage": 1})
        case CallEnded(turn=None, usage=Usage() as usage) as ended:
            told, cost = ended.known_usage is not None, cost_of_ended(ended, at=entry.at)
            known = {"without_usage": -int(told), "without_price": int(told and cost is None)}
            add(ended.purpose, {**known, **_tokens(usage), "cost_nano": _nano(cost)})
        case _:
            pass


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }


def _nano(cost: Decimal | None) -> int:
    return 0 if cost is None else int(cost * NANO)


@dataclass(frozen=True, slots=True)
class InputCosts:
    """What the parts and items of a request cost as input, over all calls of its turn, in billionths of a dollar."""

    parts: tuple[int, ...]
    items: dict[ItemRef, int]


def input_costs(past: PastTurn) -> InputCosts:
    """Return what each part of a request cost, in the order of its record, and each item that was sent."""
    calls = _priced_calls(past)
    context = past.context
    starts: dict[int, int] = {}
    of_kind: dict[PartKind, int] = {}
    at = 0
    # Providers read the tools before the messages.
    for place in sorted(range(len(context.parts)), key=lambda place: context.parts[place].kind != "tools"):
        part = context.parts[place]
        starts[place] = at
        of_kind.setdefault(part.kind, at)
        at += part.tokens if part.status != "left_out" else 0
    parts = tuple(
        _cost(calls, starts[place], part.tokens) if part.status != "left_out" else 0
        for place, part in enumerate(context.parts)
    )
    items: dict[ItemRef, int] = {}
    for ref, item in sent_items(context).items():
        kind = place_of(item)
        start = of_kind.get(kind, at)
        items[ref] = _cost(calls, start, item.tokens)
        of_kind[kind] = start + item.tokens
    return InputCosts(parts, items)


@dataclass(frozen=True, slots=True)
class _PricedCall:
    """A call's input: how many of its tokens one of ours was, where its cache ends, and what a token costs where."""

    factor: float
    read_until: float
    hour_until: float
    written_until: float
    read: float
    hour: float
    written: float
    plain: float

    def cost(self, start: int, tokens: int) -> float:
        first, last = start * self.factor, (start + tokens) * self.factor
        read = _overlap(first, last, 0, self.read_until)
        # What is kept for an hour stands before what is kept for minutes.
        hour = _overlap(first, last, self.read_until, self.hour_until)
        written = _overlap(first, last, self.hour_until, self.written_until)
        cached = read * self.read + hour * self.hour + written * self.written
        return cached + (last - first - read - hour - written) * self.plain


def _cost(calls: Sequence[_PricedCall], start: int, tokens: int) -> int:
    return round(sum(call.cost(start, tokens) for call in calls))


def _overlap(first: float, last: float, low: float, high: float) -> float:
    return max(min(last, high) - max(first, low), 0.0)


def _priced_calls(past: PastTurn) -> list[_PricedCall]:
    steps = [sum(map(message_tokens, render_step(step))) for step in past.steps]
    found: list[_PricedCall] = []
    for call in past.calls:
        counted = past.context.budget.used_tokens + sum(steps[: max(call.step - 1, 0)])
        if call.purpose == "answer" and call.usage and call.usage.input_tokens and counted:
            rates = _rates(call, call.usage, past.context.settings.model)
            if rates is not None:
                usage, factor = call.usage, call.usage.input_tokens / counted
                read, written = usage.cache_read_tokens, usage.cache_write_tokens
                hour = read + usage.cache_write_1h_tokens
                found.append(_PricedCall(factor, read, hour, read + written, *rates))
    return found


def _rates(call: RecordedCall, usage: Usage, asked: str) -> list[float] | None:
    """Return what a token of a call cost: read from the cache, written for an hour, written, another. None: not known.

    All are asked for as many tokens as the call had, because some prices rise with the length of the input.
    """
    whole = usage.input_tokens
    forms = (Usage(whole, 0, whole), Usage(whole, 0, 0, whole, whole), Usage(whole, 0, 0, whole), Usage(whole))
    costs = [cost_of(replace(call, usage=form), asked) for form in forms]
    plain = costs[-1]
    if plain is None:
        return None
    return [float((plain if cost is None else cost) * NANO / whole) for cost in costs]
