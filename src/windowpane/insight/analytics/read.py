"""Read counted rows: what filters and days mean in SQL.

Whole months are read as such and only the days around them one by one, so that a dashboard over a million turns reads
a few thousand rows.
"""

from collections.abc import Iterator
from datetime import date
from typing import Any

from windowpane.api.analytics import Filters
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.insight.analytics.tables import DAY, EVERYONE, MONTH


def read_counts(
    analytics: AnalyticsStore, table: str, filters: Filters, columns: str, then: str, *, by_day: bool = False
) -> list[Any]:
    """Return columns of the rows that count, of whole months where that is enough and of days around them."""
    clauses: list[str] = []
    values: list[Any] = []
    for span, first, last in _spans(filters, by_day=by_day):
        where, wanted = _where(filters)
        clauses.append(f"SELECT * FROM {table} WHERE {where} AND span = {span} AND day BETWEEN {first} AND {last}")  # noqa: S608 – names of ours, and numbers
        values += wanted
    return analytics.rows(f"SELECT {columns} FROM ({' UNION ALL '.join(clauses)}) AS counted {then}", values)  # noqa: S608 – names of ours


def name_of(column: str) -> str:
    """Return the expression for the text that a column stands for."""
    return f"(SELECT text FROM name WHERE pk = {column})"  # noqa: S608 – a column of ours


def sessions_where(filters: Filters) -> tuple[str, list[Any]]:
    """Return those of the filters that mean something for a session as it is now."""
    where, values = _where(Filters(owner=filters.owner, agent=filters.agent))
    own = where if filters.owner is not None else where.replace(f"owner = {EVERYONE}", "1 = 1")
    return f"gone = 0 AND {own}", values


def _where(filters: Filters) -> tuple[str, list[Any]]:
    owner = f"owner = {EVERYONE}" if filters.owner is None else "owner = (SELECT pk FROM name WHERE text = ?)"
    clauses, values = [owner], list[Any]() if filters.owner is None else [filters.owner]
    for column in ("agent", "model"):
        wanted = getattr(filters, column)
        if wanted is not None:
            clauses.append(f"{column} = (SELECT pk FROM name WHERE text = ?)")  # noqa: S608 – a column of ours
            values.append(wanted)
    return " AND ".join(clauses), values


def _spans(filters: Filters, *, by_day: bool) -> Iterator[tuple[int, int, int]]:
    """Return stretches of rows, each with its first and last day: whole months, and the days before and after."""
    first = filters.since.toordinal() if filters.since else 1
    last = filters.until.toordinal() if filters.until else date.max.toordinal()
    # The first day of the first whole month, and of the first month that is not whole any more.
    whole = first if filters.since is None else _month_from(filters.since)
    end = last + 1 if filters.until in (None, date.max) else _month_of(last + 1)
    if by_day or whole >= end:
        yield DAY, first, last
        return
    yield MONTH, whole, end - 1
    if first < whole:
        yield DAY, first, whole - 1
    if end <= last:
        yield DAY, end, last


def _month_of(day: int) -> int:
    return date.fromordinal(day).replace(day=1).toordinal()


def _month_from(day: date) -> int:
    """Return the first day of a month that is not before this day; of the very last month, the day after."""
    if day.day == 1:
        return day.toordinal()
    if (day.year, day.month) == (date.max.year, 12):
        return date.max.toordinal() + 1
    return date(day.year + day.month // 12, day.month % 12 + 1, 1).toordinal()
