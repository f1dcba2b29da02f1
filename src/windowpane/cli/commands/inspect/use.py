"""`windowpane use`: which items of a turn's request its answer used."""

from typing import TYPE_CHECKING

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import Json, SessionArgument, TurnArgument, new_app
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.pane import Pane

app = new_app()


@app.command()
@on_pane
async def use(pane: "Pane", session: SessionArgument, turn: TurnArgument, as_json: Json = False) -> None:
    """Show which items of a turn's request the answer used. Used means called, cited, quoted or drawn upon.

    \b
    Example:
      windowpane use last 3
    """
    found = await pane.turns.use((await find_session(pane, session)).id, turn)
    screen = Screen()
    if as_json:
        screen.json(found)
        return
    for item in found:
        verdict = f"{(item.how or '').replace('_', ' ')}: {item.trace}" if item.used else "no trace was found"
        screen.line(f"{'✓' if item.used else '·'} {item.ref} – {verdict}", "" if item.used else "dim")
    if not found:
        screen.line("No items were sent.")
