"""Put the parts together: the only module that names concrete adapters."""

from pathlib import Path

from windowpane.agents.folder import FolderAgents
from windowpane.engine import Engine
from windowpane.errors import InvalidSettingError
from windowpane.models.provider import PydanticModels
from windowpane.settings import Settings
from windowpane.stores.base import Store
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite import SQLiteStore
from windowpane.tools.mcp import McpToolbox
from windowpane.turn.selector import Selector


def open_engine(settings: Settings, *, models: PydanticModels | None = None, selector: Selector | None = None) -> Engine:
    """Return an engine for these settings; it opens everything when it is entered."""
    return Engine(
        store=open_store(settings.database_url),
        agents=FolderAgents(settings.agents_folder),
        models=models or PydanticModels(),
        toolbox=McpToolbox,
        selector=selector,
    )


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
