"""`windowpane cache`: what calls read from the provider's cache, and what broke the prefix."""

from typing import TYPE_CHECKING

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import Json, SessionArgument, new_app
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.pane import Pane

app = new_app()


@app.command()
@on_pane
async def cache(pane: "Pane", session: SessionArgument, as_json: Json = False) -> None:
    """Show what calls read from the prompt cache, what broke the prefix, and its cost.

    Expected is what the provider should have read, by its rules and the bodies that were sent.

    \b
    Examples:
      windowpane cache last
      windowpane cache ses_4k --json
    """
    from windowpane.cli.render_cache import draw_cache

    report = await pane.sessions.cache((await find_session(pane, session)).id)
    screen = Screen()
    if as_json:
        screen.json(report)
    else:
        draw_cache(screen, report)
