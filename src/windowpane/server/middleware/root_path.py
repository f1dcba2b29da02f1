"""Serve everything below a prefix, such as `https://example.org/pane/`.

A proxy may take the prefix away before it passes a request on, or leave it there: both work. Inside, paths have no
prefix; `root_of` tells it to those who write an address down, and what leads to another place of this server is
completed on its way out.
"""

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "x-forwarded-prefix"
ROOT = "windowpane.root"
OPENAPI = "/openapi.json"
PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
"""What a prefix may be. It is written into pages, so it holds nothing that means anything there."""


def root_of(scope: Scope) -> str:
    """Return the prefix below which a request came, without a slash at its end; empty: none."""
    return scope.get(ROOT, "")


class RootPath:
    """Takes the prefix off requests. `trust_header` lets a proxy name it in `X-Forwarded-Prefix`."""

    def __init__(self, app: ASGIApp, root: str, *, trust_header: bool = False) -> None:
        self._app = app
        self._root = root.rstrip("/")
        self._trust_header = trust_header

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on without its prefix."""
        root = self._root_of(scope) if scope["type"] in ("http", "websocket") else ""
        if not root:
            return await self._app(scope, receive, send)
        scope[ROOT] = root
        scope["path"] = _without(scope["path"], root)
        if raw := scope.get("raw_path"):
            scope["raw_path"] = _without(raw.decode("latin-1"), root).encode("latin-1")
        if scope["path"] == OPENAPI:
            # The description of the API says where it is served.
            scope["root_path"] = root

        async def completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [_led(header, root) for header in message.get("headers", ())]
            await send(message)

        return await self._app(scope, receive, completed)

    def _root_of(self, scope: Scope) -> str:
        if self._trust_header:
            named = Headers(scope=scope).get(HEADER, "").strip().rstrip("/")
            if PREFIX.fullmatch(named):
                return named
        return self._root


def _without(path: str, root: str) -> str:
    if path == root:
        return "/"
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def _led(header: tuple[bytes, bytes], root: str) -> tuple[bytes, bytes]:
    name, value = header
    if name.lower() == b"location" and value.startswith(b"/") and not value.startswith(b"//"):
        return name, root.encode("ascii") + value
    return header
