"""What model calls cost in US dollars.

Prices come from the list that genai-prices carries, offline. A model that is not listed has no price, which is not
the same as costing nothing.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from windowpane.context.messages import Step, Usage


def price(model: str, usage: Usage, *, at: datetime | None = None, url: str | None = None) -> Decimal | None:
    """Return what a call cost in US dollars, at the prices of that time, or None when the model has no known price.

    `model` is `provider:model`, or a model's own name when the provider is not known. `url` is where the call went: a
    provider's list price is not the price of another server that takes the same calls.
    """
    provider, colon, name = model.partition(":")
    try:
        used = PricedUsage(
            # Cached tokens are part of the input, and the list refuses a usage that says otherwise.
            input_tokens=max(usage.input_tokens, usage.cache_read_tokens + usage.cache_write_tokens),
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        called = name if colon else model
        if url is None:
            provider_id = provider.removesuffix("-responses") if colon else None
            found = calc_price(used, called, provider_id=provider_id, genai_request_timestamp=at)
        else:
            found = calc_price(used, called, provider_api_url=url, genai_request_timestamp=at)
    except (LookupError, ValueError):
        # No such model in the list, or an imported session that says something impossible.
        return None
    return found.total_price


def price_of_steps(model: str, steps: Sequence[Step], *, at: datetime | None = None) -> Decimal | None:
    """Return what all calls of a turn cost together, or None when one of them has no known price.

    `model` is the name that the request was sent under. The provider's own name for what answered is more exact, and
    is used when it is listed.
    """
    total = Decimal(0)
    for step in steps:
        cost = _price_of_step(model, step, at)
        if cost is None:
            return None
        total += cost
    return total


def _price_of_step(model: str, step: Step, at: datetime | None) -> Decimal | None:
    provider, colon, _ = model.partition(":")
    exact = price(f"{provider}:{step.model}", step.usage, at=at) if colon and step.model else None
    return price(model, step.usage, at=at) if exact is None else exact
