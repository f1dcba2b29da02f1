"""One model call, from the request to the last word.

The call goes through pydantic-ai to the provider's own client. Text is passed on as it arrives; the end is one
`ModelStep`. A call that fails before anything arrived is made again when that may help; afterwards never, because
what the user has seen cannot be taken back.
"""

import os
import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings

from windowpane import telemetry
from windowpane.calls.documents import as_text, as_tokens
from windowpane.context.ids import BlobHash
from windowpane.context.messages import Step, Usage
from windowpane.context.request import CallSettings, OfferedTool, ReplyOptions, RequestMessage
from windowpane.context.text import valid_unicode
from windowpane.errors import ModelError
from windowpane.models.base import NO_FILES, ModelStep, ModelText
from windowpane.models.debug_log import log_request
from windowpane.models.failures import (
    Called,
    Foreseen,
    asked_wait_s,
    failure,
    passing,
    too_slow,
    unfinished,
    unreadable,
)
from windowpane.models.messages import (
    Replies,
    WireForm,
    added_tools,
    conversation,
    model_settings,
    own_words,
    tool_calls,
)
from windowpane.models.reply_options import allow, force, parameters
from windowpane.models.sampling import sampling_settings
from windowpane.models.silence import Silence
from windowpane.models.stops import STOPPED, StopCutter


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for a model: for its connection, its first word, its next word, and between attempts.

    A provider that asks for a longer pause than `longest_wait_s` is taken at its word: the call fails at once and
    says when to come back.
    """

    connect_s: float = 10
    first_s: float = 300
    between_s: float = 120
    max_retries: int = 2
    first_wait_s: float = 0.5
    longest_wait_s: float = 30

    def wait_s(self, error: Exception, attempt: int) -> float | None:
        """Return the pause before attempt number `attempt`, or None when another one would be in vain."""
        if attempt > self.max_retries or not passing(error):
            return None
        asked_s = asked_wait_s(error)
        wait_s = self.first_wait_s * 2 ** (attempt - 1) if asked_s is None else asked_s
        return wait_s if wait_s <= self.longest_wait_s else None


class PydanticChatModel:
    """A model that pydantic-ai knows how to call."""

    def __init__(
        self,
        model: Model,
        called: Called,
        *,
        patience: Patience,
        joined: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._model = model
        self._joined = joined
        self._called = called
        self._patience = patience
        self._environ = environ
        self._replies = Replies()

    @property
    def name(self) -> str:
        """Return the name it was opened with, `provider:model`."""
        return self._called.name

    def remember(self, text: str, own_words: str) -> None:
        """Take back what it said in an earlier step of the turn; see `ChatModel.remember`."""
        self._replies.restore(text, own_words)

    def ignored(self, options: ReplyOptions) -> tuple[str, ...]:
        """Return the sampling parameters that the provider does not take; see `ChatModel.ignored`."""
        return sampling_settings(self._model, options)[1]

    async def stream(
        self,
        messages: Sequence[RequestMessage],
        tools: Sequence[OfferedTool],
        settings: CallSettings,
        files: Mapping[BlobHash, str] = NO_FILES,
    ) -> AsyncGenerator[ModelText | ModelStep]:
        """Call the model once.

        Raises:
            ModelError: the call failed, in one of the ways of `errors.py`.
        """
        log_request(self.name, messages, tools, settings, environ=self._environ)
        started = time.monotonic()
        request = self._request(messages, tools, settings, files)
        stops, attempt = settings.reply_options.stop, 1
        while True:
            heard, cutter = _Heard(), StopCutter(stops)
            try:
                async with aclosing(self._attempt(request, heard)) as texts:
                    async for text in texts:
                        if not stops:
                            yield text
                            continue
                        for piece in cutter.take(text):
                            yield piece
                        if cutter.found is not None:
                            break
            except ModelError as error:
                error.partial = error.partial or heard.text
                raise
            except Foreseen as error:
                wait_s = None if heard.anything else self._patience.wait_s(error, attempt)
                if wait_s is None:
                    raise failure(error, self._called, partial=heard.text, arrived=heard.anything) from error
                attempt += 1
                telemetry.tried(failure(error, self._called, partial="", arrived=False).code)
                await anyio.sleep(wait_s)
                log_request(self.name, messages, tools, settings, environ=self._environ, attempt=attempt)
            except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
                if (told := unreadable(error, self._called, partial=heard.text)) is None:
                    raise
                raise told from error
            else:
                if cutter.found is not None:
                    yield ModelStep(self._cut(heard, cutter, started))
                    return
                for piece in cutter.rest():
                    yield piece
                offline = self._model.provider is None
                yield ModelStep(self._step(heard, started), "" if offline else own_words(heard.reply))
                return

    def _request(
        self,
        messages: Sequence[RequestMessage],
        tools: Sequence[OfferedTool],
        settings: CallSettings,
        files: Mapping[BlobHash, str],
    ) -> "_Request":
        sampled, _ = sampling_settings(self._model, settings.reply_options)
        chosen: ModelSettings = {**model_settings(settings, messages, self._replies), **sampled}
        form = self._form(chosen, settings)
        added = added_tools(messages) if form.additions else frozenset[str]()
        if "max_retries" not in self._model.unsupported_settings:
            # The clients' own retries wait as long as they are told to, an hour if need be.
            chosen["max_retries"] = 0
        force(chosen, self._model, self.name, tools, settings.reply_options.must_call)
        if not self._joined:
            allow(chosen, self._model, settings.allowed_tools)
        return _Request(
            messages=conversation(messages, self._replies, form, files),
            settings=chosen,
            parameters=parameters(self._model, self.name, tools, settings.reply_options.response_format, added),
        )

    def _form(self, chosen: ModelSettings, settings: CallSettings) -> WireForm:
        """Return the form that the provider wants, and say in the settings of the call what it keeps."""
        own, stable = cast("dict[str, Any]", chosen), settings.cache == "stable"
        points = stable and self._model.system == "anthropic"
        if points:
            own["anthropic_cache_instructions"] = True
        elif stable:
            own["cache"] = True
        if settings.cache_key and self._model.system == "openai":
            own["openai_prompt_cache_key"] = settings.cache_key
        additions = settings.additions is not None and self._model.tool_addition_mode is not None
        return WireForm(joined=self._joined, additions=additions, cache_points=points)

    async def _attempt(self, request: "_Request", heard: "_Heard") -> AsyncGenerator[ModelText]:
        async with AsyncExitStack() as stack:
            response = await self._open(request, stack)
            with Silence(self._patience.first_s) as silence:
                silence.begin()
                async for event in response:
                    silence.end()
                    if not heard.anything:
                        silence.allow(self._patience.between_s)
                    if (text := heard.hear(event)) is not None:
                        yield text
                    silence.begin()
                silence.end()
            if silence.broken:
                limit_s = self._patience.between_s if heard.anything else self._patience.first_s
                raise too_slow(self._called, limit_s, partial=heard.text, arrived=heard.anything)
            heard.reply = response.get()
            for text in heard.close():
                yield text
            if self._model.provider is not None and not _finished(heard.reply):
                raise unfinished(self._called, _raw_finish(heard.reply), partial=heard.text)

    async def _open(self, request: "_Request", stack: AsyncExitStack) -> StreamedResponse:
        with anyio.move_on_after(self._patience.first_s):
            return await stack.enter_async_context(
                model_request_stream(
                    self._model,
                    request.messages,
                    model_settings=request.settings,
                    model_request_parameters=request.parameters,
                )
            )
        raise too_slow(self._called, self._patience.first_s, partial="", arrived=False)

    def _cut(self, heard: "_Heard", cutter: StopCutter, started: float) -> Step:
        """Return a step that a stop sequence ended: its usage is not known, because the provider was not heard out."""
        return Step(
            text=cutter.said,
            thinking=heard.thinking,
            model=self.name,
            finish_reason=STOPPED,
            latency_ms=round((time.monotonic() - started) * 1000),
        )

    def _step(self, heard: "_Heard", started: float) -> Step:
        reply = heard.reply
        self._replies.remember(heard.text, reply)
        calls = tool_calls(reply)
        offline = self._model.provider is None
        # Some providers have one word for an answer and for a wish to call tools.
        reason = reply.finish_reason or _raw_finish(reply) or "stop"
        return Step(
            text=heard.text,
            thinking=heard.thinking,
            tool_calls=calls,
            usage=Usage() if offline else _usage(reply),
            model=self.name if offline else (as_text(reply.model_name) or self.name),
            finish_reason="tool_call" if calls and reason == "stop" else reason,
            latency_ms=round((time.monotonic() - started) * 1000),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One call in pydantic-ai's words."""

    messages: list[ModelMessage]
    settings: ModelSettings
    parameters: ModelRequestParameters


@dataclass(slots=True)
class _Heard:
    """What has come from the model so far. `halves` are characters cut in two, whose second half is on its way."""

    text: str = ""
    thinking: str = ""
    anything: bool = False
    halves: dict[str, str] = field(default_factory=dict[str, str])
    reply: ModelResponse = field(default_factory=lambda: ModelResponse(parts=[]))

    def hear(self, event: ModelResponseStreamEvent) -> ModelText | None:
        """Take in one event and return the text it brought."""
        self.anything = True
        match event:
            case PartDeltaEvent(delta=TextPartDelta(content_delta=content)):
                return self._say(content)
            case PartStartEvent(part=TextPart(content=content), previous_part_kind=before):
                return self._say(content, new_paragraph=before != "text")
            case PartStartEvent(part=ThinkingPart(content=content), previous_part_kind=before):
                return self._think(content, new_paragraph=before != "thinking")
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(content))):
                return self._think(content)
            case _:
                return None

    def close(self) -> list[ModelText]:
        """Return what had to wait: halves that stayed alone, and the words of a refusal, which come apart."""
        last = [self._think(_ALONE) if self.halves.pop("thinking", "") else None]
        last.append(self._say(_ALONE) if self.halves.pop("text", "") else None)
        refusal = (self.reply.provider_details or {}).get("refusal")
        last.append(self._say(refusal) if isinstance(refusal, str) and not self.text else None)
        return [text for text in last if text is not None]

    def _whole(self, kind: str, content: object) -> str:
        """Return what can be passed on, the rest of a character with it that was cut in two.

        Raises:
            UnexpectedModelBehavior: it is no text. Clients do not check what they are sent.
        """
        if not isinstance(content, str):
            raise UnexpectedModelBehavior(f"a {type(content).__name__} in the place of a text")
        if not self.halves and content.isascii():
            return content
        content = self.halves.pop(kind, "") + content
        if content and _FIRST_HALF.match(content[-1]):
            self.halves[kind] = content[-1]
            content = content[:-1]
        return valid_unicode(content)

    def _say(self, content: str, *, new_paragraph: bool = False) -> ModelText | None:
        content = self._whole("text", content)
        if not content:
            return None
        content = f"\n\n{content}" if new_paragraph and self.text else content
        self.text += content
        return ModelText(content)

    def _think(self, content: str, *, new_paragraph: bool = False) -> ModelText | None:
        content = self._whole("thinking", content)
        if not content:
            return None
        content = f"\n\n{content}" if new_paragraph and self.thinking else content
        self.thinking += content
        return ModelText(content, "thinking")


_FIRST_HALF = re.compile("[\ud800-\udbff]")
_ALONE = "\ufffd"


def _finished(reply: ModelResponse) -> bool:
    """Tell whether the provider said that the answer was over, rather than just falling silent."""
    details = reply.provider_details or {}
    return reply.finish_reason != "error" and ("finish_reason" in details or "refusal" in details)


def _raw_finish(reply: ModelResponse) -> str:
    raw = (reply.provider_details or {}).get("finish_reason")
    return raw if isinstance(raw, str) else ""


def _usage(reply: ModelResponse) -> Usage:
    used = reply.usage
    counts = (used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens)
    # Clients do not check what they are sent.
    return Usage(*(as_tokens(count) or 0 for count in counts))
