"""`windowpane init`: write the example agent and say what to try."""

import shlex
from pathlib import Path

from windowpane.agents.folder import AgentFolder, FolderAgents
from windowpane.agents.init import init_agent
from windowpane.cli.screen import Screen, counted
from windowpane.errors import InvalidInputError
from windowpane.settings import Settings

EXAMPLE = "guide"


def init(settings: Settings, folder: Path | None) -> None:
    """Write the example agent to a new folder.

    Raises:
        InvalidInputError: there is something in the folder already.
    """
    made = init_agent(folder or settings.agents_folder / EXAMPLE)
    agent = AgentFolder(made).current()
    # An agent that is not among the others has to be named.
    option = "" if made.parent == settings.agents_folder.resolve() else f" --agents {shlex.quote(str(made))}"
    screen = Screen()
    screen.line(f"Wrote the agent {agent.name} to {made}")
    screen.line(
        f"  agent.yaml    model ({agent.settings.model}), settings, {counted(len(agent.servers), 'tool server')}"
    )
    screen.line("  prompts/      who the agent is; core.md is required")
    screen.line(f"  rules/        {counted(len(agent.rules), 'rule')}, what it must do")
    screen.line(f"  references/   {counted(len(agent.references), 'reference')}, what it can know")
    screen.line("Edits count from the next message on. Try:")
    screen.line(f"  windowpane chat{option}")
    screen.line(f'  windowpane preview{option} "How do I add a rule?"')
    screen.line(f"  windowpane serve{option}")


def ensure_agent(settings: Settings, screen: Screen) -> None:
    """Write the example agent when there is no agent yet, and say where.

    Raises:
        InvalidInputError: the agents folder holds other things, so it is probably the wrong one.
    """
    folder = settings.agents_folder
    if FolderAgents(folder).names():
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInputError(
            f"{folder} holds no agent, but other things; name another folder with --agents, "
            f"or write an example there with `windowpane init {shlex.quote(str(folder / EXAMPLE))}`"
        )
    made = init_agent(folder / EXAMPLE)
    screen.remark(f"There was no agent yet, so an example was written. Edit it in {made}", "")
