"""Which providers can be used now, and what is missing for the others."""

from collections.abc import Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

from windowpane.api.models import KeySource, Lacking, ProviderView
from windowpane.errors import InvalidInputError
from windowpane.models.setup.environment import OLLAMA_URL, SETUPS, Setup
from windowpane.models.setup.keys import KeptKeys
from windowpane.text.redact import shown_address

SPELLINGS = ("openai-chat", "openai-responses")
"""Names of providers that say how to speak to one that has another name."""


class Providers:
    """What is set up, by the environment and by keys that were given to the server. A key that was given goes first."""

    def __init__(self, environ: Mapping[str, str], kept: KeptKeys) -> None:
        self.environ = environ
        self.kept = kept

    def views(self, models: Mapping[str, tuple[str, ...]]) -> tuple[ProviderView, ...]:
        """Return every provider with what it lacks. `models` are names of models by provider."""
        return tuple(self.view(name, models.get(name, ())) for name in SETUPS if name not in SPELLINGS)

    def view(self, name: str, models: tuple[str, ...] = ()) -> ProviderView:
        """Return one provider with what it lacks."""
        variable, source, _ = self._found(name)
        lacking, advice = self.lacking(name)
        return ProviderView(
            name=name,
            lacking=lacking,
            advice=advice,
            key_variable=variable,
            key_source=source,
            url=shown_address(self.url(name)),
            models=models,
        )

    def key(self, name: str) -> str:
        """Return a provider's key, or nothing when there is none."""
        return self._found(name)[2]

    def key_variable(self, name: str) -> str:
        """Return the variable that holds a provider's key, or that would hold it."""
        return self._found(name)[0]

    def url(self, name: str) -> str:
        """Return the address that a provider is to be asked at, or nothing when it is the usual one."""
        variable = SETUPS.get(name, Setup()).url_variable
        url = self.environ.get(variable, "") if variable else ""
        if name != "ollama":
            return url
        # Ollama's own tools are given its address without the path of its OpenAI-compatible interface.
        address = urlsplit(url)
        return address._replace(path="/v1").geturl() if url and not address.path.strip("/") else url or OLLAMA_URL

    def lacking(self, name: str) -> tuple[Lacking | None, str]:
        """Return what a provider needs before it can be used, and what to do; None when it can."""
        setup = SETUPS.get(name)
        if setup is None:
            return None, ""
        if any(find_spec(package) is None for package in setup.packages):
            return "package", f'pip install "pydantic-ai-slim[{name}]"'
        if name == "vllm" and not self.url(name):
            return "address", f"set {setup.url_variable}"
        if not self.key(name) and not self.url(name):
            return "key", f"set {setup.key_variables[0]}"
        return None, ""

    def keep_key(self, name: str, key: str) -> None:
        """Keep a key for a provider.

        Raises:
            InvalidInputError: no such provider, or no key, or it cannot be kept.
        """
        self.kept.keep(_own_variable(name), key)

    def remove_key(self, name: str) -> None:
        """Forget the key that was given for a provider. One in the environment stays.

        Raises:
            InvalidInputError: no such provider, or the key cannot be removed.
        """
        self.kept.remove(_own_variable(name))

    def _found(self, name: str) -> tuple[str, KeySource | None, str]:
        """Return the variable of a provider's key, where the key comes from, and the key."""
        variables = SETUPS.get(name, Setup()).key_variables
        for variable in variables:
            if key := self.kept.get(variable):
                return variable, "kept", key
        for variable in variables:
            if key := self.environ.get(variable, ""):
                return variable, "environment", key
        return next(iter(variables), ""), None, ""


def _own_variable(name: str) -> str:
    if name not in SETUPS:
        raise InvalidInputError(f"no provider {name!r} takes a key; available: {', '.join(SETUPS)}")
    return SETUPS[name].key_variables[0]
