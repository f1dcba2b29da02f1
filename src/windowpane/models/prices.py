"""What model calls cost in US dollars.

An agent may say what its models cost. Otherwise prices come from the list that genai-prices carries, offline: that is
what the provider itself takes, so a server at another address has no list price. A model without a price is not the
same as one that costs nothing, and a call whose provider did not report input and output has no known cost. Built-in
models have no provider: they are free.
"""

from datetime import datetime
from decimal import Decimal

from windowpane.calls.ledger import RecordedCall
from windowpane.context.calls import CallEnded, ModelPrice
from windowpane.context.messages import Usage, is_built_in

MILLION = 1_000_000
FREE = Decimal(0)


def price(
    model: str, usage: Usage, *, at: datetime | None = None, url: str | None = None, own: ModelPrice | None = None
) -> Decimal | None:
    """Return what a call cost in US dollars, at the prices of that time, or None when the model has no known price.

    `model` is `provider:model`, or a model's own name when the provider is not known. `url` is where the call went: a
    provider's list price is not the price of another server that takes the same calls. `own` is what the agent says.
    """
    if own is not None:
        return _own_price(own, usage)
    if url is None and is_built_in(model):
        return FREE
    # Not at the top: the list takes a while to load, and most commands ask for no price.
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    provider, colon, name = model.partition(":")
    try:
        used = PricedUsage(
            # Cached tokens are part of the input, and the list refuses a usage that says otherwise.
            input_tokens=max(usage.input_tokens, usage.cache_read_tokens + usage.cache_write_tokens),
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cache_write_1h_tokens=usage.cache_write_1h_tokens,
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


def cost_of(call: RecordedCall, asked: str = "") -> Decimal | None:
    """Return what a call cost, or None when that is not known.

    `asked` is the model that the request named. It helps where the wire was not seen: then a call has the name by
    which the provider calls what answered, which is more exact where it is listed.
    """
    used = call.known_usage
    if used is None and call.built_in:
        return FREE
    if used is None or (call.seen and not call.address):
        return None
    if call.seen:
        return price(call.model, used, at=call.started_at, url=call.address, own=call.price)
    return price_of_answer(asked, call.model, used, at=call.started_at, own=call.price)


def cost_of_ended(ended: CallEnded, *, at: datetime | None = None) -> Decimal | None:
    """Return what a call cost by its end alone, or None when that is not known."""
    used = ended.known_usage
    return used and price(ended.model, used, at=at, url=ended.address, own=ended.price)


def price_of_answer(
    asked: str, answered: str, usage: Usage, *, at: datetime | None = None, own: ModelPrice | None = None
) -> Decimal | None:
    """Return what an answer cost whose wire was not seen: of the model `asked`, which calls itself `answered`.

    A built-in model answers under its own name. Where it was asked for and another answered, that was a caller's own.
    """
    provider, colon, _ = asked.partition(":")
    names = (f"{provider}:{answered}" if colon and answered else answered, "" if is_built_in(asked) else asked)
    costs = (price(name, usage, at=at, own=own) for name in names if name)
    return next((cost for cost in costs if cost is not None), None)


def _own_price(own: ModelPrice, usage: Usage) -> Decimal:
    plain = max(usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens, 0)
    written = own.input if own.cache_write is None else own.cache_write
    taken = (
        (plain, own.input),
        (usage.cache_read_tokens, own.input if own.cache_read is None else own.cache_read),
        (usage.cache_write_tokens - usage.cache_write_1h_tokens, written),
        (usage.cache_write_1h_tokens, written if own.cache_write_1h is None else own.cache_write_1h),
        (usage.output_tokens, own.output),
    )
    return sum((tokens * Decimal(str(dollars)) for tokens, dollars in taken), Decimal(0)) / MILLION
