"""Where calls are passed on to: the providers' own addresses, and those that the settings name.

A request names a provider by its path, and never an address: what the proxy can reach is decided by who runs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from windowpane.errors import InvalidSettingError
from windowpane.text.redact import shown_address

PROVIDERS: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "chatgpt": "https://chatgpt.com",
    "google": "https://generativelanguage.googleapis.com",
    "ollama": "http://127.0.0.1:11434",
    "openrouter": "https://openrouter.ai",
    "mistral": "https://api.mistral.ai",
    "groq": "https://api.groq.com",
    "deepseek": "https://api.deepseek.com",
    "xai": "https://api.x.ai",
}
"""The usual addresses, by the name that stands in the path. What follows the name is passed on as it is."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """One place that calls go to."""

    provider: str
    url: httpx2.URL

    @property
    def host(self) -> bytes:
        """Return what stands in the header `Host`."""
        return self.url.netloc

    @property
    def path(self) -> bytes:
        """Return the path that comes before that of a call; empty when there is none."""
        return self.url.raw_path.rstrip(b"/")

    @property
    def origin(self) -> str:
        """Return scheme, host and port."""
        return f"{self.url.scheme}://{self.url.netloc.decode('ascii')}"


def upstreams_of(named: Mapping[str, str]) -> dict[str, Upstream]:
    """Return the usual providers and those of the settings, which win.

    Raises:
        InvalidSettingError: a name cannot stand in a path, or an address is none.
    """
    return {name: Upstream(name, _checked(name, url)) for name, url in {**PROVIDERS, **named}.items()}


def _checked(name: str, url: str) -> httpx2.URL:
    if not name or not all(letter.isalnum() or letter in "-_." for letter in name) or not name.isascii():
        raise InvalidSettingError("xray_upstreams", f"{name!r} cannot be a name: use letters, digits, `-`, `_` and `.`")
    try:
        found = httpx2.URL(url)
    except httpx2.InvalidURL:
        found = httpx2.URL("")
    if found.scheme not in ("http", "https") or not found.host or found.query or found.userinfo:
        raise InvalidSettingError(
            "xray_upstreams",
            f"{name}: {shown_address(url)!r} is no address for it; write one like https://gateway.example/llm, "
            "without a user, a password or a query",
        )
    return found
