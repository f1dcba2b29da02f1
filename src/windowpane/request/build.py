"""Build the request for a message from everything as it is now: agent, tools, session, selection, memory, the web.

`build_request()` is the one way from a message to a request. A turn stores what it returns and sends it; a preview
only shows it. No model is opened for it: the size of the window comes from a list. A model whose own tokenizer is at
hand counts what was put together, and it is put together again by that count.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import anyio.to_thread

from windowpane import telemetry
from windowpane.agents.base import Agent
from windowpane.context.calls import SmallerWindow
from windowpane.context.carried import CarryChange
from windowpane.context.events import Event, ItemAdded, Recorded, RequestBuilt, ServerArrived, SessionItem
from windowpane.context.fold import fold
from windowpane.context.ids import BlobHash, new_request_id
from windowpane.context.items import Item, ItemRef, Tool
from windowpane.context.messages import Message
from windowpane.context.request import CallSettings, ReplyOptions, Request
from windowpane.context.session import OpenTurn, SessionState, named_links, open_turn
from windowpane.fetch.base import SearchEngine
from windowpane.memory.memory import Memory
from windowpane.memory.recent import recent_messages
from windowpane.memory.window import learned_factor, refused_window, report_notes, tools_shown, window_of
from windowpane.models.base import CacheRules, Models
from windowpane.request.assemble import Ingredients, assemble
from windowpane.request.catalog import Catalogs, KeptCatalog
from windowpane.request.file_marks import file_states
from windowpane.request.gather import Gathered, always_tools, gather, item_of, with_finders
from windowpane.request.mentions import mentions
from windowpane.request.prompt.sections import build_prompt
from windowpane.request.record import to_blobs
from windowpane.request.research import Research
from windowpane.request.resume import resume_text
from windowpane.request.selector import Selection, Selects
from windowpane.request.settings import cache_rules, call_settings, file_inputs, no_working_context, search_settings
from windowpane.request.stable.carry import gone_items
from windowpane.request.stable.go_on import Caching, GoingOn, caching_of
from windowpane.text.attached import attached_blocks
from windowpane.text.blocks import Block, fetched_blocks, recall_block, resume_block, summary_block
from windowpane.tools.base import ServerStatus

BUILT_AGAIN = "the model refused the request as too long; it was built again for a smaller window"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestServices:
    """What every request is built with. No model is opened: it is asked for sizes, of its window and of its tokens."""

    models: Models
    selector: Selects
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
    carry: CarryChange | None = None

    def to_append(self, session: SessionState) -> tuple[tuple[Event, ...], dict[BlobHash, str]]:
        """Return the events and the blobs that keep the request in the log of its session."""
        # What the catalog has is there since the first turn with it, or comes with this one.
        name, blobs = to_blobs(self.request, self.items, self.catalog.blobs)
        if session.catalog != self.catalog.name:
            blobs |= self.catalog.blobs
        turn = self.request.context.turn
        built = RequestBuilt(turn=turn, request=name, catalog=self.catalog.name, smaller=self.smaller, carry=self.carry)
        return (*self.added, built), blobs


T = TypeVar("T")

NO_TEXTS: Mapping[BlobHash, str] = MappingProxyType({})

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
    file_texts: Mapping[BlobHash, str] = NO_TEXTS,
) -> BuiltRequest:
    """Return the request for the message of the session's open turn. Nothing is stored, and the web is not searched.

    `found` is what a search has found, `brought` are the client's tools. Without `finders` all tools are one list.
    `smaller`: a longer request was refused. `file_texts` are the words of the session's files.

    Raises:
        MissingCorePromptError, UnreadableAgentError: the agent cannot start.
        ContextTooLargeError: what must be sent does not fit the model's window.
    """
    turn, now, settings = open_turn(session), datetime.now(UTC), _settings(services, agent, session, reply_options)
    session, added = _with_added(agent, servers, session, found.added, now)
    window = _window(services, agent, settings.model, smaller or session.smaller_window)
    no_notes = no_working_context(agent, session, window[0])
    items_count = sum(map(len, (agent.rules, agent.references, session.context_items, brought)))
    catalog = await _compute(items_count, services.catalogs.of, agent, servers)
    gathered = gather(agent, servers, session, brought, not no_notes, catalog.stock)
    recent = [entry for entry in session.recent if entry.turn is None or entry.turn < turn.turn]
    caching = caching_of(agent, session, _rules(services, agent, settings.model), gathered, in_stream=finders)
    choose = partial(_selected, services.selector, session, recent, gathered.candidates)
    selection = await choose(caching.on_entry(search_settings(agent, session)))
    gathered = _with_finders(gathered, selection, caching, session) if finders and agent.settings.finders else gathered
    history = recent_messages(recent, session.summary)
    recollection = await services.memory.recall(session, turn.message, history)
    ingredients = Ingredients(
        request_id=new_request_id(),
        turn=turn.turn,
        now=now,
        agent=agent,
        session=session,
        message=turn.message,
        file_texts=file_texts,
        settings=caching.laid_over(settings, session.id),
        window_tokens=window[0],
        window_source=window[1],
        sections=build_prompt(agent, session.settings, now=now, working_context=not no_notes, web=found.possible),
        no_working_context=no_notes,
        gathered=gathered,
        selection=selection,
        history=history,
        blocks=(*await _blocks(session, settings, file_texts), *map(recall_block, recollection.recalled)),
        notes=(*found.notes, *_unknown(agent, turn), *recollection.degraded, *_told(settings, session, smaller)),
        catalog=catalog.name,
        message_count=session.message_count - 1,
        token_factor=smaller.factor if smaller else learned_factor(session, settings.model),
    )
    request, items, carry = await _by_own_count(services, smaller, ingredients, caching, servers, items_count, choose)
    return BuiltRequest(request=request, added=added, items=items, catalog=catalog, smaller=smaller, carry=carry)


PutTogether = tuple[Request, dict[ItemRef, Item], CarryChange | None]
"""A request, the items that its record names, and what it leaves standing for the next one."""


async def _by_own_count(
    services: RequestServices,
    smaller: SmallerWindow | None,
    given: Ingredients,
    caching: Caching,
    servers: tuple[ServerStatus, ...],
    items_count: int,
    choose: Callable[[Mapping[str, Any]], Awaitable[Selection]],
) -> PutTogether:
    """Return the request, put together again by the model's own count where its tokenizer is at hand."""
    made = await _put_together(given, caching, servers, items_count, choose)
    own_tokens = None if smaller else await services.models.own_tokens(given.settings.model, made[0].messages)
    if own_tokens is None:
        return made
    factor = round(own_tokens / made[0].context.budget.used_tokens, 4)
    return await _put_together(replace(given, token_factor=factor), caching, servers, items_count, choose)


def _with_finders(gathered: Gathered, selection: Selection, caching: Caching, session: SessionState) -> Gathered:
    return with_finders(gathered, selection.left_out, stable=caching.stable, links=bool(named_links(session)))


async def _put_together(
    given: Ingredients,
    caching: Caching,
    servers: tuple[ServerStatus, ...],
    items_count: int,
    choose: Callable[[Mapping[str, Any]], Awaitable[Selection]],
) -> PutTogether:
    if not caching.stable:
        return await _compute(items_count, assemble, given), _items(given.gathered, given.selection), None
    gone = gone_items(given.agent, servers, given.session, given.gathered.candidates)
    going_on = GoingOn(given, caching.rules, gone)
    carried = await _compute(items_count, going_on.request)
    if carried.breaks and caching.additions is None:
        # The list of tools is written again anyway: take more of them along, so that it stays as it is for longer.
        selection = await choose(caching.at_a_break(search_settings(given.agent, given.session)))
        going_on = replace(going_on, ingredients=replace(given, selection=selection))
        carried = await _compute(items_count, going_on.request)
    items = _items(given.gathered, going_on.ingredients.selection) | going_on.items
    return carried.request, items, carried.change


def _items(gathered: Gathered, selection: Selection) -> dict[ItemRef, Item]:
    held = {held.ref: held.item for held in gathered.found if held.item is not None}
    return held | {chosen.item.ref: chosen.item for chosen in selection.chosen}


def _rules(services: RequestServices, agent: Agent, model: str) -> CacheRules | None:
    return cache_rules(services.models, agent, model)


def _window(services: RequestServices, agent: Agent, model: str, refused: SmallerWindow | None) -> tuple[int, str]:
    """Return the size of the window in tokens, and who says so."""
    return window_of(agent, services.models.window_tokens(model), refused_window(refused, model))


async def _compute(items_count: int, work: Callable[..., T], *given: Any) -> T:
    """Do some work: in a thread when there are many items, else here, which is sooner done."""
    return await anyio.to_thread.run_sync(work, *given) if items_count > AT_ONCE else work(*given)


def _mentioned(agent: Agent, session: SessionState, message: str) -> list[Event]:
    """Return what a message's mentions add to its session."""
    found = (ref for ref in mentions(message) if not session.holds(ref) and item_of(agent, (), ref) is not None)
    return [ItemAdded(item=SessionItem(ref, "manual"), actor="user") for ref in found]


def _told(settings: CallSettings, session: SessionState, smaller: SmallerWindow | None) -> tuple[str, ...]:
    """Return notes on what the model refused or reported."""
    return (*((BUILT_AGAIN,) if smaller else ()), *report_notes(session, settings.model))


def _unknown(agent: Agent, turn: OpenTurn) -> list[str]:
    """Return notes on what a turn's message mentions and the agent does not have."""
    missing = (ref for ref in mentions(turn.message) if item_of(agent, (), ref) is None)
    return [f"@{ref} was mentioned, but the agent has no such {ref.type}" for ref in missing]


def _arrivals(session: SessionState, servers: Iterable[ServerStatus]) -> list[Event]:
    """Return what tool servers add to a session that became ready since it began, or have unlocked more tools."""
    ready = [server for server in servers if server.state == "ready"]
    known = {server.name: _unlocked(session, server) for server in ready if server.name in session.servers}
    return [
        ServerArrived(server=server.name, items=known.get(server.name, always_tools(server)))
        for server in ready
        if known.get(server.name) != ()
    ]


def _unlocked(session: SessionState, server: ServerStatus) -> tuple[SessionItem, ...]:
    tools = (item for item in always_tools(server) if item.ref.name in server.unlocked)
    return tuple(item for item in tools if not session.holds(item.ref) and item.ref not in session.removed)


def _with_added(
    agent: Agent, servers: Iterable[ServerStatus], session: SessionState, found: Iterable[Event], now: datetime
) -> tuple[SessionState, tuple[Event, ...]]:
    """Return the session as it will be when what the message adds is in its log, and those events."""
    added = (*_mentioned(agent, session, open_turn(session).message), *_arrivals(session, servers), *found)
    recorded = (Recorded(session.seq + index, now, each) for index, each in enumerate(added, 1))
    return fold(session.id, recorded, session), added


async def _selected(
    selector: Selects,
    session: SessionState,
    recent: Sequence[Message],
    candidates: Sequence[Item],
    settings: Mapping[str, Any],
) -> Selection:
    with telemetry.selection(len(candidates)) as measured:
        selection = await selector.select(open_turn(session).message, recent, candidates, settings)
        chosen, degraded = len(selection.chosen), bool(selection.degraded)
        measured.note({"windowpane.selection.chosen": chosen, "windowpane.selection.degraded": degraded})
    return selection


def _settings(
    services: RequestServices, agent: Agent, session: SessionState, reply_options: ReplyOptions | None
) -> CallSettings:
    settings = call_settings(agent, session)
    inputs = file_inputs(services.models, agent, settings.model)
    shown = tools_shown(session, settings.model)
    return replace(settings, reply_options=reply_options or ReplyOptions(), inputs=inputs, tools_shown=shown)


async def _blocks(
    session: SessionState, settings: CallSettings, file_texts: Mapping[BlobHash, str]
) -> tuple[Block, ...]:
    summary = (summary_block(session.summary),) if session.summary else ()
    attached = attached_blocks(open_turn(session).attachments, settings, file_texts)
    return (*summary, *await _resume_blocks(session), *fetched_blocks(session.fetched), *attached)


async def _resume_blocks(session: SessionState) -> tuple[Block, ...]:
    if not session.resume_pending:
        return ()
    files = await file_states(session.sets.get("files", ()), session.marks)
    text = resume_text(session.sets, session.settings.environment_hint, files, session.settings.current_intent)
    return (resume_block(text),) if text else ()
