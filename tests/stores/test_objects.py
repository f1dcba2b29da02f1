"""Large texts as objects: what every service for them promises, and what a store that uses one does."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from patience import PATIENCE_S
from stores.kinds import KEY, begin, contents, created, said
from stores.weed_server import WeedServer
from windowpane.context.ids import BlobHash, SessionId, content_hash
from windowpane.errors import (
    InvalidSettingError,
    LeaseLostError,
    SequenceConflictError,
    StoreCorruptError,
    StoreUnavailableError,
)
from windowpane.stores.blobs.object_store import ObjectStore
from windowpane.stores.blobs.store import ObjectTextStore
from windowpane.stores.encrypted.keys import KeyRing
from windowpane.stores.encrypted.store import EncryptedStore
from windowpane.stores.sqlite.store import SQLiteStore

LARGE, SMALL = "large é ✓ " * 500, "small"
LATER = timedelta(hours=2)


@dataclass(frozen=True)
class Service:
    """A place for objects, which can be taken away and brought back."""

    url: str
    weed: WeedServer | None
    folder: Path

    def leave(self) -> None:
        if self.weed is not None:
            self.weed.stop()
        else:
            self.folder.rename(self.folder.with_name("gone"))
            self.folder.write_text("in the way")

    def come_back(self) -> None:
        if self.weed is not None:
            self.weed.start()
        else:
            self.folder.unlink()
            self.folder.with_name("gone").rename(self.folder)


@pytest.fixture(params=["file", "s3"])
def service(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    folder = tmp_path / "objects"
    if request.param == "file":
        yield Service(f"file://{folder}", None, folder)
        return
    weed = WeedServer(tmp_path)
    for name, value in weed.environment.items():
        monkeypatch.setenv(name, value)
    weed.start()
    yield Service(weed.place, weed, folder)
    weed.stop()


async def names(objects: ObjectStore) -> list[str]:
    return sorted([name async for name, _ in objects.list()])


@asynccontextmanager
async def opened(service: Service, file: Path) -> AsyncGenerator[tuple[SQLiteStore, ObjectTextStore]]:
    """Open a store in a file, with its large texts as objects."""
    plain = SQLiteStore(file)
    async with ObjectTextStore(plain, ObjectStore(service.url), from_bytes=1000) as store:
        yield plain, store


async def test_what_was_put_is_there_until_it_is_deleted(service: Service) -> None:
    objects = ObjectStore(service.url)
    with anyio.fail_after(PATIENCE_S):
        await objects.put("one/a", b"\x00\xff" * 100_000)
        await objects.put("two/b", b"")
        await objects.put("one/a", b"again")
        there, found = await names(objects), [await objects.get(name) for name in ("one/a", "two/b", "none")]
        ages = [datetime.now(UTC) - at async for _, at in objects.list()]
        await objects.delete(["one/a", "never there"])

        assert (there, found) == (["one/a", "two/b"], [b"again", b"", None])
        assert all(abs(age) < LATER for age in ages)
        assert await names(objects) == ["two/b"]


async def test_a_large_text_is_an_object_and_goes_with_its_session(service: Service, tmp_path: Path) -> None:
    objects = ObjectStore(service.url)
    async with opened(service, tmp_path / "s.db") as (plain, store):
        one, other = await begin(store), await begin(store)
        texts = {content_hash(text): text for text in (LARGE, SMALL)}
        for session in (one, other, one):
            await store.append(session, [said("x")], blobs=texts)
        there = await names(objects)
        found = [await store.blobs(session, list(texts)) for session in (one, other)]
        hashes = await store.blob_hashes(one)
        inside = await plain.blobs(one, list(texts))
        await store.delete(one)
        left = await names(objects)
        still = await store.blob(other, content_hash(LARGE))
        await store.erase(other, [2], blobs=[content_hash(LARGE)])

        assert len(there) == 2, "a text that the session has already is no second object"
        assert found == [texts, texts]
        assert hashes == sorted(texts)
        assert inside == {content_hash(SMALL): SMALL}
        assert (len(left), still) == (1, LARGE)
        assert await names(objects) == []
        assert await store.blobs(other, list(texts)) == {content_hash(SMALL): SMALL}


async def test_an_append_whose_text_cannot_be_uploaded_stores_nothing(service: Service, tmp_path: Path) -> None:
    async with opened(service, tmp_path / "s.db") as (_, store):
        session = await begin(store)
        service.leave()
        with pytest.raises(StoreUnavailableError):
            await store.append(session, [said("lost")], blobs={content_hash(LARGE): LARGE}, key="k")
        await store.append(session, [said("small")], blobs={content_hash(SMALL): SMALL})
        service.come_back()
        with anyio.fail_after(PATIENCE_S):
            await store.append(session, [said("kept")], blobs={content_hash(LARGE): LARGE}, key="k")

        assert contents(await store.read(session)) == ["small", "kept"]
        assert await store.blob(session, content_hash(LARGE)) == LARGE


async def test_an_append_that_is_refused_leaves_no_object(service: Service, tmp_path: Path) -> None:
    async with opened(service, tmp_path / "s.db") as (_, store):
        session = await begin(store)
        fence = await store.acquire(session, "one", 600) or 0
        with pytest.raises(SequenceConflictError):
            await store.append(session, [said("x")], expected_seq=7, blobs={content_hash(LARGE): LARGE})
        with pytest.raises(LeaseLostError):
            await store.append(session, [said("x")], fence=fence - 1, blobs={content_hash(LARGE): LARGE})

        assert await names(ObjectStore(service.url)) == []


async def test_a_sweep_removes_old_objects_that_no_session_names(service: Service, tmp_path: Path) -> None:
    objects = ObjectStore(service.url)
    async with opened(service, tmp_path / "s.db") as (plain, store):
        kept, gone = await begin(store), await begin(store)
        for session in (kept, gone):
            await store.append(session, [said("x")], blobs={content_hash(LARGE): LARGE})
        await plain.delete(gone)
        await objects.put("left/over", b"x")
        young = await store.sweep(datetime.now(UTC))
        old = await store.sweep(datetime.now(UTC) + LATER)

        assert (young, old) == ((3, 0), (3, 2))
        assert len(await names(objects)) == 1
        assert await store.blob(kept, content_hash(LARGE)) == LARGE


async def test_an_object_that_is_gone_is_said_to_be_and_other_texts_are_read(service: Service, tmp_path: Path) -> None:
    objects = ObjectStore(service.url)
    async with opened(service, tmp_path / "s.db") as (_, store):
        session = await begin(store)
        texts = {content_hash(text): text for text in (LARGE, SMALL)}
        await store.append(session, [said("x")], blobs=texts)
        await objects.delete(await names(objects))

        with pytest.raises(StoreCorruptError, match="an object that a session names is gone"):
            await store.blob(session, content_hash(LARGE))
        assert await store.blob(session, content_hash(SMALL)) == SMALL


async def test_texts_are_sealed_before_they_are_uploaded(service: Service, tmp_path: Path) -> None:
    objects = ObjectStore(service.url)
    keys = KeyRing.parse(KEY, "encryption_key")
    inner = ObjectTextStore(SQLiteStore(tmp_path / "s.db"), objects, from_bytes=1)
    async with EncryptedStore(inner, keys) as store:
        session = await begin(store)
        await store.append(session, [said("x")], blobs={content_hash(LARGE): LARGE})
        kept = [await objects.get(name) or b"" for name in await names(objects)]

        assert await store.blob(session, content_hash(LARGE)) == LARGE
        assert kept
        assert not any(b"large" in body for body in kept)
        await store.delete(session)
        assert await names(objects) == []


async def test_a_hash_that_looks_like_ours_belongs_to_no_other_session(tmp_path: Path) -> None:
    service = Service(f"file://{tmp_path / 'o'}", None, tmp_path / "o")
    async with opened(service, tmp_path / "s.db") as (plain, store):
        one, other = await begin(store), await begin(store)
        await store.append(one, [said("x")], blobs={content_hash(LARGE): LARGE})
        (alias,) = await plain.blob_hashes(one)

        assert await store.blobs(other, [BlobHash(alias)]) == {}


@pytest.mark.parametrize("url", ["s3://", "file:folder", "https://host/bucket", "s3://bucket?acl=public", ""])
def test_a_url_that_names_no_place_for_objects_is_refused(url: str) -> None:
    with pytest.raises(InvalidSettingError, match="blobs_url: write s3://"):
        ObjectStore(url)


async def test_session_ids_of_any_form_have_objects(tmp_path: Path) -> None:
    service = Service(f"file://{tmp_path / 'o'}", None, tmp_path / "o")
    session = SessionId("../é / ? # " + "x" * 300)
    async with opened(service, tmp_path / "s.db") as (_, store):
        await store.append(session, [created()], expected_seq=0, blobs={content_hash(LARGE): LARGE})

        assert await store.blob(session, content_hash(LARGE)) == LARGE
