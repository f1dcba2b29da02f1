"""What each part of a call weighs: its share of the tokens that the provider counted, and of what they cost."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from windowpane.api.turns import SentKind, SentPart
from windowpane.api.xray import SentShare
from windowpane.calls.parts.body import CutPart
from windowpane.context.messages import Usage
from windowpane.text.tokens import count

ATTACHMENT_TOKENS = 1_500
"""What an attachment without words is taken to weigh, about a picture of a screen, until the provider counts it."""

Price = Callable[[Usage], Decimal | None]
"""Tells what a usage costs at the price of the call."""


@dataclass(slots=True)
class PartWeights:
    """Weighs the parts of calls. Texts that were counted in one call are not counted again in the next."""

    _counted: dict[str, int]

    def __init__(self) -> None:
        self._counted = {}

    def weigh(self, body: str, parts: Sequence[CutPart], usage: Usage | None, price: Price) -> tuple[SentPart, ...]:
        """Return the parts of a body with tokens and cost. Their tokens add up to what the provider counted."""
        own = [self._own(part) for part in parts]
        tokens = _shared_out(own, usage.input_tokens) if usage is not None and usage.input_tokens else own
        costs = _costs(parts, tokens, usage, price)
        return tuple(
            SentPart(
                kind=part.kind,
                name=part.name,
                start=part.start,
                end=part.end,
                bytes=len(body[part.start : part.end].encode("utf-8", "surrogatepass")),
                tokens=weight,
                cost_usd=cost,
            )
            for part, weight, cost in zip(parts, tokens, costs, strict=True)
        )

    def _own(self, part: CutPart) -> int:
        if part.kind == "attachment" and not part.text:
            return ATTACHMENT_TOKENS
        if part.text not in self._counted:
            self._counted[part.text] = count(part.text)
        return self._counted[part.text]


def by_kind(parts: Sequence[SentPart]) -> tuple[SentShare, ...]:
    """Return what the parts of each kind take together, the largest first."""
    kinds: dict[SentKind, list[SentPart]] = defaultdict(list)
    for part in parts:
        kinds[part.kind].append(part)
    found = [
        SentShare(
            kind=kind,
            parts=len(own),
            bytes=sum(part.bytes for part in own),
            tokens=sum(part.tokens for part in own),
            cost_usd=_sum([part.cost_usd for part in own]),
        )
        for kind, own in kinds.items()
    ]
    return tuple(sorted(found, key=lambda share: (-share.tokens, -share.bytes, share.kind)))


def _shared_out(own: Sequence[int], whole: int) -> list[int]:
    """Return whole numbers in the proportion of `own` that add up to `whole`."""
    together = sum(own)
    if not together:
        return [whole if place == 0 else 0 for place in range(len(own))]
    shares = [weight * whole // together for weight in own]
    rests = sorted(range(len(own)), key=lambda place: (-(own[place] * whole % together), place))
    for place in rests[: whole - sum(shares)]:
        shares[place] += 1
    return shares


def _costs(
    parts: Sequence[CutPart], tokens: Sequence[int], usage: Usage | None, price: Price
) -> Sequence[Decimal | None]:
    """Return what each part cost. The beginning of a prompt is what was read from the cache, what follows was written.

    The provider reads tools first, then the system prompt, then messages, however the body has them.
    """
    rates = _rates(usage, price)
    if rates is None or usage is None:
        return [None] * len(parts)
    costs: list[Decimal | None] = [None] * len(parts)
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    # What is kept for an hour stands before what is kept for minutes.
    steps = [read, read + usage.cache_write_1h_tokens, read + written, sum(tokens)]
    at = 0
    for place in sorted(range(len(parts)), key=lambda place: (parts[place].rank, parts[place].start)):
        end, cost, begin = at + tokens[place], Decimal(0), 0
        for step, rate in zip(steps, rates, strict=True):
            cost += max(0, min(end, step) - max(at, begin)) * rate
            begin = max(begin, step)
        costs[place], at = cost, end
    return costs


def _rates(usage: Usage | None, price: Price) -> Sequence[Decimal] | None:
    """Return what a token costs in a call of this size that was read from the cache, written for an hour, written, and
    neither.
    """
    if usage is None or not usage.input_tokens:
        return None
    whole = usage.input_tokens
    asked = (
        Usage(input_tokens=whole, cache_read_tokens=whole),
        Usage(input_tokens=whole, cache_write_tokens=whole, cache_write_1h_tokens=whole),
        Usage(input_tokens=whole, cache_write_tokens=whole),
        Usage(input_tokens=whole),
    )
    told = [cost for each in asked if (cost := price(each)) is not None]
    return [cost / whole for cost in told] if len(told) == len(asked) else None


def _sum(costs: Sequence[Decimal | None]) -> Decimal | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if known else None
