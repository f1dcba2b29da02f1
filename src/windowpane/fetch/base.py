"""The two ports to the web: something that reads pages and something that searches.

Both give `Fetched` values, which are data and never instruction.
"""

from dataclasses import dataclass
from typing import Protocol

from windowpane.context.fetched import Fetched

RESULTS = 8
"""How many results a search gives unless it is asked for another number."""


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How much of the world's patience one page may use. `max_bytes` counts what comes out of any compression."""

    max_bytes: int = 5 * 2**20
    deadline_s: float = 20.0
    max_redirects: int = 5


class PageReader(Protocol):
    """Turns pages into fetched context."""

    async def fetch_page(self, url: str) -> Fetched:
        """Return the page at this address, as its site gives it to every visitor.

        Raises:
            FetchRefusedError: the address, or one that it leads to, is not on the public web.
            FetchFailedError: the page did not come, or it holds no text.
        """
        ...

    async def read_page(self, url: str, *, title: str = "", text: str = "", html: str = "") -> Fetched:
        """Return a page that the caller already has, from its text or else from its HTML. Nothing is fetched.

        Raises:
            FetchRefusedError: the address is not that of a web page.
            FetchFailedError: there is no text in what was given.
        """
        ...


class SearchEngine(Protocol):
    """Finds pages on the web."""

    @property
    def name(self) -> str:
        """Return the name that configuration knows it by."""
        ...

    async def search(self, query: str, *, limit: int = RESULTS) -> tuple[Fetched, ...]:
        """Return what the engine finds, best first, each page once. Nothing found is no error.

        Raises:
            SearchEngineError: the engine cannot be reached, refuses, or answers something else.
        """
        ...

    async def aclose(self) -> None:
        """Close its connections. It cannot be used any more."""
        ...
