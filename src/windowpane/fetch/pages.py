"""Read a page: fetch it or take it as a user's browser saw it, and keep what a person would read.

A fetch has one deadline for everything and a limit on its size, both of which hold while bytes arrive. It carries
nothing from one page to the next: no cookies, no connections, and no proxies from the environment.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from functools import partial
from http import HTTPStatus

import anyio
import anyio.to_thread
import httpx2

from windowpane.certificates import trusted
from windowpane.context.fetched import Fetched, capped
from windowpane.errors import FetchFailedError, FetchRefusedError
from windowpane.fetch.base import PageLimits
from windowpane.fetch.charset import decode
from windowpane.fetch.extract import Extracted, extract, one_line, plain
from windowpane.fetch.guard import AddressGuard, GuardedTransport
from windowpane.fetch.urls import authority, normalised, page_url, shown

HTML_TYPES = ("text/html", "application/xhtml+xml")
TEXT_TYPES = ("text/plain", "text/markdown", "text/x-markdown", "application/json")
HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; Windowpane)",
    "Accept": "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.8",
    "Accept-Encoding": "gzip, deflate",
}
READ_AT_ONCE = 2
"""How many pages are taken apart at the same time: it is work for the processor."""

LOOKED_AT_CHARACTERS = 65_536
UNREADABLE_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class _Download:
    url: httpx2.URL
    content_type: str
    charset: str
    body: bytes


class Pages:
    """Reads pages of the public web."""

    def __init__(
        self,
        guard: AddressGuard | None = None,
        limits: PageLimits | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._guard = guard or AddressGuard()
        self._limits = limits or PageLimits()
        self._ssl_context = ssl_context or trusted(trust_env=False)
        self._readers = anyio.CapacityLimiter(READ_AT_ONCE)

    async def fetch_page(self, url: str) -> Fetched:
        """Return the page at this address; its `url` is the one that redirects led to.

        Raises:
            FetchRefusedError: the address, or one that it leads to, is not on the public web.
            FetchFailedError: the page did not come, or it holds no text.
        """
        wanted = page_url(url)
        self._guard.check(wanted)
        try:
            with anyio.fail_after(self._limits.deadline_s):
                download = await self._download(wanted)
                return _page(download.url, await self._in_thread(partial(_read, download)))
        except TimeoutError:
            raise FetchFailedError(shown(wanted), f"it took longer than {self._limits.deadline_s:g} s") from None
        except httpx2.InvalidURL:
            raise FetchRefusedError(shown(wanted), "it leads to something that is not a page") from None
        except httpx2.HTTPError as error:
            raise FetchFailedError(shown(wanted), _why(error, self._limits)) from error

    async def read_page(self, url: str, *, title: str = "", text: str = "", html: str = "") -> Fetched:
        """Return a page that the caller already has, from its text or else from its HTML. Nothing is fetched.

        Raises:
            FetchRefusedError: the address is not that of a web page.
            FetchFailedError: there is no text in what was given, or too much of it.
        """
        address = page_url(url)
        if plain(text[: self._limits.max_bytes]):
            return _page(address, Extracted(title, "", plain(text[: self._limits.max_bytes])))
        if len(html) > self._limits.max_bytes:
            raise FetchFailedError(shown(address), _too_large(self._limits))
        try:
            with anyio.fail_after(self._limits.deadline_s):
                found = await self._in_thread(partial(extract, html))
        except TimeoutError:
            raise FetchFailedError(shown(address), f"it took longer than {self._limits.deadline_s:g} s") from None
        return _page(address, Extracted(title or found.title, found.site_name, found.text))

    async def _download(self, url: httpx2.URL) -> _Download:
        transport = GuardedTransport(self._guard, self._ssl_context)
        client = httpx2.AsyncClient(
            transport=transport,
            trust_env=False,
            follow_redirects=True,
            max_redirects=self._limits.max_redirects,
            headers=HEADERS,
            timeout=None,
        )
        async with client, client.stream("GET", url) as response:
            content_type, charset = _content_type(response)
            _check_answer(response, content_type)
            body = await self._body(response)
            return _Download(response.url, content_type, charset, body)

    async def _body(self, response: httpx2.Response) -> bytes:
        announced = response.headers.get("content-length", "")
        body = bytearray()
        too_large = announced.isascii() and announced.isdigit() and int(announced[:20]) > self._limits.max_bytes
        if not too_large:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self._limits.max_bytes:
                    too_large = True
                    break
        if too_large:
            raise FetchFailedError(shown(response.url), _too_large(self._limits))
        return bytes(body)

    async def _in_thread(self, read: Callable[[], Extracted]) -> Extracted:
        return await anyio.to_thread.run_sync(read, abandon_on_cancel=True, limiter=self._readers)


def _content_type(response: httpx2.Response) -> tuple[str, str]:
    """Return the type and the charset that a site names, in lower case; each empty when it names none."""
    header = Message()
    header["content-type"] = response.headers.get("content-type", "")
    named = response.headers.get("content-type", "").strip()
    return (header.get_content_type() if named else ""), header.get_content_charset("")


def _check_answer(response: httpx2.Response, content_type: str) -> None:
    address = shown(response.url)
    if not response.is_success:
        raise FetchFailedError(address, _why_status(response.status_code))
    is_json = content_type.startswith("application/") and content_type.endswith("+json")
    if content_type and content_type not in (*HTML_TYPES, *TEXT_TYPES) and not is_json:
        raise FetchFailedError(
            address, f"it is {one_line(content_type)}; only HTML, plain text, Markdown and JSON are read"
        )


def _why_status(status: int) -> str:
    try:
        name = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        name = str(status)
    if status in (401, 402, 403, 407, 429, 451):
        return f"its site answered {name}; open it in a browser and send the page from there"
    return f"its site answered {name}"


def _why(error: Exception, limits: PageLimits) -> str:
    match error:
        case httpx2.TooManyRedirects():
            return f"more than {limits.max_redirects} redirects"
        case httpx2.ConnectError() if _has_cause(error, ssl.SSLCertVerificationError):
            return "its certificate is not valid for this address"
        case httpx2.ConnectError() if _has_cause(error, ssl.SSLError):
            return "no safe connection could be made"
        case httpx2.ConnectError():
            return "its site cannot be reached; check the address"
        case httpx2.DecodingError():
            return "its compression is broken"
        case _:
            return "the connection was lost, or the site does not speak HTTP"


def _has_cause(error: BaseException, kind: type[BaseException]) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, kind):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _too_large(limits: PageLimits) -> str:
    return f"it is larger than {limits.max_bytes / 2**20:.3g} MiB"


def _read(download: _Download) -> Extracted:
    text = decode(download.body, download.charset)
    if not _is_readable(text):
        raise FetchFailedError(shown(download.url), "it is not text, although its site says so")
    if download.content_type in HTML_TYPES or (not download.content_type and _looks_like_html(text)):
        return extract(text)
    return Extracted(text=plain(text))


def _is_readable(text: str) -> bool:
    seen = text[:LOOKED_AT_CHARACTERS]
    unreadable = sum(character == "�" or (character < " " and character not in "\t\n\r\f") for character in seen)
    return unreadable <= UNREADABLE_SHARE * len(seen)


def _looks_like_html(text: str) -> bool:
    beginning = text[:1000].lstrip().lower()
    return beginning.startswith(("<!doctype html", "<html", "<head", "<body"))


def _page(url: httpx2.URL, found: Extracted) -> Fetched:
    if not found.text:
        why = "there is no text in it; a page that scripts draw can be opened in a browser and sent from there"
        raise FetchFailedError(shown(url), why)
    return Fetched(
        kind="page",
        url=normalised(url),
        title=one_line(found.title),
        site_name=one_line(found.site_name) or authority(url),
        content=capped(found.text),
    )
