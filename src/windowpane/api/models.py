"""Models that turns can use, and the providers that have them."""

from dataclasses import dataclass
from typing import Literal

Lacking = Literal["key", "package", "address"]
"""What must be there before a provider can be used."""

KeySource = Literal["environment", "kept"]
"""Where a key comes from: the server's environment, or a person who gave it to the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderView:
    """A provider of models. When something is lacking, `advice` says what to do; the key itself is never shown.

    `url` is the address that is asked when it is not the provider's own. `models` are names that are known; others
    may work too.
    """

    name: str
    lacking: Lacking | None
    advice: str
    key_variable: str
    key_source: KeySource | None
    url: str
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KnownModels:
    """Names of models that are known to work, as `provider:model`; others may work too. And every provider."""

    models: tuple[str, ...]
    providers: tuple[ProviderView, ...]
