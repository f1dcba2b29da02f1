"""Every store that keeps the contract. Another store joins by adding one entry to `KINDS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from stores.postgres_server import PostgresServer, fresh_database
from stores.redis_server import RedisServer, fresh_cluster_url, fresh_url
from windowpane.context.events import Event, MessageAdded, Recorded, SessionCreated
from windowpane.context.ids import BlobHash, SessionId, content_hash, new_session_id
from windowpane.context.items import bundled
from windowpane.stores.base import Store
from windowpane.stores.encrypted.keys import KeyRing
from windowpane.stores.encrypted.store import EncryptedStore
from windowpane.stores.expiry import ExpiringStore
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite.store import SQLiteStore


class Server(Protocol):
    """A database server of a test's own, which the test may kill. Made stopped; `place` is one place on it."""

    host: str
    port: int
    place: str
    files: Path
    """Where it keeps everything that it writes."""

    def start(self) -> None:
        """Start it, after a kill with the data it had, and return when it answers."""
        ...

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        ...

    def pause(self) -> None:
        """Let it answer nobody, without ending a connection."""
        ...

    def go_on(self) -> None:
        """Let it answer again."""
        ...

    def stop(self) -> None:
        """End it in good order, whether it runs, is paused or has been killed."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A store: how a test names a fresh place for its data, and how any process opens that place."""

    name: str
    fresh: Callable[[Path], str]
    open: Callable[[str], Store]
    shared: bool
    """Whether several processes can open one place."""
    serve: Callable[[Path], Server] | None = None
    """For a store that is a server with a clock of its own: how to make one in a directory."""
    hasty: str = ""
    """What is added to a server's place so that the store soon gives up waiting for it."""


def _open_postgres(place: str) -> Store:
    # Its driver takes long to load, for processes that have no use for it too.
    from windowpane.stores.postgres.store import PostgresStore

    return PostgresStore(place)


def _open_objects(store: Store, place: str) -> Store:
    from windowpane.stores.blobs.object_store import ObjectStore
    from windowpane.stores.blobs.store import ObjectTextStore

    return ObjectTextStore(store, ObjectStore(f"file://{place}-objects"), from_bytes=1)


def _open_redis(place: str) -> Store:
    from windowpane.stores.redis.store import RedisStore

    return RedisStore(place)


KEY = "YSBrZXkgdGhhdCBvbmx5IHRlc3RzIHdpbGwgdXNlLi4="

PLAIN_KINDS = (
    Kind("memory", fresh=lambda directory: "", open=lambda place: MemoryStore(), shared=False),
    Kind(
        "expiring",
        fresh=lambda directory: "",
        open=lambda place: ExpiringStore(MemoryStore(), archive=MemoryStore()),
        shared=False,
    ),
    Kind("sqlite", fresh=lambda directory: str(directory / "sessions.db"), open=SQLiteStore, shared=True),
    Kind(
        "sqlite-objects",
        fresh=lambda directory: str(directory / "sessions.db"),
        open=lambda place: _open_objects(SQLiteStore(place), place),
        shared=False,
    ),
    Kind(
        "postgres",
        fresh=lambda directory: fresh_database(),
        open=_open_postgres,
        shared=True,
        serve=PostgresServer,
        hasty="?timeout_s=2",
    ),
    Kind(
        "redis",
        fresh=lambda directory: fresh_url(),
        open=_open_redis,
        shared=True,
        serve=RedisServer,
        hasty="?patience_s=2",
    ),
    Kind("redis-cluster", fresh=lambda directory: fresh_cluster_url(), open=_open_redis, shared=False),
)


def _encrypted(kind: Kind) -> Kind:
    """Return the same store with encrypted texts."""

    def opened(place: str) -> Store:
        return EncryptedStore(kind.open(place), KeyRing.parse(KEY, "encryption_key"))

    return replace(kind, name=f"{kind.name}-encrypted", open=opened, shared=kind.name == "sqlite", serve=None)


ENCRYPTED = frozenset(("sqlite", "sqlite-objects", "postgres", "redis"))
"""Encryption is a layer above any store; it is tried above one of each engine."""

KINDS = (*PLAIN_KINDS, *(_encrypted(kind) for kind in PLAIN_KINDS if kind.name in ENCRYPTED))

ENGINES = tuple(kind for kind in KINDS if kind.name in {"memory", "sqlite", "postgres", "redis", "sqlite-encrypted"})
"""One store of each engine, and an encrypted one: for what is built above stores and asks for their contract alone."""


def created(owner: str = "ana", agent: str = "pane") -> SessionCreated:
    return SessionCreated(agent=agent, owner=owner, settings={}, items=())


def said(content: str) -> MessageAdded:
    return MessageAdded(role="user", content=content)


async def begin(store: Store, owner: str = "ana", agent: str = "pane") -> SessionId:
    session = new_session_id()
    await store.append(session, [created(owner, agent)], expected_seq=0)
    return session


def texts_of(*texts: str) -> dict[BlobHash, str]:
    return {content_hash(text): text for text in texts}


BUNDLES = (texts_of("a rule", "a reference", "the list of both"), texts_of("a rule", "another reference", "their list"))
"""What an agent brings, and what it brings after one of its files was changed."""


async def begin_with(
    store: Store, *bundles: Mapping[BlobHash, str], own: Mapping[BlobHash, str] | None = None
) -> SessionId:
    session = new_session_id()
    await store.append(session, [created()], expected_seq=0, blobs={**(own or {}), **bundled(*bundles)})
    return session


def events(log: list[Recorded]) -> list[Event]:
    return [recorded.event for recorded in log]


def contents(log: list[Recorded]) -> list[str]:
    return [recorded.event.content for recorded in log if isinstance(recorded.event, MessageAdded)]
