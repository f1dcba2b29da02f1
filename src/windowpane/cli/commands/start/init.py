"""`windowpane init`: write the example agent."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from windowpane.cli.example import EXAMPLE
from windowpane.cli.options import new_app, where
from windowpane.cli.settings import local_settings
from windowpane.cli.terminal import Screen, counted

app = new_app()


@app.command()
@where("data", "agents")
def init(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="New folder for the agent. Default: `guide` in the agents folder."),
    ] = None,
) -> None:
    """Write an example agent. It has rules, references, prompts and a tool server, to read and to change.

    \b
    Examples:
      windowpane init
      windowpane init my-agent
    """
    from windowpane.agents.init import init_agent
    from windowpane.wiring import open_agents

    settings = local_settings("it writes an agent folder on this machine")
    made = init_agent(folder or settings.agents_folder / EXAMPLE)
    agent = open_agents(made).current(made.name)
    # An agent outside the agents folder has to be named.
    option = "" if made.parent == settings.agents_folder.resolve() else f" --agents {shlex.quote(str(made))}"
    screen = Screen()
    screen.line(f"Wrote the agent {agent.name} to {made}")
    screen.line(
        f"  agent.yaml    model ({agent.settings.model}), settings, {counted(len(agent.servers), 'tool server')}"
    )
    screen.line("  prompts/      who the agent is; core.md is required")
    screen.line(f"  rules/        {counted(len(agent.rules), 'rule')}, what it must do")
    screen.line(f"  references/   {counted(len(agent.references), 'reference')}, what it can look up")
    screen.line("Edits take effect with the next message. Try:")
    screen.line(f"  windowpane chat{option}")
    screen.line(f'  windowpane preview{option} "How do I add a rule?"')
    screen.line(f"  windowpane serve{option}")
