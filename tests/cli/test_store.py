"""`windowpane store copy`: what it prints, and that it can be killed."""

import base64
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import anyio
import pytest

from cli.running import PATIENCE_S, environment, windowpane
from stores.kinds import KEY, begin, contents, created, said
from windowpane.context.ids import SessionId, content_hash
from windowpane.errors import StoreError, WrongEncryptionKeyError
from windowpane.stores.encrypted.keys import KeyRing
from windowpane.stores.encrypted.store import EncryptedStore
from windowpane.stores.session_copy import session_digest
from windowpane.stores.sqlite.store import SQLiteStore


def fill(path: Path, sessions: int) -> dict[SessionId, str]:
    """Make a store with some sessions and return their digests."""

    async def filled() -> None:
        async with SQLiteStore(path, "NORMAL") as store:
            for number in range(sessions):
                text = f"text {number}"
                await store.append(await begin(store), [said(text)] * 20, blobs={content_hash(text): text})

    anyio.run(filled)
    return digests(path)


def digests(path: Path) -> dict[SessionId, str]:
    async def read() -> dict[SessionId, str]:
        async with SQLiteStore(path) as store:
            return {row.id: await session_digest(store, row.id) for row in (await store.sessions(limit=10_000)).rows}

    return anyio.run(read)


@pytest.mark.spec("S4.23", "S4.85")
def test_a_store_is_copied_and_the_command_says_what_it_did(tmp_path: Path) -> None:
    source, target = tmp_path / "from.db", tmp_path / "to.db"
    whole = fill(source, 3)

    said_first = windowpane(tmp_path, "store", "copy", f"sqlite:///{source}", f"sqlite:///{target}")
    said_then = windowpane(tmp_path, "store", "copy", f"sqlite:///{source}", f"sqlite:///{target}", "--json")

    assert (said_first.code, said_then.code) == (0, 0)
    assert " ".join(said_first.out.split()) == (
        "3 sessions copied with 63 events; 3 of 3 sessions verified as identical in both stores."
    )
    assert json.loads(said_then.out) == {
        "sessions": 3,
        "copied": 0,
        "events": 0,
        "verified": 3,
        "refused": [],
        "behind": [],
        "others": 0,
    }
    assert said_first.err + said_then.err == ""
    assert digests(target) == whole


def test_a_copy_that_is_killed_goes_on_when_it_is_called_again(tmp_path: Path) -> None:
    source, target = tmp_path / "from.db", tmp_path / "to.db"
    whole = fill(source, 120)
    urls = (f"sqlite:///{source}", f"sqlite:///{target}")
    command = [sys.executable, "-m", "windowpane", "store", "copy", *urls]
    for wanted in (5, 60):
        with subprocess.Popen(command, env=environment(tmp_path), stdout=subprocess.DEVNULL) as copying:
            wait_for(target, wanted)
            copying.kill()

    assert windowpane(tmp_path, "store", "copy", *urls).code == 0

    assert digests(target) == whole


def wait_for(path: Path, sessions: int) -> None:
    """Wait until a file that another process writes holds so many sessions."""

    async def there() -> int:
        async with SQLiteStore(path) as store:
            return len((await store.sessions(limit=1000)).rows)

    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if path.exists() and anyio.run(there) >= sessions:
                return
        except StoreError:
            # The other process is about to make it.
            time.sleep(0.01)
    raise AssertionError(f"{sessions} sessions did not come")


def test_another_session_of_the_same_id_is_refused_and_named(tmp_path: Path) -> None:
    source, target = tmp_path / "from.db", tmp_path / "to.db"
    taken = next(iter(fill(source, 2)))

    async def take() -> None:
        async with SQLiteStore(target) as store:
            await begin(store)
            await store.append(taken, [created("somebody else")], expected_seq=0)

    anyio.run(take)

    done = windowpane(tmp_path, "store", "copy", f"sqlite:///{source}", f"sqlite:///{target}")

    assert done.code == 1
    assert " ".join(done.out.split()) == (
        f"error: another session '{taken}' already exists there: its event 1 is another one; it was not changed. "
        "Delete it there, or copy to an empty store. "
        "1 session copied with 21 events; 1 of 2 sessions verified as identical in both stores. "
        "TO has 1 other session, not changed."
    )


@pytest.mark.parametrize(
    ("urls", "why"),
    [
        (("sqlite:////a.db", "sqlite:////a.db"), "FROM and TO are the same store"),
        (("sqlite:////not/there.db", "sqlite:////a.db"), "no file /not/there.db; FROM must exist"),
        (("memory:", "sqlite:////a.db"), "memory: is not persistent; use another store"),
        (("carrier-pigeon://a", "sqlite:////a.db"), "names no store"),
    ],
)
def test_what_cannot_be_copied_is_refused(tmp_path: Path, urls: tuple[str, str], why: str) -> None:
    done = windowpane(tmp_path, "store", "copy", *urls)

    assert (done.code, done.out) == (1, "")
    assert why in done.err


def test_copying_encrypts_changes_the_key_and_decrypts(tmp_path: Path) -> None:
    old, new = KEY, base64.b64encode(b"a new key that only tests use...").decode()
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("plain", "old", "new", "again")]
    whole = fill(tmp_path / "plain.db", 3)
    file = tmp_path / "keys"
    file.write_text(f"{new}\n{old}\n")

    def copied(source: str, target: str, *options: str, key: str = "", file: str = "") -> tuple[int, str]:
        keys = {"WINDOWPANE_ENCRYPTION_KEY": key, "WINDOWPANE_ENCRYPTION_KEY_FILE": file}
        given = {name: value for name, value in keys.items() if value}
        done = windowpane(tmp_path, "store", "copy", source, target, *options, piped=b"", **given)
        return done.code, " ".join(done.err.split())

    good = (0, "")
    assert copied(urls[0], urls[1], key=old) == good
    assert copied(urls[1], urls[2], file=str(file)) == good
    without, wrong = copied(urls[2], urls[3]), copied(urls[2], urls[3], key=old)
    to_plain = copied(urls[1], urls[0], key=old)
    assert copied(urls[2], urls[3], "--decrypt", key=new) == good

    assert digests(tmp_path / "again.db") == whole
    assert without[0] == wrong[0] == to_plain[0] == 1
    assert "no key is set; nothing was changed" in without[1]
    assert "are encrypted with the key with the id" in wrong[1]
    assert "the sessions of this store are not encrypted; nothing was changed" in to_plain[1]


def test_a_change_of_keys_that_is_killed_leaves_both_stores_readable_and_goes_on(tmp_path: Path) -> None:
    new = base64.b64encode(b"a new key that only tests use...").decode()
    fill(tmp_path / "plain.db", 60)
    plain, source, target = (f"sqlite:///{tmp_path / name}.db" for name in ("plain", "from", "to"))
    assert windowpane(tmp_path, "store", "copy", plain, source, WINDOWPANE_ENCRYPTION_KEY=KEY).code == 0
    whole = texts(tmp_path / "from.db", KEY)
    both = f"{new},{KEY}"
    command = [sys.executable, "-m", "windowpane", "store", "copy", source, target]
    halves: list[dict[SessionId, list[str]]] = []
    for wanted in (5, 30):
        given = environment(tmp_path, WINDOWPANE_ENCRYPTION_KEY=both)
        with subprocess.Popen(command, env=given, stdout=subprocess.DEVNULL) as copying:
            wait_for(tmp_path / "to.db", wanted)
            copying.kill()
        assert texts(tmp_path / "from.db", KEY) == whole, "the old key is valid until the end"
        halves.append(texts(tmp_path / "to.db", new))

    assert windowpane(tmp_path, "store", "copy", source, target, WINDOWPANE_ENCRYPTION_KEY=both).code == 0

    assert [{session: whole[session] for session in half} for half in halves] == halves
    assert texts(tmp_path / "to.db", new) == whole
    with pytest.raises(WrongEncryptionKeyError):
        texts(tmp_path / "to.db", KEY)


def texts(path: Path, key: str) -> dict[SessionId, list[str]]:
    """Return what every session of an encrypted store says, read with one key."""

    async def read() -> dict[SessionId, list[str]]:
        async with EncryptedStore(SQLiteStore(path), KeyRing.parse(key, "encryption_key")) as store:
            ids = [row.id for row in (await store.sessions(limit=1000)).rows]
            return {
                session: [
                    *contents(await store.read(session)),
                    *(await store.blobs(session, await store.blob_hashes(session))).values(),
                ]
                for session in ids
            }

    return anyio.run(read)


def test_large_texts_are_copied_as_objects_and_leftovers_are_swept(tmp_path: Path) -> None:
    source, target, objects = tmp_path / "from.db", tmp_path / "to.db", tmp_path / "objects"
    whole = fill(source, 2)
    run = partial(
        windowpane,
        tmp_path,
        "store",
        WINDOWPANE_BLOBS_URL=f"file://{objects}",
        WINDOWPANE_BLOBS_FROM_BYTES="1",
        WINDOWPANE_STORE_URL=f"sqlite:///{target}",
    )

    copied = run("copy", f"sqlite:///{source}", f"sqlite:///{target}")
    back = run("copy", f"sqlite:///{target}", f"sqlite:///{tmp_path / 'back.db'}")
    (objects / "left").mkdir()
    (objects / "left" / "over").write_bytes(b"x")
    os.utime(objects / "left" / "over", (0, 0))
    swept = run("sweep")
    again = run("sweep", "--json")
    nowhere = windowpane(tmp_path, "store", "sweep")

    assert (copied.code, back.code, swept.code) == (0, 0, 0)
    assert digests(target) != whole, "the texts are elsewhere"
    assert swept.out.strip() == "5 objects, 1 of them removed."
    assert json.loads(again.out) == {"objects": 4, "removed": 0}
    assert (nowhere.code, "set WINDOWPANE_BLOBS_URL" in nowhere.err) == (1, True)
