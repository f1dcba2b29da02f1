"""DuckDuckGo through the `ddgs` package, which reads its result pages and has an HTTP client of its own.

`ddgs` is an extra, so this module is imported only when the engine is chosen.
"""

from functools import partial

import anyio
import anyio.to_thread
from ddgs.ddgs import DDGS
from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

from windowpane.context.fetched import Fetched
from windowpane.errors import SearchEngineError
from windowpane.fetch.base import RESULTS
from windowpane.fetch.results import Hit, asked_for, fetched

NOTHING_FOUND = "No results found."
MARGIN_S = 5.0


class DuckDuckGo:
    """Searches through `ddgs`; `backend` is one of the engines that `ddgs` knows, or `auto` for several."""

    name = "duckduckgo"

    def __init__(
        self,
        *,
        timeout_s: float = 10.0,
        backend: str = "duckduckgo",
        region: str = "us-en",
        proxy: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._backend = backend
        self._region = region
        self._client = DDGS(proxy=proxy, timeout=max(1, round(timeout_s)), verify=ca_file or True)

    async def search(self, query: str, *, limit: int = RESULTS) -> tuple[Fetched, ...]:
        """Return what is found, best first.

        Raises:
            SearchEngineError: it cannot be reached, or limits the rate.
        """
        text = partial(
            self._client.text, asked_for(query), max_results=limit, backend=self._backend, region=self._region
        )
        try:
            with anyio.fail_after(self._timeout_s + MARGIN_S):
                found = await anyio.to_thread.run_sync(text, abandon_on_cancel=True)
        except (TimeoutError, TimeoutException):
            why = f"no answer within {self._timeout_s:g} s; try again, or choose another engine"
            raise SearchEngineError(self.name, why) from None
        except RatelimitException:
            raise SearchEngineError(self.name, "rate limit; try again later") from None
        except DDGSException as error:
            if str(error) == NOTHING_FOUND:
                return ()
            why = "it cannot be reached or answers something else; try again later, or choose another engine"
            raise SearchEngineError(self.name, why) from error
        return fetched(query, (Hit(hit.get("title"), hit.get("href"), hit.get("body")) for hit in found), limit)

    async def aclose(self) -> None:
        """Do nothing: `ddgs` keeps no connections that could be closed."""
