"""Brave Search: `GET {url}/res/v1/web/search` with the key in `X-Subscription-Token`."""

import html
from dataclasses import dataclass, field

import httpx2

from windowpane.certificates import trusted
from windowpane.context.fetched import Fetched
from windowpane.fetch.base import RESULTS
from windowpane.fetch.engine_http import EngineSpec, fetch_json
from windowpane.fetch.results import Hit, asked_for, fetched
from windowpane.json_codec import JsonCodec

URL = "https://api.search.brave.com"
MOST_RESULTS = 20


@dataclass(frozen=True, slots=True)
class _Result:
    url: str | None = None
    title: str | None = None
    description: str | None = None
    extra_snippets: list[str] | None = None


@dataclass(frozen=True, slots=True)
class _Web:
    results: list[_Result] = field(default_factory=list[_Result])


@dataclass(frozen=True, slots=True)
class _Answer:
    type: str
    web: _Web | None = None


ANSWER = JsonCodec(_Answer)


class Brave:
    """Searches through Brave's API."""

    name = "brave"

    def __init__(self, key: str, url: str = URL, timeout_s: float = 10.0) -> None:
        self._url = f"{url.rstrip('/')}/res/v1/web/search"
        # A key that Brave does not know is answered with 422.
        self._spec = EngineSpec(self.name, "check the key in `BRAVE_API_KEY`", (401, 403, 422), timeout_s)
        headers = {"X-Subscription-Token": key, "Accept": "application/json"}
        self._client = httpx2.AsyncClient(timeout=timeout_s, headers=headers, verify=trusted())

    async def search(self, query: str, *, limit: int = RESULTS) -> tuple[Fetched, ...]:
        """Return what is found, best first.

        Raises:
            SearchEngineError: it cannot be reached, refuses, or answers something else.
        """
        params = {
            "q": asked_for(query),
            "count": str(max(1, min(limit, MOST_RESULTS))),
            "text_decorations": "false",
            "result_filter": "web",
        }
        request = self._client.build_request("GET", self._url, params=params)
        answer = await fetch_json(self._client, self._spec, request, ANSWER.adapter)
        return fetched(query, (_hit(result) for result in (answer.web or _Web()).results), limit)

    async def aclose(self) -> None:
        """Close its connections."""
        await self._client.aclose()


def _hit(result: _Result) -> Hit:
    snippets = "\n".join([result.description or "", *(result.extra_snippets or ())])
    return Hit(html.unescape(result.title or ""), result.url, html.unescape(snippets))
