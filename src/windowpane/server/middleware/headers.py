"""Headers that tell browsers to trust an answer with as little as possible, where it has none of its own.

The date is set here too, and not by the server library: an answer that is passed on from a provider has one.
"""

from email.utils import formatdate

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windowpane.server.middleware.xray import passes_through

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""What a page may load: scripts and styles from files of this server, and nothing that stands in the page itself."""

DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
"""What an answer may load that is not a page, should a browser show it as one: nothing."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # What one caller may see is not for a cache that others share.
    "Cache-Control": "private, no-cache",
}


def _encoded(policy: str) -> tuple[tuple[bytes, bytes], ...]:
    headers = {**HEADERS, "Content-Security-Policy": policy}
    return tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items())


_FOR_A_PAGE = _encoded(PAGE_POLICY)
_FOR_DATA = _encoded(DATA_POLICY)


class SafeHeaders:
    """Adds the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and complete the headers of its answer, unless that is another server's."""
        if passes_through(scope):
            return await self._app(scope, receive, send)

        async def completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                own = dict(headers)
                shown = own.get(b"content-type", b"").startswith(b"text/html")
                added = [header for header in (_FOR_A_PAGE if shown else _FOR_DATA) if header[0] not in own]
                message["headers"] = [*headers, *added, (b"date", formatdate(usegmt=True).encode("ascii"))]
            await send(message)

        return await self._app(scope, receive, completed)
