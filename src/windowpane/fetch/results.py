"""Search results as fetched context, the same from every engine."""

from collections.abc import Iterable
from dataclasses import dataclass

from windowpane.context.fetched import Fetched, capped
from windowpane.errors import FetchRefusedError, InvalidInputError
from windowpane.fetch.extract import one_line, plain
from windowpane.fetch.urls import authority, normalised, page_url

QUERY_CHARACTERS = 400
QUERY_WORDS = 50
"""More than this some engines refuse."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result as an engine gives it."""

    title: str | None = None
    url: str | None = None
    snippet: str | None = None


def asked_for(query: str) -> str:
    """Return a query that every engine takes: on one line and not too long.

    Raises:
        InvalidInputError: there is nothing in it.
    """
    words = plain(query).split()[:QUERY_WORDS]
    if not words:
        raise InvalidInputError("there is nothing to search for")
    return " ".join(words)[:QUERY_CHARACTERS].rstrip()


def fetched(query: str, hits: Iterable[Hit], limit: int) -> tuple[Fetched, ...]:
    """Return the first hits that lead to pages, each page once."""
    found: dict[str, Fetched] = {}
    for hit in hits:
        try:
            address = page_url(hit.url or "")
        except FetchRefusedError:
            continue
        result = Fetched(
            kind="web_search",
            url=normalised(address),
            title=one_line(hit.title or ""),
            site_name=authority(address),
            content=capped(plain(hit.snippet or "")),
            query=query,
        )
        found.setdefault(result.url, result)
    return tuple(found.values())[: max(limit, 0)]
