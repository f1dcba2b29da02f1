"""How often PostgreSQL is asked."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from patience import PATIENCE_S
from stores.postgres_server import fresh_database
from windowpane.bus import connected
from windowpane.stores.postgres import notify
from windowpane.stores.postgres.connections import ConnectionPool
from windowpane.stores.postgres.store import PostgresStore
from windowpane.testing import World, drain

pytestmark = pytest.mark.anyio

_LASTING = 22
"""Where an append says whether it waits for the disk."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return every statement that any connection is given, as they come."""
    statements: list[str] = []
    connect = ConnectionPool._connect  # pyright: ignore[reportPrivateUsage]

    async def listened_to(pool: ConnectionPool, where: dict[str, Any], *, plain: bool) -> Any:
        connection: Any = await connect(pool, where, plain=plain)

        def note(asked: Any) -> None:
            statements.append(_in_short(" ".join(str(asked.query).split()), asked.args))

        connection.add_query_logger(note)
        return connection

    monkeypatch.setattr(ConnectionPool, "_connect", listened_to)
    return statements


def _in_short(query: str, arguments: tuple[Any, ...]) -> str:
    """Return a statement without the parts that are always the same."""
    if query.startswith("SELECT outcomes"):
        return "append" if arguments[_LASTING] else "append, not waiting for the disk"
    if query.startswith("SELECT pg_notify"):
        return "wake" if any(arguments[1]) else "look"
    if query.startswith(("LISTEN", "UNLISTEN")):
        return "listen"
    beside = ("SELECT id, last_seq FROM", "SELECT * FROM windowpane.renew_leases")
    return "look" if query.startswith(beside) else query


async def test_a_turn_of_one_call_is_three_appends_of_which_two_wait_for_the_disk_and_two_wake_ups(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "HOLD_S", 600.0)  # A busy machine may take longer than usual from append to append.
    world = World(tmp_path / "agents", store=PostgresStore(fresh_database()))
    world.says("First.", "Second.", "Third.")
    async with world.engine() as engine:
        session = (await engine.sessions.create()).id
        for message in ("Hi", "And now?", "And then?"):
            await drain(engine.turn(session, message))

    # Each is a transaction of its own, five for a turn. The first append of a turn wakes others with the second. The
    # bus listens to a session once. Looks and renewals come with time, not with turns. The session is begun by the
    # first append.
    own = [one for one in asked if one.startswith("append")]
    assert own == ["append", *["append, not waiting for the disk", "append", "append"] * 3]
    assert asked.count("wake") <= 1 + 3 * 2
    assert asked.count("listen") <= 1 + 1  # The bus listens to itself, too.
    assert [one for one in asked[asked.index("append") :] if "windowpane.event" in one] == []


async def test_a_session_that_none_watches_is_not_listened_to_for_ever(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connected, "LINGER_S", 0.0)
    monkeypatch.setattr(connected, "CHECK_EVERY_S", 0.05)
    store = PostgresStore(fresh_database())
    async with World(tmp_path / "agents", store=store).engine() as engine:
        session = (await engine.sessions.create()).id
        watching = store.subscribe(session, after=0)
        await anext(watching)
        with anyio.fail_after(PATIENCE_S):
            # The bus listens to itself, to the session, and, once it is left, to the session no more. A session that
            # is left before the bus is connected is never listened to, so it is left afterwards.
            while asked.count("listen") < 2:  # noqa: ASYNC110
                await anyio.sleep(0.01)
            await watching.aclose()
            while asked.count("listen") < 3:  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def test_a_page_of_sessions_that_this_worker_knows_is_one_statement(tmp_path: Path, asked: list[str]) -> None:
    world = World(tmp_path / "agents", store=PostgresStore(fresh_database()))
    async with world.engine() as engine:
        created = [(await engine.sessions.create()).id for _ in range(5)]
        asked.clear()
        page = await engine.sessions.list()
        # Other processes are told of what was created, beside this.
        own = [one for one in asked if one not in ("wake", "look", "listen")]
        state = await engine.sessions.get(created[0])

    assert [listed.id for listed in page.sessions] == created[::-1]
    assert page.sessions[-1] == state
    assert len(own) == 1


async def test_a_page_of_sessions_that_this_worker_has_never_seen_is_two_statements(
    tmp_path: Path, asked: list[str]
) -> None:
    place = fresh_database()
    async with World(tmp_path / "agents", store=PostgresStore(place)).engine() as engine:
        created = [(await engine.sessions.create()).id for _ in range(5)]
        states = [await engine.sessions.get(session) for session in created]
    async with World(tmp_path / "agents", store=PostgresStore(place)).engine() as engine:
        asked.clear()
        page = await engine.sessions.list()
        own = [one for one in asked if one not in ("wake", "look", "listen")]

    assert page.sessions == tuple(states[::-1])
    assert len(own) == 2
