"""Keep other people's web pages out.

A server on loopback can be reached by every page that the user's browser shows. So a request must name this server
as its host (a page that points its own name here is refused), and a browser must not have been sent by another site.
Programs, which send no such headers, are not concerned.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from windowpane.server.problems import ProblemDocument, problem, response_of

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
READING = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Refuses requests that another site caused."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str] = LOOPBACK_NAMES) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refusal = self._refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await response_of(refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> ProblemDocument | None:
        headers = Headers(scope=scope)
        if _name(f"//{headers.get('host', '')}") not in self._hosts:
            names = ", ".join(sorted(self._hosts))
            return problem(
                421, "wrong_host", f"this server answers to {names}; a proxy in front must send one of them as `Host`"
            )
        origin = headers.get("origin")
        foreign = origin is not None and _name(origin) not in self._hosts
        # Browsers let any page open a socket anywhere, and read from it.
        if scope.get("method") not in READING and (foreign or headers.get("sec-fetch-site") == "cross-site"):
            return problem(403, "foreign_origin", "pages of other sites may not change anything here")
        return None


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
