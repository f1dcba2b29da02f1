"""Tavily: `POST {url}/search` with the key as bearer token."""

from dataclasses import dataclass

import httpx2

from windowpane.certificates import trusted
from windowpane.context.fetched import Fetched
from windowpane.fetch.base import RESULTS
from windowpane.fetch.engine_http import EngineSpec, fetch_json
from windowpane.fetch.results import Hit, asked_for, fetched
from windowpane.json_codec import JsonCodec

URL = "https://api.tavily.com"
MOST_RESULTS = 20


@dataclass(frozen=True, slots=True)
class _Result:
    url: str | None = None
    title: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    results: list[_Result]


ANSWER = JsonCodec(_Answer)


class Tavily:
    """Searches through Tavily's API."""

    name = "tavily"

    def __init__(self, key: str, url: str = URL, timeout_s: float = 10.0) -> None:
        self._url = f"{url.rstrip('/')}/search"
        self._spec = EngineSpec(self.name, "check the key in `TAVILY_API_KEY`", timeout_s=timeout_s)
        headers = {"Authorization": f"Bearer {key}"}
        self._client = httpx2.AsyncClient(timeout=timeout_s, headers=headers, verify=trusted())

    async def search(self, query: str, *, limit: int = RESULTS) -> tuple[Fetched, ...]:
        """Return what is found, best first.

        Raises:
            SearchEngineError: it cannot be reached, refuses, or answers something else.
        """
        body = {"query": asked_for(query), "max_results": max(1, min(limit, MOST_RESULTS)), "search_depth": "basic"}
        request = self._client.build_request("POST", self._url, json=body)
        answer = await fetch_json(self._client, self._spec, request, ANSWER.adapter)
        return fetched(query, (Hit(hit.title, hit.url, hit.content) for hit in answer.results), limit)

    async def aclose(self) -> None:
        """Close its connections."""
        await self._client.aclose()
