"""Put the parts together: the only module that names concrete adapters."""

import os
from collections.abc import Callable
from pathlib import Path

import httpx2

from windowpane.agents.folder import FolderAgents
from windowpane.engine import Engine
from windowpane.errors import InvalidSettingError
from windowpane.fetch.addresses import exemption
from windowpane.fetch.engines import open_engine_by_name
from windowpane.fetch.guard import Guard
from windowpane.fetch.pages import Pages
from windowpane.models.provider import PydanticModels
from windowpane.search.embedder import Embedder
from windowpane.search.history import HistoryIndex
from windowpane.search.index import Index
from windowpane.search.minilm import MiniLM
from windowpane.search.remote import RemoteEmbedder
from windowpane.search.vectors import VectorCache
from windowpane.settings import Settings
from windowpane.stores.base import Store
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite import SQLiteStore
from windowpane.tools.mcp import McpToolbox
from windowpane.turn.hybrid import HybridSelector
from windowpane.turn.selector import Selector


def open_engine(
    settings: Settings,
    *,
    models: PydanticModels | None = None,
    selector: Selector | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Engine:
    """Return an engine for these settings; it opens everything when it is entered.

    `on_progress` is told how many passages are embedded, and out of how many, while items are being indexed.
    """
    embedder = open_embedder(settings)
    index = Index(embedder, VectorCache(settings.cache_folder / "vectors"), on_progress=on_progress)
    return Engine(
        store=open_store(settings.database_url),
        agents=FolderAgents(settings.agents_folder),
        models=models or PydanticModels(),
        toolbox=McpToolbox,
        selector=selector or HybridSelector(index),
        history=HistoryIndex(embedder),
        pages=Pages(Guard(allow=tuple(exemption(place) for place in settings.fetch_allow))),
        search_engine=open_engine_by_name(settings.search_engine, {}, os.environ) if settings.search_engine else None,
    )


def open_embedder(settings: Settings) -> Embedder:
    """Return what turns texts into vectors: the local model, or the endpoint that the settings name."""
    if settings.embeddings_url is None:
        return MiniLM(settings.cache_folder / "model", settings.weights)
    key = settings.embeddings_key.get_secret_value() if settings.embeddings_key else None
    return RemoteEmbedder(httpx2.AsyncClient(), settings.embeddings_url, settings.embeddings_model, api_key=key)


def open_store(url: str) -> Store:
    """Return the store that a URL names.

    Raises:
        InvalidSettingError: the URL names no store that there is.
    """
    if url in ("memory:", "memory://"):
        return MemoryStore()
    scheme, colon, rest = url.partition("://")
    if scheme == "sqlite" and colon and rest.startswith("/") and len(rest) > 1:
        return SQLiteStore(Path(rest[1:]))
    raise InvalidSettingError("store_url", f"{url!r} names no store; write sqlite:////absolute/file.db or memory:")
