"""Keep other people's web pages out.

A server on loopback can be reached by every page that the user's browser shows. So a request must name this server
as its host (a page that points its own name here is refused), and a browser must not have been sent by another site:
not to change anything, and not to read anything but the page itself, because reading can cost, and an image or a
script of another site can measure what it cannot see.
Programs, which send no such headers, are not concerned. Where every caller needs a token the host's name does not
matter: a page that points its own name there has none.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from windowpane.server.problems import ProblemDocument, problem, response_of

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
READING = ("GET", "HEAD", "OPTIONS")
FOREIGN = ("cross-site", "same-site")
"""What a browser says in `Sec-Fetch-Site` of requests that another site, or another port of this machine, caused."""

GUARDED = ("/api", "/v1", "/anthropic", "/mcp", "/metrics", "/xray")
"""Below these, another site may not even read. The page itself, its files and health checks can be linked to."""

PORTS = {"http": 80, "https": 443}


class _Place(NamedTuple):
    """Where an address leads."""

    scheme: str = ""
    hostname: str | None = None
    port: int | None = None


class CrossSiteGuard:
    """Refuses requests that another site caused. `hosts` are the server's own names; None: any.

    Pages of `origins`, which are written like `https://pane.example`, may do what the server's own page may. `guarded`:
    below which paths another site may not even read; an empty one stands for all of them.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Sequence[str] | None = LOOPBACK_NAMES,
        origins: Sequence[str] = (),
        guarded: Sequence[str] = GUARDED,
    ) -> None:
        self._app = app
        self._guarded = guarded
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refusal = self._refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await response_of(refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> ProblemDocument | None:
        headers = Headers(scope=scope)
        host = _place(f"//{headers.get('host', '')}")
        if self._hosts is not None and host.hostname not in self._hosts:
            names = ", ".join(sorted(self._hosts))
            return problem(
                421, "wrong_host", f"this server answers to {names}; a proxy in front must send one of them as `Host`"
            )
        origin = headers.get("origin")
        known = origin in self._origins
        foreign = not known and (
            headers.get("sec-fetch-site") in FOREIGN if origin is None else not _same(_place(origin), host)
        )
        # Browsers let any page open a socket anywhere, and read from it.
        if foreign and scope.get("method") not in READING:
            return problem(403, "foreign_origin", "pages of other sites may not change anything here")
        # A preflight asks on behalf of a page, and its answer says no.
        if foreign and scope.get("method") != "OPTIONS" and _below(scope["path"], self._guarded):
            return problem(403, "foreign_origin", "pages of other sites may not read anything here")
        return None


def _below(path: str, prefixes: Sequence[str]) -> bool:
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in prefixes)


def _same(origin: _Place, host: _Place) -> bool:
    """Tell whether a page's origin is the server that it asks: the same name and the same port."""
    usual = PORTS.get(origin.scheme)
    return bool(origin.hostname) and (origin.hostname, origin.port or usual) == (host.hostname, host.port or usual)


@lru_cache(maxsize=256)
def _place(url: str) -> _Place:
    # Kept for the next request: a server is addressed by few names, and reading one takes long.
    try:
        split = urlsplit(url)
        # Reading the port is what finds one that is none.
        return _Place(split.scheme, split.hostname, split.port) if split.port is None or split.port else _Place()
    except ValueError:
        return _Place()
