from typing import Any

import pytest

from windowpane.context.fetched import Fetched
from windowpane.errors import InvalidInputError, InvalidSettingError, SearchEngineError
from windowpane.fetch.base import SearchEngine
from windowpane.fetch.engines import Options, open_engine_by_name
from wire.server import JSON, Answer, json_answer, running

KEY = "planted-key-0123456789"
KEYS = {"BRAVE_API_KEY": KEY, "TAVILY_API_KEY": f" {KEY}\n"}

SEARXNG_ANSWER: dict[str, Any] = {
    "query": "tea prices",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://Daily.example/tea#now",
            "title": "Tea is rising",
            "content": "Sales of tea rose by 12 %.",
            "thumbnail": None,
            "engine": "duckduckgo",
            "parsed_url": ["https", "daily.example", "/tea", "", "", ""],
            "engines": ["duckduckgo", "brave"],
            "positions": [1, 2],
            "score": 3.0,
            "category": "general",
            "publishedDate": None,
        },
        {"url": "https://daily.example/tea", "title": "The same page", "content": "again", "engine": "bing"},
        {"url": "magnet:?xt=urn:btih:0", "title": "no page", "content": "", "engine": "x"},
        {"url": "https://tea.example:8443/", "title": "Tea", "content": None, "engine": "bing"},
        {"url": "https://third.example/", "title": "Third", "content": "Third", "engine": "bing"},
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": ["tea price history"],
    "unresponsive_engines": [["google", "Suspended: CAPTCHA"]],
}
BRAVE_ANSWER: dict[str, Any] = {
    "type": "search",
    "query": {"original": "tea prices", "more_results_available": True},
    "mixed": {"type": "mixed", "main": [{"type": "web", "index": 0, "all": False}], "top": [], "side": []},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Tea is rising &amp; rising",
                "url": "https://daily.example/tea",
                "is_source_local": False,
                "is_source_both": False,
                "description": "Growers&#x27; sales rose by 12 %.",
                "page_age": "2026-07-06T09:00:00",
                "profile": {"name": "The Daily Cup", "url": "https://daily.example/tea", "long_name": "daily.example"},
                "language": "en",
                "family_friendly": True,
                "type": "search_result",
                "subtype": "article",
                "meta_url": {
                    "scheme": "https",
                    "netloc": "daily.example",
                    "hostname": "daily.example",
                    "path": "› tea",
                },
                "extra_snippets": ["The rise was strongest in the north."],
            },
            {"title": "Tea", "url": "https://tea.example:8443/", "description": "", "type": "search_result"},
        ],
        "family_friendly": True,
    },
}
TAVILY_ANSWER: dict[str, Any] = {
    "query": "tea prices",
    "follow_up_questions": None,
    "answer": None,
    "images": [],
    "results": [
        {
            "url": "https://daily.example/tea",
            "title": "Tea is rising",
            "content": "Sales of tea rose by 12 %.",
            "score": 0.93,
            "raw_content": None,
        },
        {"url": "https://tea.example:8443/", "title": "Tea", "content": "", "score": 0.5, "raw_content": None},
    ],
    "response_time": 1.09,
    "request_id": "123e4567-e89b-12d3-a456-426614174111",
}


def result(url: str, site_name: str, title: str, content: str) -> Fetched:
    return Fetched(kind="web_search", url=url, site_name=site_name, title=title, content=content, query="tea prices")


SECOND = result("https://tea.example:8443/", "tea.example:8443", "Tea", "")
FIRST = result("https://daily.example/tea", "daily.example", "Tea is rising", "Sales of tea rose by 12 %.")


def opened(name: str, url: str, **options: float) -> SearchEngine:
    return open_engine_by_name(name, {"url": url, **options}, KEYS)


@pytest.mark.spec("S4.28", "S4.43", "S4.54", "S4.72")
async def test_searxng_gives_pages_once_and_only_pages() -> None:
    async with running(json_answer(200, SEARXNG_ANSWER)) as server:
        engine = opened("searxng", f"{server.url}/")

        assert await engine.search("tea prices", limit=2) == (FIRST, SECOND)
        assert (server.asked[0].method, server.asked[0].path) == ("GET", "/search?q=tea+prices&format=json")
        await engine.aclose()


@pytest.mark.spec("S4.28", "S4.43", "S4.54", "S4.72")
async def test_brave_gives_titles_and_snippets_as_plain_text() -> None:
    async with running(json_answer(200, BRAVE_ANSWER)) as server:
        engine = opened("brave", server.url)

        snippet = "Growers' sales rose by 12 %.\nThe rise was strongest in the north."
        first = result("https://daily.example/tea", "daily.example", "Tea is rising & rising", snippet)
        assert await engine.search("tea prices", limit=50) == (first, SECOND)
        asked = server.asked[0]
        assert asked.path == "/res/v1/web/search?q=tea+prices&count=20&text_decorations=false&result_filter=web"
        assert (asked.method, asked.headers["x-subscription-token"]) == ("GET", KEY)
        await engine.aclose()


@pytest.mark.spec("S4.28", "S4.43", "S4.54", "S4.72")
async def test_tavily_is_asked_with_a_document() -> None:
    async with running(json_answer(200, TAVILY_ANSWER)) as server:
        engine = opened("tavily", server.url)

        assert await engine.search("tea prices", limit=3) == (FIRST, SECOND)
        asked = server.asked[0]
        assert (asked.method, asked.path, asked.body) == (
            "POST",
            "/search",
            {"query": "tea prices", "max_results": 3, "search_depth": "basic"},
        )
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        await engine.aclose()


NOTHING: dict[str, dict[str, Any]] = {
    "searxng": {"query": "x", "results": [], "unresponsive_engines": []},
    "brave": {"type": "search", "query": {"original": "x"}},
    "tavily": {"query": "x", "results": [], "response_time": 0.1},
}


@pytest.mark.parametrize("name", NOTHING)
async def test_nothing_found_is_no_error(name: str) -> None:
    async with running(json_answer(200, NOTHING[name])) as server:
        engine = opened(name, server.url)

        assert await engine.search("tea prices") == ()
        await engine.aclose()


@pytest.mark.parametrize("name", NOTHING)
async def test_a_query_is_sent_on_one_line_and_not_too_long(name: str) -> None:
    async with running(json_answer(200, NOTHING[name])) as server:
        engine = opened(name, server.url)

        await engine.search("tea\n\0 " * 300)
        with pytest.raises(InvalidInputError, match="there is nothing to search for"):
            await engine.search(" \n ")

        sent = server.asked[0].body["query"] if name == "tavily" else server.asked[0].path
        assert sent.count("tea") == 50
        assert len(server.asked) == 1
        await engine.aclose()


async def failure_of(name: str, *answers: Answer, **options: float) -> str:
    """Return the message of a search that an engine answers like this."""
    async with running(*answers) as server:
        engine = opened(name, server.url, **options)
        with pytest.raises(SearchEngineError) as failed:
            await engine.search("tea prices")
        await engine.aclose()
        assert KEY not in f"{failed.value!r} {engine!r}"
        return str(failed.value).removeprefix(f"search with {name} failed: ")


BRAVE_BAD_KEY = {
    "id": "1",
    "status": 422,
    "code": "SUBSCRIPTION_TOKEN_INVALID",
    "detail": f"The provided subscription token {KEY} is invalid.",
}


@pytest.mark.parametrize(
    ("name", "answer", "why"),
    [
        (
            "searxng",
            Answer((b"<!doctype html><title>403 Forbidden</title>",), 403, {"content-type": "text/html"}),
            "it refused (HTTP 403); add `json` to `search.formats` in its settings.yml, and check its limiter",
        ),
        (
            "brave",
            json_answer(422, {"type": "ErrorResponse", "error": BRAVE_BAD_KEY}),
            "it refused (HTTP 422); check the key in `BRAVE_API_KEY`",
        ),
        (
            "tavily",
            json_answer(401, {"detail": {"error": f"Unauthorized: missing or invalid API key {KEY}."}}),
            "it refused (HTTP 401); check the key in `TAVILY_API_KEY`",
        ),
        (
            "tavily",
            json_answer(432, {"detail": {"error": "This request exceeds your plan's set usage limit."}}),
            "the plan has no searches left (HTTP 432); extend the plan, or choose another engine",
        ),
        (
            "brave",
            json_answer(429, {"type": "ErrorResponse"}, {"retry-after": "2"}),
            "rate limit (HTTP 429); try again in 2 s, or choose another engine",
        ),
        (
            "searxng",
            json_answer(429, {}, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}),
            "rate limit (HTTP 429); try again later, or choose another engine",
        ),
        (
            "searxng",
            json_answer(200, {"results": [], "unresponsive_engines": [["google", "timeout"], ["bing", "CAPTCHA"]]}),
            "its engines do not answer (bing, google); try again later",
        ),
    ],
)
async def test_a_refusal_says_what_to_do(name: str, answer: Answer, why: str) -> None:
    assert await failure_of(name, answer) == why


@pytest.mark.parametrize("name", NOTHING)
async def test_an_engine_that_fails_says_so(name: str) -> None:
    wrong = "its answer is not what this engine sends; check that its address is right"

    assert await failure_of(name, json_answer(503, {"detail": KEY})) == (
        "server error (HTTP 503); try again later, or choose another engine"
    )
    assert await failure_of(name, Answer((b"<html>",), 302, {"location": "/login"})) == (
        "it answered HTTP 302; check its address"
    )
    for body in (b"", b"<html>", b"{", b"[]", b'{"results": 5}', b'{"type": 5, "web": 5}', b"\xff"):
        assert await failure_of(name, Answer((body,), 200, dict(JSON))) == wrong
    assert await failure_of(name, Answer(("until_gone",), 200, dict(JSON)), timeout_s=0.2) == (
        "no answer within 0.2 s; try again, or choose another engine"
    )
    assert "cannot be reached; check its address" in await failure_of(name, Answer(("cut",), 200, dict(JSON)))


@pytest.mark.parametrize(
    ("name", "options", "environ", "message"),
    [
        ("altavista", {}, {}, "search_engine: no engine 'altavista'; choose one of searxng, brave, tavily, duckduckgo"),
        ("searxng", {}, {}, "search_engine.url: name the address of your SearXNG here or in `SEARXNG_URL`"),
        (
            "searxng",
            {"url": "localhost:8888"},
            {},
            "search_engine.url: must begin with http:// or https:// and name a host",
        ),
        ("searxng", {"url": "http://[x]/"}, {}, "search_engine.url: is not a valid address"),
        ("brave", {}, {}, "BRAVE_API_KEY: is not set; it holds the key of the search engine"),
        ("tavily", {}, {"TAVILY_API_KEY": " "}, "TAVILY_API_KEY: is not set; it holds the key of the search engine"),
        (
            "tavily",
            {},
            {"TAVILY_API_KEY": "a\nb"},
            "TAVILY_API_KEY: holds characters that no key has; copy the key again",
        ),
        ("brave", {"key": "x"}, {}, "search_engine.key: brave has no such option; it takes url, timeout_s"),
        ("duckduckgo", {"timeout_s": "soon"}, {}, "search_engine.timeout_s: must be a number of seconds above 0"),
        ("duckduckgo", {"timeout_s": -1}, {}, "search_engine.timeout_s: must be a number of seconds above 0"),
    ],
)
def test_an_engine_that_is_not_set_up_says_what_is_missing(
    name: str, options: Options, environ: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidSettingError) as wrong:
        open_engine_by_name(name, options, environ)

    assert str(wrong.value) == message


async def test_searxng_may_be_named_in_the_environment() -> None:
    async with running(json_answer(200, SEARXNG_ANSWER)) as server:
        engine = open_engine_by_name("searxng", {}, {"SEARXNG_URL": server.url})

        assert (engine.name, await engine.search("tea prices", limit=1)) == ("searxng", (FIRST,))
        await engine.aclose()
