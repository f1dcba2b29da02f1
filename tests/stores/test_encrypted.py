"""An encrypted store: what it hides, what it notices, and what happens with other keys."""

import base64
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stores.kinds import KEY, begin, contents, created, events, said
from windowpane.context.events import Erased, Recorded
from windowpane.context.ids import BlobHash, SessionId, content_hash, new_session_id
from windowpane.context.items import AgentText
from windowpane.errors import (
    InvalidSettingError,
    SessionNotFoundError,
    StoreCorruptError,
    StoreEncryptedError,
    StoreNotEncryptedError,
    WrongEncryptionKeyError,
)
from windowpane.stores.base import Snapshot, Store
from windowpane.stores.copy import Copied, copy_store
from windowpane.stores.detect import holds_sealed, refuse_sealed
from windowpane.stores.encrypted.keys import KeyRing
from windowpane.stores.encrypted.store import EncryptedStore
from windowpane.stores.expiry import ExpiringStore, Limits
from windowpane.stores.memory import MemoryStore
from windowpane.stores.session_copy import session_digest
from windowpane.stores.sessions import Sessions
from windowpane.stores.sqlite.store import SQLiteStore

pytestmark = pytest.mark.anyio

OTHER_KEY = base64.b64encode(b"another key that only tests use!").decode()
TEXT = "the text of one session"
HASH = content_hash(TEXT)


def ring(*keys: str) -> KeyRing:
    return KeyRing.parse(",".join(keys), "encryption_key")


def encrypted(store: Store, *keys: str) -> EncryptedStore:
    return EncryptedStore(store, ring(*(keys or (KEY,))))


class GlassStore(MemoryStore):
    """A store that can be looked into, and tampered with."""

    def kept(self, session: SessionId):
        """Return all that is kept of a session."""
        return self._sessions[session]

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session and remember it, as an old page of a disk may."""
        self.left = self._sessions[session_id]
        await super().delete(session_id)

    def put_back(self, session: SessionId) -> None:
        """Bring back what was left of a session that was deleted."""
        self._sessions[session] = self.left


@pytest.fixture
async def plain() -> AsyncIterator[GlassStore]:
    """The store that is encrypted, as one sees it who has no key."""
    async with GlassStore() as opened:
        yield opened


@pytest.fixture
def store(plain: GlassStore) -> EncryptedStore:
    return encrypted(plain)


def sealed(plain: GlassStore, session: SessionId) -> tuple[list[bytes], dict[BlobHash, str]]:
    """Return what is kept of a session, as it is kept."""
    kept = plain.kept(session)
    return [body for _, body in kept.log], kept.blobs


async def read_all(store: Store, session: SessionId) -> tuple[list[Recorded], str]:
    return await store.read(session), await store.blob(session, HASH)


async def test_equal_texts_of_two_sessions_have_different_names_and_ciphertexts(
    plain: GlassStore, store: EncryptedStore
) -> None:
    sessions = [await begin(store), await begin(store)]
    for session in sessions:
        await store.append(session, [said(TEXT), said(TEXT)], blobs={HASH: TEXT})

    (one, first), (two, second) = [sealed(plain, session) for session in sessions]

    assert len({*one, *two}) == 6
    assert not first.keys() & second.keys()
    assert not {*first.values()} & {*second.values()}
    assert HASH not in {*first, *second}
    assert [await store.blobs(session, [HASH]) for session in sessions] == [{HASH: TEXT}] * 2
    assert [await store.blob_hashes(session) for session in sessions] == [[HASH]] * 2


async def test_a_text_of_the_agent_is_kept_once_for_all_sessions_until_the_last_forgets_it(tmp_path: Path) -> None:
    text = AgentText("a rule of the agent")
    name = content_hash(text)
    file = tmp_path / "sessions.db"
    async with encrypted(SQLiteStore(file)) as store:
        sessions = [await begin(store), await begin(store)]
        for session in sessions:
            await store.append(session, [said("hello")], blobs={name: text})

        def kept() -> int:
            with closing(sqlite3.connect(file)) as db:
                return db.execute("SELECT count(*) FROM blob WHERE hash LIKE 'a%'").fetchone()[0]

        counts = [kept()]
        for session in sessions:
            found = (await store.blobs(session, [name]))[name]
            assert (found, isinstance(found, AgentText)) == (text, True)
            await store.delete(session)
            counts.append(kept())

    assert counts == [1, 1, 0]


async def test_texts_cannot_be_put_into_another_session_or_another_place(
    plain: GlassStore, store: EncryptedStore
) -> None:
    session, other = await begin(store), await begin(store)
    for each in (session, other):
        await store.append(each, [said("one"), said("two")], blobs={HASH: TEXT})
    kept, strange = plain.kept(session), plain.kept(other)
    log, blobs = list(kept.log), dict(kept.blobs)
    own, strange_own = (next(name for name in each.blobs if name.startswith("s")) for each in (kept, strange))
    strange_key = {name: text for name, text in strange.blobs.items() if name.startswith("k")}
    changed_since = "it was changed since it was encrypted"
    attempts = [
        ([log[0], log[2], log[1]], blobs, f"event 2 of session {session!r} is damaged ({changed_since})"),
        ([log[0], strange.log[1]], blobs, f"session {session!r} is damaged (its encryption key is missing)"),
        (
            [log[0], strange.log[1]],
            blobs | strange_key,
            f"session {session!r} is damaged (its encryption key was changed)",
        ),
        (
            log,
            blobs | strange_key | {own: strange.blobs[strange_own]},
            f"session {session!r} is damaged (its encryption key was changed)",
        ),
        (
            log,
            blobs | {own: blobs[own][:-8] + "AAAAAAA="},
            f"a text of session {session!r} is damaged ({changed_since})",
        ),
    ]

    for bad_log, bad_blobs, why in attempts:
        kept.log[:], kept.blobs = bad_log, bad_blobs
        with pytest.raises(StoreCorruptError) as caught:
            await read_all(encrypted(plain), session)
        assert str(caught.value).partition(";")[0] == why


async def test_any_flipped_bit_of_an_event_is_noticed(plain: GlassStore, store: EncryptedStore) -> None:
    session = await begin(store)
    await store.append(session, [said("do not touch")])
    log = plain.kept(session).log
    at, body = log[1]
    start = body.index(b'"box":"') + 7
    box = base64.b64decode(body[start:-2])

    for place in range(len(box)):
        changed = bytearray(box)
        changed[place] ^= 1 << (place % 8)
        log[1] = (at, body[:start] + base64.b64encode(changed) + body[-2:])
        with pytest.raises(StoreCorruptError, match="event 2 of session"):
            await store.read(session)


async def test_a_damaged_snapshot_is_none_because_the_log_has_everything(
    plain: GlassStore, store: EncryptedStore
) -> None:
    session = await begin(store)
    await store.put_snapshot(session, Snapshot(1, b"state"))
    assert await store.snapshot(session) == Snapshot(1, b"state")

    kept = await plain.snapshot(session)
    assert kept is not None
    assert b"state" not in kept.body
    plain.kept(session).snapshot = Snapshot(1, kept.body[:-1] + bytes([kept.body[-1] ^ 1]))

    assert await store.snapshot(session) is None


async def test_when_a_session_is_deleted_its_key_is_gone_and_what_was_left_of_it_cannot_be_read(
    plain: GlassStore, store: EncryptedStore
) -> None:
    session = await begin(store)
    await store.append(session, [said(TEXT)], blobs={HASH: TEXT})
    await store.delete(session)

    plain.put_back(session)
    left = plain.kept(session)
    key = {name: text for name, text in left.blobs.items() if name.startswith("k")}
    left.blobs = {name: text for name, text in left.blobs.items() if name not in key}
    with pytest.raises(StoreCorruptError, match="its encryption key is missing"):
        await store.read(session)
    with pytest.raises(StoreCorruptError, match="its encryption key is missing"):
        await store.blobs(session, [HASH])

    left.blobs |= key
    assert contents(await store.read(session)) == [TEXT]


async def test_a_worker_that_knows_the_key_of_a_deleted_session_writes_nothing_unreadable_into_the_next_one(
    plain: GlassStore,
) -> None:
    worker, other = encrypted(plain), encrypted(plain)
    session = await begin(worker)
    await other.delete(session)
    await other.append(session, [created("eve")], expected_seq=0)

    await worker.append(session, [said("with the old key")], expected_seq=1)

    assert events(await encrypted(plain).read(session)) == [created("eve"), said("with the old key")]


async def test_a_session_from_the_archive_goes_on_in_a_worker_that_knew_it_before(plain: GlassStore) -> None:
    archive = MemoryStore()
    first, second = (ExpiringStore(encrypted(plain), archive=encrypted(archive)) for _ in range(2))
    strict = ExpiringStore(encrypted(plain), Limits(unused_s=1e-6), archive=encrypted(archive))
    session = await begin(first)
    await first.append(session, [said("one")])

    assert [one.row.id for one in await strict.sweep()] == [session]
    await second.read(session)
    await first.append(session, [said("two")], expected_seq=2)

    assert contents(await encrypted(plain).read(session)) == ["one", "two"]


async def test_without_the_key_an_encrypted_store_is_refused_and_nothing_is_lost(
    plain: GlassStore, store: EncryptedStore
) -> None:
    session = await begin(store)

    with pytest.raises(StoreEncryptedError) as caught:
        await refuse_sealed(plain)
    with pytest.raises(StoreEncryptedError):
        await Sessions(plain).state(session)
    with pytest.raises(StoreEncryptedError):
        await ExpiringStore(MemoryStore(), archive=plain).__aenter__()

    assert str(caught.value) == (
        "the sessions of this store are encrypted and no key is set; nothing was changed. "
        "Set WINDOWPANE_ENCRYPTION_KEY or WINDOWPANE_ENCRYPTION_KEY_FILE."
    )
    await plain.__aenter__()
    assert events(await store.read(session)) == [created()]


async def test_with_a_key_a_plain_store_is_refused_and_nothing_is_lost(plain: GlassStore) -> None:
    session = await begin(plain)

    with pytest.raises(StoreNotEncryptedError) as caught:
        await encrypted(plain).__aenter__()

    assert "windowpane store copy FROM TO" in str(caught.value)
    await plain.__aenter__()
    assert events(await plain.read(session)) == [created()]


async def test_a_wrong_key_is_refused_by_name_and_nothing_is_lost(plain: GlassStore, store: EncryptedStore) -> None:
    session = await begin(store)
    await store.append(session, [said(TEXT)], blobs={HASH: TEXT})

    with pytest.raises(WrongEncryptionKeyError) as caught:
        await encrypted(plain, OTHER_KEY).__aenter__()
    await plain.__aenter__()
    with pytest.raises(WrongEncryptionKeyError):
        await encrypted(plain, OTHER_KEY).blob_hashes(session)

    assert (caught.value.wanted, caught.value.given) == (ring(KEY).writing.id, (ring(OTHER_KEY).writing.id,))
    assert await store.blob(session, HASH) == TEXT


async def test_an_empty_store_can_be_opened_with_a_key_and_without(plain: GlassStore) -> None:
    await refuse_sealed(plain)
    async with encrypted(plain) as store:
        assert (store.encrypted, plain.encrypted, await holds_sealed(plain)) == (True, False, False)


async def test_the_first_key_writes_and_every_key_reads(plain: GlassStore, store: EncryptedStore) -> None:
    before = await begin(store)
    await store.append(before, [said(TEXT)], blobs={HASH: TEXT})

    async with encrypted(plain, OTHER_KEY, KEY) as both:
        await both.append(before, [said("more")])
        after = await begin(both)
        await both.append(after, [said(TEXT)], blobs={HASH: TEXT, content_hash("r"): AgentText("r")})
        assert contents(await both.read(before)) == [TEXT, "more"]
        assert await both.blob(before, HASH) == TEXT

        new = encrypted(plain, OTHER_KEY)
        assert contents(await new.read(after)) == [TEXT]
        assert await new.blobs(after, [HASH, content_hash("r")]) == {HASH: TEXT, content_hash("r"): "r"}
        with pytest.raises(WrongEncryptionKeyError):
            await new.read(before)


@pytest.mark.parametrize("keys", [(KEY,), (OTHER_KEY, KEY)], ids=["the same key", "another key"])
async def test_a_copy_has_the_keys_of_its_own_store_and_is_the_same_session(
    plain: GlassStore, store: EncryptedStore, keys: tuple[str, ...]
) -> None:
    session = await begin(store)
    rule = AgentText("a rule")
    await store.append(session, [said(TEXT), said("gone")], blobs={HASH: TEXT, content_hash(rule): rule})
    await store.erase(session, [3])
    place = GlassStore()

    async with encrypted(plain, *keys) as source, encrypted(place, *keys) as target:
        copied = await copy_store(source, target)
        assert await session_digest(source, session) == await session_digest(target, session)
    await place.__aenter__()
    alone = encrypted(place, keys[0])

    assert copied == Copied(sessions=1, copied=1, events=3, verified=1)
    assert events(await alone.read(session)) == [created(), said(TEXT), Erased()]
    assert isinstance(await alone.blob(session, content_hash(rule)), AgentText)
    assert not {*sealed(plain, session)[0]} & {*sealed(place, session)[0]}


async def test_plain_sessions_become_encrypted_by_copying_and_plain_again(plain: GlassStore) -> None:
    session = await begin(plain)
    await plain.append(session, [said(TEXT)], blobs={HASH: TEXT})
    async with encrypted(MemoryStore()) as middle, MemoryStore() as back:
        await copy_store(plain, middle)
        await copy_store(middle, back)

        assert await session_digest(back, session) == await session_digest(plain, session)


texts = st.text(max_size=300) | st.text(alphabet="ab", min_size=300, max_size=3000)


@given(st.lists(texts, max_size=6), st.lists(st.text(st.characters(), max_size=300), max_size=6))
async def test_whatever_is_given_comes_back(contents_given: list[str], blobs_given: list[str]) -> None:
    async with MemoryStore() as plain:
        session, store = new_session_id(), encrypted(plain)
        given = [created(), *map(said, contents_given)]
        blobs = {content_hash(text): text for text in blobs_given}
        appended = await store.append(session, given, expected_seq=0, blobs=blobs)

        again = encrypted(plain)
        assert await again.read(session) == [
            Recorded(seq, appended.at, event) for seq, event in enumerate(given, start=1)
        ]
        assert await again.blobs(session, list(blobs)) == blobs
        assert await again.blob_hashes(session) == sorted(blobs)


async def test_a_text_of_many_megabytes_is_sealed_and_opened_in_a_thread(store: EncryptedStore) -> None:
    text = os.urandom(3 * 2**20).hex()
    session = await begin(store)

    await store.append(session, [said(text)], blobs={content_hash(text): text})

    assert contents(await store.read(session)) == [text]
    assert await store.blob(session, content_hash(text)) == text


@pytest.mark.parametrize(
    "wrong", ["", "secret", "a" * 63, base64.b64encode(b"too short").decode(), f"{KEY},secret", "ü" * 44]
)
def test_what_is_not_a_key_is_refused_without_showing_it(wrong: str) -> None:
    with pytest.raises(InvalidSettingError) as caught:
        KeyRing.parse(wrong, "encryption_key")

    assert str(caught.value) == (
        "encryption_key: a key is 32 random bytes in base64; make one with `openssl rand -base64 32`"
    )


def test_a_key_can_be_written_in_base64_of_either_alphabet_and_in_hex() -> None:
    secret = bytes(range(224, 256))
    written = [base64.b64encode(secret), base64.urlsafe_b64encode(secret), secret.hex().encode()]

    assert len({ring(key.decode()).writing.id for key in written}) == 1


async def test_a_session_that_is_gone_is_not_found(store: EncryptedStore) -> None:
    session = await begin(store)
    await store.delete(session)

    with pytest.raises(SessionNotFoundError):
        await store.append(session, [said("hello?")])
