"""The model port: give a model a request, get its reply as a stream.

A `ChatModel` yields `ModelText` while the model speaks and ends with exactly one `ModelStep`. Whatever goes wrong
is raised as a `ModelError` that says what to do next and carries the text that had arrived.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Literal, Protocol

from windowpane.api.models import ProviderView
from windowpane.context.carried import Additions
from windowpane.context.ids import BlobHash
from windowpane.context.messages import FileKind, Step
from windowpane.context.request import CallSettings, OfferedTool, ReplyOptions, RequestMessage

USER_SEPARATOR = "\n\n"
"""Stands between messages of a user that are sent as one."""

ECHO_WINDOW_TOKENS = 32_000

LOCAL = "local"
"""The name of the small model that runs on this machine, where it is installed."""

LOCAL_WINDOW_TOKENS = 4096
"""Small on purpose: every token of the prompt is read by one or two processors."""

NO_FILES: Mapping[BlobHash, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModelText:
    """A little more of what the model says or thinks."""

    text: str
    kind: Literal["text", "thinking"] = "text"


@dataclass(frozen=True, slots=True)
class ModelStep:
    """The end of one model call: all of it. Its tool calls have no `ref` yet.

    `own_words` is for the model alone, which may want it back in the next call; see `ChatModel.remember`.
    """

    step: Step
    own_words: str = ""


class ChatModel(Protocol):
    """One model of one provider."""

    @property
    def name(self) -> str:
        """Return the name it was opened with, `provider:model`."""
        ...

    def remember(self, text: str, own_words: str) -> None:
        """Take back the `own_words` of an earlier step of the turn, maybe of another process, and the step's text."""
        ...

    def ignored(self, options: ReplyOptions) -> tuple[str, ...]:
        """Return the names of those sampling parameters that its provider does not take."""
        ...

    def stream(
        self,
        messages: Sequence[RequestMessage],
        tools: Sequence[OfferedTool],
        settings: CallSettings,
        files: Mapping[BlobHash, str] = NO_FILES,
    ) -> AsyncGenerator[ModelText | ModelStep]:
        """Call the model once. `files` are the bytes of the messages' files, in base64; one that is missing was erased.

        Raises:
            ModelError: the call failed, in one of the ways of `errors.py`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRules:
    """What a provider does with what it has read before.

    `read` and `write` are prices of a token, of which a plain one costs 1. A beginning that is shorter than
    `least_tokens` is not kept; one that is kept goes `ttl` after it was last read, None: not by itself. `input_usd` is
    the price of a plain token, None where there is none.
    """

    read: float = 0.1
    write: float = 1.0
    least_tokens: int = 1024
    ttl: timedelta | None = None
    additions: Additions | None = None
    input_usd: float | None = None


class Models(Protocol):
    """The models that can be had, by name."""

    def open(self, name: str) -> ChatModel:
        """Return the model `provider:model`.

        Raises:
            UnknownModelError: no such provider, or it is not set up.
        """
        ...

    def is_open(self, name: str) -> bool:
        """Tell whether a model was opened before, so that opening it again takes no time."""
        ...

    def check_name(self, name: str) -> None:
        """Make sure that there can be such a model. It is not opened: no key is needed.

        Raises:
            UnknownModelError: it is not the name of a model, or there is no such provider.
        """
        ...

    def window_tokens(self, name: str) -> int | None:
        """Return how many tokens a model can take in and give out together, or None when that is not known.

        The model is not opened: no key is needed, and a name that cannot be opened is only not known.
        """
        ...

    def cache_rules(self, name: str) -> CacheRules | None:
        """Return what a model's provider does with what it has read before; None: nothing. The model is not opened."""
        ...

    def inputs(self, name: str) -> tuple[FileKind, ...]:
        """Return the files that a model takes as they are, as far as that is known. The model is not opened."""
        ...

    async def own_tokens(self, name: str, messages: Sequence[RequestMessage]) -> int | None:
        """Return how many tokens messages are to a model, where its own tokenizer is at hand; None: it is not.

        The model is not opened.
        """
        ...

    async def aclose(self) -> None:
        """Close connections that models hold open."""
        ...

    def known(self) -> tuple[str, ...]:
        """Return names worth offering in a picker; others may work too."""
        ...

    def providers(self) -> tuple[ProviderView, ...]:
        """Return every provider, with what is missing before it can be used. No key is in it."""
        ...

    def keep_key(self, provider: str, key: str) -> None:
        """Keep a key for a provider. It counts from the next call on, before one in the environment.

        Raises:
            InvalidInputError: no such provider, or no key, or it cannot be kept.
        """
        ...

    def remove_key(self, provider: str) -> None:
        """Forget the key that was given for a provider. One in the environment stays.

        Raises:
            InvalidInputError: no such provider, or the key cannot be removed.
        """
        ...


OpenModel = Callable[[str, str], ChatModel]
"""Opens a model for an owner: the owner first, then the model's name. Raises what `Models.open` raises."""
