"""What tool servers ask in the middle of a call: the user (elicitation) or the model (sampling).

A connection serves the calls of many sessions, so a question must find the call that it belongs to. A newer server asks
in the result of the call itself. An older one sends a request of its own: over HTTP in the stream of the call, which
brings the context of its caller along; over pipes with nothing that tells the call, so it is answered only while there
is one call alone. What cannot be told whose it is is declined: a user must never be asked for another one.
"""

import base64
import binascii
import math
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import anyio
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_REQUEST,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitationRequiredErrorData,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ImageContent,
    SamplingMessage,
    TextContent,
)
from pydantic import ValidationError

from windowpane.context.messages import NewFile
from windowpane.tools.asking import Asked, NotSampledError, SampledMessage, Sampling, ToolCaller, current_caller

USER_REJECTED = -1
"""The error code of the protocol's examples for a user who does not let a server ask the model."""

STOPPED = {"stop": "endTurn", "length": "maxTokens"}
NO_CALL = "it cannot be told which call this belongs to, or no user can be asked"

_Answer = TypeVar("_Answer")


class CallUnderWay:
    """A tool call that waits for its result. While a question of it is open its time does not run."""

    def __init__(self, caller: ToolCaller | None, limit: anyio.CancelScope, timeout_s: float) -> None:
        self.caller = caller
        self._limit = limit
        self._timeout_s = timeout_s
        self._open: set[anyio.CancelScope] = set()

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report of the tool: it has its time again."""
        if not self._open:
            self._limit.deadline = anyio.current_time() + self._timeout_s
        if self.caller is not None:
            self.caller.progress(progress, total, message or "")

    async def while_paused(self, ask: Callable[[], Awaitable[_Answer]], otherwise: _Answer) -> _Answer:
        """Return what is answered. `otherwise` is for a call that ends meanwhile."""
        answer = otherwise
        with anyio.CancelScope() as scope:
            self._open.add(scope)
            self._limit.deadline = math.inf
            try:
                answer = await ask()
            finally:
                self._open.discard(scope)
                if not self._open:
                    self._limit.deadline = anyio.current_time() + self._timeout_s
        return answer

    def end(self) -> None:
        """Let go of what is still asked."""
        for scope in tuple(self._open):
            scope.cancel()


_current: ContextVar[CallUnderWay | None] = ContextVar("call_under_way", default=None)


class Questions:
    """The calls of one connection, and what is asked for them."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._calls: set[CallUnderWay] = set()

    @contextmanager
    def of_call(self, limit: anyio.CancelScope, timeout_s: float) -> Generator[CallUnderWay]:
        """Answer what is asked for a call that is made in this block."""
        call = CallUnderWay(current_caller(), limit, timeout_s)
        token = _current.set(call)
        self._calls.add(call)
        try:
            yield call
        finally:
            self._calls.discard(call)
            _current.reset(token)
            call.end()

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """Ask the user."""
        call = self._whose()
        if call is None or call.caller is None:
            return ElicitResult(action="decline")
        return await self._ask_user(call, call.caller, params)

    async def sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        """Ask the model."""
        call = self._whose()
        if call is None or call.caller is None:
            return ErrorData(code=USER_REJECTED, message=f"the model is not asked: {NO_CALL}")
        caller = call.caller

        async def ask() -> CreateMessageResult | ErrorData:
            try:
                sampling = _sampling(self._server, params)
                answer = await caller.sample(sampling)
            except NotSampledError as refused:
                return ErrorData(code=USER_REJECTED, message=str(refused))
            except ValueError as error:
                return ErrorData(code=INVALID_REQUEST, message=str(error))
            return CreateMessageResult(
                role="assistant",
                content=TextContent(text=answer.text),
                model=answer.model,
                stop_reason=STOPPED.get(answer.finish_reason, answer.finish_reason or None),
            )

        gone = ErrorData(code=USER_REJECTED, message="the call has ended")
        return await call.while_paused(ask, gone)

    async def opened(self, call: CallUnderWay, error: MCPError) -> bool:
        """Ask the user to open the addresses that an older server names in its error; tell whether the user did."""
        try:
            wanted = ElicitationRequiredErrorData.model_validate(error.data).elicitations
        except ValidationError:
            return False
        if call.caller is None or not wanted:
            return False
        for params in wanted:
            if (await self._ask_user(call, call.caller, params)).action != "accept":
                return False
        return True

    async def _ask_user(self, call: CallUnderWay, caller: ToolCaller, params: ElicitRequestParams) -> ElicitResult:
        asked = (
            Asked(server=self._server, message=params.message, schema=params.requested_schema)
            if isinstance(params, ElicitRequestFormParams)
            else Asked(server=self._server, message=params.message, url=params.url)
        )

        async def ask() -> ElicitResult:
            answer = await caller.ask(asked)
            content = dict(answer.content) if answer.content is not None and not asked.url else None
            return ElicitResult(action=answer.action, content=content)

        return await call.while_paused(ask, ElicitResult(action="cancel"))

    def _whose(self) -> CallUnderWay | None:
        """Return the call that a question belongs to, if that can be told."""
        call = _current.get()
        if call in self._calls:
            return call
        return next(iter(self._calls)) if len(self._calls) == 1 else None


def _sampling(server: str, params: CreateMessageRequestParams) -> Sampling:
    if params.tools:
        raise ValueError("tools in sampling are not supported")
    return Sampling(
        server=server,
        system=params.system_prompt or "",
        messages=tuple(_message(message) for message in params.messages),
        max_tokens=params.max_tokens,
        temperature=params.temperature,
        stop=tuple(params.stop_sequences or ()),
    )


def _message(message: SamplingMessage) -> SampledMessage:
    texts: list[str] = []
    files: list[NewFile] = []
    for block in message.content_as_list:
        match block:
            case TextContent():
                texts.append(block.text)
            case ImageContent():
                try:
                    files.append(NewFile("image", base64.b64decode(block.data, validate=True)))
                except binascii.Error:
                    raise ValueError("an image is not base64") from None
            case _:
                raise ValueError(f"content of type {block.type!r} is not supported in sampling")
    return SampledMessage(message.role, "\n".join(texts), tuple(files))
