import asyncio
import gzip
from typing import get_args

import pytest

from fetch.site import ARTICLE, ARTICLE_TEXT, Play, endlessly, page, redirect, running_site
from windowpane.context.fetched import CUT_MARK, MAX_CHARACTERS, Fetched, FetchedKind
from windowpane.errors import FetchFailedError, FetchRefusedError
from windowpane.fetch.base import PageLimits, PageReader
from windowpane.fetch.pages import Pages

OK = "HTTP/1.1 200 OK\nContent-Type: text/html\n"


async def fetched_from(play: Play, limits: PageLimits | None = None) -> Fetched:
    """Return the page of a site that answers like this, its address written as `site`."""
    async with running_site({"/": play}) as site:
        found = await Pages(site.guard(), limits).fetch_page(f"{site.url}/")
        assert (found.kind, found.url, found.query) == ("page", f"{site.url}/", "")
        site_name = found.site_name.replace(f"127.0.0.1:{site.port}", "site")
        return Fetched(kind="page", url="site", title=found.title, site_name=site_name, content=found.content)


async def failure_of(play: Play, limits: PageLimits | None = None) -> str:
    """Return why the page of a site that answers like this cannot be had."""
    async with running_site({"/": play}) as site:
        with pytest.raises(FetchFailedError) as failed:
            await Pages(site.guard(), limits).fetch_page(f"{site.url}/")
        return str(failed.value).removeprefix(f"{site.url}/ could not be read: ")


@pytest.mark.spec("S4.29", "S4.60", "S4.72")
async def test_a_page_becomes_its_title_its_site_and_its_main_text() -> None:
    assert await fetched_from(page(ARTICLE)) == Fetched(
        kind="page", url="site", title="Tea is rising", site_name="The Daily Cup", content=ARTICLE_TEXT
    )


@pytest.mark.parametrize(
    ("body", "content_type", "content"),
    [
        ("Just text <b>\r\nhere", "text/plain", "Just text <b>\nhere"),
        ("# Title\n\nText", "text/markdown; charset=utf-8", "# Title\n\nText"),
        ('{"a": 1}', "application/json", '{"a": 1}'),
        ('{"a": 1}', "application/ld+json", '{"a": 1}'),
        ("Just text", None, "Just text"),
        ("<!doctype html><html><body><p>Hello</p></body></html>", None, "Hello"),
        ("<html><body><p>Größe</p></body></html>".encode("cp1252"), "text/html; charset=iso-8859-1", "Größe"),
        ("<html><body><p>Größe</p></body></html>".encode("cp1252"), 'text/html; charset="utf-8"', "Größe"),
    ],
)
async def test_html_text_markdown_and_json_are_read(body: str | bytes, content_type: str | None, content: str) -> None:
    found = await fetched_from(page(body, content_type))

    assert found == Fetched(kind="page", url="site", site_name="site", content=content)


@pytest.mark.parametrize("content_type", ["application/pdf", "image/png", "text/css", "video/mp4; x=1"])
async def test_other_kinds_are_refused_with_a_message(content_type: str) -> None:
    why = await failure_of(page(b"x", content_type))

    assert why.endswith("; only HTML, plain text, Markdown and JSON are read")


async def test_a_long_page_is_cut_with_a_visible_mark() -> None:
    found = await fetched_from(page("word " * 10_000, "text/plain"))

    assert (len(found.content), found.content.endswith(CUT_MARK)) == (MAX_CHARACTERS, True)


async def test_a_page_is_known_by_the_address_that_redirects_led_to() -> None:
    async with running_site({"/a": redirect("/b?x=1#part", 301), "/b": page("Text", "text/plain")}) as site:
        found = await Pages(site.guard()).fetch_page(f"{site.url}/a")

        assert found.url == f"{site.url}/b?x=1"
        assert [visit.path for visit in site.visits] == ["/a", "/b?x=1"]


async def test_nothing_is_carried_from_one_page_to_the_next() -> None:
    routes = {"/": page("Text", "text/plain", headers={"Set-Cookie": "who=me"})}
    async with running_site(routes) as site:
        pages = Pages(site.guard())

        await pages.fetch_page(f"{site.url}/")
        await pages.fetch_page(f"{site.url}/")

        assert ["cookie" in visit.headers for visit in site.visits] == [False, False]


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (404, "its site answered 404 Not Found"),
        (403, "its site answered 403 Forbidden; open it in a browser and send the page from there"),
        (500, "its site answered 500 Internal Server Error"),
        (599, "its site answered 599"),
        (304, "its site answered 304 Not Modified"),
    ],
)
async def test_an_answer_that_is_no_page_says_what_it_was(status: int, why: str) -> None:
    assert await failure_of(page(ARTICLE, status=status)) == why


async def test_a_body_that_never_ends_is_cut_off() -> None:
    why = await failure_of(endlessly(f"{OK}\n<p>", b"word " * 2000), PageLimits(max_bytes=2**19))

    assert why == "it is larger than 0.5 MiB"


@pytest.mark.parametrize("announced", ["99999999999", "9" * 4000])
async def test_a_body_that_is_announced_too_large_is_not_read(announced: str) -> None:
    why = await failure_of(endlessly(f"{OK}Content-Length: {announced}\n\n", b"x", 0.01))

    assert why in ("it is larger than 5 MiB", "the connection was lost, or the site does not speak HTTP")


async def test_a_body_that_is_longer_than_announced_ends_where_it_said() -> None:
    async def lie(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nText" + b"x" * 100_000)

    assert (await fetched_from(lie)).content == "Text"


async def test_a_body_that_is_shorter_than_announced_is_a_broken_connection() -> None:
    why = await failure_of(page("<p>Hello</p>", headers={"Content-Length": "1000"}))

    assert why == "the connection was lost, or the site does not speak HTTP"


@pytest.mark.parametrize("layers", [1, 2])
async def test_a_small_body_that_unpacks_to_a_huge_one_is_cut_off(layers: int) -> None:
    bomb = b" " * (30 * 2**20)
    for _ in range(layers):
        bomb = gzip.compress(bomb)
    packed = page(bomb, headers={"Content-Encoding": ", ".join(["gzip"] * layers)})

    assert len(bomb) < 2**16
    assert await failure_of(packed) == "it is larger than 5 MiB"


async def test_a_packed_page_is_unpacked_and_a_broken_one_says_so() -> None:
    packed = {"Content-Encoding": "gzip"}

    assert (await fetched_from(page(gzip.compress(b"Text"), "text/plain", headers=packed))).content == "Text"
    assert await failure_of(page(b"not gzip", headers=packed)) == "its compression is broken"


@pytest.mark.parametrize("head", ["HTTP/1.1 200 OK\nX-Slow: ", f"{OK}\n"])
async def test_a_site_that_sends_byte_by_byte_runs_into_the_deadline(head: str) -> None:
    why = await failure_of(endlessly(head, b"x", 0.02), PageLimits(deadline_s=0.4))

    assert why == "it took longer than 0.4 s"


async def test_a_site_that_redirects_for_ever_is_left() -> None:
    async with running_site({"/": redirect("/")}) as site:
        with pytest.raises(FetchFailedError, match="more than 5 redirects"):
            await Pages(site.guard()).fetch_page(f"{site.url}/")

        assert len(site.visits) == 6


async def test_a_site_that_speaks_something_else_is_left() -> None:
    why = await failure_of(endlessly("SSH-2.0-OpenSSH_9.6\n", b"\r\n", 0.01))

    assert why == "the connection was lost, or the site does not speak HTTP"


@pytest.mark.parametrize(
    "body", [b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, b"\0" * 1000, b"%PDF-1.7\n" + bytes(range(256)) * 8]
)
async def test_bytes_that_are_called_html_and_are_not_are_refused(body: bytes) -> None:
    assert await failure_of(page(body, "text/html")) == "it is not text, although its site says so"


async def test_a_page_without_text_says_what_to_do() -> None:
    why = await failure_of(page("<html><head><title>App</title></head><body><div id=root></div></body></html>"))

    assert why == "there is no text in it; a page that scripts draw can be opened in a browser and sent from there"


async def test_a_title_is_cut_and_one_of_twenty_megabytes_is_too_large() -> None:
    def titled(size: int) -> Play:
        return page(f"<html><head><title>{'x' * size}</title></head><body><p>Hello</p></body></html>")

    assert (await fetched_from(titled(2 * 2**20))).title == "x" * 299 + "…"
    assert await failure_of(titled(20 * 10**6)) == "it is larger than 5 MiB"


@pytest.mark.spec("S4.27")
def test_what_is_fetched_is_a_search_result_or_a_page() -> None:
    assert get_args(FetchedKind) == ("web_search", "page")


@pytest.mark.spec("S4.29", "S4.57")
async def test_a_page_that_a_browser_sends_is_read_like_a_fetched_one() -> None:
    pages: PageReader = Pages()

    assert await pages.read_page("https://Daily.example:443/tea?utm_source=x#top", html=ARTICLE) == Fetched(
        kind="page",
        url="https://daily.example/tea?utm_source=x",
        title="Tea is rising",
        site_name="The Daily Cup",
        content=ARTICLE_TEXT,
    )
    assert await pages.read_page(
        "http://10.0.0.5/wiki", title=" My\n wiki ", text="Text\0 here", html=ARTICLE
    ) == Fetched(kind="page", url="http://10.0.0.5/wiki", title="My wiki", site_name="10.0.0.5", content="Text here")


@pytest.mark.spec("S4.57")
async def test_the_same_page_sent_again_has_the_key_of_its_older_copy() -> None:
    pages = Pages()

    older = await pages.read_page("https://daily.example/tea", text="old")
    newer = await pages.read_page("HTTPS://DAILY.example:443/tea#part", text="new")

    assert older.key == newer.key


async def test_a_sent_page_that_cannot_be_used_says_why() -> None:
    pages = Pages(limits=PageLimits(max_bytes=100))

    with pytest.raises(FetchRefusedError, match="only http and https addresses are pages"):
        await pages.read_page("chrome://settings", text="Text")
    with pytest.raises(FetchFailedError, match="there is no text in it"):
        await pages.read_page("https://daily.example/", text=" \n ", html="<p></p>")
    with pytest.raises(FetchFailedError, match="it is larger than"):
        await pages.read_page("https://daily.example/", html="<p>x</p>" * 100)
