"""Addresses of pages in one spelling, so that the same page is known when it comes again.

The fragment and the default port go, scheme and host are lower case; everything else, tracking parameters included,
stays, because it may choose the page.
"""

import httpx2

from windowpane.errors import FetchRefusedError
from windowpane.fetch.addresses import literal

SCHEMES = ("http", "https")
DEFAULT_PORTS = {"http": 80, "https": 443}
SHOWN_CHARACTERS = 200


def page_url(url: str) -> httpx2.URL:
    """Return a web address, taken apart.

    Raises:
        FetchRefusedError: it is not an address of a page on the web.
    """
    try:
        parsed = httpx2.URL(url.strip())
    except (httpx2.InvalidURL, ValueError):
        raise FetchRefusedError(_cut(url.partition("?")[0].rpartition("@")[2]), "it is not a valid address") from None
    if parsed.scheme not in SCHEMES:
        raise FetchRefusedError(shown(parsed), "only http and https addresses are pages")
    if not parsed.raw_host:
        raise FetchRefusedError(shown(parsed), "it names no host")
    return parsed


def normalised(url: httpx2.URL) -> str:
    """Return the spelling that a page is known by."""
    return f"{url.scheme}://{authority(url)}{url.raw_path.decode('ascii')}"


def authority(url: httpx2.URL) -> str:
    """Return host and port as they stand in the normal spelling; who logs in is left out."""
    address = literal(host_of(url))
    host = host_of(url) if address is None else f"[{address}]" if address.version == 6 else str(address)
    return host if url.port in (None, DEFAULT_PORTS.get(url.scheme)) else f"{host}:{url.port}"


def host_of(url: httpx2.URL) -> str:
    """Return the host as the network knows it: lower case, international names encoded, IPv6 without brackets."""
    return url.raw_host.decode("ascii").lower()


def port_of(url: httpx2.URL) -> int:
    """Return the port that a connection goes to."""
    return url.port if url.port is not None else DEFAULT_PORTS[url.scheme]


def shown(url: httpx2.URL) -> str:
    """Return the address for a message: without what may be secret in it, and not too long."""
    path = url.raw_path.decode("ascii").partition("?")[0]
    return _cut(f"{url.scheme}://{authority(url)}{path}" if url.raw_host else f"{url.scheme}:{path}")


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
