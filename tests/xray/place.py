"""The recording proxy for tests: on a real socket, before a real upstream, with a store to look into."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fetch.certificates import authority
from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.local.pane import LocalPane
from windowpane.serving.sockets import address_of, listening
from windowpane.testing import World
from windowpane.xray.app import XrayApp
from windowpane.xray.standalone import serving
from windowpane.xray.upstreams import upstreams_of

PROVIDERS = ("anthropic", "openai", "google", "ollama")


@dataclass(frozen=True)
class Xray:
    """A proxy that runs, and what it recorded."""

    url: str
    app: XrayApp
    engine: Engine
    pane: LocalPane

    async def sessions(self) -> list[SessionId]:
        """Return the ids of what was recorded, the first to begin first, once all of it is."""
        await self.app.recorder.settled()
        found = (await self.pane.sessions.list()).sessions
        return [session.id for session in sorted(found, key=lambda session: str(session.created_at))]


@asynccontextmanager
async def xray(world: World, upstream: str | Mapping[str, str]) -> AsyncGenerator[Xray]:
    """Run a proxy that passes calls of every provider on to one server, or to one for each."""
    named = {name: upstream for name in PROVIDERS} if isinstance(upstream, str) else dict(upstream)  # noqa: C420 - typed
    async with world.engine() as engine:
        app = XrayApp(engine.store, upstreams_of(named), lambda scope: "local")
        with listening("127.0.0.1", 0) as listener:
            async with app.running(), serving(app, listener):
                yield Xray(address_of(listener), app, engine, LocalPane(engine, owner="local"))


@asynccontextmanager
async def standing_for(host: str, folder: Path, wire: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[None]:
    """Let a server stand for a provider: what this process sends to `https://host` goes there, over TLS.

    Calls to a provider's own address have its prices.
    """
    signed = authority(folder)
    context = signed.server_context(host)
    port = int(wire.rpartition(":")[2])

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        assert asked.startswith(f"CONNECT {host}:443 ".encode()), asked
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await writer.drain()
        await writer.start_tls(context)
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(carry(reader, back), carry(there, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    monkeypatch.setenv("SSL_CERT_FILE", str(signed.ca_file))
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with server:
        yield
