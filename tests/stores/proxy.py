"""A TCP proxy between a store and its server that can cut a connection at an exact moment.

The moment is told by what passes: the request that carries a given text is cut off before it arrives, or it arrives,
is done, and its answer is cut off. New connections go through as before.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

Moment = Literal["request", "answer"]


@dataclass(slots=True)
class Proxy:
    """Forwards connections to a server's port. `cuts` counts the connections that were cut."""

    to_host: str
    to_port: int
    port: int = 0
    cuts: int = 0
    connections: int = 0
    _marker: bytes = b""
    _moment: Moment = "request"
    _times: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)

    def cut(self, marker: str, moment: Moment, times: int = 1) -> None:
        """Cut the next connections that carry a text: its request before it arrives, or the answer to it."""
        self._marker, self._moment, self._times = marker.encode(), moment, times

    def cut_all(self) -> None:
        """Cut every connection there is."""
        for one in self._open:
            one.transport.abort()
            self.cuts += 1

    def stall(self) -> None:
        """Let nothing through, and end nothing."""
        self._flowing.clear()

    def flow(self) -> None:
        """Let what was held back through."""
        self._flowing.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until either side ends it."""
        self.connections += 1
        try:
            # A server that is down refuses, and so do we: by ending what was begun.
            with suppress(OSError):
                from_server, to_server = await asyncio.open_connection(self.to_host, self.to_port)
                self._open |= {writer, to_server}
                armed = asyncio.Event()
                ways = (self._requests(reader, to_server, armed), self._answers(from_server, writer, armed))
                tasks = [asyncio.create_task(way) for way in ways]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    self._open -= {writer, to_server}
                    to_server.transport.abort()
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            writer.transport.abort()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, armed: asyncio.Event) -> None:
        while request := await reader.read(1 << 16):
            await self._flowing.wait()
            if self._times and self._marker in request:
                self._times -= 1
                if self._moment == "request":
                    self.cuts += 1
                    return
                armed.set()
            writer.write(request)
            await writer.drain()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, armed: asyncio.Event) -> None:
        while answer := await reader.read(1 << 16):
            await self._flowing.wait()
            if armed.is_set():
                self.cuts += 1
                return
            writer.write(answer)
            await writer.drain()


@asynccontextmanager
async def proxy_to(host: str, port: int, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Proxy]:
    """Run a proxy to a server's port; with TLS, its clients must speak it, and the server need not."""
    proxy = Proxy(host, port)
    proxy.flow()
    serving: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(proxy.serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
