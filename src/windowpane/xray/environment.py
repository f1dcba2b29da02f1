"""The environment of a program that is recorded: its base URLs lead to the proxy, and the proxy goes where they led.

The variables are those that the providers' own clients, and the agents built on them, read.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from windowpane.xray.upstreams import PROVIDERS


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable with a base URL, the provider it is for, and the end of the path that its clients expect in it."""

    name: str
    provider: str
    end: str = ""


VARIABLES = (
    _Variable("ANTHROPIC_BASE_URL", "anthropic"),
    _Variable("ANTHROPIC_API_BASE", "anthropic"),
    _Variable("OPENAI_BASE_URL", "openai", "/v1"),
    _Variable("OPENAI_API_BASE", "openai", "/v1"),
    _Variable("GOOGLE_GEMINI_BASE_URL", "google"),
    _Variable("OLLAMA_HOST", "ollama"),
    _Variable("OLLAMA_API_BASE", "ollama"),
    _Variable("OLLAMA_BASE_URL", "ollama"),
    _Variable("OPENROUTER_API_BASE", "openrouter", "/api/v1"),
    _Variable("MISTRAL_API_BASE", "mistral", "/v1"),
    _Variable("GROQ_BASE_URL", "groq"),
    _Variable("DEEPSEEK_API_BASE", "deepseek"),
    _Variable("XAI_API_BASE", "xai", "/v1"),
)
OLLAMA_PORT = 11434


@dataclass(frozen=True, slots=True)
class ChildEnvironment:
    """The variables to set for a program, and where each name that stands in them leads."""

    variables: Mapping[str, str]
    upstreams: Mapping[str, str]


def child_environment(environ: Mapping[str, str], address: str, named: Mapping[str, str]) -> ChildEnvironment:
    """Return what a program is given, whose environment was `environ`, when the proxy listens at `address`.

    `named` are the upstreams of the settings. What a variable held before is where its calls are passed on to.
    """
    variables: dict[str, str] = {}
    upstreams = {**PROVIDERS, **named}
    led: dict[str, str] = {}
    for variable in VARIABLES:
        before, end = _before(environ.get(variable.name, "").strip(), variable)
        provider = variable.provider
        if before and led.setdefault(provider, before) != before:
            # Two variables of one provider led to two places, and still do.
            provider = variable.name.lower()
        if before:
            upstreams[provider] = before
        variables[variable.name] = f"{address}/{provider}{end}"
    return ChildEnvironment({**variables, **_without_proxies(environ)}, upstreams)


def _before(value: str, variable: _Variable) -> tuple[str, str]:
    """Return where a variable led, and the end of the path that is set apart; without a value, what is usual."""
    if not value:
        return "", variable.end
    if variable.name == "OLLAMA_HOST":
        value = _ollama_address(value)
    value = value.rstrip("/")
    if variable.end and value.endswith(variable.end):
        return value.removesuffix(variable.end), variable.end
    return value, ""


def _ollama_address(value: str) -> str:
    """Return an address as Ollama reads it: scheme and port may be missing."""
    scheme, separator, rest = value.rpartition("://")
    host, slash, path = rest.partition("/")
    if ":" not in host.rpartition("]")[2]:
        host = f"{host}:{OLLAMA_PORT if not separator else (443 if scheme == 'https' else 80)}"
    # A server may listen at every address; it is reached at this one.
    host = host.replace("0.0.0.0:", "127.0.0.1:")
    return f"{scheme or 'http'}://{host}{slash}{path}"


def _without_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """Let no HTTP proxy come between a program and ours, which is on this machine."""
    # HTTPS_PROXY too: Claude Code goes by it for plain addresses.
    if not any(value and name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name, value in environ.items()):
        return {}
    before = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    without = ",".join(part for part in (before, "127.0.0.1,localhost") if part)
    return {"NO_PROXY": without, "no_proxy": without}
