"""How often PostgreSQL is asked."""

from pathlib import Path
from typing import Any

import pytest

from stores.postgres_server import fresh_database
from windowpane.stores.postgres.connections import ConnectionPool
from windowpane.stores.postgres.store import PostgresStore
from windowpane.testing import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return every statement that any connection is given, as they come."""
    statements: list[str] = []
    connect = ConnectionPool._connect  # pyright: ignore[reportPrivateUsage]

    async def listened_to(pool: ConnectionPool, where: dict[str, Any], *, plain: bool) -> Any:
        connection: Any = await connect(pool, where, plain=plain)

        def note(asked: Any) -> None:
            statements.append(" ".join(str(asked.query).split()))

        connection.add_query_logger(note)
        return connection

    monkeypatch.setattr(ConnectionPool, "_connect", listened_to)
    return statements


async def test_a_page_of_sessions_that_this_worker_knows_is_one_statement(tmp_path: Path, asked: list[str]) -> None:
    world = World(tmp_path / "agents", store=PostgresStore(fresh_database()))
    async with world.engine() as engine:
        created = [(await engine.sessions.create()).id for _ in range(5)]
        asked.clear()
        page = await engine.sessions.list()
        # Other processes are told of what was created, beside this.
        own = [one for one in asked if not one.startswith("SELECT windowpane.wake")]
        state = await engine.sessions.get(created[0])

    assert [listed.id for listed in page.sessions] == created[::-1]
    assert page.sessions[-1] == state
    assert len(own) == 1
