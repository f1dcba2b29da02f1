"""A limit for bodies, kept while they are read, whether or not they say how long they are."""

import anyio
from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 4 * 1024 * 1024
READ_ON_BYTES = 64 * 1024 * 1024
READ_ON_S = 5.0


class BodyLimit:
    """Ends a request whose body is too large."""

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with a body that cannot grow beyond the limit."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        declared = Headers(scope=scope).get("content-length", "")
        read = 0

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._max_bytes or (declared.isdecimal() and int(declared) > self._max_bytes):
                await _read_on(receive, message)
                raise HTTPException(413, f"the body is larger than {self._max_bytes:,} bytes")
            return message

        return await self._app(scope, limited, send)


async def _read_on(receive: Receive, message: Message) -> None:
    """Throw the rest of a body away, up to a point: a client that is still sending would not see the answer."""
    seen = 0
    with anyio.move_on_after(READ_ON_S):
        while message.get("more_body") and seen < READ_ON_BYTES:
            message = await receive()
            seen += len(message.get("body", b""))
