"""SearXNG, a search engine of one's own: `GET {url}/search?format=json`."""

from dataclasses import dataclass, field

import httpx2

from windowpane.certificates import trusted
from windowpane.context.fetched import Fetched
from windowpane.errors import SearchEngineError
from windowpane.fetch.base import RESULTS
from windowpane.fetch.engine_http import EngineSpec, fetch_json
from windowpane.fetch.results import Hit, asked_for, fetched
from windowpane.json_codec import JsonCodec


@dataclass(frozen=True, slots=True)
class _Result:
    url: str | None = None
    title: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    results: list[_Result]
    unresponsive_engines: list[list[str | None]] = field(default_factory=list[list[str | None]])


ANSWER = JsonCodec(_Answer)


class SearXNG:
    """Searches through one SearXNG instance."""

    name = "searxng"

    def __init__(self, url: str, timeout_s: float = 10.0) -> None:
        self._url = f"{url.rstrip('/')}/search"
        self._spec = EngineSpec(
            self.name, "add `json` to `search.formats` in its settings.yml, and check its limiter", timeout_s=timeout_s
        )
        self._client = httpx2.AsyncClient(timeout=timeout_s, verify=trusted())

    async def search(self, query: str, *, limit: int = RESULTS) -> tuple[Fetched, ...]:
        """Return what is found, best first.

        Raises:
            SearchEngineError: it cannot be reached, refuses, answers something else, or none of its engines answers.
        """
        asked = asked_for(query)
        request = self._client.build_request("GET", self._url, params={"q": asked, "format": "json"})
        answer = await fetch_json(self._client, self._spec, request, ANSWER.adapter)
        if not answer.results and answer.unresponsive_engines:
            names = ", ".join(sorted(str(engine[0]) for engine in answer.unresponsive_engines if engine))
            raise SearchEngineError(self.name, f"its engines do not answer ({names[:200]}); try again later")
        return fetched(query, (Hit(hit.title, hit.url, hit.content) for hit in answer.results), limit)

    async def aclose(self) -> None:
        """Close its connections."""
        await self._client.aclose()
