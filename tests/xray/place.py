"""The recording proxy for tests: on a real socket, before a real upstream, with a store to look into."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

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
