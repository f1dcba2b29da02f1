"""The models that can be had by name: every provider that pydantic-ai knows, `echo`, and scripted ones.

A name is `provider:model`, as pydantic-ai writes it. Providers are set up by their usual environment variables.
Models are built when they are first asked for; all of them share one HTTP client, which `aclose` closes, so one
`PydanticModels` belongs to one event loop.

With `OPENAI_BASE_URL`, `openai:` names speak the chat completions protocol, which every compatible server knows;
OpenAI itself is spoken to as pydantic-ai does by default.
"""

import inspect
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from threading import Lock
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, create_async_httpx2_client, infer_model, known_model_names
from pydantic_ai.providers import Provider, infer_provider_class

from windowpane.calls.transport import RecordingTransport, Routes
from windowpane.errors import UnknownModelError
from windowpane.models.base import ECHO, CacheRules, ChatModel
from windowpane.models.caching import rules_of
from windowpane.models.echo import echo_model
from windowpane.models.environment import OLLAMA_URL, SETUPS, Setup
from windowpane.models.failures import Called
from windowpane.models.sampling import OPENAI_HOST
from windowpane.models.scripted import SCRIPTED, ScriptedModel
from windowpane.models.stream import Patience, PydanticChatModel
from windowpane.models.windows import window_tokens

OWN_PROTOCOLS = (
    "openai", "openai-chat", "openai-responses", "azure", "azure-responses", "anthropic", "google", "google-cloud",
    "bedrock", "cohere", "mistral",
)  # fmt: skip
"""Providers that take user messages one after another. Others may render them by a template that does not."""

WITH_ADDITIONS = ("anthropic", "openai", "openai-responses")
"""The providers of which some models take tools in the middle of a conversation."""

LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
"""As the providers' own clients have them."""

OFFERED = ("anthropic", "google", "groq", "mistral", "openai", "deepseek", "cohere", "cerebras", "xai", "moonshotai")
"""The providers whose models `known` lists, when they are set up and pydantic-ai lists them."""


class PydanticModels:
    """Models through pydantic-ai, opened by name."""

    def __init__(
        self,
        *,
        scripts: Iterable[ScriptedModel] = (),
        patience: Patience | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._scripts = {script.name: script for script in scripts}
        self._patience = patience or Patience()
        self._environ = environ
        self._opened: dict[str, ChatModel] = {}
        self._rules: dict[str, CacheRules | None] = {}
        # Any thread may ask for a model.
        self._building = Lock()
        self._client: httpx2.AsyncClient | None = None
        self._providers: list[Provider[Any]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def open(self, name: str) -> ChatModel:
        """Return the model `provider:model`; the same one every time.

        Raises:
            UnknownModelError: no such provider, or it is not set up.
        """
        with self._building:
            if name not in self._opened:
                self._opened[name] = self._build(name)
            return self._opened[name]

    def window_tokens(self, name: str) -> int | None:
        """Return the size of a model's window in tokens, or None when it is not listed. The model is not opened."""
        script = self._scripts.get(name)
        return script.window_tokens if script else window_tokens(name)

    def cache_rules(self, name: str) -> CacheRules | None:
        """Return what a model's provider does with what it has read before; None: nothing. The model is not opened."""
        if name in self._scripts:
            return self._scripts[name].cache_rules
        if name not in self._rules:
            self._rules[name] = self._rules_of(name)
        return self._rules[name]

    def _rules_of(self, name: str) -> CacheRules | None:
        provider, _, model = name.partition(":")
        rules = rules_of(name, own_server=self._is_compatible(provider))
        if rules is None or provider not in WITH_ADDITIONS or self._is_compatible(provider):
            return rules
        try:
            profile = infer_provider_class(provider).model_profile(model) or {}
        except ImportError:
            return rules
        return replace(rules, additions=profile.get("tool_addition_mode"))

    def known(self) -> tuple[str, ...]:
        """Return names worth offering in a picker: `echo`, scripted models, and those of providers with a key."""
        ready = {provider for provider in OFFERED if self._key(provider)}
        listed = (name for name in known_model_names() if name.partition(":")[0] in ready)
        return (ECHO, *self._scripts, *listed)

    async def aclose(self) -> None:
        """Close every connection. Models that were opened cannot be used any more."""
        self._opened.clear()
        for provider in self._providers:
            # A provider that takes no client from us closes its own when it is left.
            async with provider:
                pass
        self._providers.clear()
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _build(self, name: str) -> ChatModel:
        if name == ECHO:
            called = Called(ECHO)
            return PydanticChatModel(echo_model(), called, patience=self._patience, environ=self._environ)
        provider, colon, model = name.partition(":")
        if provider == SCRIPTED:
            return self._scripted(name)
        if not colon or not model or not provider:
            raise UnknownModelError(f"{name!r} is not the name of a model; write provider:model, or {ECHO}")
        self._check(provider, name)
        return PydanticChatModel(
            self._infer(provider, model),
            self._called(provider, name),
            patience=self._patience,
            joined=provider not in OWN_PROTOCOLS or self._is_compatible(provider),
            environ=self._environ,
        )

    def _scripted(self, name: str) -> ChatModel:
        if name not in self._scripts:
            known = ", ".join(sorted(self._scripts)) or "none"
            raise UnknownModelError(f"no script {name!r}; available: {known}")
        return self._scripts[name]

    def _check(self, provider: str, name: str) -> None:
        try:
            infer_provider_class(provider)
        except ValueError:
            known = sorted({ECHO, *SETUPS})
            close = get_close_matches(provider, known, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise UnknownModelError(
                f"no provider {provider!r} for {name!r}{hint}; available: {', '.join(known)}"
            ) from None
        except ImportError as error:
            raise UnknownModelError(f"{name} needs another package: {_install_command(error, provider)}") from error
        setup = SETUPS.get(provider, Setup())
        if setup.key_variables and not self._key(provider) and not self._url(provider):
            if provider == "ollama":
                return
            raise UnknownModelError(f"{name} needs a key: set {setup.key_variables[0]}")

    def _infer(self, provider: str, model: str) -> Model:
        name = f"openai-chat:{model}" if self._is_compatible(provider) else f"{provider}:{model}"
        try:
            return infer_model(name, provider_factory=self._provider)
        except ImportError as error:
            raise UnknownModelError(
                f"{provider}:{model} needs another package: {_install_command(error, provider)}"
            ) from error
        except UserError as error:
            raise UnknownModelError(f"{provider}:{model} is not set up: {_set_what(error)}") from error

    def _is_compatible(self, provider: str) -> bool:
        """Tell whether calls to OpenAI go to another server that takes them."""
        return provider == "openai" and urlsplit(self._url(provider)).hostname not in (None, OPENAI_HOST)

    def _provider(self, name: str) -> Provider[Any]:
        provider_class: type[Provider[Any]] = infer_provider_class(name)
        accepted = inspect.signature(provider_class.__init__).parameters
        chosen: dict[str, Any] = {"http_client": self._http_client()}
        if name in SETUPS:
            chosen["api_key"] = self._key(name) or None
            chosen["base_url"] = self._url(name) or None
        provider = provider_class(**{key: value for key, value in chosen.items() if key in accepted})
        self._providers.append(provider)
        return provider

    def _http_client(self) -> httpx2.AsyncClient:
        if self._client is None:
            longest_s = max(self._patience.first_s, self._patience.between_s)
            timeout = httpx2.Timeout(longest_s, connect=self._patience.connect_s)
            routes = Routes(limits=LIMITS)
            self._client = create_async_httpx2_client(timeout=timeout, transport=RecordingTransport(routes))
        return self._client

    def _called(self, provider: str, name: str) -> Called:
        variables = SETUPS.get(provider, Setup()).key_variables
        found = next((variable for variable in variables if self._environ.get(variable)), None)
        key = self._key(provider)
        return Called(
            name=name,
            key_variable=found or next(iter(variables), ""),
            url=self._url(provider),
            secrets=(key,) if key else (),
        )

    def _key(self, provider: str) -> str:
        variables = SETUPS.get(provider, Setup()).key_variables
        return next((key for variable in variables if (key := self._environ.get(variable, ""))), "")

    def _url(self, provider: str) -> str:
        variable = SETUPS.get(provider, Setup()).url_variable
        url = self._environ.get(variable, "") if variable else ""
        if provider != "ollama":
            return url
        # Ollama's own tools are given its address without the path of its OpenAI-compatible interface.
        return f"{url.rstrip('/')}/v1" if url and not urlsplit(url).path.strip("/") else url or OLLAMA_URL


def _install_command(error: ImportError, provider: str) -> str:
    command = re.search(r"`(pip install [^`]+)`", str(error))
    return command[1] if command else f'pip install "pydantic-ai-slim[{provider}]"'


def _set_what(error: UserError) -> str:
    variables = re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", str(error))
    return f"set {' or '.join(dict.fromkeys(variables))}" if variables else str(error)
