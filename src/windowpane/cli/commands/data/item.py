"""`windowpane item`: which items a session uses, and how an item is included."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import all_items, find_item, find_session, ref_of
from windowpane.cli.options import AgentArgument, AlsoIn, SessionArgument, new_app
from windowpane.cli.terminal import Screen
from windowpane.context.items import IncludeMode

if TYPE_CHECKING:
    from windowpane.api.pane import Pane
    from windowpane.context.items import ItemRef

app = new_app(
    no_args_is_help=True,
    help="""Add items to a session, keep them out of it, and set how they are included.

    \b
    Examples:
      windowpane item add last reference:billing
      windowpane item never last weather:get_forecast
      windowpane item mode guide rule:tone always --also-in last
    """,
)
ItemArgument = Annotated[
    str, typer.Argument(metavar="ITEM", help="rule:NAME, reference:NAME or SERVER:TOOL; the name alone if one has it.")
]


@app.command("add")
@on_pane
async def add_item(pane: "Pane", session: SessionArgument, item: ItemArgument) -> None:
    """Add an item to a session by hand.

    \b
    Example:
      windowpane item add last reference:billing
    """
    found = await find_session(pane, session)
    ref = await _found(pane, found.agent, item)
    change = await pane.sessions.add_item(found.id, ref)
    Screen().line(f"Added {ref}." if change.changed else f"{ref} is already in this session.")


@app.command("remove")
@on_pane
async def remove_item(pane: "Pane", session: SessionArgument, item: ItemArgument) -> None:
    """Remove an item from a session. It is not selected either until you add or readmit it.

    \b
    Example:
      windowpane item remove last rule:tone
    """
    found = await find_session(pane, session)
    ref = find_item(item, (held.ref for held in found.items))
    change = await pane.sessions.remove_item(found.id, ref)
    Screen().line(f"Removed {ref}." if change.changed else f"{ref} is not in this session.")


@app.command("never")
@on_pane
async def exclude_item(pane: "Pane", session: SessionArgument, item: ItemArgument) -> None:
    """Never use an item in a session: it is taken out, not selected, and the model cannot find it.

    \b
    Example:
      windowpane item never last weather:get_forecast
    """
    found = await find_session(pane, session)
    ref = await _found(pane, found.agent, item)
    change = await pane.sessions.exclude_item(found.id, ref)
    Screen().line(f"{ref} will not be used in this session." if change.changed else f"{ref} is excluded already.")


@app.command("readmit")
@on_pane
async def readmit_item(pane: "Pane", session: SessionArgument, item: ItemArgument) -> None:
    """Let an item that was removed or excluded be selected again.

    \b
    Example:
      windowpane item readmit last weather:get_forecast
    """
    found = await find_session(pane, session)
    ref = find_item(item, found.excluded)
    change = await pane.sessions.readmit_item(found.id, ref)
    Screen().line(f"{ref} may be selected again." if change.changed else f"{ref} is not excluded.")


@app.command("mode")
@on_pane
async def set_mode(
    pane: "Pane",
    agent: AgentArgument,
    item: ItemArgument,
    mode: Annotated[IncludeMode, typer.Argument(metavar="MODE", help="always, manual or agent.")],
    also_in: AlsoIn = None,
) -> None:
    """Set how an item is included. New sessions follow it; an open one receives the item by --also-in.

    \b
    Examples:
      windowpane item mode guide rule:tone always --also-in last
      windowpane item mode guide notes:list_notes agent
    """
    from windowpane.api.agents_pane import set_include

    ref = await _found(pane, agent, item)
    session_id = None if also_in is None else (await find_session(pane, also_in)).id
    file = await set_include(pane.agents, agent, ref, mode, also_in=session_id)
    also = "" if session_id is None else f" Added to session {session_id}."
    Screen().line(f"Changed {file} ({ref}: include: {mode}).{also}")


async def _found(pane: "Pane", agent: str, item: str) -> "ItemRef":
    """Return the item that a text means, when the agent's tool servers have had a moment to connect."""
    await pane.agents.servers(agent, settle_s=2.0)
    return find_item(item, (ref_of(view) for view in await all_items(pane, agent)))
