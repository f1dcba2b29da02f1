"""A model that says what it was told to say, for tests and examples.

    model = ScriptedModel("demo", [Reply(calls=(Call("files_read", '{"path": "a"}'),)), Reply("It is empty.")])
    models = PydanticModels(scripts=[model])    # opened as "scripted:demo"

It plays one reply per call, through the same path as every other model, and keeps what it was called with in `calls`.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import anyio
from pydantic_ai.messages import ModelMessage

from windowpane.context.ids import BlobHash
from windowpane.context.messages import SCRIPTED, FileKind, Usage
from windowpane.context.request import CallSettings, OfferedTool, ReplyOptions, RequestMessage
from windowpane.errors import ModelError, ModelRejectedError
from windowpane.models.base import NO_FILES, CacheRules, ModelStep, ModelText
from windowpane.models.failures import Called
from windowpane.models.offline.model import Call, OfflineModel, Piece, Thought, words
from windowpane.models.stream import Patience, PydanticChatModel

NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Reply:
    """What to say in one call, word by word.

    `after` is waited for before the first word and `before_end` after the last; `delay_s` passes between two words.
    `error` is raised when everything else has been said.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage = NO_USAGE
    finish_reason: str = ""
    after: anyio.Event | None = None
    before_end: anyio.Event | None = None
    delay_s: float = 0
    error: ModelError | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """What the model was called with. `files` are those of the messages, in base64."""

    messages: tuple[RequestMessage, ...]
    tools: tuple[OfferedTool, ...]
    settings: CallSettings
    files: Mapping[BlobHash, str] = field(default_factory=dict[BlobHash, str])


class ScriptedModel:
    """Plays its replies in order. A call beyond the last one is refused."""

    def __init__(
        self,
        name: str,
        replies: Iterable[Reply] = (),
        *,
        window_tokens: int | None = 32_000,
        cache_rules: CacheRules | None = None,
        inputs: tuple[FileKind, ...] = (),
    ) -> None:
        self.cache_rules = cache_rules
        self.inputs = inputs
        self.calls: list[Received] = []
        self._name = f"{SCRIPTED}:{name}"
        self._window_tokens = window_tokens
        self._replies = list(replies)
        self._called = anyio.Condition()

    @property
    def name(self) -> str:
        """Return the name it is opened with, `scripted:NAME`."""
        return self._name

    @property
    def window_tokens(self) -> int | None:
        """Return the size of the window it pretends to have."""
        return self._window_tokens

    def remember(self, text: str, own_words: str) -> None:
        """Do nothing: it needs none of its own words."""

    def ignored(self, options: ReplyOptions) -> tuple[str, ...]:
        """Return nothing: a script is played as it stands, whatever it is asked for."""
        return ()

    def add(self, *replies: Reply) -> None:
        """Add replies after those that are there."""
        self._replies += replies

    async def wait_for_calls(self, count: int) -> None:
        """Return once the model has been called so many times in all."""
        async with self._called:
            while len(self.calls) < count:
                await self._called.wait()

    async def stream(
        self,
        messages: Sequence[RequestMessage],
        tools: Sequence[OfferedTool],
        settings: CallSettings,
        files: Mapping[BlobHash, str] = NO_FILES,
    ) -> AsyncGenerator[ModelText | ModelStep]:
        """Play the next reply.

        Raises:
            ModelError: the script says so, or has no more replies.
        """
        reply = await self._take(Received(tuple(messages), tuple(tools), settings, files))
        async with aclosing(self._player(reply).stream(messages, tools, settings, files)) as events:
            async for event in events:
                yield _as_told(event, reply)

    async def _take(self, received: Received) -> Reply:
        async with self._called:
            self.calls.append(received)
            number = len(self.calls)
            self._called.notify_all()
        if number > len(self._replies):
            raise ModelRejectedError(f"{self.name} has {len(self._replies)} replies and was called {number} times")
        return self._replies[number - 1]

    def _player(self, reply: Reply) -> PydanticChatModel:
        def play(_messages: list[ModelMessage], _tools: list[str]) -> AsyncGenerator[Piece]:
            return _play(reply)

        return PydanticChatModel(OfflineModel(self.name, play), Called(self.name), patience=Patience())


async def _play(reply: Reply) -> AsyncGenerator[Piece]:
    if reply.after is not None:
        await reply.after.wait()
    for word in words(reply.thinking):
        yield Thought(word)
    for word in words(reply.text):
        yield word
        if reply.delay_s:
            await anyio.sleep(reply.delay_s)
    for call in reply.calls:
        yield call
    if reply.before_end is not None:
        await reply.before_end.wait()
    if reply.error is not None:
        raise reply.error


def _as_told(event: ModelText | ModelStep, reply: Reply) -> ModelText | ModelStep:
    if isinstance(event, ModelText):
        return event
    return ModelStep(
        replace(event.step, usage=reply.usage, finish_reason=reply.finish_reason or event.step.finish_reason)
    )
