"""Pages of sessions: where one ends and the next begins.

Sessions are listed by (touched_at, id), last first. A cursor names the last row of a page, so rows that move to the
front while a caller turns pages are not shown twice.
"""

from collections.abc import Sequence
from datetime import datetime

from windowpane.errors import InvalidInputError
from windowpane.stores.base import SessionPage, SessionRow
from windowpane.stores.clock import to_us

ListPosition = tuple[int, str]
"""A row's position in the list: when it was touched, in microseconds, and its id."""


def page(rows: Sequence[SessionRow], limit: int) -> SessionPage:
    """Return the first `limit` of these rows as a page; one row more tells that there is a next page."""
    shown = tuple(rows[:limit])
    return SessionPage(shown, _cursor(shown[-1]) if len(rows) > limit else None)


def parse_cursor(cursor: str | None) -> ListPosition | None:
    """Return the position that a cursor names.

    Raises:
        InvalidInputError: it is not a cursor of ours.
    """
    if cursor is None:
        return None
    touched, dot, session_id = cursor.partition(".")
    if not (dot and touched.isascii() and touched.isdecimal() and len(touched) < _DIGITS):
        raise InvalidInputError(f"{cursor!r} is not a cursor; start again without one")
    return int(touched), session_id


def list_position(touched_at: datetime, session_id: str) -> ListPosition:
    """Return a row's position in the list."""
    return to_us(touched_at), session_id


def cursor_before(at: datetime) -> str:
    """Return the cursor of the sessions that were last touched before this time."""
    return f"{to_us(at)}."


def check_limit(limit: int | None) -> None:
    """Refuse a limit that would show nothing."""
    if limit is not None and limit < 1:
        raise InvalidInputError(f"limit must be at least 1, not {limit}")


_DIGITS = 19


def _cursor(row: SessionRow) -> str:
    touched, session_id = list_position(row.touched_at, row.id)
    return f"{touched}.{session_id}"
