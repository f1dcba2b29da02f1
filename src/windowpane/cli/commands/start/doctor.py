"""`windowpane doctor`: check every part, and print what to do about each problem."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.options import HERE, Json, new_app, where
from windowpane.cli.settings import local_settings
from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from windowpane.cli.doctor.checks import Finding, Health

app = new_app()

MARKS: "Mapping[Health, tuple[str, str]]" = {
    "good": ("ok", "green"),
    "doubtful": ("??", "yellow"),
    "broken": ("no", "red"),
}


@app.command()
@where(*HERE)
def doctor(
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="Also ask each agent's model which parts of a request reach it. That may cost a little."
        ),
    ] = False,
    wait_s: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for tool servers to connect.")
    ] = 20.0,
    as_json: Json = False,
) -> None:
    """Check the store, agents, models and tool servers. Exit code 1: something is broken.

    \b
    Examples:
      windowpane doctor
      windowpane doctor --agents ./my-agent --ask
    """
    import anyio

    from windowpane.cli.doctor.checks import examine

    settings = local_settings("it checks this machine")
    screen = Screen()
    findings: list[Finding] = []

    async def examined() -> None:
        async for finding in examine(settings, ask=ask, wait_s=wait_s):
            findings.append(finding)
            if not as_json:
                _draw(screen, finding)

    anyio.run(examined)
    broken, doubtful = (sum(finding.health == health for finding in findings) for health in ("broken", "doubtful"))
    if as_json:
        screen.json(findings)
    else:
        problems = counted(broken, "problem") if broken else "No problems"
        warnings = f", {counted(doubtful, 'warning')}" if doubtful else ""
        screen.line(f"{problems} found{warnings}.", "bold")
    raise typer.Exit(1 if broken else 0)


def _draw(screen: Screen, finding: "Finding") -> None:
    mark, style = MARKS[finding.health]
    screen.line(f"{mark}  {finding.subject}: {finding.detail}", style if finding.health != "good" else "")
    if finding.advice:
        screen.line(f"      → {finding.advice}")
