"""What an owner's model calls may cost, and what they cost so far."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

Period = Literal["day", "month"]
"""A stretch of time that a limit is for, by UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLimitView:
    """A limit, and how much of it is used.

    `unpriced_calls` are calls of models that have no known price; they are not in `spent_usd`, so that may be too low.
    """

    period: Period
    limit_usd: Decimal
    spent_usd: Decimal
    unpriced_calls: int
    resets_at: datetime


@dataclass(frozen=True, slots=True)
class CostLimitsView:
    """The limits on what an owner's model calls may cost; none when nothing is limited, and then nothing is counted."""

    limits: tuple[CostLimitView, ...]
