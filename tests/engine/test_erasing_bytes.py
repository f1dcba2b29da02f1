"""What is erased is in no table, key or file of a store, in no cache and no log. Everything is wired as it ships."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from calls.test_ledger import PROVIDERS
from patience import PATIENCE_S
from stores import redis_server
from stores.postgres_server import PostgresServer
from windowpane.api.replay import WhatIf
from windowpane.context.messages import NewFile
from windowpane.local.pane import LocalPane
from windowpane.settings import Settings
from windowpane.stores.packing import unpack
from windowpane.testing import drain
from windowpane.wiring import open_engine
from wire.reply import WireCall, WireReply
from wire.server import running

_driver = cast("Any", asyncpg)
ADDED, PAGE = ("quartzadded",), ("quartzpage",)
SAID = ("quartzasked", "quartzanswer", "quartzthought", "quartzfile", "quartzsummary", "quartzown")
WORDS = (*ADDED, *PAGE, *SAID)


@dataclass(frozen=True)
class Place:
    """A store: its address, all that it tells whoever asks, and the files that it writes."""

    url: str
    told: Callable[[], Awaitable[bytes]]
    files: Path
    sweep: Callable[[], Awaitable[None]]
    """What the database does in its own time, done now."""


@contextmanager
def postgres(directory: Path) -> Generator[Place]:
    server = PostgresServer(directory, durable=False)
    server.start()

    async def told() -> bytes:
        connection: Any = await _driver.connect(server.place)
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'windowpane'"
        names = [row[0] for row in await connection.fetch(query)]
        rows = [row for name in names for row in await connection.fetch(f'SELECT * FROM windowpane."{name}"')]
        await connection.close()
        return b"".join(_plain(value) for row in rows for value in row.values())

    async def sweep() -> None:
        connection: Any = await _driver.connect(server.place)
        await connection.execute("VACUUM FULL")
        await connection.execute("CHECKPOINT")
        await connection.close()

    try:
        # Where tables and their long values are. The write-ahead log is beside it, and is told of in the documentation.
        yield Place(server.place, told, server.files / "base", sweep)
    finally:
        server.stop()


@contextmanager
def redis(_: Path) -> Generator[Place]:
    reads = {
        b"string": ("GET",),
        b"hash": ("HGETALL",),
        b"list": ("LRANGE", 0, -1),
        b"set": ("SMEMBERS",),
        b"zset": ("ZRANGE", 0, -1),
        b"stream": ("XRANGE", "-", "+"),
    }
    with redis_server.server() as server:

        async def told() -> bytes:
            found = b""
            for key in server.run("KEYS", "*"):
                kind = server.run("TYPE", key)
                verb, *rest = reads[kind if isinstance(kind, bytes) else kind.encode()]
                found += _plain(key) + _plain(server.run(verb, key, *rest))
            return found

        async def sweep() -> None:
            """Nothing: after an erasure the server is asked to write its file again."""

        yield Place(server.place, told, server.directory, sweep)


@contextmanager
def sqlite(directory: Path) -> Generator[Place]:
    file = directory / "data" / "windowpane.db"

    async def told() -> bytes:
        rows: list[tuple[Any, ...]] = []
        for each in file.parent.rglob("*.db"):
            with closing(sqlite3.connect(each)) as db:
                tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
                for (name,) in db.execute(tables).fetchall():
                    rows += db.execute(f'SELECT * FROM "{name}"').fetchall()
        return _plain(rows)

    async def sweep() -> None:
        """Nothing: what is erased is overwritten."""

    yield Place(f"sqlite:///{file}", told, file.parent, sweep)


def _plain(value: Any) -> bytes:
    """Return what a value says, also where it is packed or a list of values."""
    if isinstance(value, dict):
        return _plain(list(cast("dict[Any, Any]", value).items()))
    if isinstance(value, list | tuple | set):
        return b"".join(map(_plain, cast("list[Any]", value)))
    if not isinstance(value, bytes):
        return str(value).encode()
    with suppress(Exception):
        return value + unpack(value)
    return value


def _in_files(folder: Path) -> bytes:
    found = b""
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            found += file.read_bytes() if file.is_file() else b""
    return found


async def _look_at_everything(pane: LocalPane, session: str) -> None:
    """Fill whatever is filled by looking."""
    await pane.analytics.dashboard()
    await pane.preview(session, "And now?")
    await pane.sessions.find("quartzasked")
    for turn in range(1, (await pane.sessions.get(session)).turn_count + 1):
        await pane.turns.explanations(session, turn)
        await pane.turns.compare(session, turn, other=1)
        await pane.turns.replay(session, turn, what_if=WhatIf(search={"floor": 0.1}, query="islands"))
        await pane.turns.debug(session, turn)


async def _hold(pane: LocalPane) -> tuple[str, int]:
    """Hold a conversation with every planted word, and return its session and the place of the added message."""
    session = (await pane.sessions.create()).id
    file = NewFile("notes.txt", b"The file speaks of quartzfile. " * 20)
    await drain(pane.turn(session, "What of quartzasked, and of the islands off the coast?", attachments=[file]))
    await pane.sessions.add_message(session, "user", "And of quartzadded, which is not to be kept.")
    added = (await pane.sessions.messages(session)).messages[-1].seq
    await pane.sessions.push_page(session, "https://example.org/a", title="A", text="All of quartzpage. " * 60)
    await pane.sessions.add_reference(
        session, NewFile("own.md", b"# Islands\n\nA quartzown lives on the islands. " * 9)
    )
    await drain(pane.turn(session, "Which islands are there?"))
    for number in range(9):
        await pane.sessions.add_message(session, "user", f"Shade {number} of the wall in the hall is blue.")
    assert await pane.sessions.sum_up(session) is not None
    await _look_at_everything(pane, session)
    return session, added


SUMMARY = {"overview": "The user asks about quartzsummary.", "current_topic": "islands"}
REPLIES = (
    WireReply(("It is quartzanswer.",), thinking=("I think of quartzthought.",)),
    WireReply(("Three of them.",)),
    WireReply(calls=(WireCall("c1", "record_summary", (json.dumps(SUMMARY),)),)),
)


@pytest.mark.parametrize("kind", [sqlite, postgres, redis])
async def test_nothing_erased_is_found_in_any_byte(
    tmp_path: Path,
    kind: Callable[[Path], Any],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    agent = tmp_path / "agents" / "pane"
    (agent / "prompts").mkdir(parents=True)
    (agent / "prompts" / "core.md").write_text("You are Pane.")
    (agent / "references").mkdir()
    (agent / "references" / "islands.md").write_text("---\ndescription: Islands off the coast\n---\nThere are three.")
    settings = "working_context: false\nfinders: false\nmode: thinking\nmemory: {messages: 8}\n"
    (agent / "agent.yaml").write_text(f"model: {PROVIDERS['anthropic'].model}\n{settings}")
    answers = map(PROVIDERS["anthropic"].answer, REPLIES * 2)
    async with running(*answers) as server:
        for name, value in PROVIDERS["anthropic"].environ(server.url).items():
            monkeypatch.setenv(name, value)
        with kind(tmp_path) as place:
            wired = Settings(data=tmp_path / "data", agents=tmp_path / "agents", store_url=place.url)

            async def found() -> list[str]:
                await place.sweep()
                everywhere = await place.told() + _in_files(place.files) + _in_files(wired.data)
                return [word for word in WORDS if word.encode() in everywhere]

            async def until_found(words: tuple[str, ...]) -> None:
                """Wait until these words are there and no others: files are written in the background."""
                left: list[str] = []
                with anyio.move_on_after(PATIENCE_S):
                    while (left := await found()) != list(words):  # noqa: ASYNC110 – another process writes them
                        await anyio.sleep(0.2)
                assert left == list(words)

            async with open_engine(wired) as engine:
                pane = LocalPane(engine, owner="local")
                session, added = await _hold(pane)
                await until_found(WORDS)
                removed = await pane.sessions.remove_message(session, added)
                cleared = await pane.sessions.clear_fetched(session)
                assert (removed.remains, cleared.remains) == (
                    (),
                    ("turn 2 names a page as a source of its answer, by title and address",),
                )
                await _look_at_everything(pane, session)
            # A closing store asks for its files to be written again without waiting for its minute.
            await until_found(tuple(word for word in SAID if word != "quartzsummary"))
            async with open_engine(wired) as engine:
                pane = LocalPane(engine, owner="local")
                await pane.sessions.clear_history(session)
                await pane.sessions.remove_reference(session, "own")
                await pane.analytics.dashboard()
            await until_found(())
            async with open_engine(wired) as engine:
                pane = LocalPane(engine, owner="local")
                session, _ = await _hold(pane)
                await pane.sessions.delete(session)
                await pane.analytics.dashboard()
            await until_found(())
    written = capfd.readouterr()
    assert [word for word in WORDS if word in written.out + written.err] == []
