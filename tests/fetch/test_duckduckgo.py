"""DuckDuckGo with the real client: a proxy on the loopback address stands for the way to the engine.

The client asks the proxy for a tunnel to the engine, and inside it speaks TLS to whoever has a certificate for the
engine's name from an authority that it is told to trust.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from fetch.certificates import Authority, authority
from fetch.site import listening
from windowpane.context.fetched import Fetched
from windowpane.errors import SearchEngineError
from windowpane.fetch.base import SearchEngine
from windowpane.fetch.engines import open_engine_by_name

HOST = "html.duckduckgo.com"
RESULTS = """<html><body><div id="links" class="results">
<div class="result results_links web-result"><div class="links_main links_deep result__body">
<h2 class="result__title"><a class="result__a" href="https://daily.example/tea">Tea is <b>rising</b></a></h2>
<a class="result__snippet" href="https://daily.example/tea">Sales of <b>tea</b>
rose by 12 %, growers&#x27; report says.</a>
</div></div>
<div class="result results_links web-result"><div class="links_main links_deep result__body">
<h2 class="result__title"><a class="result__a" href="https://duckduckgo.com/y.js?ad">Buy tea</a></h2>
<a class="result__snippet" href="https://duckduckgo.com/y.js?ad_domain=shop.example">An advertisement</a>
</div></div>
</div></body></html>"""


@asynccontextmanager
async def tunnel(ours: Authority, status: int, body: str, asked: list[dict[str, list[str]]]) -> AsyncGenerator[str]:
    """Run a proxy that leads every tunnel to one answer; give its address."""
    context = ours.server_context(HOST)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.drain()
        await writer.start_tls(context)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        size = int(head.partition("content-length:")[2].split("\r\n")[0])
        asked.append(parse_qs((await reader.readexactly(size)).decode()))
        raw = body.encode()
        first = f"HTTP/1.1 {status} Played\r\nContent-Type: text/html\r\nContent-Length: {len(raw)}\r\n\r\n"
        writer.write(first.encode() + raw)
        await writer.drain()

    async with listening(serve) as port:
        yield f"http://127.0.0.1:{port}"


def opened(proxy: str, ours: Authority) -> SearchEngine:
    options = {"proxy": proxy, "ca_file": str(ours.ca_file), "timeout_s": 20}
    return open_engine_by_name("duckduckgo", options, {})


@pytest.mark.spec("S4.28", "S4.54")
async def test_duckduckgo_gives_results_without_advertisements(tmp_path: Path) -> None:
    ours, asked = authority(tmp_path), list[dict[str, list[str]]]()
    async with tunnel(ours, 200, RESULTS, asked) as proxy:
        engine = opened(proxy, ours)

        found = await engine.search("tea prices", limit=5)

        assert found == (
            Fetched(
                kind="web_search",
                url="https://daily.example/tea",
                title="Tea is rising",
                site_name="daily.example",
                content="Sales of tea rose by 12 %, growers' report says.",
                query="tea prices",
            ),
        )
        assert [form["q"] for form in asked] == [["tea prices"]]
        await engine.aclose()


async def test_duckduckgo_without_results_gives_none(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    async with tunnel(ours, 200, "<html><body>No results.</body></html>", []) as proxy:
        assert await opened(proxy, ours).search("tea prices") == ()


async def test_duckduckgo_that_cannot_be_reached_says_so(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    async with tunnel(ours, 200, "", []) as proxy:
        gone = proxy

    with pytest.raises(SearchEngineError) as failed:
        await opened(gone, ours).search("tea prices")

    assert str(failed.value) == (
        "search with duckduckgo failed: it cannot be reached or answers something else; "
        "try again later, or choose another engine"
    )


async def test_duckduckgo_that_keeps_silent_runs_into_the_deadline(tmp_path: Path) -> None:
    async def keep_silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(keep_silent) as port:
        options = {"proxy": f"http://127.0.0.1:{port}", "ca_file": str(authority(tmp_path).ca_file), "timeout_s": 1}

        with pytest.raises(SearchEngineError) as failed:
            await open_engine_by_name("duckduckgo", options, {}).search("tea prices")

        assert str(failed.value) == (
            "search with duckduckgo failed: no answer within 1 s; try again, or choose another engine"
        )
