"""Failures in the form of the door that they happen at.

Whatever refuses a request, a route, a limit or a guard, says so in a problem document. Clients of another protocol
cannot read that, so below the path of their door it is put into their form, on the way out and in this one place.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windowpane.server.problems import MEDIA_TYPE

Form = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""From a problem document to what a door's clients read."""


class DoorErrors:
    """Puts problem documents into the form of the door whose path a request has. `forms` are by pattern, first wins."""

    def __init__(self, app: ASGIApp, forms: Mapping[str, Form]) -> None:
        self._app = app
        self._forms = {re.compile(pattern): form for pattern, form in forms.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its failure back in the right form."""
        path = scope.get("path", "") if scope["type"] == "http" else ""
        form = next((form for pattern, form in self._forms.items() if pattern.match(path)), None)
        if form is None:
            return await self._app(scope, receive, send)
        return await self._app(scope, receive, _Rewriting(send, form))


class _Rewriting:
    """Sends a response on, a problem document in another form."""

    def __init__(self, send: Send, form: Form) -> None:
        self._send = send
        self._form = form
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        """Send one message of the response on, or keep it until the problem is whole."""
        if message["type"] == "http.response.start":
            if Headers(raw=message["headers"]).get("content-type", "").startswith(MEDIA_TYPE):
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if message.get("more_body"):
                return
            await self._rewritten(self._start)
            return
        await self._send(message)

    async def _rewritten(self, start: Message) -> None:
        body = json.dumps(self._form(json.loads(self._body)), ensure_ascii=False).encode()
        headers = MutableHeaders(raw=list(start["headers"]))
        headers["content-type"], headers["content-length"] = "application/json", str(len(body))
        await self._send({**start, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body})
