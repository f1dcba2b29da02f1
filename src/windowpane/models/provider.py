"""The models that can be had by name: every provider that pydantic-ai knows, `echo`, and scripted ones.

A name is `provider:model`, as pydantic-ai writes it. Providers are set up by their usual environment variables, and by
keys that were given to the server (`setup/`).
Models are built when they are first asked for; all of them share one HTTP client, which `aclose` closes, so one
`PydanticModels` belongs to one event loop.

With `OPENAI_BASE_URL`, `openai:` names speak the chat completions protocol, which every compatible server knows;
OpenAI itself is spoken to as pydantic-ai does by default.
"""

import inspect
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import anyio.to_thread
import httpx2
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, create_async_httpx2_client, infer_model, known_model_names
from pydantic_ai.providers import Provider, infer_provider_class

from windowpane.api.models import ProviderView
from windowpane.calls.transport import RecordingTransport, Routes
from windowpane.context.messages import ECHO, SCRIPTED, FileKind
from windowpane.context.request import RequestMessage
from windowpane.errors import UnknownModelError
from windowpane.models.base import LOCAL, CacheRules, ChatModel
from windowpane.models.caching import rules_of
from windowpane.models.failures import Called
from windowpane.models.local.model import LocalModel, LocalModelServer
from windowpane.models.local.server import INSTALL, is_installed
from windowpane.models.local.vocabulary import local_tokens
from windowpane.models.offline.echo import echo_model
from windowpane.models.sampling import OPENAI_HOST
from windowpane.models.scripted import ScriptedModel
from windowpane.models.setup.environment import SETUPS
from windowpane.models.setup.keys import KeptKeys
from windowpane.models.setup.providers import Providers
from windowpane.models.stream import Patience, PydanticChatModel
from windowpane.models.windows import known_inputs, window_tokens
from windowpane.text.redact import secrets_in

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
        keys: KeptKeys | None = None,
    ) -> None:
        self._scripts = {script.name: script for script in scripts}
        self._patience = patience or Patience()
        self._environ = environ
        self._setup = Providers(environ, keys or KeptKeys())
        # Each with the key that it was built with.
        self._opened: dict[str, tuple[str, ChatModel]] = {}
        self._rules: dict[str, CacheRules | None] = {}
        # Any thread may ask for a model.
        self._building = Lock()
        # By the query that each puts behind every address.
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self._providers: list[Provider[Any]] = []
        self._local: LocalModelServer | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def open(self, name: str) -> ChatModel:
        """Return the model `provider:model`; the same one every time, as long as its provider's key is the same.

        Raises:
            UnknownModelError: no such provider, or it is not set up.
        """
        key = self._setup.key(name.partition(":")[0])
        with self._building:
            built_with, model = self._opened.get(name, ("", None))
            if model is None or built_with != key:
                model = self._build(name)
                self._opened[name] = (key, model)
            return model

    def is_open(self, name: str) -> bool:
        """Tell whether a model was opened before; see `Models.is_open`."""
        return name in self._opened

    def check_name(self, name: str) -> None:
        """Make sure that there can be such a model. It is not opened: no key is needed.

        Raises:
            UnknownModelError: it is not the name of a model, or there is no such provider.
        """
        if name in (ECHO, LOCAL):
            return
        provider, _ = _parts(name)
        if provider == SCRIPTED:
            self._scripted(name)
            return
        with suppress(ImportError):
            _known(provider, name)

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

    def inputs(self, name: str) -> tuple[FileKind, ...]:
        """Return the files that a model takes as they are, as far as that is known. The model is not opened."""
        script = self._scripts.get(name)
        return script.inputs if script else known_inputs(name, own_server=self._is_compatible(name.partition(":")[0]))

    async def own_tokens(self, name: str, messages: Sequence[RequestMessage]) -> int | None:
        """Return how many tokens messages are to a model: known of `local` alone. The model is not opened."""
        if name != LOCAL or not is_installed():
            return None
        return await anyio.to_thread.run_sync(local_tokens, messages)

    def _rules_of(self, name: str) -> CacheRules | None:
        provider, _, model = name.partition(":")
        rules = rules_of(name, own_server=name == LOCAL or self._is_compatible(provider))
        if rules is None or provider not in WITH_ADDITIONS or self._is_compatible(provider):
            return rules
        try:
            profile = infer_provider_class(provider).model_profile(model) or {}
        except ImportError:
            return rules
        return replace(rules, additions=profile.get("tool_addition_mode"))

    def known(self) -> tuple[str, ...]:
        """Return names worth offering in a picker: `echo`, scripted models, and those of providers with a key."""
        ready = {provider for provider in OFFERED if self._setup.key(provider)}
        listed = (name for name in known_model_names() if name.partition(":")[0] in ready)
        return (ECHO, *((LOCAL,) if is_installed() else ()), *self._scripts, *listed)

    def providers(self) -> tuple[ProviderView, ...]:
        """Return every provider, with what is missing before it can be used. No key is in it."""
        listed: dict[str, tuple[str, ...]] = {}
        for name in known_model_names():
            provider = name.partition(":")[0]
            listed[provider] = (*listed.get(provider, ()), name)
        return self._setup.views(listed)

    def keep_key(self, provider: str, key: str) -> None:
        """Keep a key for a provider; see `Models.keep_key`."""
        self._setup.keep_key(provider, key)

    def remove_key(self, provider: str) -> None:
        """Forget the key that was given for a provider; see `Models.remove_key`."""
        self._setup.remove_key(provider)

    async def aclose(self) -> None:
        """Close every connection. Models that were opened cannot be used any more."""
        self._opened.clear()
        for provider in self._providers:
            # A provider that takes no client from us closes its own when it is left.
            async with provider:
                pass
        self._providers.clear()
        if self._local is not None:
            await anyio.to_thread.run_sync(self._local.close)
            self._local = None
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    def _build(self, name: str) -> ChatModel:
        if name == ECHO:
            called = Called(ECHO)
            return PydanticChatModel(echo_model(), called, patience=self._patience, environ=self._environ)
        if name == LOCAL:
            return self._local_model()
        provider, model = _parts(name)
        if provider == SCRIPTED:
            return self._scripted(name)
        self._check(provider, name)
        return PydanticChatModel(
            self._infer(provider, model),
            self._called(provider, name),
            patience=self._patience,
            joined=provider not in OWN_PROTOCOLS or self._is_compatible(provider),
            # The log takes out every secret of the environment, so a key that was given belongs there.
            environ={**self._environ, self._setup.key_variable(provider): self._setup.key(provider)},
        )

    def _local_model(self) -> ChatModel:
        if not is_installed():
            raise UnknownModelError(f"{LOCAL} needs another package: {INSTALL}")
        self._local = self._local or LocalModelServer()
        return LocalModel(self._local, self._at)

    def _at(self, url: str) -> ChatModel:
        """Return a model of a server on this machine that speaks OpenAI's protocol and needs no key."""
        # Not at the top: a provider's client takes most of a second to load.
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(base_url=url, api_key="none", http_client=self._http_client())
        model = OpenAIChatModel(LOCAL, provider=provider)
        called = Called(name=LOCAL, url=url)
        return PydanticChatModel(model, called, patience=self._patience, joined=True, environ=self._environ)

    def _scripted(self, name: str) -> ChatModel:
        if name not in self._scripts:
            known = ", ".join(sorted(self._scripts)) or "none"
            raise UnknownModelError(f"no script {name!r}; available: {known}")
        return self._scripts[name]

    def _check(self, provider: str, name: str) -> None:
        try:
            _known(provider, name)
        except ImportError as error:
            raise UnknownModelError(f"{name} needs another package: {_install_command(error, provider)}") from error
        lacking, advice = self._setup.lacking(provider)
        if lacking is not None:
            raise UnknownModelError(f"{name} needs {'an' if lacking == 'address' else 'a'} {lacking}: {advice}")

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
        return provider == "openai" and urlsplit(self._setup.url(provider)).hostname not in (None, OPENAI_HOST)

    def _provider(self, name: str) -> Provider[Any]:
        provider_class: type[Provider[Any]] = infer_provider_class(name)
        accepted = inspect.signature(provider_class.__init__).parameters
        # The clients would put their paths behind a query.
        address = urlsplit(self._setup.url(name) if name in SETUPS else "")
        chosen: dict[str, Any] = {"http_client": self._http_client(address.query)}
        if name in SETUPS:
            chosen["api_key"] = self._setup.key(name) or None
            chosen["base_url"] = urlunsplit(address._replace(query="")) or None
        provider = provider_class(**{key: value for key, value in chosen.items() if key in accepted})
        self._providers.append(provider)
        return provider

    def _http_client(self, query: str = "") -> httpx2.AsyncClient:
        if query not in self._clients:
            longest_s = max(self._patience.first_s, self._patience.between_s)
            timeout = httpx2.Timeout(longest_s, connect=self._patience.connect_s)
            routes = Routes(limits=LIMITS)
            client = create_async_httpx2_client(timeout=timeout, transport=RecordingTransport(routes))
            if query:
                client.event_hooks["request"].append(partial(_add_query, httpx2.QueryParams(query)))
            self._clients[query] = client
        return self._clients[query]

    def _called(self, provider: str, name: str) -> Called:
        key, url = self._setup.key(provider), self._setup.url(provider)
        return Called(
            name=name,
            key_variable=self._setup.key_variable(provider),
            url=url,
            url_variable=SETUPS[provider].url_variable if provider in SETUPS else "",
            secrets=((key,) if key else ()) + secrets_in(url),
        )


async def _add_query(query: httpx2.QueryParams, request: httpx2.Request) -> None:
    request.url = request.url.copy_merge_params(query)


def _parts(name: str) -> tuple[str, str]:
    provider, _, model = name.partition(":")
    if not model or not provider:
        raise UnknownModelError(f"{name!r} is not the name of a model; write provider:model, or {ECHO}")
    return provider, model


def _known(provider: str, name: str) -> None:
    try:
        infer_provider_class(provider)
    except ValueError:
        known = sorted({ECHO, *SETUPS})
        close = get_close_matches(provider, known, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise UnknownModelError(f"no provider {provider!r} for {name!r}{hint}; available: {', '.join(known)}") from None


def _install_command(error: ImportError, provider: str) -> str:
    command = re.search(r"`(pip install [^`]+)`", str(error))
    return command[1] if command else f'pip install "pydantic-ai-slim[{provider}]"'


def _set_what(error: UserError) -> str:
    variables = re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", str(error))
    return f"set {' or '.join(dict.fromkeys(variables))}" if variables else str(error)
