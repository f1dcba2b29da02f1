"""What requests cost: tokens as we count them, as the provider reports them, and money.

Prices come from the list that genai-prices carries, offline. A model that is not listed has no price, which is not
the same as costing nothing. Our count is made with one tokenizer for all providers; the residual shows how far it is
from the truth, call by call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from windowpane.api.turns import UsageAnalysis
from windowpane.context.messages import Step, Usage
from windowpane.context.request import Request
from windowpane.request.messages import messages_now
from windowpane.text.tokens import count, message_tokens, tool_tokens


@dataclass(frozen=True, slots=True)
class Residual:
    """One model call's input in tokens: as we counted it and as the provider did. None: it reported nothing."""

    counted_tokens: int
    reported_tokens: int | None

    @property
    def residual_tokens(self) -> int | None:
        """Return how many tokens the provider counted beyond ours; less than zero when it counted fewer."""
        return None if self.reported_tokens is None else self.reported_tokens - self.counted_tokens


def price(model: str, usage: Usage, *, at: datetime | None = None) -> Decimal | None:
    """Return what a call cost in US dollars, at the prices of that time, or None when the model has no known price.

    `model` is `provider:model`, or a model's own name when the provider is not known.
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
        found = calc_price(
            used,
            name if colon else model,
            provider_id=provider.removesuffix("-responses") if colon else None,
            genai_request_timestamp=at,
        )
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


def residuals(request: Request, steps: Sequence[Step]) -> tuple[Residual, ...]:
    """Return for each call of a turn what we counted and what the provider reported."""
    tools = sum(map(tool_tokens, request.tools))
    return tuple(
        Residual(
            counted_tokens=tools + sum(map(message_tokens, messages_now(request, steps[:index]))),
            reported_tokens=step.usage.input_tokens or None,
        )
        for index, step in enumerate(steps)
    )


def analyse_usage(
    conversation_context: str, *, messages_stored: int, has_summary: bool, model: str, at: datetime | None = None
) -> UsageAnalysis:
    """Return how large the conversation text of a request is, and what sending it once more would cost."""
    tokens = count(conversation_context)
    return UsageAnalysis(
        context_size=len(conversation_context),
        estimated_tokens=tokens,
        messages_stored=messages_stored,
        is_compressed=has_summary,
        cost_estimate=price(model, Usage(input_tokens=tokens), at=at),
    )


def _price_of_step(model: str, step: Step, at: datetime | None) -> Decimal | None:
    provider, colon, _ = model.partition(":")
    exact = price(f"{provider}:{step.model}", step.usage, at=at) if colon and step.model else None
    return price(model, step.usage, at=at) if exact is None else exact
