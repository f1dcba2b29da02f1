"""The example agent, which is written when there is no agent yet."""

import shlex
from typing import TYPE_CHECKING

from windowpane.cli.terminal import Screen
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.settings import Settings

EXAMPLE = "guide"


def ensure_agent(settings: "Settings", screen: Screen) -> None:
    """Write the example agent if there is no agent, and print where.

    Raises:
        InvalidInputError: the agents folder has other files, so it is probably the wrong one.
    """
    from windowpane.agents.init import init_agent
    from windowpane.wiring import open_agents

    folder = settings.agents_folder
    if open_agents(folder).names():
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInputError(
            f"{folder} has files but no agent; choose another folder with --agents, "
            f"or write an example there with `windowpane init {shlex.quote(str(folder / EXAMPLE))}`"
        )
    made = init_agent(folder / EXAMPLE)
    screen.remark(f"No agent found, so an example was written to {made}", "")
