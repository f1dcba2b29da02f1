"""Options that many commands take, each described once."""

import os
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import typer

T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="Print JSON, complete and for machines.")]
SessionArgument = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session's id, the beginning of one, or `last`.")
]
TurnArgument = Annotated[int, typer.Argument(metavar="TURN", min=1, help="The turn, counted from 1.")]
AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's name.")]
Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Questions with what they must select: YAML like context tests, or JSON lines. Default: past turns.",
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
            help="Folder for the database, the agents and caches. Default: the user's data folder.",
        ),
    ],
    "agents": Annotated[
        Path | None,
        typer.Option(
            "--agents",
            envvar="WINDOWPANE_AGENTS",
            help="Folder with one folder per agent, or one agent's own folder. Default: `agents` in the data folder.",
        ),
    ],
    "store_url": Annotated[
        str | None,
        typer.Option(
            "--store-url",
            envvar="WINDOWPANE_STORE_URL",
            help="Where sessions are kept: sqlite:////file.db, postgresql://…, redis://… or memory:. "
            "Default: a file in the data folder.",
        ),
    ],
    "url": Annotated[
        str | None,
        typer.Option(
            "--url",
            envvar="WINDOWPANE_URL",
            help="Let this server do the work, such as http://127.0.0.1:8470; WINDOWPANE_TOKEN is shown to it.",
        ),
    ],
    "tokens": Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            envvar="WINDOWPANE_TOKENS",
            help="The file that tokens are kept in. Default: tokens.json in the data folder.",
        ),
    ],
}
"""Options that say where things are, by the name of their setting."""


def placed(*names: Where) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a command options that say where things are. They count by way of the environment, which settings read.

    So an option that stands before the command counts for it too.
    """

    def add(command: Callable[..., T]) -> Callable[..., T]:
        own = signature(command, eval_str=True)

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
