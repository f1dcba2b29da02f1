"""`windowpane use`: which items of a turn's request its answer used."""

from typing import TYPE_CHECKING

from windowpane.cli.connect import ask
from windowpane.cli.lookup import find_session, find_there
from windowpane.cli.options import ANYWHERE, Json, SessionArgument, TurnArgument, new_app, where
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.turns import ItemUse
    from windowpane.cli.old_client import Client
    from windowpane.engine import Engine

app = new_app()


@app.command()
@where(*ANYWHERE)
def use(session: SessionArgument, turn: TurnArgument, as_json: Json = False) -> None:
    """Show which items of a turn's request the answer used. Used means called, cited, quoted or drawn upon.

    \b
    Example:
      windowpane use last 3
    """

    async def here(engine: "Engine") -> "tuple[ItemUse, ...]":
        from windowpane.insight.past import past_turn
        from windowpane.insight.use import use

        return use(await past_turn(engine, await find_session(engine, session), turn, with_catalog=False))

    async def there(client: "Client") -> "tuple[ItemUse, ...]":
        return await client.use((await find_there(client, session)).id, turn)

    found = ask(here, there)
    screen = Screen()
    if as_json:
        screen.json(found)
        return
    for item in found:
        verdict = f"{(item.how or '').replace('_', ' ')}: {item.trace}" if item.used else "no trace was found"
        screen.line(f"{'✓' if item.used else '·'} {item.ref} – {verdict}", "" if item.used else "dim")
    if not found:
        screen.line("No items were sent.")
