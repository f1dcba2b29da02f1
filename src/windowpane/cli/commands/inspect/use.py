"""`windowpane use`: which items of a turn's request its answer used."""

from typing import TYPE_CHECKING

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import Json, SessionArgument, TurnArgument, new_app
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.pane import Pane
    from windowpane.api.turns import ItemUse

app = new_app()


@app.command()
@on_pane
async def use(pane: "Pane", session: SessionArgument, turn: TurnArgument, as_json: Json = False) -> None:
    """Show which items of a turn's request the answer used. Used means called, cited, quoted or drawn upon.

    Probably used means that the answer says the same in other words.

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
        mark = {"used": "✓", "probably": "~"}.get(item.verdict, "·")
        screen.line(f"{mark} {item.ref} – {_said(item)}", "dim" if mark == "·" else "")
    if not found:
        screen.line("No items were sent.")


def _said(item: "ItemUse") -> str:
    match item.verdict:
        case "used":
            return f"{(item.how or '').replace('_', ' ')}: {item.trace}"
        case "probably":
            return f"probably used: the answer is near to it ({item.nearness:.2f})"
        case "no_trace":
            return "no trace was found"
        case "not_called":
            return "not called"
        case "unknown":
            return "no words of it were found; its meaning was not compared"
