"""A model for pydantic-ai whose words come from a function of this process.

pydantic-ai's own `FunctionModel` takes a lock and estimates tokens for every word. A stream has one reader here and its
tokens are counted elsewhere, so this model does neither: a word takes a third of the time.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

_WORD = re.compile(r"(?:\A\s++)?\S++\s*+")

PIECES_AT_ONCE = 16
"""After so many pieces other work of the process gets its turn."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call to ask for. `arguments` are passed on as they are, malformed or not; without an id one is made up."""

    name: str
    arguments: str = "{}"
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of what the model thinks before it answers."""

    text: str


Piece = str | Thought | Call
"""What a model says at a time."""

Speak = Callable[[list[ModelMessage], list[str]], AsyncGenerator[Piece]]
"""Gives the pieces of an answer to messages. It may call the tools that are named."""


def words(text: str) -> list[str]:
    """Split a text for speaking: joined again, the pieces are the text."""
    return _WORD.findall(text) or ([text] if text else [])


class OfflineModel(Model):
    """A model that says what a function says. `profile` None: it can do whatever a request asks for."""

    supported_tool_deferral_modes = frozenset({"standalone", "with_tool_search"})
    supported_tool_addition_modes = frozenset({"by_reference", "with_definitions"})

    def __init__(self, name: str, speak: Speak, profile: ModelProfile | None = None) -> None:
        able = ModelProfile(supports_json_schema_output=True, supports_json_object_output=True)
        super().__init__(profile=profile or able)
        self._name = name
        self._speak = speak

    @property
    def model_name(self) -> str:
        """Return its name."""
        return self._name

    @property
    def system(self) -> str:
        """Return the name that stands for a provider."""
        return "function"

    @property
    def provider(self) -> None:
        """Return None: no provider is called."""
        return

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return a whole answer."""
        async with self.request_stream(messages, model_settings, model_request_parameters) as answer:
            async for _ in answer:
                pass
            return answer.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Begin an answer."""
        _, prepared = self.prepare_request(model_settings, model_request_parameters)
        tools = [tool.name for tool in prepared.declared_function_tools]
        async with aclosing(self._speak(messages, tools)) as pieces:
            yield _Answer(prepared, name=self._name, pieces=pieces)


@dataclass
class _Answer(StreamedResponse):
    """An answer that is being said."""

    _: KW_ONLY
    name: str
    pieces: AsyncIterator[Piece]
    begun_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        parts, said, calls = self._parts_manager, 0, 0
        async for piece in self.pieces:
            if isinstance(piece, str):
                events = parts.handle_text_delta(vendor_part_id="content", content=piece)
            elif isinstance(piece, Thought):
                events = parts.handle_thinking_delta(vendor_part_id="thinking", content=piece.text)
            else:
                events = parts.handle_tool_call_delta_events(
                    vendor_part_id=calls, tool_name=piece.name, args=piece.arguments, tool_call_id=piece.id
                )
                calls += 1
            for event in events:
                yield event
            said += 1
            if said % PIECES_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def close_stream(self) -> None:
        """Do nothing: there is no connection."""

    @property
    def model_name(self) -> str:
        """Return the model's name."""
        return self.name

    @property
    def provider_name(self) -> None:
        """Return None: no provider is called."""
        return

    @property
    def provider_url(self) -> None:
        """Return None: no provider is called."""
        return

    @property
    def timestamp(self) -> datetime:
        """Return when the answer was begun."""
        return self.begun_at
