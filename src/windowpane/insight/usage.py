"""What requests cost: tokens as we count them, as the provider reports them, and money.

Our count is made with one tokenizer for all providers; the residual shows how far it is from the truth, call by call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from windowpane.api.turns import UsageAnalysis
from windowpane.calls.ledger import RecordedCall
from windowpane.context.messages import Step, Usage
from windowpane.context.request import Request
from windowpane.models.prices import cost_of, price
from windowpane.request.messages import messages_now
from windowpane.text.tokens import count, counted_tokens, family_for


@dataclass(frozen=True, slots=True)
class Residual:
    """One model call's input in tokens: as we counted it and as the provider did. None: it reported nothing."""

    counted_tokens: int
    reported_tokens: int | None

    @property
    def residual_tokens(self) -> int | None:
        """Return how many tokens the provider counted beyond ours; less than zero when it counted fewer."""
        return None if self.reported_tokens is None else self.reported_tokens - self.counted_tokens


def residuals(request: Request, steps: Sequence[Step]) -> tuple[Residual, ...]:
    """Return for each call of a turn what we counted and what the provider reported."""
    family = family_for(request.context.settings)
    return tuple(
        Residual(
            counted_tokens=counted_tokens(messages_now(request, steps[:index]), request.tools, family),
            reported_tokens=step.usage.input_tokens or None,
        )
        for index, step in enumerate(steps)
    )


@dataclass(frozen=True, slots=True)
class Spending:
    """What calls used and cost together, and of how many that is not known. A call that tells only one count is one.

    `cost_usd` is the sum of the known costs, None when none is known. Of a built-in model there is nothing to be known.
    """

    calls: int
    usage: Usage
    cost_usd: Decimal | None
    without_usage: int
    without_price: int


def spending(calls: Sequence[RecordedCall], asked: str = "") -> Spending:
    """Return what calls cost together. `asked` is the model that their request named; see `cost_of`."""
    costs = [cost_of(call, asked) for call in calls]
    known = [cost for cost in costs if cost is not None]
    told = [call.known_usage is not None or call.built_in for call in calls]
    return Spending(
        calls=len(calls),
        usage=sum((call.usage for call in calls if call.usage), Usage()),
        cost_usd=sum(known, Decimal(0)) if known else None,
        without_usage=len(calls) - sum(told),
        without_price=sum(known and cost is None for known, cost in zip(told, costs, strict=True)),
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
