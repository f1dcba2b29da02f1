"""The time as stores keep it: UTC, in whole microseconds since 1970."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def now_us() -> int:
    """Return the wall clock's time."""
    return to_us(datetime.now(UTC))


def next_fence(fence: int, now: int) -> int:
    """Return the number of a lease that is taken now, after one with this number."""
    return max(fence + 1, now)


def to_us(at: datetime) -> int:
    """Return a time as microseconds, exactly."""
    return (at - _EPOCH) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    """Return microseconds as a time in UTC, exactly."""
    return _EPOCH + timedelta(microseconds=microseconds)
