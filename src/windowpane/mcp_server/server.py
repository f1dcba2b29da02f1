"""The server: its tools, and what it shows as resources: sessions, rules and references."""

import json
from importlib.metadata import version
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.types import (
    CallToolResult,
    GetPromptResult,
    Prompt,
    Resource,
    SubscribeRequestParams,
    TextContent,
    ToolAnnotations,
    UnsubscribeRequestParams,
)
from pydantic import Field

from windowpane.api.agents_pane import set_include
from windowpane.context.items import IncludeMode, as_ref
from windowpane.engine import Engine
from windowpane.errors import SessionNotFoundError
from windowpane.local.pane import LocalPane
from windowpane.mcp_server.answers import Explained, SearchAnswer, explained, found
from windowpane.mcp_server.callers import Known, caller, own_session, told
from windowpane.mcp_server.items import ITEM_URI, item_prompt, item_prompts, item_resources, item_text
from windowpane.mcp_server.sessions import READS, HostSessions, MaybeId, add_session_tools
from windowpane.mcp_server.subscribe import LegacySubscriptions
from windowpane.mcp_server.watch import CONTEXT_URI, SessionWatch, uri_of
from windowpane.tools.context_tools import GET_DESCRIPTION, SET_DESCRIPTION, shown

INSTRUCTIONS = """Windowpane keeps, for every chat session, what it is working on and what each model request contained.
Note what you work on with set_relevant_context; read it with get_relevant_context when you come back. Without a
session_id they mean the session of your working folder; list_sessions, start_session and ask_agent begin others.
search_context says what a message would bring into a request, explain_context why something was or was not in one."""

Item = Annotated[str, Field(description="rule:NAME, reference:NAME or SERVER:TOOL.")]
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


def create_server(engine: Engine, place: str = "") -> MCPServer:
    """Return the server for an open engine. `place` is the working folder of the host that started it, if one did."""
    server, sessions = _Server(engine, InMemorySubscriptionBus()), HostSessions(engine, place)

    @server.tool(description=SET_DESCRIPTION, annotations=_CHANGES)
    async def set_relevant_context(
        set_name: str,
        items: list[str | int],
        mode: Literal["replace", "merge"] = "replace",
        session_id: MaybeId = None,
    ) -> CallToolResult:
        with told():
            own = await sessions.own(session_id, "chat")
            change = await engine.working.set(own, set_name, list(map(str, items)), mode, actor="model")
            sets = await engine.working.get(own)
        return _answer(change.text, {"session_id": own, "context": sets}, is_error=change.refused)

    @server.tool(description=GET_DESCRIPTION, annotations=READS)
    async def get_relevant_context(set_name: str | None = None, session_id: MaybeId = None) -> CallToolResult:
        with told():
            own = await sessions.own(session_id, "read")
            sets = await engine.working.get(own)
        chosen = sets if set_name is None else {set_name: sets.get(set_name, ())}
        return _answer(shown(sets, set_name), {"session_id": own, "context": chosen})

    @server.tool(annotations=READS)
    async def search_context(message: str, session_id: MaybeId = None) -> SearchAnswer:
        """Find what a message would bring into its request, with scores and reasons. Nothing is stored or sent."""
        with told():
            return found((await engine.preview(await sessions.own(session_id, "read"), message)).context)

    @server.tool(annotations=READS)
    async def explain_context(
        turn: int | None = None, item: str | None = None, session_id: MaybeId = None
    ) -> Explained:
        """Explain, from the record, what a turn's request contained and what was left out, each with its reason.

        Without `turn` it is the last one. `item` asks about one item: `rule:name`, `reference:name`, `server:tool`.
        """
        with told():
            state = await engine.sessions.get(await sessions.own(session_id, "read"))
            if not state.turn_count:
                raise ToolError("this session has had no turn yet")
            context = await engine.past.context(state.id, state.last_turn if turn is None else turn)
            return explained(context, item)

    _add_resources(server, engine)
    add_session_tools(server, engine, sessions)
    _add_item_tools(server, engine, sessions)
    return server


def _add_resources(server: MCPServer[Any], engine: Engine) -> None:
    """Add what can be read: the working context of each session, and the items of each agent."""

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

    @server.resource(ITEM_URI, name="item", description="A rule or a reference of an agent.", mime_type="text/markdown")
    async def item(agent: str, kind: str, name: str) -> str:
        return item_text(engine, agent, kind, name)


def _answer(text: str, body: dict[str, Any], *, is_error: bool = False) -> CallToolResult:
    """Return an answer as text for models and as an object for programs."""
    return CallToolResult(content=[TextContent(text=text)], structured_content=body, is_error=is_error)


def _add_item_tools(server: MCPServer[Any], engine: Engine, sessions: HostSessions) -> None:
    """Add the tools that change which items are used."""

    @server.tool(annotations=_CHANGES)
    async def change_context_item(
        item: Item, change: Literal["add", "remove", "never", "readmit"], session_id: MaybeId = None
    ) -> str:
        """Change which items a session uses: add one, remove one, never use one, or let one be selected again."""
        with told():
            own, ref = await sessions.own(session_id, "chat"), as_ref(item)
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
        item: Item, include: IncludeMode, also_in_this_session: bool = False, session_id: MaybeId = None
    ) -> str:
        """Set how the session's agent includes an item: always, manual or agent. New sessions follow it.

        An item that becomes `always` comes into the open session only with `also_in_this_session`.
        """
        with told():
            own, ref = await sessions.own(session_id, "manage"), as_ref(item)
            agents = LocalPane(engine, owner=caller().owner).agents
            agent = (await engine.sessions.get(own)).agent
            file = await set_include(agents, agent, ref, include)
            if also_in_this_session:
                await engine.items.add(own, ref, actor="model")
        return f"changed {file} ({ref}: include: {include})"


class _Server(MCPServer[Any]):
    """A server whose resources are the sessions there are now."""

    def __init__(self, engine: Engine, bus: InMemorySubscriptionBus) -> None:
        legacy = LegacySubscriptions(engine)
        super().__init__(
            "windowpane",
            title="Windowpane",
            instructions=INSTRUCTIONS,
            version=version("windowpane"),
            log_level="WARNING",
            subscriptions=bus,
            lifespan=legacy.running,
            middleware=[Known(), SessionWatch(engine, bus)],
        )
        self._engine = engine
        # The library's own server has no name for it yet.
        asked = self._lowlevel_server
        asked.add_request_handler("resources/subscribe", SubscribeRequestParams, legacy.subscribe)
        asked.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, legacy.unsubscribe)

    async def list_resources(self) -> list[Resource]:
        sessions = (await self._engine.sessions.list(caller().owner)).sessions
        contexts = [
            Resource(
                uri=uri_of(state.id),
                name=f"working context of {state.name or state.id}",
                description=f"Agent {state.agent}, {state.turn_count} turns",
                mime_type="application/json",
            )
            for state in sessions
        ]
        return contexts + item_resources(self._engine)

    async def list_prompts(self) -> list[Prompt]:
        return item_prompts(self._engine)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Any = None
    ) -> GetPromptResult:
        return item_prompt(self._engine, name)
