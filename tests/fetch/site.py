"""A real web site on the loopback address that answers as badly as it is told, and resolvers that point names at it."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from windowpane.fetch.addresses import exemption
from windowpane.fetch.guard import AddressGuard, Resolver


@dataclass(frozen=True, slots=True)
class Visit:
    """One request as it came in."""

    path: str
    headers: dict[str, str]


Play = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Writes one answer; the connection ends afterwards."""


@dataclass(slots=True)
class Site:
    """Where the site is, and who came."""

    port: int
    scheme: str
    visits: list[Visit] = field(default_factory=list[Visit])

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def guard(self, resolve: Resolver | None = None) -> AddressGuard:
        """Return a guard to which this site alone is the public web."""
        allow = (exemption(f"127.0.0.1:{self.port}"),)
        return AddressGuard(allow=allow, resolve=resolve or Names({}))


@asynccontextmanager
async def running_site(
    routes: Mapping[str, Play], *, host: str = "127.0.0.1", port: int = 0, ssl_context: ssl.SSLContext | None = None
) -> AsyncGenerator[Site]:
    """Run a site until the block ends."""
    site = Site(0, "https" if ssl_context else "http")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        path = first.split(" ")[1]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        site.visits.append(Visit(path, headers))
        await routes[path.partition("?")[0]](writer)
        await writer.drain()

    async with listening(serve, host=host, port=port, ssl_context=ssl_context) as site.port:
        yield site


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ssl_context: ssl.SSLContext | None = None,
) -> AsyncGenerator[int]:
    """Run a server until the block ends, and give its port. Nothing of it is left afterwards."""
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def tracked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections[task] = writer
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                await serve(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
            del connections[task]

    server = await asyncio.start_server(tracked, host, port, ssl=ssl_context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in connections.values():
            writer.transport.abort()
        await asyncio.gather(*connections, return_exceptions=True)


def page(
    body: bytes | str,
    content_type: str | None = "text/html; charset=utf-8",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Play:
    """Return a whole answer."""
    raw = body.encode() if isinstance(body, str) else body
    fields = {"Connection": "close", "Content-Length": str(len(raw))}
    fields |= {"Content-Type": content_type} if content_type is not None else {}
    fields |= headers or {}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())

    async def play(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} Played\r\n{head}\r\n".encode() + raw)
        await writer.drain()

    return play


def redirect(to: str, status: int = 302) -> Play:
    """Return an answer that leads elsewhere."""
    return page("", status=status, headers={"Location": to})


def endlessly(head: str, chunk: bytes, pause_s: float = 0.0) -> Play:
    """Return an answer that never ends."""

    async def play(writer: asyncio.StreamWriter) -> None:
        writer.write(head.replace("\n", "\r\n").encode())
        while True:
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(pause_s)

    return play


class Names:
    """Resolves names from a table, each time with the next of its answers; the last one stays."""

    def __init__(self, answers: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._answers = {name: list(given) for name, given in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self._answers:
            raise OSError(f"{host} is not known")
        given = self._answers[host]
        return given.pop(0) if len(given) > 1 else given[0]


ARTICLE = """<!DOCTYPE html>
<html><head>
<title>Tea is rising | The Daily Cup</title>
<meta property="og:title" content="Tea is rising">
<meta property="og:site_name" content="The Daily Cup">
</head><body>
<nav><a href="/">Home</a> <a href="/coffee">Coffee</a></nav>
<article><h1>Tea is rising</h1>
<p>Sales of tea rose by 12 % in the second quarter, the growers' association said on Monday in its report.</p>
<p>The rise was strongest in the north, where a cold spring kept people at home with a pot on the table.</p>
<p>Growers expect the trend to last until the autumn, when the new harvest reaches the auctions in Mombasa.</p>
</article>
<footer>Copyright 2026 The Daily Cup. All rights reserved. Imprint. Privacy.</footer>
</body></html>"""

ARTICLE_TEXT = (
    "Tea is rising\n"
    "Sales of tea rose by 12 % in the second quarter, the growers' association said on Monday in its report.\n"
    "The rise was strongest in the north, where a cold spring kept people at home with a pot on the table.\n"
    "Growers expect the trend to last until the autumn, when the new harvest reaches the auctions in Mombasa."
)
