"""What one message costs: how often its session is read, and how often its agent's folder is looked through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from windowpane.agents import folder
from windowpane.agents.files import Scan, scan
from windowpane.models.scripted import Call, Reply
from windowpane.server.app import create_app
from windowpane.stores.base import Store
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, tool

READS = ("read", "row", "snapshot")
"""The calls of the store port that read a session."""


class Counted:
    """A store, and how often each of its methods was called from outside."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()

    async def __aenter__(self) -> Counted:
        await self._store.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._store.__aexit__(*exc)

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._store, name)

    @property
    def reads(self) -> int:
        return sum(self.calls[name] for name in READS)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Counted:
    return Counted(MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "a.db"))


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the folders that agents were read from, in order."""
    seen: list[str] = []

    def noted(path: str, entering: Callable[[str], None] | None = None) -> Scan:
        seen.append(path)
        return scan(path, entering)

    monkeypatch.setattr(folder, "scan", noted)
    return seen


SAYS_HELLO = (Reply("Hello."),)
CALLS_A_TOOL = (Reply(calls=(Call("files__read", "{}", "c1"),)), Reply("It is empty."))


@pytest.mark.parametrize("replies", [SAYS_HELLO, CALLS_A_TOOL], ids=["one model call", "a tool call"])
async def test_a_message_to_a_session_that_the_worker_knows_reads_it_never_and_its_agent_once(
    world: World, store: Counted, scans: list[str], replies: tuple[Reply, ...]
) -> None:
    world.store = cast("Store", store)
    world.toolbox.put("files", [tool("read", permission="none")])
    world.rule("tone", include="always")
    world.says(*replies)
    async with world.engine() as engine:
        session = await engine.sessions.create()
        store.calls.clear()
        scans.clear()
        await drain(engine.turn(session.id, "Heed @rule:tone. Hi"))
        await engine.finish_turns(within_s=5)
        reads, appends, looked_at = store.reads, store.calls["append"], len(scans)

    assert len(world.model.calls) == len(replies)
    assert (reads, looked_at) == (0, 1)
    # The message; the request; then each step, and the result of each tool. The last step ends the turn as well.
    assert appends == 2 + 2 * len(replies) - 1


async def test_a_message_over_http_reads_its_session_twice_and_its_agent_once(
    world: World, store: Counted, scans: list[str]
) -> None:
    world.store = cast("Store", store)
    world.says(*SAYS_HELLO)
    async with world.engine() as engine:
        app = create_app(engine)
        app.state.opened = True
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            created = (await client.post("/api/sessions", json={})).json()
            store.calls.clear()
            scans.clear()
            answer = await client.post(f"/api/sessions/{created['id']}/messages", json={"content": "Hi"})

    assert answer.json()["outcome"] == "completed"
    assert (store.reads, len(scans)) == (2, 1)
