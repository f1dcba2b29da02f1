"""`windowpane load`: a load test of a server, and how it went."""

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.options import Json, new_app, where
from windowpane.cli.progress import show
from windowpane.cli.settings import server_url, settings
from windowpane.cli.terminal import Screen, counted
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.client.load import Durations, LoadReport

app = new_app()


@app.command("load")
@where("url")
def run_load(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="Agent name. Default: the first agent.")] = None,
    sessions: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="How many sessions talk.")] = 10,
    turns: Annotated[
        int, typer.Option(metavar="N", min=1, max=10_000, help="How many messages each session sends.")
    ] = 5,
    concurrency: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=10_000, help="How many turns run at once. Default: one in each session."),
    ] = None,
    chars: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="How many characters a message has.")
    ] = 200,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the sessions instead of deleting them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Allow a server that is not on this machine.")] = False,
    as_json: Json = False,
) -> None:
    """Put a running server under load and measure its turns. Exit code 1: a turn failed.

    Every turn is a real one and calls the agent's model: with a model that costs money, so does this. The sessions are
    new ones and are deleted at the end. A turn that is refused with 429 is sent again when the server says so. Without
    --url the server is that of this machine, on port 8470 or the one that WINDOWPANE_PORT names.

    \b
    Examples:
      windowpane load
      windowpane load guide --sessions 50 --turns 10 --concurrency 20
      windowpane load --url https://pane.example --yes --json
    """
    # Not at the top: the client takes a while to load.
    import anyio

    from windowpane.client.load import Load, is_local, put_under_load

    url = server_url() or f"http://127.0.0.1:{settings().port}"
    if not yes and not is_local(url):
        raise InvalidInputError(
            f"{url} is not on this machine: a load test slows it down for others, and its turns cost what its model "
            "costs. Add --yes if you may do that"
        )
    wanted = Load(
        agent=agent, sessions=sessions, turns=turns, concurrency=concurrency or sessions, chars=chars, keep=keep
    )
    tell = partial(show, "turns", nouns="turns")
    token = os.environ.get("WINDOWPANE_TOKEN")
    report = anyio.run(partial(put_under_load, url, wanted, token=token, on_progress=tell))
    screen = Screen()
    screen.json(report) if as_json else draw_load(screen, report)
    raise typer.Exit(1 if report.errors else 0)


def draw_load(screen: Screen, report: "LoadReport") -> None:
    """Print how a run went."""
    load = report.load
    asked = f"{counted(load.turns, 'turn')} in each of {counted(load.sessions, 'session')}"
    screen.line(f"{asked}, {load.concurrency:,} at once, messages of {counted(load.chars, 'character')}", "dim")
    screen.line(
        f"{counted(report.completed, 'turn')} in {report.duration_s:.1f} s: {report.turns_per_s:.1f} turns/s", "bold"
    )
    screen.line(f"{'to the first word':<20}{_times(report.first_word)}")
    screen.line(f"{'to the end':<20}{_times(report.whole)}")
    screen.line(f"{'sent, received':<20}{report.sent_bytes:,} bytes, {report.received_bytes:,} bytes")
    screen.line(f"{'refused with 429':<20}{report.refused:,}")
    for code, count in report.errors.items():
        screen.line(f"✗ {counted(count, 'turn')} failed: {code}", "red")


def _times(measured: "Durations | None") -> str:
    if measured is None:
        return "–"
    named = (("p50", measured.p50_s), ("p95", measured.p95_s), ("p99", measured.p99_s))
    return "   ".join(f"{name} {time_s:6.3f} s" for name, time_s in named)
