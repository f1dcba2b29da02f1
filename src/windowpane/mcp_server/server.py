"""The server: six tools, each of which takes a session's id, and one resource per session."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.types import CallToolResult, Resource, TextContent, ToolAnnotations
from pydantic import Field

from windowpane.api.agents_pane import set_include
from windowpane.api.refs import as_ref
from windowpane.context.items import IncludeMode
from windowpane.engine import Engine
from windowpane.errors import SessionNotFoundError, WindowpaneError
from windowpane.local.pane import LocalPane
from windowpane.mcp_server.answers import Explained, SearchAnswer, explained, found
from windowpane.mcp_server.callers import Known, caller, own_session
from windowpane.mcp_server.watch import CONTEXT_URI, SessionWatch, uri_of
from windowpane.tools.context_tools import GET_DESCRIPTION, SET_DESCRIPTION, shown

INSTRUCTIONS = """Windowpane keeps, for every chat session, what it is working on and what each model request contained.
Note what you work on with set_relevant_context; read it with get_relevant_context when you come back. search_context
says what a message would bring into a request, explain_context why something was or was not in one."""

Id = Annotated[str, Field(description="The session's id, such as ses_…; resources list the sessions there are.")]
Item = Annotated[str, Field(description="rule:NAME, reference:NAME or SERVER:TOOL.")]
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


def create_server(engine: Engine) -> MCPServer:
    """Return the server for an open engine."""
    server = _Server(engine, InMemorySubscriptionBus())

    @server.tool(description=SET_DESCRIPTION, annotations=_CHANGES)
    async def set_relevant_context(
        session_id: Id, set_name: str, items: list[str], mode: Literal["replace", "merge"] = "replace"
    ) -> CallToolResult:
        with _told():
            own = await own_session(engine, session_id, "chat")
            change = await engine.working.set(own, set_name, items, mode, actor="model")
        return CallToolResult(content=[TextContent(text=change.text)], is_error=change.refused)

    @server.tool(description=GET_DESCRIPTION, annotations=_READS)
    async def get_relevant_context(session_id: Id, set_name: str | None = None) -> str:
        with _told():
            return shown(await engine.working.get(await own_session(engine, session_id, "read")), set_name)

    @server.tool(annotations=_READS)
    async def search_context(session_id: Id, message: str) -> SearchAnswer:
        """Find what a message would bring into its request, with scores and reasons. Nothing is stored or sent."""
        with _told():
            return found((await engine.preview(await own_session(engine, session_id, "read"), message)).context)

    @server.tool(annotations=_READS)
    async def explain_context(session_id: Id, turn: int | None = None, item: str | None = None) -> Explained:
        """Explain, from the record, what a turn's request contained and what was left out, each with its reason.

        Without `turn` it is the last one. `item` asks about one item: `rule:name`, `reference:name`, `server:tool`.
        """
        with _told():
            state = await engine.sessions.get(await own_session(engine, session_id, "read"))
            if not state.turn_count:
                raise ToolError("this session has had no turn yet")
            context = await engine.past.context(state.id, state.turn_count if turn is None else turn)
            return explained(context, item)

    @server.resource(
        CONTEXT_URI,
        name="working context",
        description="What a session is working on: its sets, and the files that its tools were seen to touch.",
        mime_type="application/json",
    )
    async def working_context(session_id: str) -> str:
        try:
            state = await engine.sessions.get(await own_session(engine, session_id, "read"))
        except SessionNotFoundError as error:
            raise ResourceNotFoundError(str(error)) from None
        body = {"session_id": state.id, "name": state.name, "context": state.sets, "observed": state.observed}
        return json.dumps(body, indent=2, ensure_ascii=False)

    _add_item_tools(server, engine)
    return server


def _add_item_tools(server: MCPServer[Any], engine: Engine) -> None:
    """Add the tools that change which items are used."""

    @server.tool(annotations=_CHANGES)
    async def change_context_item(
        session_id: Id, item: Item, change: Literal["add", "remove", "never", "readmit"]
    ) -> str:
        """Change which items a session uses: add one, remove one, never use one, or let one be selected again."""
        with _told():
            own, ref = await own_session(engine, session_id, "chat"), as_ref(item)
            act = {
                "add": engine.items.add,
                "remove": engine.items.remove,
                "never": engine.items.exclude,
                "readmit": engine.items.readmit,
            }[change]
            changed = await act(own, ref, actor="model")
        return f"{ref}: {change}" if changed.recorded else f"{ref}: nothing changed"

    @server.tool(annotations=_CHANGES)
    async def set_include_mode(
        session_id: Id, item: Item, include: IncludeMode, also_in_this_session: bool = False
    ) -> str:
        """Set how the session's agent includes an item: always, manual or agent. New sessions follow it.

        An item that becomes `always` comes into the open session only with `also_in_this_session`.
        """
        with _told():
            own, ref = await own_session(engine, session_id, "manage"), as_ref(item)
            agents = LocalPane(engine, owner=caller().owner).agents
            agent = (await engine.sessions.get(own)).agent
            file = await set_include(agents, agent, ref, include)
            if also_in_this_session:
                await engine.items.add(own, ref, actor="model")
        return f"changed {file} ({ref}: include: {include})"


class _Server(MCPServer[Any]):
    """A server whose resources are the sessions there are now."""

    def __init__(self, engine: Engine, bus: InMemorySubscriptionBus) -> None:
        super().__init__(
            "windowpane",
            title="Windowpane",
            instructions=INSTRUCTIONS,
            version=version("windowpane"),
            log_level="WARNING",
            subscriptions=bus,
            middleware=[Known(), SessionWatch(engine, bus)],
        )
        self._engine = engine

    async def list_resources(self) -> list[Resource]:
        sessions = (await self._engine.sessions.list(caller().owner)).sessions
        return [
            Resource(
                uri=uri_of(state.id),
                name=f"working context of {state.name or state.id}",
                description=f"Agent {state.agent}, {state.turn_count} turns",
                mime_type="application/json",
            )
            for state in sessions
        ]


@contextmanager
def _told() -> Generator[None]:
    """Tell the caller what went wrong in our own words."""
    try:
        yield
    except WindowpaneError as error:
        raise ToolError(str(error)) from None
