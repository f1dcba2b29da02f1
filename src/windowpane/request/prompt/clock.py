"""Tell the model what time it is where the user is.

The time is that of the turn, to the minute, in the user's zone. A time that the user's own clock showed is told on a
line of its own: it was true when it was reported, and a session may go on for days after that.

A local time that a change of clocks makes doubtful has one meaning. One that comes twice is the first of the two; one
that is skipped counts on from before the change, so 02:30 on the morning without it is 03:30.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from windowpane.errors import InvalidSettingError

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HEADING = "# Time"
_FIRST_YEAR, _LAST_YEAR = 1970, 9998
_LONGEST_ZONE = 64
_QUOTED_CHARACTERS = 64


def time_context(time_zone: str | None, user_time: str | None, now: datetime) -> str | None:
    """Return what the model is told about the time, or None when nothing is known about the user's time.

    A zone or a time that means nothing is said to, and the time is told in UTC.
    """
    if not time_zone and not user_time:
        return None
    zone = _zone(time_zone) if time_zone else None
    lines = [*(_local(zone, now) if zone else _no_zone(time_zone)), f"UTC: {_moment(now.astimezone(UTC))}"]
    if user_time:
        lines.append(_reported(user_time, time_zone if zone else None, zone))
    return "\n".join((HEADING, "", *lines))


def parse_user_time(text: str, time_zone: str | None = None) -> datetime:
    """Return a time in ISO 8601 as UTC. Without an offset it is the time in the zone, or UTC when there is none.

    Raises:
        InvalidSettingError: the text is not a date and a time, or the zone is needed and there is no such zone.
    """
    try:
        # A date alone has at most ten characters, and no clock shows that.
        parsed = datetime.fromisoformat(text.strip()) if len(text.strip()) > len("2026-02-03") else None
    except ValueError:
        parsed = None
    if parsed is None:
        raise InvalidSettingError("user_time", f"{_quoted(text)} is not a time; write it like 2026-02-03T07:00:00")
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=known_zone(time_zone) if time_zone else UTC)
    if not _FIRST_YEAR <= parsed.year <= _LAST_YEAR:
        raise InvalidSettingError("user_time", f"the year {parsed.year} is not one that a clock shows")
    return parsed.astimezone(UTC)


def known_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name.

    Raises:
        InvalidSettingError: there is no such zone.
    """
    zone = _zone(name)
    if zone is None:
        raise InvalidSettingError("time_zone", f"there is no zone {_quoted(name)}; write it like Europe/Berlin")
    return zone


def _zone(name: str) -> ZoneInfo | None:
    if len(name) > _LONGEST_ZONE:
        return None
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        # A name is also a path below the zone files: it may be missing, malformed, a folder or another kind of file.
        return None


def _local(zone: ZoneInfo, now: datetime) -> list[str]:
    local = now.astimezone(zone)
    abbreviation = local.tzname() or ""
    names = f"{zone.key} ({abbreviation})" if abbreviation.isalpha() and abbreviation != zone.key else zone.key
    return [
        f"Time zone: {names}, UTC{_offset(local)}",
        f"Local date: {WEEKDAYS[local.weekday()]}, {local:%Y-%m-%d}",
        f"Local time: {local:%H:%M}",
    ]


def _no_zone(time_zone: str | None) -> list[str]:
    if not time_zone:
        return ["Time zone: not known"]
    return [f"Time zone: not known; the session names {_quoted(time_zone)}, and there is no such zone"]


def _reported(user_time: str, time_zone: str | None, zone: ZoneInfo | None) -> str:
    try:
        at = parse_user_time(user_time, time_zone)
    except InvalidSettingError:
        return f"The user's clock, as last reported, cannot be read: {_quoted(user_time)}"
    return f"The user's clock, as last reported: {_moment(at.astimezone(zone or UTC))}{'' if zone else ' UTC'}"


def _moment(at: datetime) -> str:
    return f"{WEEKDAYS[at.weekday()]}, {at:%Y-%m-%d %H:%M}"


def _offset(at: datetime) -> str:
    return at.isoformat(timespec="minutes")[len("2026-02-03T07:00") :]


def _quoted(text: str) -> str:
    """Return a text as a short line that cannot end, whatever it holds."""
    return ascii(text if len(text) <= _QUOTED_CHARACTERS else f"{text[:_QUOTED_CHARACTERS]}…")
