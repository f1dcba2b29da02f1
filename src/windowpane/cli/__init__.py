"""The command line.

`app.py` says which commands there are and what they take. What a command does is in the module of its name, which is
imported when the command runs, so that `--help` and mistakes are answered at once.
"""

from windowpane.cli.app import app, main

__all__ = ["app", "main"]
