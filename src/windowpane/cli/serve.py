"""`windowpane serve`: run the server, with the example agent when there is none."""

from windowpane.cli.init import ensure_agent
from windowpane.cli.screen import Screen
from windowpane.settings import Settings


def serve(settings: Settings) -> None:
    """Serve until the process is stopped.

    Raises:
        WindowpaneError: it cannot listen there, or something cannot be opened.
    """
    screen = Screen()
    ensure_agent(settings, screen)
    screen.remark(f"Agents: {settings.agents_folder}, sessions: {settings.shown_database_url}")
    # Not at the top: the process that only keeps workers running loads nothing of what they need.
    if settings.workers > 1:
        from windowpane.server.process.workers import run_workers as run
    else:
        from windowpane.server.process.run import run
    run(settings, on_ready=lambda url: screen.line(f"Windowpane is at {url} (Ctrl-C stops it)"))
