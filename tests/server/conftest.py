from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from server.place import served
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An agent `pane` with a scripted model, on a real SQLite file. Fill it before asking for `client`."""
    return World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))


@pytest.fixture
async def client(world: World) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of a running server."""
    async with served(world) as client:
        yield client
