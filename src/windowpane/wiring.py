"""Put the parts together: the only module that names concrete adapters.

Each part is imported where it is made: a command loads only those that it uses.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from windowpane.errors import (
    InvalidInputError,
    InvalidSettingError,
    WeightsDamagedError,
    WeightsMissingError,
    WindowpaneError,
)
from windowpane.loading import loading
from windowpane.settings import Settings
from windowpane.text.redact import without_password

if TYPE_CHECKING:
    from windowpane.agents.base import Agents
    from windowpane.bus.base import Bus
    from windowpane.context.items import Item
    from windowpane.engine import Engine
    from windowpane.fetch.addresses import Exemption
    from windowpane.fetch.base import PageReader, SearchEngine
    from windowpane.models.base import Models
    from windowpane.search.embedding.base import Embedder
    from windowpane.search.embedding.minilm import MiniLM
    from windowpane.search.embedding.vectors import VectorCache
    from windowpane.sessions.calls.outside import OutsideCalls
    from windowpane.stores.base import Store
    from windowpane.stores.blobs.store import ObjectTextStore
    from windowpane.stores.encrypted.keys import KeyRing
    from windowpane.stores.redis.store import RedisStore
    from windowpane.tools.base import Toolbox

    LargeTexts = Callable[[Store], ObjectTextStore]

TOUCH_EVERY_S = 1.0
"""How often, at most, a worker writes down that a session that can expire is being used."""

LOADING_S = 10.0
"""How long a message waits at most for an embedding model that is being loaded in the background."""


def open_engine(
    settings: Settings,
    *,
    models: "Models | None" = None,
    on_progress: Callable[[int, int], None] | None = None,
    warm: bool = False,
) -> "Engine":
    """Return an engine for these settings; it opens everything when it is entered.

    `on_progress` is told how many passages are embedded, and out of how many, while items are being indexed.
    With `warm`, the search is loaded in the background as soon as the engine is open.
    """
    from windowpane.engine import Engine
    from windowpane.fetch.addresses import exemption
    from windowpane.fetch.lazy import LazyPages
    from windowpane.models.lazy import LazyModels
    from windowpane.request.hybrid_selector import HybridSelector
    from windowpane.search.embedding.cached import CachedEmbedder
    from windowpane.search.history import HistoryIndex
    from windowpane.search.index import ItemIndex
    from windowpane.sessions.calls.outside import OutsideCalls
    from windowpane.turn.costs import CostLimits

    outside = OutsideCalls()
    embedder = CachedEmbedder(open_embedder(settings, outside))
    loading_s = LOADING_S if warm else 0.0
    index = ItemIndex(embedder, open_vectors(settings), on_progress=on_progress, loading_s=loading_s)
    bus = open_bus(settings.bus_url) if settings.bus_url is not None else None
    return Engine(
        store=open_sessions(settings, bus),
        bus=_sealed(bus, encryption_keys(settings)),
        touch_every_s=min(TOUCH_EVERY_S, settings.expire_after_s / 10) if settings.profile == "ephemeral" else None,
        agents=open_agents(settings.agents_folder),
        models=models or LazyModels(partial(_pydantic_models, settings.keys_folder)),
        toolbox=partial(_mcp_toolbox, settings.roots),
        lease_s=settings.lease_s,
        selector=HybridSelector(index),
        history=HistoryIndex(embedder),
        nearness=index,
        embedder=embedder,
        outside=outside,
        warm=warm,
        pages=LazyPages(partial(_pages, tuple(exemption(place) for place in settings.fetch_allow))),
        search_engine=_search_engine(settings.search_engine) if settings.search_engine else None,
        max_turns=settings.max_turns,
        max_turns_per_owner=settings.max_turns_per_owner,
        cost_limits=CostLimits(settings.dollars_per_day, settings.dollars_per_month),
        attachment_bytes=settings.attachment_bytes,
    )


def _pages(allow: "tuple[Exemption, ...]") -> "PageReader":
    from windowpane.fetch.guard import AddressGuard
    from windowpane.fetch.pages import Pages

    return Pages(AddressGuard(allow=allow))


def _search_engine(name: str) -> "SearchEngine":
    from windowpane.fetch.engines import open_engine_by_name

    return open_engine_by_name(name, {}, os.environ)


def load_everything() -> None:
    """Import now what would otherwise be imported while the first message waits: a server has the time for it."""
    from windowpane.json_codec import make_all

    # What was imported stays: to look through it for garbage again and again is a twentieth of every turn, too.
    with loading():
        for name in ("models.provider", "tools.supervisor", "fetch.pages", "turn.asking.form"):
            import_module(f"windowpane.{name}")
        make_all()


def load_shared(settings: Settings) -> None:
    """Load what processes that are forked from this one can share: code, the vocabulary and the embedding model.

    The two are left out where no agent has anything to select.
    """
    from windowpane.text.tokens import count

    load_everything()
    agents = open_agents(settings.agents_folder)
    if any(item.include == "agent" for name in agents.names() for item in _written(agents, name)):
        count("ready")
        if settings.embeddings_url is None:
            # A search tells its caller what is wrong with the weights.
            with suppress(WeightsMissingError, WeightsDamagedError):
                _local_model(settings.cache_folder, settings.weights).load()


def _written(agents: "Agents", name: str) -> "Sequence[Item]":
    try:
        agent = agents.current(name)
    except WindowpaneError:
        return ()
    return (*agent.rules, *agent.references)


@lru_cache(maxsize=1)
def _local_model(cache: Path, weights: Path | None) -> "MiniLM":
    """Return the one local model of a process, and of those that are forked from it."""
    from windowpane.search.embedding.minilm import MiniLM

    return MiniLM(cache / "model", weights)


def _pydantic_models(keys: Path) -> "Models":
    from windowpane.models.provider import PydanticModels
    from windowpane.models.setup.keys import KeptKeys

    return PydanticModels(keys=KeptKeys(keys))


def _mcp_toolbox(roots: Sequence[Path]) -> "AbstractAsyncContextManager[Toolbox]":
    from windowpane.tools.mcp import McpToolbox

    return McpToolbox(roots=roots)


def open_agents(folder: Path) -> "Agents":
    """Return the agents of a folder."""
    from windowpane.agents.folder import FolderAgents
    from windowpane.search.settings import search_settings

    return FolderAgents(folder, check_search=search_settings)


def open_embedder(settings: Settings, outside: "OutsideCalls | None" = None) -> "Embedder":
    """Return what turns texts into vectors: the local model, or the one that the settings name, on the same scale.

    `outside` keeps the calls to an endpoint that are made for no session.
    """
    from windowpane.search.embedding.standard import StandardEmbedder
    from windowpane.search.embedding.vectors import VectorCache

    vectors = VectorCache(settings.cache_folder / "vectors")
    if settings.embeddings_url is None:
        local = _local_model(settings.cache_folder, settings.weights)
        return local if settings.weights is None else StandardEmbedder(local, vectors)
    import httpx2

    from windowpane.calls.transport import RecordingTransport, Routes
    from windowpane.search.embedding.remote import RemoteEmbedder

    key = settings.embeddings_key.get_secret_value() if settings.embeddings_key else None
    client = httpx2.AsyncClient(transport=RecordingTransport(Routes()))
    remote = RemoteEmbedder(
        client,
        settings.embeddings_url,
        settings.embeddings_model,
        api_key=key,
        outside=outside.recorder if outside is not None else lambda: None,
    )
    return StandardEmbedder(remote, vectors)


def open_vectors(settings: Settings) -> "VectorCache":
    """Return the cache of vectors; an encrypted one has a folder for each key."""
    from windowpane.search.embedding.vectors import VectorCache

    keys = encryption_keys(settings)
    if keys is None:
        return VectorCache(settings.cache_folder / "vectors")
    return VectorCache(settings.cache_folder / f"vectors-{keys.writing.id}", cipher=keys.writing.cache_cipher)


def open_bus(url: str) -> "Bus":
    """Return the bus that a URL names.

    Raises:
        InvalidSettingError: the URL names no bus that there is.
    """
    scheme = url.partition("://")[0]
    try:
        if scheme in ("nats", "tls"):
            from windowpane.bus.nats import NatsBus

            return NatsBus(url)
        if scheme.partition("+")[0] in ("redis", "rediss", "valkey", "valkeys"):
            from windowpane.stores.redis.bus import RedisBus
            from windowpane.stores.redis.url import parse_redis_url

            return RedisBus(parse_redis_url(url, "bus_url"))
    except ModuleNotFoundError:
        extra = "nats" if scheme in ("nats", "tls") else "redis"
        raise InvalidSettingError("bus_url", f"install its client with `pip install windowpane[{extra}]`") from None
    raise InvalidSettingError(
        "bus_url", f"{without_password(url)!r} names no bus; write nats://host:4222 or redis://host:6379/0"
    )


def _sealed(bus: "Bus | None", keys: "KeyRing | None") -> "Bus | None":
    if bus is None or keys is None:
        return bus
    from windowpane.bus.sealed import SealedBus

    return SealedBus(bus, keys)


def open_sessions(settings: Settings, bus: "Bus | None" = None) -> "Store":
    """Return the store for these settings, with expiry where the profile asks for it. `bus` instead of the store's own.

    Raises:
        InvalidSettingError: a URL names no store that there is, or the archive would never be used.
    """
    keys = encryption_keys(settings)
    store = open_store(settings.database_url, keys, bus, open_blobs(settings))
    if settings.profile == "durable":
        if settings.archive_url is not None:
            raise InvalidSettingError("archive_url", "only sessions of the profile `ephemeral` expire; set `profile`")
        return store
    if settings.archive_url == settings.database_url:
        raise InvalidSettingError("archive_url", "sessions would be archived where they are; name another store")
    from windowpane.stores.expiry import ExpiringStore, Limits

    archive = open_store(settings.archive_url, keys) if settings.archive_url is not None else None
    return ExpiringStore(store, Limits(settings.expire_after_s, settings.max_sessions), archive=archive)


def encryption_keys(settings: Settings) -> "KeyRing | None":
    """Return the keys that sessions are encrypted with, or None when they are not.

    Raises:
        InvalidSettingError: a key cannot be read or is not one, or there are both a key and a key file.
    """
    if settings.encryption_key is None and settings.encryption_key_file is None:
        return None
    from windowpane.stores.encrypted.keys import KeyRing

    file = settings.encryption_key_file
    if file is None:
        return KeyRing.parse(
            settings.encryption_key.get_secret_value() if settings.encryption_key else "", "encryption_key"
        )
    if settings.encryption_key is not None:
        raise InvalidSettingError("encryption_key_file", "there is an encryption_key as well; keep one of them")
    try:
        return KeyRing.parse(file.read_text("ascii", "replace"), "encryption_key_file")
    except OSError as error:
        raise InvalidSettingError("encryption_key_file", f"{file} cannot be read: {error.strerror}") from None


def open_blobs(settings: Settings) -> "LargeTexts | None":
    """Return what keeps the large texts of a store elsewhere, or None when the store keeps them.

    Raises:
        InvalidSettingError: the URL names nothing that there is.
    """
    if settings.blobs_url is None:
        return None
    try:
        from windowpane.stores.blobs.object_store import ObjectStore
        from windowpane.stores.blobs.store import ObjectTextStore
    except ModuleNotFoundError:
        raise InvalidSettingError("blobs_url", "install its client with `pip install windowpane[s3]`") from None
    objects = ObjectStore(settings.blobs_url)
    return lambda store: ObjectTextStore(store, objects, settings.blobs_from_bytes)


def open_store(
    url: str, keys: "KeyRing | None" = None, bus: "Bus | None" = None, blobs: "LargeTexts | None" = None
) -> "Store":
    """Return the store that a URL names, encrypted when there are keys; `blobs` keeps its large texts elsewhere.

    Raises:
        InvalidSettingError: the URL names no store that there is.
    """
    store = _open_plain(url, bus)
    if blobs is not None:
        store = blobs(store)
    if keys is None:
        return store
    from windowpane.stores.encrypted.store import EncryptedStore

    return EncryptedStore(store, keys)


async def reindex_store(url: str, on_progress: Callable[[int], None]) -> int:
    """List every session again that a Redis store holds, and return how many; `on_progress` is told how many so far.

    Raises:
        InvalidInputError: the URL names another store. Those keep the list with the sessions.
    """
    if not _is_redis(url):
        raise InvalidInputError("only a Redis store has a list of sessions apart from them; set WINDOWPANE_STORE_URL")
    # Names are all that is looked at, so no key is needed.
    async with _open_redis(url) as store:
        return await store.repair_index(on_progress)


def _open_plain(url: str, bus: "Bus | None") -> "Store":
    if url in ("memory:", "memory://"):
        from windowpane.stores.memory import MemoryStore

        return MemoryStore()
    scheme, colon, rest = url.partition("://")
    if scheme == "sqlite" and colon and rest.startswith("/") and len(rest) > 1:
        from windowpane.stores.sqlite.store import SQLiteStore

        return SQLiteStore(Path(rest[1:]))
    if scheme in ("postgresql", "postgres") and colon:
        return _open_postgres(url, bus)
    if _is_redis(url):
        return _open_redis(url)
    raise InvalidSettingError(
        "store_url",
        f"{without_password(url)!r} names no store; "
        "write sqlite:////absolute/file.db, postgresql://user:password@host/database, redis://host:6379/0, or memory:",
    )


def _open_postgres(url: str, bus: "Bus | None") -> "Store":
    try:
        from windowpane.stores.postgres.store import PostgresStore
    except ModuleNotFoundError:
        raise InvalidSettingError(
            "store_url", "PostgreSQL needs its driver; install it with `pip install windowpane[postgres]`"
        ) from None
    return PostgresStore(url, bus)


def _is_redis(url: str) -> bool:
    scheme, colon, _ = url.partition("://")
    return bool(colon) and scheme.partition("+")[0] in ("redis", "rediss", "valkey", "valkeys")


def _open_redis(url: str) -> "RedisStore":
    try:
        from windowpane.stores.redis.store import RedisStore
    except ModuleNotFoundError:
        raise InvalidSettingError(
            "store_url", "Redis and Valkey need a client; install it with `pip install windowpane[redis]`"
        ) from None
    return RedisStore(url)
