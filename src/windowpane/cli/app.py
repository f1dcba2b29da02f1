"""Which commands there are, and what they take.

A command's function parses nothing and prints nothing: it hands its options to the module that does the work. Those
modules are imported inside the functions because they take a second to load, and help should not.
"""

import os
import sys
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from windowpane.cli.failing import explained

if TYPE_CHECKING:
    from windowpane.settings import Settings

app = typer.Typer(
    name="windowpane",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _ShowByDefault(TyperGroup):
    """Takes `context SESSION` for `context show SESSION`: no session's id reads like a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # typer does not export the type of `ctx`
        """Put the left-out command back."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["show", *args]
        return super().parse_args(ctx, args)


sessions_app = typer.Typer(rich_markup_mode=None)
app.add_typer(sessions_app, name="sessions")
context_app = typer.Typer(
    cls=_ShowByDefault,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="""Show what a turn's model was given; or say and read what a session is working on.

    \b
    Examples:
      windowpane context last
      windowpane context set last files /srv/spec.md
    """,
)
app.add_typer(context_app, name="context")

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="WINDOWPANE_DATA",
        help="Folder for the database, the agents and caches. Default: the user's data folder.",
    ),
]
Agents = Annotated[
    Path | None,
    typer.Option(
        "--agents",
        envvar="WINDOWPANE_AGENTS",
        help="Folder with one folder per agent, or one agent's own folder. Default: `agents` in the data folder.",
    ),
]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store-url",
        envvar="WINDOWPANE_STORE_URL",
        help="Where sessions are kept: sqlite:////absolute/file.db, or memory:. Default: a file in the data folder.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, complete and for machines.")]
SessionArgument = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session's id, the beginning of one, or `last`.")
]


def main() -> None:
    """Run the command that was typed. What goes wrong is one line on stderr: exit code 1, or 2 for wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        # A stray surrogate or a poor terminal must not cost the answer.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with explained():
        app(prog_name="windowpane")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"windowpane {version('windowpane')}")
        raise typer.Exit


@app.callback()
def everywhere(
    data: Data = None,
    agents: Agents = None,
    store_url: StoreUrl = None,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """The context engine for chat agents: it decides what a model is given, records it, and shows why.

    \b
    Start here:
      windowpane serve                    the page, on http://127.0.0.1:8470
      windowpane chat                     talk to an agent in this terminal
      windowpane context last             what the last message's model was given, and why

    --data, --agents and --store-url may stand before or after the command.
    """
    _pass_on(data, agents, store_url)


@app.command()
def init(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="New folder for the agent. Default: `guide` in the agents folder."),
    ] = None,
    data: Data = None,
    agents: Agents = None,
) -> None:
    """Write an example agent: rules, references, prompts and a tool server, to read and to change.

    \b
    Examples:
      windowpane init
      windowpane init my-agent
    """
    from windowpane.cli.init import init as run

    run(_settings(data=data, agents=agents), folder)


@app.command()
def serve(
    host: Annotated[
        str | None,
        typer.Option("--host", envvar="WINDOWPANE_HOST", help="Address to listen on. Default: 127.0.0.1."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            envvar="WINDOWPANE_PORT",
            min=0,
            max=65535,
            help="Port to listen on; 0 takes any free one. Default: 8470.",
        ),
    ] = None,
    data: Data = None,
    agents: Agents = None,
    store_url: StoreUrl = None,
) -> None:
    """Run the server. Without any agent yet, the example agent is written first.

    \b
    Examples:
      windowpane serve
      windowpane serve --port 9000 --agents ./agents
    """
    from windowpane.cli.serve import serve as run

    run(_settings(host=host, port=port, data=data, agents=agents, store_url=store_url))


@app.command()
def chat(
    session: Annotated[
        str | None,
        typer.Argument(metavar="[SESSION]", help="Go on with this session: its id, the beginning of one, or `last`."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="The agent of a new session. Default: the first there is.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER:MODEL", help="The model to use from now on.")
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="Send this, print the answer, and stop.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --message or piped input: allow tool calls that would ask.")
    ] = False,
    data: Data = None,
    agents: Agents = None,
    store_url: StoreUrl = None,
) -> None:
    """Talk to an agent in the terminal; /help lists what else can be typed there.

    With --message, or when something is piped in, it answers once: the answer goes to stdout, everything else to
    stderr, and tool calls that would ask a person are denied unless --yes is given.

    \b
    Examples:
      windowpane chat
      windowpane chat last --model anthropic:claude-sonnet-4-5
      windowpane chat --agent guide --message "What is an include mode?"
      git diff | windowpane chat last
    """
    from windowpane.cli.chat import chat as run

    settings = _settings(data=data, agents=agents, store_url=store_url)
    raise typer.Exit(run(settings, session=session, agent=agent, model=model, message=message, yes=yes))


@app.command()
def preview(
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The message that would be sent.")],
    session: Annotated[
        str | None, typer.Option("--session", help="In this session: its id, the beginning of one, or `last`.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="In a new session of this agent. Default: the first there is.")
    ] = None,
    messages: Annotated[
        bool, typer.Option("--messages", help="Print the messages and tools exactly as the model would get them.")
    ] = False,
    as_json: Json = False,
    data: Data = None,
    agents: Agents = None,
    store_url: StoreUrl = None,
) -> None:
    """Show what a message would give the model. No model is called, and nothing is stored.

    \b
    Examples:
      windowpane preview "How do I add a rule?"
      windowpane preview "and then?" --session last --json
    """
    if session is not None and agent is not None:
        raise typer.BadParameter("--session and --agent exclude one another: a session has its agent already")
    from windowpane.cli.preview import preview as run

    settings = _settings(data=data, agents=agents, store_url=store_url)
    run(settings, message, session=session, agent=agent, messages=messages, as_json=as_json)


@context_app.command("show")
def show_context(
    session: SessionArgument,
    turn: Annotated[
        int | None, typer.Argument(metavar="[TURN]", min=1, help="The turn, counted from 1. Default: the last one.")
    ] = None,
    messages: Annotated[
        bool, typer.Option("--messages", help="Print the messages and tools exactly as the model got them.")
    ] = False,
    as_json: Json = False,
    data: Data = None,
    agents: Agents = None,
    store_url: StoreUrl = None,
) -> None:
    """Show what the model was given in a turn, what it was not, and why. `show` may be left out.

    \b
    Examples:
      windowpane context last
      windowpane context ses_4k 3 --messages
    """
    from windowpane.cli.context import context as run

    settings = _settings(data=data, agents=agents, store_url=store_url)
    run(settings, session, turn, messages=messages, as_json=as_json)


@context_app.command("set")
def set_context(
    session: SessionArgument,
    set_name: Annotated[
        str, typer.Argument(metavar="SET", help="files, applet, endpoints, ports, or a name of yours.")
    ],
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="What stands in the set; files as full paths.")],
    merge: Annotated[
        bool, typer.Option("--merge", help="Add to what is there; the oldest make room beyond ten.")
    ] = False,
    data: Data = None,
    store_url: StoreUrl = None,
) -> None:
    """Say what a session is working on; it is reminded of it when it is taken up again.

    \b
    Examples:
      windowpane context set last files /srv/spec.md /srv/notes.md
      windowpane context set last ports 8080 --merge
    """
    from windowpane.cli.working import set_context as run

    mode = "merge" if merge else "replace"
    run(_settings(data=data, store_url=store_url), session, set_name, items, mode)


@context_app.command("get")
def get_context(
    session: SessionArgument,
    set_name: Annotated[str | None, typer.Argument(metavar="[SET]", help="One set. Default: all of them.")] = None,
    data: Data = None,
    store_url: StoreUrl = None,
) -> None:
    """Print what a session is working on, as JSON.

    \b
    Example:
      windowpane context get last files
    """
    from windowpane.cli.working import get_context as run

    run(_settings(data=data, store_url=store_url), session, set_name)


@context_app.command("clear")
def clear_context(
    session: SessionArgument,
    set_name: Annotated[str, typer.Argument(metavar="SET", help="The set to clear.")],
    data: Data = None,
    store_url: StoreUrl = None,
) -> None:
    """Clear one set of what a session is working on.

    \b
    Example:
      windowpane context clear last files
    """
    from windowpane.cli.working import set_context as run

    run(_settings(data=data, store_url=store_url), session, set_name, [], "replace")


@app.command()
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve over streamable HTTP on 127.0.0.1 instead of over pipes.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="With --http: the port to listen on; 0 takes any free one.")
    ] = 8471,
    data: Data = None,
    agents: Agents = None,
    store_url: StoreUrl = None,
) -> None:
    """Be an MCP server: working context, search and explanations of sessions for any MCP host.

    \b
    Examples:
      windowpane mcp
      windowpane mcp --http --port 8471
    """
    from windowpane.cli.mcp import mcp as run

    run(_settings(data=data, agents=agents, store_url=store_url), http=http, port=port)


@app.command()
def doctor(
    ask: Annotated[
        bool, typer.Option("--ask", help="Also ask each agent's model for one word, which may cost a little.")
    ] = False,
    wait_s: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long a tool server may take to connect.")
    ] = 20.0,
    as_json: Json = False,
    data: Data = None,
    agents: Agents = None,
    store_url: StoreUrl = None,
) -> None:
    """Check the store, the agents, their models and their tool servers, and say what to do. Exit code 1: broken.

    \b
    Examples:
      windowpane doctor
      windowpane doctor --agents ./my-agent --ask
    """
    from windowpane.cli.doctor import doctor as run

    settings = _settings(data=data, agents=agents, store_url=store_url)
    raise typer.Exit(run(settings, ask=ask, wait_s=wait_s, as_json=as_json))


@sessions_app.callback(invoke_without_command=True)
def sessions(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", help="Only sessions of this agent.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="List at most this many.")] = 20,
    as_json: Json = False,
    data: Data = None,
    agents: Agents = None,
    store_url: StoreUrl = None,
) -> None:
    """List sessions, last used first; or show, rename or delete one.

    \b
    Examples:
      windowpane sessions
      windowpane sessions show last
      windowpane sessions rename ses_4k "Invoice import"
      windowpane sessions delete ses_4k
    """
    _pass_on(data, agents, store_url)
    if context.invoked_subcommand is None:
        from windowpane.cli.sessions import list_sessions as run

        run(_settings(), agent=agent, limit=limit, as_json=as_json)


@sessions_app.command("show")
def show_session(
    session: SessionArgument,
    as_json: Json = False,
    data: Data = None,
    store_url: StoreUrl = None,
) -> None:
    """Print a session's items and its conversation.

    \b
    Example:
      windowpane sessions show last
    """
    from windowpane.cli.sessions import show_session as run

    run(_settings(data=data, store_url=store_url), session, as_json=as_json)


@sessions_app.command("rename")
def rename_session(
    session: SessionArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name; an empty one takes the name away.")],
    data: Data = None,
    store_url: StoreUrl = None,
) -> None:
    """Give a session a name.

    \b
    Example:
      windowpane sessions rename last "Invoice import"
    """
    from windowpane.cli.sessions import rename_session as run

    run(_settings(data=data, store_url=store_url), session, name)


@sessions_app.command("delete")
def delete_session(
    session: SessionArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: Data = None,
    store_url: StoreUrl = None,
) -> None:
    """Delete a session for good: its messages, its records, its texts.

    \b
    Example:
      windowpane sessions delete ses_4k
    """
    from windowpane.cli.sessions import delete_session as run

    run(_settings(data=data, store_url=store_url), session, yes=yes)


def _pass_on(data: Path | None, agents: Path | None, store_url: str | None) -> None:
    """Let options that stand before a command count for it, by way of the environment it reads."""
    for name, value in (("DATA", data), ("AGENTS", agents), ("STORE_URL", store_url)):
        if value is not None:
            os.environ[f"WINDOWPANE_{name}"] = str(value)


def _settings(**given: Path | str | int | None) -> "Settings":
    from windowpane.cli.place import log_to_stderr, settings_from

    settings = settings_from(given)
    log_to_stderr(settings)
    return settings
