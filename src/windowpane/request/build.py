"""Build a turn's request from everything as it is now: agent, tools, session, selection."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from windowpane import telemetry
from windowpane.agents.base import Agent
from windowpane.context.events import Event, ItemAdded, ServerArrived, SessionItem
from windowpane.context.ids import BlobHash, new_request_id
from windowpane.context.items import Item, ItemRef, Tool
from windowpane.context.request import ReplyOptions, Request
from windowpane.context.session import SessionState
from windowpane.memory.memory import Memory
from windowpane.memory.recent import window
from windowpane.models.base import Models
from windowpane.request.assemble import Ingredients, assemble
from windowpane.request.file_marks import file_states
from windowpane.request.gather import always_tools, gather, item_of
from windowpane.request.mentions import mentions
from windowpane.request.prompt import build_prompt
from windowpane.request.resume import resume_text
from windowpane.request.selector import Selector
from windowpane.request.settings import call_settings, search_settings, window_of
from windowpane.text.blocks import Block, fetched_blocks, recall_block, resume_block, summary_block
from windowpane.tools.base import ServerStatus


@dataclass(frozen=True, slots=True)
class Built:
    """A request, and the items that it was built from, for its record."""

    request: Request
    items: dict[ItemRef, Item]


async def build(
    *,
    models: Models,
    selector: Selector,
    memory: Memory,
    agent: Agent,
    servers: tuple[ServerStatus, ...],
    session: SessionState,
    turn: int,
    message: str,
    notes: tuple[str, ...] = (),
    brought: Sequence[Tool] = (),
    reply_options: ReplyOptions | None = None,
    catalog: BlobHash | None = None,
) -> Built:
    """Return the request for a message. `notes` say what was amiss before and go into its record.

    `brought` are tools that the client runs itself, `reply_options` what it asks of the answer. `catalog` names what
    the agent has, for the record.

    Raises:
        MissingCorePromptError: the agent cannot start.
        UnknownModelError: the session's model cannot be opened.
        ContextTooLargeError: what must be sent does not fit the model's window.
    """
    settings = replace(call_settings(agent, session), reply_options=reply_options or ReplyOptions())
    window_tokens, window_source = window_of(agent, models.open(settings.model).window_tokens)
    gathered = gather(agent, servers, session, brought)
    recent = [entry for entry in session.recent if entry.turn is None or entry.turn < turn]
    with telemetry.selection(len(gathered.candidates)) as measured:
        selection = await selector.select(message, recent, gathered.candidates, search_settings(agent, session))
        chosen, degraded = len(selection.chosen), bool(selection.degraded)
        measured.note({"windowpane.selection.chosen": chosen, "windowpane.selection.degraded": degraded})
    history = window(recent, session.summary)
    recollection = await memory.recall(session, message, history)
    recalled = tuple(recall_block(entry, rank) for rank, entry in enumerate(recollection.recalled))
    now = datetime.now(UTC)
    request = assemble(
        Ingredients(
            request_id=new_request_id(),
            turn=turn,
            now=now,
            agent=agent,
            session=session,
            message=message,
            settings=settings,
            window_tokens=window_tokens,
            window_source=window_source,
            sections=build_prompt(agent, session.settings, now=now),
            gathered=gathered,
            selection=selection,
            history=history,
            blocks=(*await _blocks(session), *recalled),
            notes=notes + recollection.degraded,
            catalog=catalog,
            message_count=session.message_count - (session.open_turn is not None and session.open_turn.turn == turn),
        )
    )
    items = {found.ref: found.item for found in gathered.found if found.item is not None}
    return Built(request, items | {chosen.item.ref: chosen.item for chosen in selection.chosen})


async def _blocks(session: SessionState) -> tuple[Block, ...]:
    summary = (summary_block(session.summary),) if session.summary else ()
    return (*summary, *await _resume_blocks(session), *fetched_blocks(session.fetched))


async def _resume_blocks(session: SessionState) -> tuple[Block, ...]:
    if not session.resume_pending:
        return ()
    files = await file_states(session.sets.get("files", ()), session.marks)
    text = resume_text(session.sets, session.settings.environment_hint, files)
    return (resume_block(text),) if text else ()


def mentioned(agent: Agent, session: SessionState, message: str) -> list[Event]:
    """Return what a message's mentions add to its session."""
    found = (ref for ref in mentions(message) if not session.holds(ref) and item_of(agent, (), ref) is not None)
    return [ItemAdded(item=SessionItem(ref, "manual"), actor="user") for ref in found]


def arrivals(session: SessionState, servers: Iterable[ServerStatus]) -> list[Event]:
    """Return what tool servers that became ready since the session began add to it."""
    return [
        ServerArrived(server=server.name, items=always_tools(server))
        for server in servers
        if server.state == "ready" and server.name not in session.servers
    ]
