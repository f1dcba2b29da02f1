"""Build the request for a message from everything as it is now: agent, tools, session, selection, memory, the web.

`build_request()` is the one way from a message to a request. A turn stores what it returns and sends it; a preview
only shows it. No model is opened for it: the size of the window comes from a list.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import anyio.to_thread

from windowpane import telemetry
from windowpane.agents.base import Agent
from windowpane.context.calls import SmallerWindow
from windowpane.context.events import Event, ItemAdded, Recorded, RequestBuilt, ServerArrived, SessionItem
from windowpane.context.fold import fold
from windowpane.context.ids import BlobHash, new_request_id
from windowpane.context.items import Item, ItemRef, Tool
from windowpane.context.messages import Message
from windowpane.context.request import ReplyOptions, Request
from windowpane.context.session import SessionState, open_turn
from windowpane.fetch.base import SearchEngine
from windowpane.memory.memory import Memory
from windowpane.memory.recent import recent_messages
from windowpane.models.base import Models
from windowpane.request.assemble import Ingredients, assemble
from windowpane.request.catalog import Catalogs, KeptCatalog
from windowpane.request.file_marks import file_states
from windowpane.request.gather import Gathered, always_tools, gather, item_of, with_finders
from windowpane.request.mentions import mentions
from windowpane.request.prompt.sections import build_prompt
from windowpane.request.record import to_blobs
from windowpane.request.research import Research
from windowpane.request.resume import resume_text
from windowpane.request.selector import Selection, Selector
from windowpane.request.settings import call_settings, no_working_context, search_settings, window_of
from windowpane.text.blocks import Block, fetched_blocks, recall_block, resume_block, summary_block
from windowpane.tools.base import ServerStatus

LOWEST_FACTOR, HIGHEST_FACTOR = 0.5, 4.0
"""A token factor outside these says more about the report than about the model."""

BUILT_AGAIN = "the model refused the request as too long; it was built again for a smaller window"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestServices:
    """What every request is built with. Of the models only the sizes of their windows are asked for."""

    models: Models
    selector: Selector
    memory: Memory
    catalogs: Catalogs
    search_engine: SearchEngine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltRequest:
    """A request, and what it adds to its session: mentioned items, new tool servers, results of a web search."""

    request: Request
    added: tuple[Event, ...]
    items: dict[ItemRef, Item]
    catalog: KeptCatalog
    smaller: SmallerWindow | None = None

    def to_append(self, session: SessionState) -> tuple[tuple[Event, ...], dict[BlobHash, str]]:
        """Return the events and the blobs that keep the request in the log of its session."""
        name, blobs = to_blobs(self.request, self.items)
        if session.catalog != self.catalog.name:
            blobs |= self.catalog.blobs
        turn = self.request.context.turn
        built = RequestBuilt(turn=turn, request=name, catalog=self.catalog.name, smaller=self.smaller)
        return (*self.added, built), blobs


T = TypeVar("T")

AT_ONCE = 300
"""More items than this are gathered and put together in a thread, so that other requests are not held up."""


async def build_request(
    services: RequestServices,
    agent: Agent,
    servers: tuple[ServerStatus, ...],
    session: SessionState,
    found: Research,
    *,
    brought: Sequence[Tool] = (),
    reply_options: ReplyOptions | None = None,
    finders: bool = True,
    smaller: SmallerWindow | None = None,
) -> BuiltRequest:
    """Return the request for the message of the session's open turn. Nothing is stored, and the web is not searched.

    `found` is what a search has found, `brought` are tools that the client runs, `reply_options` what it asks of the
    answer. Without `finders` the model cannot ask for more; `smaller`: it refused a longer request.

    Raises:
        NoTurnRunningError: the session has no open turn.
        MissingCorePromptError: the agent cannot start.
        ContextTooLargeError: what must be sent does not fit the model's window.
    """
    turn, now = open_turn(session), datetime.now(UTC)
    settings = replace(call_settings(agent, session), reply_options=reply_options or ReplyOptions())
    added = (*_mentioned(agent, session, turn.message), *_arrivals(session, servers), *found.added)
    session = _with_added(session, added, now)
    window_tokens, window_source = _window(services, agent, settings.model, smaller or session.smaller_window)
    no_notes = no_working_context(agent, session, window_tokens)
    items_count = sum(map(len, (agent.rules, agent.references, session.context_items, brought)))
    gathered = await _compute(items_count, gather, agent, servers, session, brought, not no_notes)
    recent = [entry for entry in session.recent if entry.turn is None or entry.turn < turn.turn]
    selection = await _selected(services.selector, agent, session, recent, gathered)
    gathered = with_finders(gathered, selection.left_out) if finders and agent.settings.finders else gathered
    history = recent_messages(recent, session.summary)
    recollection = await services.memory.recall(session, turn.message, history)
    catalog = await _compute(items_count, services.catalogs.of, agent, servers)
    ingredients = Ingredients(
        request_id=new_request_id(),
        turn=turn.turn,
        now=now,
        agent=agent,
        session=session,
        message=turn.message,
        settings=settings,
        window_tokens=window_tokens,
        window_source=window_source,
        sections=build_prompt(agent, session.settings, now=now, working_context=not no_notes, web=found.possible),
        no_working_context=no_notes,
        gathered=gathered,
        selection=selection,
        history=history,
        blocks=(*await _blocks(session), *map(recall_block, recollection.recalled)),
        notes=(*found.notes, *_unknown(agent, turn.message), *recollection.degraded, *_again(smaller)),
        catalog=catalog.name,
        message_count=session.message_count - 1,
        token_factor=smaller.factor if smaller else learned_factor(session, settings.model),
    )
    request, items = await _compute(items_count, assemble, ingredients), _items(gathered, selection)
    return BuiltRequest(request=request, added=added, items=items, catalog=catalog, smaller=smaller)


def _items(gathered: Gathered, selection: Selection) -> dict[ItemRef, Item]:
    held = {held.ref: held.item for held in gathered.found if held.item is not None}
    return held | {chosen.item.ref: chosen.item for chosen in selection.chosen}


def _window(services: RequestServices, agent: Agent, model: str, refused: SmallerWindow | None) -> tuple[int, str]:
    """Return the size of the window in tokens, and who says so."""
    known = refused if refused is not None and refused.model == model else None
    return window_of(agent, services.models.window_tokens(model), known)


def learned_factor(session: SessionState, model: str) -> float:
    """Return how many tokens of a model one of our count is, as far as the session's calls have shown."""
    refused, learned = session.smaller_window, session.token_factor
    if refused is not None and refused.model == model and not refused.exact:
        return refused.factor
    known = learned.factor if learned is not None and learned.model == model else 1.0
    return round(min(max(known, LOWEST_FACTOR), HIGHEST_FACTOR), 4)


async def _compute(items_count: int, work: Callable[..., T], *given: Any) -> T:
    """Do some work: in a thread when there are many items, else here, which is sooner done."""
    return await anyio.to_thread.run_sync(work, *given) if items_count > AT_ONCE else work(*given)


def _mentioned(agent: Agent, session: SessionState, message: str) -> list[Event]:
    """Return what a message's mentions add to its session."""
    found = (ref for ref in mentions(message) if not session.holds(ref) and item_of(agent, (), ref) is not None)
    return [ItemAdded(item=SessionItem(ref, "manual"), actor="user") for ref in found]


def _again(smaller: SmallerWindow | None) -> tuple[str, ...]:
    return (BUILT_AGAIN,) if smaller else ()


def _unknown(agent: Agent, message: str) -> list[str]:
    """Return notes on what a message mentions and the agent does not have."""
    missing = (ref for ref in mentions(message) if item_of(agent, (), ref) is None)
    return [f"@{ref} was mentioned, but the agent has no such {ref.type}" for ref in missing]


def _arrivals(session: SessionState, servers: Iterable[ServerStatus]) -> list[Event]:
    """Return what tool servers that became ready since the session began add to it."""
    return [
        ServerArrived(server=server.name, items=always_tools(server))
        for server in servers
        if server.state == "ready" and server.name not in session.servers
    ]


def _with_added(session: SessionState, added: Sequence[Event], now: datetime) -> SessionState:
    """Return the session as it will be when these events are in its log."""
    return fold(session.id, (Recorded(session.seq + index, now, each) for index, each in enumerate(added, 1)), session)


async def _selected(
    selector: Selector, agent: Agent, session: SessionState, recent: Sequence[Message], gathered: Gathered
) -> Selection:
    with telemetry.selection(len(gathered.candidates)) as measured:
        selection = await selector.select(
            open_turn(session).message, recent, gathered.candidates, search_settings(agent, session)
        )
        chosen, degraded = len(selection.chosen), bool(selection.degraded)
        measured.note({"windowpane.selection.chosen": chosen, "windowpane.selection.degraded": degraded})
    return selection


async def _blocks(session: SessionState) -> tuple[Block, ...]:
    summary = (summary_block(session.summary),) if session.summary else ()
    return (*summary, *await _resume_blocks(session), *fetched_blocks(session.fetched))


async def _resume_blocks(session: SessionState) -> tuple[Block, ...]:
    if not session.resume_pending:
        return ()
    files = await file_states(session.sets.get("files", ()), session.marks)
    text = resume_text(session.sets, session.settings.environment_hint, files)
    return (resume_block(text),) if text else ()
