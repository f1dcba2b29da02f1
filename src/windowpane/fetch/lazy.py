"""Pages whose reader is loaded when the first of them is needed: an HTTP client and its certificates take a while."""

from collections.abc import Callable
from functools import cached_property

from windowpane.context.fetched import Fetched
from windowpane.fetch.base import PageReader


class LazyPages:
    """The reader that a function returns, once there is a page to read."""

    def __init__(self, make: Callable[[], PageReader]) -> None:
        self._make = make

    async def fetch_page(self, url: str) -> Fetched:
        """Return the page at this address; see `PageReader.fetch_page`."""
        return await self._pages.fetch_page(url)

    async def read_page(self, url: str, *, title: str = "", text: str = "", html: str = "") -> Fetched:
        """Return a page that the caller already has; see `PageReader.read_page`."""
        return await self._pages.read_page(url, title=title, text=text, html=html)

    @cached_property
    def _pages(self) -> PageReader:
        return self._make()
