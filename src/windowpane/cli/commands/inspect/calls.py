"""`windowpane calls`: every call that was made for a session, also those for summaries."""

from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import with_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import ANYWHERE, Json, new_app, where
from windowpane.cli.past import PastView, with_past
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.pane import Pane

app = new_app()


@app.command()
@where(*ANYWHERE)
def calls(
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="Session id, its beginning, or `last`; none: calls of no session."),
    ] = None,
    number: Annotated[
        int | None, typer.Argument(metavar="N", min=1, help="Show call N of the list as it was sent.")
    ] = None,
    day: Annotated[
        datetime | None,
        typer.Option(metavar="DAY", formats=["%Y-%m-%d"], help="Of which day the calls of no session are, in UTC."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the model calls of a session, also those for summaries, or show one.

    Without a session, list your calls of a day that belong to none, such as those that a search makes to an embedding
    endpoint.

    \b
    Examples:
      windowpane calls last
      windowpane calls ses_4k 12
      windowpane calls --day 2026-11-17
    """
    if session is None:
        with_pane(partial(_outside, day=day and day.date(), as_json=as_json))
    else:
        with_past(partial(_of_session, text=session, number=number, as_json=as_json))


async def _outside(pane: "Pane", *, day: date | None, as_json: bool) -> None:
    from windowpane.cli.render_calls import draw_calls

    screen = Screen()
    outside = await pane.analytics.outside_calls(day)
    if as_json:
        screen.json(outside)
    else:
        kept = f", kept as {outside.session}" if outside.session else ""
        screen.line(f"{outside.day}, calls that belong to no session{kept}")
        draw_calls(screen, outside.calls, turns=True)


async def _of_session(past: PastView, *, text: str, number: int | None, as_json: bool) -> None:
    from windowpane.cli.render_calls import draw_calls, draw_wire

    screen = Screen()
    found = await find_session(past, text)
    if number is not None:
        record = await past.sessions.call(found.id, number)
        screen.json(record) if as_json else draw_wire(screen, record)
        return
    listed = await past.sessions.calls(found.id)
    screen.json(listed) if as_json else draw_calls(screen, listed, turns=True)
