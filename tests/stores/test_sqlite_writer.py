"""One transaction for everybody who waits, and each succeeds or fails alone."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from windowpane.errors import InvalidInputError, StoreUnavailableError
from windowpane.stores.file_lock import FileLock
from windowpane.stores.sqlite import writer as writer_module
from windowpane.stores.sqlite.writer import SQLiteWriter

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE number (n INTEGER UNIQUE)")
        db.execute("CREATE TABLE wiped (bytes INTEGER)")
        db.execute("INSERT INTO wiped VALUES (0)")
        db.commit()
    return path


@pytest.fixture
def changed() -> list[int]:
    return []


@pytest.fixture
async def writer(path: Path) -> AsyncIterator[SQLiteWriter]:
    writer = SQLiteWriter(path, "FULL")
    yield writer
    await writer.close()


def numbers(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as db:
        return [n for (n,) in db.execute("SELECT n FROM number ORDER BY n")]


def wal_bytes(path: Path) -> int:
    return path.with_name(path.name + "-wal").stat().st_size


def add(db: sqlite3.Connection, n: int) -> int:
    db.execute("INSERT INTO number VALUES (?)", (n,))
    return n


async def test_work_that_fails_in_an_unforeseen_way_after_writing_takes_nobody_with_it(
    writer: SQLiteWriter, path: Path, changed: list[int]
) -> None:
    def fail(db: sqlite3.Connection) -> int:
        add(db, 1000)
        raise RuntimeError("unforeseen")

    def refuse(db: sqlite3.Connection) -> int:
        raise InvalidInputError("foreseen")

    answers = await asyncio.gather(
        writer.run(lambda db: add(db, 1), changed=changed.append),
        writer.run(fail, changed=changed.append),
        writer.run(lambda db: add(db, 1)),
        writer.run(refuse, changed=changed.append),
        writer.run(lambda db: add(db, 2), changed=changed.append),
        return_exceptions=True,
    )

    assert [answers[0], answers[4]] == [1, 2]
    assert [type(answer) for answer in answers[1:4]] == [RuntimeError, StoreUnavailableError, InvalidInputError]
    assert numbers(path) == [1, 2]
    assert changed == [1, 2]


async def test_everybody_who_waits_shares_one_transaction(writer: SQLiteWriter, path: Path) -> None:
    opened: set[int] = set()

    def add_and_count(db: sqlite3.Connection, n: int) -> int:
        # Rows that were added before in the same transaction are seen here and by nobody else yet.
        opened.add(len(numbers(path)))
        return add(db, n)

    with closing(sqlite3.connect(path, isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")
        adding = [asyncio.create_task(writer.run(lambda db, n=n: add_and_count(db, n))) for n in range(100)]
        await asyncio.sleep(0)
        another.execute("COMMIT")
    await asyncio.gather(*adding)

    assert numbers(path) == list(range(100))
    assert len(opened) <= 2


async def test_work_whose_caller_went_away_before_it_began_is_left_undone(writer: SQLiteWriter, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")
        first = asyncio.create_task(writer.run(lambda db: add(db, 1)))
        await asyncio.sleep(0)
        second = asyncio.create_task(writer.run(lambda db: add(db, 2)))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        another.execute("COMMIT")

    assert await first == 1
    assert await writer.run(lambda db: add(db, 3)) == 3
    assert numbers(path) == [1, 3]


async def test_whoever_erases_is_told_when_another_program_keeps_the_old_bytes(
    writer: SQLiteWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windowpane.stores.sqlite.writer.BUSY_S", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM number").fetchall()

        with pytest.raises(StoreUnavailableError, match="another program still reads them"):
            await writer.run(lambda db: add(db, 1), erases=True)
        assert numbers(path) == [1]
        assert wal_bytes(path) > 0

    await writer.run(lambda db: add(db, 2))
    assert wal_bytes(path) == 0


async def test_closing_finishes_what_waits(path: Path) -> None:
    writer = SQLiteWriter(path, "FULL")
    adding = [asyncio.create_task(writer.run(lambda db, n=n: add(db, n))) for n in range(20)]
    await asyncio.sleep(0)

    await writer.close()

    assert await asyncio.gather(*adding) == list(range(20))
    assert numbers(path) == list(range(20))
    with pytest.raises(StoreUnavailableError, match="closed"):
        await writer.run(lambda db: add(db, 99))


async def test_work_that_waits_too_long_for_another_process_fails_and_is_not_done_later(
    writer: SQLiteWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "_PATIENCE_S", 0.1)
    lock = FileLock(path)

    with lock:
        answers = await asyncio.gather(
            *(writer.run(lambda db, n=n: add(db, n)) for n in range(3)), return_exceptions=True
        )
    monkeypatch.undo()

    lock.close()
    assert [str(answer) for answer in answers] == [
        f"{path}: nothing could be written for 0.1 s; does another process hold numbers.db-lock?"
    ] * 3
    assert await writer.run(lambda db: add(db, 3)) == 3
    assert numbers(path) == [3]
