"""One live connection to a tool server: list its tools, call one, and notice when things change.

A server tells that its tools changed in one of two ways, by protocol: an older one sends a notification by itself, a
newer one sends it to those who subscribed. Either way the list is read again. Whether an HTTP server is still there
shows only when it is asked, so it is asked now and then, and at once when a call or a subscription broke.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import anyio
from mcp import Client
from mcp.client import InputRequiredRoundsExceededError
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    CallToolResult,
    Implementation,
    ListRootsResult,
    ReadResourceResult,
    Root,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import FileUrl, ValidationError

from windowpane.errors import ToolError, ToolServerDownError, ToolTimeoutError
from windowpane.text.redact import redacted
from windowpane.tools.base import ServerConfig
from windowpane.tools.listing import ListedTool, Listing, joined
from windowpane.tools.questions import CallUnderWay, Questions
from windowpane.tools.transports import NOT_SENT, Receipt, TransportState, open_transport

MAX_PAGES = 1000
MAX_ROUNDS = 100
"""How often one call may come back with questions. What its caller allows of each kind is less."""

_LIST_S = 60.0
_ACKNOWLEDGE_S = 10.0
_SUBSCRIBE_AGAIN_S = 1.0
_CHECK_S = 10.0
_Answer = TypeVar("_Answer")
_CLIENT = Implementation(name="windowpane", version=version("windowpane"))


class NotDeliveredError(ToolError):
    """A call did not reach the server, so it can be made again."""


class McpConnection:
    """A server that can be asked. Any task may use it while the task that opened it stays in `stay()`."""

    def __init__(self, config: ServerConfig, watch: TransportState, roots: Sequence[Path] = ()) -> None:
        """Take how the server is reached. It is told `roots`, the folders that it may work in, when it asks."""
        self._server = config.name
        self._secrets = config.secrets
        self._checked = config.url is not None
        self._watch = watch
        self._stale = anyio.Event()
        self._doubt = anyio.Event()
        self._listed = Listing()
        self._questions = Questions(config.name)
        self._roots = tuple(Root(uri=FileUrl(root.resolve().as_uri()), name=root.name or str(root)) for root in roots)
        self.client = Client(
            open_transport(config, watch),
            cache=None,
            client_info=_CLIENT,
            message_handler=self._notice,
            list_roots_callback=self._list_roots if roots else None,
            elicitation_callback=self._questions.elicit,
            sampling_callback=self._questions.sample,
            input_required_max_rounds=MAX_ROUNDS,
        )

    @property
    def version(self) -> str:
        """Return the server's name and version as it reports them; empty when it does not."""
        info = self.client.server_info
        return f"{info.name} {info.version}".strip() if info is not None else ""

    async def listing(self) -> Listing:
        """Return all tools, from all pages."""
        tools: list[ListedTool] = []
        self._watch.list_notes.clear()
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            try:
                page = await self.client.list_tools(cursor=cursor)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND and cursor is None:
                    return Listing()
                raise
            tools += [ListedTool(tool.name, tool.description or "", tool.input_schema) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in seen or len(seen) == MAX_PAGES:
                self._watch.list_notes.append(f"its list of tools does not end; {len(tools)} were read")
                break
            seen.add(cursor)
        self._listed = joined(tools, self._watch.list_notes)
        return self._listed

    async def stay(self, publish: Callable[[Listing], None], check_every_s: float) -> None:
        """Stay until the connection ends, and publish the tools whenever they change."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._list_again, publish)
            tasks.start_soon(self._subscribe)
            if self._checked:
                tasks.start_soon(self._check, check_every_s)
            await self._watch.ended.wait()
            tasks.cancel_scope.cancel()

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float) -> CallToolResult:
        """Call a tool once. One that reports progress has `timeout_s` again each time; while it asks, no time runs.

        Raises:
            NotDeliveredError: the call cannot have run.
            ToolServerDownError: the connection broke during the call, which may or may not have run.
            ToolTimeoutError: no answer in time; the server was told to stop.
            ToolError: the server answered with something that is not a result.
        """
        return await self._answer(
            f"{self._server}:{tool}", timeout_s, lambda call: self._called(call, tool, dict(arguments))
        )

    async def read(self, uri: str, timeout_s: float) -> ReadResourceResult:
        """Read a resource once.

        Raises:
            NotDeliveredError: it was not asked for.
            ToolServerDownError: the connection broke meanwhile.
            ToolTimeoutError: no answer in time.
            ToolError: there is no such resource, or the server answered with something that is not one.
        """
        return await self._answer(f"{self._server}:{uri}", timeout_s, lambda _: self.client.read_resource(uri))

    async def _answer(self, name: str, timeout_s: float, ask: Callable[[CallUnderWay], Awaitable[_Answer]]) -> _Answer:
        receipt = Receipt()
        try:
            with (
                receipt.kept(),
                anyio.fail_after(timeout_s) as limit,
                self._questions.of_call(limit, timeout_s) as call,
            ):
                return await ask(call)
        except TimeoutError:
            raise ToolTimeoutError(name, timeout_s) from None
        except MCPError as error:
            if error.code == NOT_SENT or (error.code == CONNECTION_CLOSED and not receipt.handed_over):
                self._watch.end(error.message)
                raise NotDeliveredError(error.message) from None
            if error.code == CONNECTION_CLOSED:
                self._doubt.set()
                raise ToolServerDownError(
                    self._server, "the connection broke during the call, which may or may not have run"
                ) from None
            raise ToolError(f"{name}: {redacted(error.message, self._secrets)}") from None
        except InputRequiredRoundsExceededError:
            raise ToolError(f"{name} asked again and again: more than {MAX_ROUNDS} times") from None
        except (ValidationError, RuntimeError) as error:
            said = redacted(str(error), self._secrets)
            raise ToolError(f"{name} answered with something that is not a result: {said}") from error

    async def _called(self, call: CallUnderWay, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool; once more when it wanted the user to open an address first, and the user did."""
        try:
            return await self.client.call_tool(tool, arguments, progress_callback=call.progress)
        except MCPError as error:
            if error.code != URL_ELICITATION_REQUIRED or not await self._questions.opened(call, error):
                raise
        return await self.client.call_tool(tool, arguments, progress_callback=call.progress)

    async def _list_roots(self, context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=list(self._roots))

    async def _notice(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._stale.set()

    async def _list_again(self, publish: Callable[[Listing], None]) -> None:
        while True:
            await self._stale.wait()
            self._stale = anyio.Event()
            try:
                with anyio.fail_after(_LIST_S):
                    listing = await self.listing()
            except (MCPError, ValidationError, TimeoutError) as error:
                # The tools stay as last known; if the connection is the reason, the check finds out.
                listing = Listing(self._listed.tools, (f"its tools could not be listed again: {error}",))
                self._doubt.set()
            publish(listing)

    async def _subscribe(self) -> None:
        """Hold a subscription to changes of the tools, where the protocol has them and the server offers them."""
        offered = self.client.server_capabilities.tools
        if self.client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (offered and offered.list_changed):
            return
        while True:
            try:
                with anyio.CancelScope(deadline=anyio.current_time() + _ACKNOWLEDGE_S) as scope:
                    async with self.client.listen(tools_list_changed=True) as events:
                        scope.deadline = float("inf")
                        # Changes before the subscription began were not announced.
                        self._stale.set()
                        async for _ in events:
                            self._stale.set()
            except MCPError as error:
                if error.code not in (CONNECTION_CLOSED, NOT_SENT):
                    return
                self._doubt.set()
            except SubscriptionLost:
                self._doubt.set()
            await anyio.sleep(_SUBSCRIBE_AGAIN_S)

    async def _check(self, every_s: float) -> None:
        while True:
            with anyio.move_on_after(every_s):
                await self._doubt.wait()
            self._doubt = anyio.Event()
            try:
                with anyio.move_on_after(_CHECK_S):
                    await self._ask()
            except MCPError as error:
                # Any other answer, also a refusal, comes from a server that is there.
                if error.code in (CONNECTION_CLOSED, NOT_SENT):
                    self._watch.end(error.message)

    async def _ask(self) -> None:
        if self.client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await self.client.session.send_discover(self.client.protocol_version)
        else:
            await self.client.session.send_ping()
