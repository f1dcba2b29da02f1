"""The command `windowpane`: finds the command that was typed and runs it.

Each command is a module of `commands/` with a Typer `app`. It is imported when it is called, or when the list of all
commands is printed.
"""

import sys
from collections import UserDict
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.main import get_command

from windowpane.cli.errors import explained
from windowpane.cli.options import ANYWHERE, SUMMARY_WIDTH, Group, new_app, where

SECTIONS: Mapping[str, tuple[str, Sequence[str]]] = {
    "start": ("Start", ("init", "serve", "chat", "models", "xray", "mcp", "doctor")),
    "inspect": ("Inspect requests", ("preview", "context", "explain", "compare", "replay", "use", "calls", "cache")),
    "improve": ("Test and improve", ("test", "eval", "tune", "analytics", "suggest", "load")),
    "data": ("Manage data", ("sessions", "item", "working", "stats", "export", "import", "share", "store", "token")),
}
"""The folders of `commands/`, each with its heading and its commands, in the order of the help."""

MODULES: Mapping[str, str] = {
    # `import` cannot be the name of a module that others import.
    name: f"windowpane.cli.commands.{folder}.{'import_' if name == 'import' else name}"
    for folder, (_, names) in SECTIONS.items()
    for name in names
}


class Commands(UserDict[str, Any]):  # typer does not export the type of a command
    """The commands by name. Each is imported when it is looked up."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(MODULES))

    def __getitem__(self, key: str) -> Any:
        """Return a command, importing it first if needed."""
        if self.data[key] is None:
            self.data[key] = get_command(import_module(MODULES[key]).app)
        return self.data[key]


class LazyGroup(Group):
    """Imports the command that is called and no other. The help lists commands under headings."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = Commands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands for the help."""
        width = max(map(len, MODULES))
        for heading, names in SECTIONS.values():
            with formatter.section(heading):
                formatter.write_dl(
                    # The spaces give every section the same columns.
                    [(f"{name:<{width}}", self.commands[name].get_short_help_str(SUMMARY_WIDTH)) for name in names]
                )


app = new_app(name="windowpane", cls=LazyGroup, no_args_is_help=True)


def main() -> None:
    """Run the command that was typed. An error is one line on stderr and exit code 1, or 2 for wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        # A stray surrogate or a poor terminal must not cost the answer.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with explained():
        app(prog_name="windowpane")


def _show_version(wanted: bool) -> None:
    if wanted:
        # Not at the top: it takes longer to load than everything else here.
        from importlib.metadata import version

        typer.echo(f"windowpane {version('windowpane')}")
        raise typer.Exit


@app.callback()
@where(*ANYWHERE)
def windowpane(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The context engine for chat agents: it selects what a model gets, records it, and explains why.

    \b
    Start here:
      windowpane serve                    open the page at http://127.0.0.1:8470
      windowpane chat                     chat with an agent in this terminal
      windowpane context last             show what the model got for the last message, and why

    --data, --agents, --store-url and --url can be given before or after the command.
    """
