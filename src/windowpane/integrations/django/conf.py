"""The site's settings, as Windowpane reads them.

`WINDOWPANE` is a table; each of its keys is a setting of Windowpane's in capitals, and three are the site's own:

- `AGENT`: the agent that sessions are of; the first one there is, unless it says otherwise.
- `OWNER`: the dotted path of a function that returns whose session a request is about.
- `STORE`: where sessions are kept. `cache:NAME` keeps them where that cache keeps its data and as long as it does, and
  `database:NAME` where that database is. Nothing is kept *in* the cache or the database of the site: a cache that is
  loaded, changed and saved loses what two workers write at once. A URL is taken as it is.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from django.conf import settings as site

from windowpane.errors import InvalidSettingError
from windowpane.settings import Settings

OWN_KEYS = ("AGENT", "OWNER", "STORE")


def table() -> Mapping[str, Any]:
    """Return what the site says about Windowpane."""
    return cast("Mapping[str, Any]", getattr(site, "WINDOWPANE", {}))


def settings() -> Settings:
    """Return the settings of the engine.

    Raises:
        InvalidSettingError: `STORE` names something that is not set up.
    """
    given = {name.lower(): value for name, value in table().items() if name not in OWN_KEYS}
    return Settings(**{**given, **_store(str(table().get("STORE", "")))})


def _store(named: str) -> dict[str, Any]:
    kind, _, name = named.partition(":")
    if kind == "cache":
        return _beside_cache(name, _entry("CACHES", name))
    if kind == "database":
        return _beside_database(_entry("DATABASES", name))
    return {"store_url": named} if named else {}


def _entry(where: str, name: str) -> Mapping[str, Any]:
    entries = cast("Mapping[str, Mapping[str, Any]]", getattr(site, where, {}))
    if name not in entries:
        raise InvalidSettingError("STORE", f"{where} has no entry {name!r}; it has: {', '.join(entries) or 'none'}")
    return entries[name]


def _beside_cache(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    backend = str(entry.get("BACKEND", "")).rpartition(".")[2]
    location = entry.get("LOCATION", "")
    url = {
        "FileBasedCache": f"sqlite:///{Path(str(location)) / 'windowpane.db'}",
        "LocMemCache": "memory:",
        "RedisCache": _first(location),
        "DatabaseCache": "",
    }.get(backend)
    if backend == "DatabaseCache":
        url = _beside_database(_entry("DATABASES", "default"))["store_url"]
    if url is None:
        raise InvalidSettingError("STORE", f"nothing can be kept beside the cache {name!r} ({backend}); give a URL")
    options = cast("Mapping[str, Any]", entry.get("OPTIONS", {}))
    timeout = entry.get("TIMEOUT", 300)
    if timeout is None:
        return {"store_url": url}
    return {
        "store_url": url,
        "profile": "ephemeral",
        "expire_after_s": timeout,
        "max_sessions": options.get("MAX_ENTRIES", 300),
    }


def _first(location: object) -> str:
    """Return the server that is written to, where a cache names several."""
    return str(cast("list[object]", location)[0]) if isinstance(location, list | tuple) else str(location)


def _beside_database(entry: Mapping[str, Any]) -> dict[str, Any]:
    engine = str(entry.get("ENGINE", "")).rpartition(".")[2]
    if engine == "sqlite3":
        return {"store_url": f"sqlite:///{Path(str(entry['NAME'])).with_suffix('.windowpane.db')}"}
    if engine == "postgresql":
        user, password = quote(str(entry.get("USER", "")), safe=""), quote(str(entry.get("PASSWORD", "")), safe="")
        login = f"{user}:{password}@" if password else f"{user}@" if user else ""
        port = f":{entry['PORT']}" if entry.get("PORT") else ""
        return {"store_url": f"postgresql://{login}{entry.get('HOST') or 'localhost'}{port}/{entry['NAME']}"}
    raise InvalidSettingError("STORE", f"nothing can be kept beside a database of the kind {engine!r}; give a URL")
