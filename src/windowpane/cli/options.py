"""Options that several commands take, each described once."""

import os
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import typer
from typer.core import TyperGroup

T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SessionArgument = Annotated[
    str, typer.Argument(metavar="SESSION", help="Session id, the beginning of an id, or `last`.")
]
TurnArgument = Annotated[int, typer.Argument(metavar="TURN", min=1, help="Turn number, from 1.")]
AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help="Agent name.")]
AlsoIn = Annotated[
    str | None,
    typer.Option("--also-in", metavar="SESSION", help="Also add the item to this open session: an id or `last`."),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Labelled questions: YAML like context tests, or JSON lines. Default: labels from past turns.",
    ),
]

Where = Literal["data", "agents", "store_url", "url", "tokens"]
HERE: tuple[Where, ...] = ("data", "agents", "store_url")
ANYWHERE: tuple[Where, ...] = (*HERE, "url")

WHERE: dict[Where, Any] = {
    "data": Annotated[
        Path | None,
        typer.Option(
            "--data",
            envvar="WINDOWPANE_DATA",
            help="Folder for the database, agents and caches. Default: the user's data folder.",
        ),
    ],
    "agents": Annotated[
        Path | None,
        typer.Option(
            "--agents",
            envvar="WINDOWPANE_AGENTS",
            help="Folder with one folder per agent, or the folder of one agent. Default: `agents` in the data folder.",
        ),
    ],
    "store_url": Annotated[
        str | None,
        typer.Option(
            "--store-url",
            envvar="WINDOWPANE_STORE_URL",
            help="Session store: sqlite:////file.db, postgresql://…, redis://… or memory:. "
            "Default: a file in the data folder.",
        ),
    ],
    "url": Annotated[
        str | None,
        typer.Option(
            "--url",
            envvar="WINDOWPANE_URL",
            help="Run the command on this server, such as http://127.0.0.1:8470. "
            "The token is read from WINDOWPANE_TOKEN.",
        ),
    ],
    "tokens": Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            envvar="WINDOWPANE_TOKENS",
            help="Token file. Default: tokens.json in the data folder.",
        ),
    ],
}
"""Options that say where things are, by the name of their setting."""


SUMMARY_WIDTH = 200
"""Characters that the summary of a command may have in a list: enough for the whole first sentence."""


class Group(TyperGroup):
    """A group of commands. Its help lists each with its whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands for the help."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.commands[name].get_short_help_str(SUMMARY_WIDTH)) for name in self.list_commands(ctx)]
            )


def new_app(*, cls: type[TyperGroup] = Group, **options: Any) -> typer.Typer:
    """Return an app for one command or a group of commands, with plain text help."""
    return typer.Typer(
        cls=cls,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )


def where(*names: Where) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a command options that say where things are. They take effect through the environment.

    So an option before the command counts for the command too.
    """

    def add(command: Callable[..., T]) -> Callable[..., T]:
        own = signature(command)

        @wraps(command)
        def run(**given: Any) -> T:
            for name in names:
                if (value := given.pop(name)) is not None:
                    os.environ[f"WINDOWPANE_{name.upper()}"] = str(value)
            return command(**given)

        added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=WHERE[name]) for name in names]
        # typer reads this to learn which options there are.
        cast("Any", run).__signature__ = own.replace(parameters=[*own.parameters.values(), *added])
        return run

    return add
