"""What the SQLite store promises beyond the contract: about its file."""

import asyncio
import hashlib
import os
import random
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

from stores.kinds import KINDS, Kind, begin, contents, events, said
from stores.processes import Place
from windowpane.context.events import Erased
from windowpane.context.ids import SessionId, content_hash
from windowpane.errors import (
    InvalidSettingError,
    StoreCorruptError,
    StoreReplacedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from windowpane.stores.base import Snapshot
from windowpane.stores.finding import IndexedText, WantedTexts
from windowpane.stores.packing import pack
from windowpane.stores.sqlite.finding import SQLiteIndex
from windowpane.stores.sqlite.store import SQLiteStore

pytestmark = pytest.mark.anyio
T = TypeVar("T")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def bytes_beside(path: Path) -> dict[str, str]:
    """The name and hash of each file of a database; the lock file, which is always empty, is left out."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.parent.glob(f"{path.name}*"))
        if not file.name.endswith("-lock")
    }


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def may_not_be_written(directory: Path) -> None:
    for file in directory.iterdir():
        file.chmod(0o444)
    directory.chmod(0o555)


def all_bytes(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


async def a_database(path: Path, messages: int = 300) -> SessionId:
    async with SQLiteStore(path) as store:
        session = await begin(store)
        for number in range(messages):
            await store.append(session, [said(f"message {number} " * 20)])
    return session


async def test_the_default_waits_for_the_disk_and_the_log_is_kept_short(path: Path) -> None:
    async with SQLiteStore(path) as store:
        session = await begin(store)
        for _ in range(60):
            await store.append(session, [said("x" * 100_000)])

        assert size(path.with_name(path.name + "-wal")) < 8_000_000
    assert bytes_beside(path).keys() == {path.name}
    with pytest.raises(InvalidSettingError, match="synchronous"):
        SQLiteStore(path, synchronous="OFF")  # pyright: ignore[reportArgumentType] a caller without a type checker


@pytest.mark.spec("S4.7")
async def test_the_log_can_be_read_as_json_with_any_sqlite_client(path: Path) -> None:
    session = await a_database(path, messages=1)

    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT session, seq, json_extract(body, '$.type') FROM log").fetchall()

    assert found == [(session, 1, "session.created"), (session, 2, "message.added")]


async def test_a_text_that_many_sessions_use_is_stored_once_and_goes_with_the_last_of_them(path: Path) -> None:
    text = "the same long rule " * 100

    def stored_texts() -> list[int]:
        with closing(sqlite3.connect(path)) as db:
            return [length for (length,) in db.execute("SELECT length(body) FROM blob JOIN text ON pk = text")]

    async with SQLiteStore(path) as store:
        one, other = await begin(store), await begin(store)
        for session in (one, other, one):
            await store.append(session, [said("x")], blobs={content_hash(text): text})

        assert stored_texts() == [len(pack(text.encode()))]
        assert len(pack(text.encode())) < len(text) / 10

        await store.delete(one)
        assert await store.blob(other, content_hash(text)) == text
        await store.delete(other)
        assert stored_texts() == []


async def test_what_is_erased_or_deleted_is_gone_from_the_files_while_the_store_is_open(path: Path) -> None:
    secret, short = secrets.token_hex(2000), secrets.token_hex(50)
    async with SQLiteStore(path) as store, SQLiteStore(path) as another:
        erased, deleted = await begin(store), await begin(store)
        for session in (erased, deleted):
            await store.append(
                session, [said(secret), said(short)], blobs={content_hash(text): text for text in (secret, short)}
            )
            await store.put_snapshot(session, Snapshot(3, short.encode()))
        await another.read(erased)
        # Pieces, because a long text lies in several pages.
        pieces = (secret[:100].encode(), secret[1000:1100].encode(), short[:40].encode(), pack(secret.encode())[:50])
        assert [piece in all_bytes(path) for piece in pieces] == [True] * 4

        await store.erase(erased, [2, 3], blobs=[content_hash(secret), content_hash(short)])
        await store.delete(deleted)

        assert [piece in all_bytes(path) for piece in pieces] == [False] * 4
        assert deleted.encode() not in all_bytes(path)
        assert events(await another.read(erased))[1:] == [Erased(), Erased()]


@pytest.mark.parametrize("seed", range(4))
async def test_no_stray_copy_of_an_erased_text_is_left_after_much_use(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    living: dict[SessionId, list[str]] = {}
    gone: list[str] = []
    async with SQLiteStore(path, synchronous="NORMAL") as store:
        for _ in range(120):
            session = chance.choice([await begin(store), *living])
            marks = living.setdefault(session, [])
            new = [secrets.token_hex(12) for _ in range(chance.randint(1, 12))]
            await store.append(session, [said(mark * chance.choice([1, 5, 30, 200])) for mark in new])
            marks += new
            await store.put_snapshot(session, Snapshot(len(marks) + 1, new[0].encode()))
            if chance.random() < 0.3:
                gone += living.pop(session)
                await store.delete(session)
            elif chance.random() < 0.3:
                count = chance.randint(1, len(marks))
                # The numbering starts with the creation of the session.
                await store.erase(session, list(range(2, 2 + count)))
                gone += marks[:count]
                marks[:count] = [""] * count
        left = all_bytes(path)

    assert [mark for mark in gone if mark and mark.encode() in left] == []
    assert [mark for marks in living.values() for mark in marks if mark and mark.encode() not in left] == []


async def test_the_room_that_deleted_sessions_took_is_given_back(path: Path) -> None:
    async with SQLiteStore(path) as store:
        large, small = await begin(store), await begin(store)
        for _ in range(20):
            await store.append(large, [said("x" * 1_000_000)])
        await store.append(small, [said("stays")])
        assert size(path) > 15_000_000

        await store.delete(large)

        assert size(path) < 1_000_000
        assert contents(await store.read(small)) == ["stays"]
        await store.append(small, [said("and goes on")])
        assert contents(await store.read(small)) == ["stays", "and goes on"]


async def test_readers_do_not_wait_for_another_program_that_writes_and_writers_do(path: Path) -> None:
    async with SQLiteStore(path) as store:
        session = await begin(store)
        with closing(sqlite3.connect(path, isolation_level=None)) as another:
            another.execute("BEGIN IMMEDIATE")
            appending = asyncio.create_task(store.append(session, [said("waited")]))

            assert len(await store.read(session)) == 1
            assert not appending.done()
            another.execute("COMMIT")

            assert (await appending).last_seq == 2


def empty(path: Path) -> None:
    path.write_bytes(b"")


def not_a_database(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)


def a_short_file(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0")


def overwritten_in_the_middle(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(5 * 4096)
        file.write(secrets.token_bytes(4096 * 10))


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 8192 * 4096)


def of_another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE recipe (name TEXT)")


def marked_as_of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 7")


@pytest.mark.parametrize(
    "damage",
    [
        not_a_database,
        a_short_file,
        overwritten_in_the_middle,
        cut_in_half,
        of_another_program,
        marked_as_of_another_program,
    ],
)
async def test_a_file_that_is_damaged_or_not_ours_is_refused_and_not_touched(
    path: Path, damage: Callable[[Path], None]
) -> None:
    await a_database(path)
    damage(path)
    before = bytes_beside(path)

    with pytest.raises(StoreCorruptError, match="nothing was changed") as caught:
        async with SQLiteStore(path):
            pass

    assert str(path) in str(caught.value)
    assert bytes_beside(path) == before


async def test_damage_that_shows_only_in_use_is_told_as_damage(path: Path) -> None:
    session = await a_database(path)
    async with SQLiteStore(path) as store:
        overwritten_in_the_middle(path)

        with pytest.raises(StoreCorruptError, match="damaged"):
            await store.read(session)


async def test_a_database_of_a_newer_version_is_refused_and_not_touched(path: Path) -> None:
    await a_database(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    before = bytes_beside(path)

    with pytest.raises(StoreTooNewError, match=r"schema 99 .* knows \d+; nothing was changed"):
        async with SQLiteStore(path):
            pass

    assert bytes_beside(path) == before


async def test_a_newer_version_is_also_seen_when_a_killed_process_left_it_in_the_write_ahead_log(path: Path) -> None:
    await a_database(path)
    left = path.with_name("left.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA user_version = 99")
        shutil.copy(path, left)
        shutil.copy(f"{path}-wal", f"{left}-wal")
    before = bytes_beside(left)

    with pytest.raises(StoreTooNewError):
        async with SQLiteStore(left):
            pass

    after = bytes_beside(left)
    assert {name: after[name] for name in before} == before


async def test_an_empty_file_becomes_a_database(path: Path) -> None:
    empty(path)

    await a_database(path, messages=1)

    assert size(path) > 0


async def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    await a_database(tmp_path / "a" / "b" / "sessions.db", messages=1)

    assert size(tmp_path / "a" / "b" / "sessions.db") > 0


async def test_a_place_that_cannot_hold_a_database_is_told_plainly(tmp_path: Path) -> None:
    empty(tmp_path / "file")

    for impossible, why in (
        (tmp_path, "directory"),
        (tmp_path / "file" / "x.db", "file"),
        (Path("/proc/x.db"), "/proc"),
    ):
        with pytest.raises(StoreUnavailableError, match=why):
            async with SQLiteStore(impossible):
                pass


@pytest.fixture
def public_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory
        directory.chmod(0o755)


async def test_a_place_that_may_not_be_written_is_told_plainly_and_not_touched(public_directory: Path) -> None:
    path = public_directory / "sessions.db"
    await a_database(path, messages=3)
    may_not_be_written(public_directory)
    before = bytes_beside(path)
    sqlite = next(kind for kind in KINDS if kind.name == "sqlite")

    async def answer(path: Path) -> str:
        async with Place(sqlite, str(path)).process("open_as_nobody") as process:
            return await process.line()

    assert (await answer(path)).startswith(f"StoreUnavailableError: {path}: ")
    assert (await answer(public_directory / "new.db")).startswith(f"StoreUnavailableError: {public_directory}")
    assert bytes_beside(path) == before


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name in {"sqlite", "sqlite-encrypted"}], ids=lambda kind: kind.name
)
async def test_a_full_disk_fails_the_append_leaves_the_log_as_it_was_and_heals_when_there_is_room(
    path: Path, kind: Kind
) -> None:
    async with kind.open(str(path)) as store:
        session = await begin(store)

    async with Place(kind, str(path)).process("fill", session, "1000000") as process:
        stored, _, error = (await process.line()).partition(" ")
        assert await process.rest() == ["not writable"]

    assert str(path) in error
    async with kind.open(str(path)) as store:
        expected = [f"{number}" * 20_000 for number in range(int(stored))]
        assert int(stored) > 0
        assert contents(await store.read(session)) == [*expected, "there is room again"]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("what", ["", "-wal"])
@pytest.mark.parametrize("instead", ["nothing", "another"])
async def test_what_is_written_to_a_file_that_has_gone_is_not_acknowledged(path: Path, what: str, instead: str) -> None:
    file, aside = path.with_name(path.name + what), path.with_name("aside")
    async with SQLiteStore(path) as store:
        session = await begin(store)
        await store.append(session, [said("before")])
        file.rename(aside)
        if instead == "another":
            file.write_bytes(b"")
        beside = bytes_beside(path)

        for ask in (store.append(session, [said("lost")]), store.read(session), store.check_writable()):
            with pytest.raises(StoreReplacedError, match=r"Put the file back, or restart"):
                await ask

        assert bytes_beside(path) == beside
        aside.rename(file)
        await store.append(session, [said("after")])
        await store.check_writable()

    async with SQLiteStore(path) as store:
        assert contents(await store.read(session)) == ["before", "after"]


@pytest.mark.parametrize("skew_s", [-86_400.0, 86_400.0], ids=["set forward since", "set back since"])
async def test_a_clock_that_is_set_neither_keeps_a_session_locked_nor_breaks_its_order(
    path: Path, skew_s: float
) -> None:
    place = Place(next(kind for kind in KINDS if kind.name == "sqlite"), str(path))
    async with place.open() as store:
        session = await begin(store)
        async with place.process("append", session, "before", "3", skew_s=skew_s) as writer:
            await writer.go_on()
            assert await writer.rest() == []
        async with place.process("hold", session, "killed", skew_s=skew_s) as holder:
            assert await holder.line() == "True"

        # What the killed one held was never given back. By its clock it ran out yesterday, or does so tomorrow.
        fence = await store.acquire(session, "here", 600)
        assert fence is not None
        assert await store.acquire(session, "another", 600) is None
        await store.append(session, [said("by the right clock")], fence=fence)
        log = await store.read(session)

    # Each event has the time that the clock then showed; their order is that of their numbers.
    assert [recorded.seq for recorded in log] == [1, 2, 3, 4, 5]
    assert contents(log) == ["before:0", "before:1", "before:2", "by the right clock"]


async def test_a_store_that_was_not_opened_says_so(path: Path) -> None:
    store = SQLiteStore(path)

    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.read(SessionId("x"))
    await store.__aexit__(None, None, None)
    assert size(path) == 0


async def test_many_may_open_a_new_file_at_once(path: Path) -> None:
    async def open_it() -> None:
        async with SQLiteStore(path) as store:
            await begin(store)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(open_it)

    async with SQLiteStore(path) as store:
        assert len((await store.sessions()).rows) == 8


async def test_indexing_thousands_of_documents_of_one_moment_takes_a_few_statements_for_each(path: Path) -> None:
    session, at, count = SessionId("ses_long"), datetime(2026, 1, 1, tzinfo=UTC), 3000
    async with SQLiteStore(path) as store:
        await begin(store, session)
    with closing(sqlite3.connect(path)) as db:
        statements: list[str] = []
        db.set_trace_callback(statements.append)

        async def run(work: Callable[[sqlite3.Connection], T]) -> T:
            return work(db)

        index = SQLiteIndex(run, run)
        for first in range(0, count, 1000):
            [behind] = await index.behind(limit=2)
            documents = [
                IndexedText(seq=seq, turn=1, at=at, terms=frozenset({"word"})) for seq in range(first + 1, first + 1001)
            ]
            assert await index.index(behind, documents, indexed_seq=0, seen_seq=0)
        found = await index.find(WantedTexts(terms=frozenset({"word"})), limit=count + 1)

    assert sorted(hit.seq for hit in found) == list(range(1, count + 1))
    assert len({hit.place for hit in found}) == count
    # What a trigger does for the words of a document is not counted: its statements are comments.
    assert sum(not statement.startswith("--") for statement in statements) < 6 * count
