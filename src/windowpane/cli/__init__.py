"""The command line.

`app.py` finds a command by its name. What a command takes and does is in `commands/`, one module each, which is
imported when the command is called, so that `--help` and mistakes are answered at once.
"""

from windowpane.cli.app import app, main

__all__ = ["app", "main"]
