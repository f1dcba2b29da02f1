"""The model port: give a model a request, get its reply as a stream.

A `ChatModel` yields `ModelText` while the model speaks and ends with exactly one `ModelStep`. Whatever goes wrong
is raised as a `ModelError` that says what to do next and carries the text that had arrived.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

from windowpane.context.carried import Additions
from windowpane.context.messages import Step
from windowpane.context.request import CallSettings, OfferedTool, ReplyOptions, RequestMessage

ECHO = "echo"
"""The name of the built-in model."""

ECHO_WINDOW_TOKENS = 32_000


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
        self, messages: Sequence[RequestMessage], tools: Sequence[OfferedTool], settings: CallSettings
    ) -> AsyncGenerator[ModelText | ModelStep]:
        """Call the model once.

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

    def window_tokens(self, name: str) -> int | None:
        """Return how many tokens a model can take in and give out together, or None when that is not known.

        The model is not opened: no key is needed, and a name that cannot be opened is only not known.
        """
        ...

    def cache_rules(self, name: str) -> CacheRules | None:
        """Return what a model's provider does with what it has read before; None: nothing. The model is not opened."""
        ...

    async def aclose(self) -> None:
        """Close connections that models hold open."""
        ...

    def known(self) -> tuple[str, ...]:
        """Return names worth offering in a picker; others may work too."""
        ...


OpenModel = Callable[[str, str], ChatModel]
"""Opens a model for an owner: the owner first, then the model's name. Raises what `Models.open` raises."""
