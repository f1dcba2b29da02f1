"""Models that are loaded when the first of them is needed: providers' clients take most of a second to import."""

from collections.abc import Callable, Sequence
from threading import Lock

from windowpane.api.models import ProviderView
from windowpane.context.messages import ECHO, FileKind
from windowpane.context.request import RequestMessage
from windowpane.models.base import CacheRules, ChatModel, Models
from windowpane.models.windows import known_inputs, window_tokens


class LazyModels:
    """The models that a function returns, once a caller asks for one."""

    def __init__(self, make: Callable[[], Models]) -> None:
        self._make = make
        self._made: Models | None = None
        self._making = Lock()

    def open(self, name: str) -> ChatModel:
        """Return the model `provider:model`; see `Models.open`."""
        return self._models().open(name)

    def is_open(self, name: str) -> bool:
        """Tell whether a model was opened before; see `Models.is_open`."""
        return self._made is not None and self._made.is_open(name)

    def check_name(self, name: str) -> None:
        """Make sure that there can be such a model; see `Models.check_name`."""
        if name != ECHO:
            self._models().check_name(name)

    def window_tokens(self, name: str) -> int | None:
        """Return the size of a model's window from the list; nothing is loaded for that."""
        return window_tokens(name)

    def cache_rules(self, name: str) -> CacheRules | None:
        """Return what a model's provider does with what it has read before. The built-in model needs no loading."""
        return None if name == ECHO else self._models().cache_rules(name)

    def inputs(self, name: str) -> tuple[FileKind, ...]:
        """Return the files that a model takes as they are. The built-in model needs no loading."""
        return known_inputs(name) if name == ECHO else self._models().inputs(name)

    async def own_tokens(self, name: str, messages: Sequence[RequestMessage]) -> int | None:
        """Return how many tokens messages are to a model. The built-in model needs no loading."""
        return None if name == ECHO else await self._models().own_tokens(name, messages)

    def known(self) -> tuple[str, ...]:
        """Return names worth offering in a picker; others may work too."""
        return self._models().known()

    def providers(self) -> tuple[ProviderView, ...]:
        """Return every provider, with what is missing before it can be used."""
        return self._models().providers()

    def keep_key(self, provider: str, key: str) -> None:
        """Keep a key for a provider; see `Models.keep_key`."""
        self._models().keep_key(provider, key)

    def remove_key(self, provider: str) -> None:
        """Forget the key that was given for a provider; see `Models.remove_key`."""
        self._models().remove_key(provider)

    async def aclose(self) -> None:
        """Close connections that models hold open."""
        if self._made is not None:
            await self._made.aclose()

    def _models(self) -> Models:
        with self._making:
            if self._made is None:
                self._made = self._make()
            return self._made
