"""The recording proxy as an ASGI application: `/{provider}/…` is passed on to that provider.

The server mounts it under `/xray`, and `windowpane xray` runs it by itself.
"""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import unquote_to_bytes

from starlette.types import Receive, Scope, Send

from windowpane.stores.base import Store
from windowpane.xray.proxy import HttpProxy
from windowpane.xray.recorder import Recorder
from windowpane.xray.sockets import SocketProxy
from windowpane.xray.upstreams import Upstream

OwnerOf = Callable[[Scope], str]


class XrayApp:
    """Passes calls on and records them. `prefix` is what stands before the name of the provider in a path."""

    def __init__(self, store: Store, upstreams: Mapping[str, Upstream], owner_of: OwnerOf, *, prefix: str = "") -> None:
        self.recorder = Recorder(store)
        self._upstreams = upstreams
        self._owner_of = owner_of
        self._prefix = prefix.encode("ascii")
        self._http = HttpProxy(self.recorder.start_tape)
        self._sockets = SocketProxy(self.recorder.start_tape)

    @property
    def providers(self) -> tuple[str, ...]:
        """Return the names that calls can be passed on to."""
        return tuple(sorted(self._upstreams))

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Record until the block ends; the store is open meanwhile."""
        async with self.recorder.running():
            try:
                yield
            finally:
                await self._http.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry a request or a socket."""
        if scope["type"] == "lifespan":
            return
        path = scope["raw_path"].removeprefix(self._prefix)
        name, slash, rest = path.removeprefix(b"/").partition(b"/")
        upstream = self._upstreams.get(name.decode("latin-1"))
        if upstream is None or b".." in unquote_to_bytes(rest).split(b"/"):
            await self._not_found(scope["type"], send)
            return
        query = scope["query_string"]
        target = upstream.path + slash + rest + (b"?" + query if query else b"")
        proxy = self._http if scope["type"] == "http" else self._sockets
        await proxy.carry(upstream, target or b"/", self._owner_of(scope), scope, receive, send)

    async def _not_found(self, kind: str, send: Send) -> None:
        """Say which providers there are."""
        detail = f"windowpane: name a provider in the path: {', '.join(sorted(self._upstreams))}"
        body = json.dumps({"error": {"type": "not_found", "message": detail}}).encode()
        start = "http.response" if kind == "http" else "websocket.http.response"
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": f"{start}.start", "status": 404, "headers": headers})
        await send({"type": f"{start}.body", "body": body, "more_body": False})
