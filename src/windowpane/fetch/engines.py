"""The search engines by name, set up from options and the environment."""

from collections.abc import Mapping
from importlib.util import find_spec

import httpx2

from windowpane.errors import InvalidSettingError
from windowpane.fetch import brave, tavily
from windowpane.fetch.base import SearchEngine
from windowpane.fetch.brave import Brave
from windowpane.fetch.searxng import SearXNG
from windowpane.fetch.tavily import Tavily

Options = Mapping[str, str | int | float]

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "searxng": ("url", "timeout_s"),
    "brave": ("url", "timeout_s"),
    "tavily": ("url", "timeout_s"),
    "duckduckgo": ("timeout_s", "backend", "region", "proxy", "ca_file"),
}
"""The options that each engine takes. Keys come from the environment only."""

TIMEOUT_S = 10.0


def open_engine_by_name(name: str, options: Options, environ: Mapping[str, str]) -> SearchEngine:
    """Return an engine that is ready to search; the caller closes it.

    Raises:
        InvalidSettingError: no engine has this name, or something it needs is missing or wrong.
    """
    if name not in OPTIONS:
        raise InvalidSettingError("search_engine", f"no engine {name!r}; choose one of {', '.join(OPTIONS)}")
    for option in options:
        if option not in OPTIONS[name]:
            why = f"{name} has no such option; it takes {', '.join(OPTIONS[name])}"
            raise InvalidSettingError(f"search_engine.{option}", why)
    timeout_s = _timeout_s(options)
    match name:
        case "searxng":
            return SearXNG(_url(options, environ.get("SEARXNG_URL", "")), timeout_s)
        case "brave":
            return Brave(_key("BRAVE_API_KEY", environ), _url(options, brave.URL), timeout_s)
        case "tavily":
            return Tavily(_key("TAVILY_API_KEY", environ), _url(options, tavily.URL), timeout_s)
        case _:
            return _duckduckgo(options, timeout_s)


def _timeout_s(options: Options) -> float:
    try:
        timeout_s = float(options.get("timeout_s", TIMEOUT_S))
    except ValueError:
        timeout_s = 0.0
    if not 0 < timeout_s < float("inf"):
        raise InvalidSettingError("search_engine.timeout_s", "must be a number of seconds above 0")
    return timeout_s


def _url(options: Options, default: str) -> str:
    url = str(options.get("url", default)).strip()
    if not url:
        raise InvalidSettingError("search_engine.url", "name the address of your SearXNG here or in `SEARXNG_URL`")
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        raise InvalidSettingError("search_engine.url", "is not a valid address") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidSettingError("search_engine.url", "must begin with http:// or https:// and name a host")
    return url


def _key(variable: str, environ: Mapping[str, str]) -> str:
    key = environ.get(variable, "").strip()
    if not key:
        raise InvalidSettingError(variable, "is not set; it holds the key of the search engine")
    if not key.isascii() or not key.isprintable():
        raise InvalidSettingError(variable, "holds characters that no key has; copy the key again")
    return key


def _duckduckgo(options: Options, timeout_s: float) -> SearchEngine:
    if find_spec("ddgs") is None:
        why = "duckduckgo needs the package `ddgs`; install `windowpane[duckduckgo]`"
        raise InvalidSettingError("search_engine", why)
    from windowpane.fetch.duckduckgo import DuckDuckGo  # an extra: it may not be installed

    proxy, ca_file = options.get("proxy"), options.get("ca_file")
    return DuckDuckGo(
        timeout_s=timeout_s,
        backend=str(options.get("backend", "duckduckgo")),
        region=str(options.get("region", "us-en")),
        proxy=None if proxy is None else str(proxy),
        ca_file=None if ca_file is None else str(ca_file),
    )
