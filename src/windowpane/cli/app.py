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
from windowpane.cli.options import ANYWHERE, HERE, AgentArgument, Json, Labels, SessionArgument, TurnArgument, placed

if TYPE_CHECKING:
    from windowpane.cli.door import Place
    from windowpane.cli.remote import RemoteServer
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
token_app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="""Make, list and revoke tokens, which callers show to a server that others can reach.

    \b
    Examples:
      windowpane token create --owner ann --scope chat --expires 90d
      windowpane token list
    """,
)
app.add_typer(token_app, name="token")
store_app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="""Move sessions from one store to another.

    \b
    Example:
      windowpane store copy sqlite:////srv/windowpane.db postgresql://db.example/windowpane
    """,
)
app.add_typer(store_app, name="store")

TOKENS_ARE_HERE = "tokens are made where the server's files are"


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
@placed(*ANYWHERE)
def everywhere(
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

    --data, --agents, --store-url and --url may stand before or after the command.
    """


@app.command()
@placed("data", "agents")
def init(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="New folder for the agent. Default: `guide` in the agents folder."),
    ] = None,
) -> None:
    """Write an example agent: rules, references, prompts and a tool server, to read and to change.

    \b
    Examples:
      windowpane init
      windowpane init my-agent
    """
    from windowpane.cli.init import init as run

    run(_here("an agent's folder is written on this machine"), folder)


@app.command()
@placed(*HERE)
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
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", envvar="WINDOWPANE_WORKERS", min=1, max=256, help="How many processes answer. Default: 1."
        ),
    ] = None,
) -> None:
    """Run the server. Without any agent yet, the example agent is written first.

    An address that others can reach needs a token: see `windowpane token`.

    \b
    Examples:
      windowpane serve
      windowpane serve --port 9000 --agents ./agents
      windowpane serve --host 0.0.0.0 --workers 4
    """
    from windowpane.cli.serve import serve as run

    run(_here("the server is started on this machine", host=host, port=port, workers=workers))


@app.command()
@placed(*ANYWHERE)
def chat(
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="Go on with this session: its id, the beginning of one, or `last`."),
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
    if (server := _server()) is not None:
        from windowpane.cli.remote import chat as run_there

        raise typer.Exit(run_there(server, session=session, agent=agent, model=model, message=message, yes=yes))
    from windowpane.cli.chat import chat as run

    raise typer.Exit(run(_settings(), session=session, agent=agent, model=model, message=message, yes=yes))


@app.command()
@placed(*ANYWHERE)
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

    run(_place(), message, session=session, agent=agent, messages=messages, as_json=as_json)


@context_app.command("show")
@placed(*ANYWHERE)
def show_context(
    session: SessionArgument,
    turn: Annotated[
        int | None, typer.Argument(metavar="TURN", min=1, help="The turn, counted from 1. Default: the last one.")
    ] = None,
    messages: Annotated[
        bool, typer.Option("--messages", help="Print the messages and tools exactly as the model got them.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what the model was given in a turn, what it was not, and why. `show` may be left out.

    \b
    Examples:
      windowpane context last
      windowpane context ses_4k 3 --messages
    """
    from windowpane.cli.context import context as run

    run(_place(), session, turn, messages=messages, as_json=as_json)


@app.command()
@placed(*ANYWHERE)
def explain(
    session: SessionArgument,
    turn: TurnArgument,
    item: Annotated[
        str | None,
        typer.Argument(
            metavar="ITEM", help="rule:NAME, reference:NAME, SERVER:TOOL, or a name alone. Default: every item."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say why an item was in a turn's request or not, and the smallest change that would have turned it round.

    \b
    Examples:
      windowpane explain last 3
      windowpane explain last 3 reference:billing
    """
    from windowpane.cli.explain import explain_turn as run

    run(_place(), session, turn, item, as_json=as_json)


@app.command()
@placed(*ANYWHERE)
def compare(
    session: SessionArgument,
    turn: TurnArgument,
    other: Annotated[int, typer.Argument(metavar="OTHER", min=1, help="The turn to compare with, as the later one.")],
    other_session: Annotated[
        str | None, typer.Option("--session", help="The session of the other turn. Default: the same one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what changed from one turn's request to another's, and where the prompts begin to differ.

    \b
    Examples:
      windowpane compare last 1 2
      windowpane compare ses_4k 3 1 --session ses_9x
    """
    from windowpane.cli.compare import compare_turns as run

    run(_place(), session, turn, other, other_session=other_session, as_json=as_json)


@app.command()
@placed(*ANYWHERE)
def replay(
    session: SessionArgument,
    turn: TurnArgument,
    query: Annotated[str | None, typer.Option("--query", help="Select for this message instead.")] = None,
    item: Annotated[
        list[str] | None,
        typer.Option("--item", metavar="NAME=FILE", help="Give a rule or a reference the text of this file."),
    ] = None,
    preset: Annotated[str | None, typer.Option("--preset", help="aggressive, normal or conservative.")] = None,
    floor: Annotated[float | None, typer.Option("--floor", help="Take nothing below this score.")] = None,
    top_n: Annotated[int | None, typer.Option("--top-n", help="Take at most so many.")] = None,
    include_score: Annotated[
        float | None, typer.Option("--include-score", help="Take whatever scores this, also beyond --top-n.")
    ] = None,
    share_of_best: Annotated[
        float | None, typer.Option("--share-of-best", help="Take nothing below this share of the best score.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rebuild a turn's request byte for byte; run its selection again with other settings, texts or another query.

    No model is called. Exit code 1: the request is not the recorded one.

    \b
    Examples:
      windowpane replay last 2
      windowpane replay last 2 --floor 0.1 --top-n 8
      windowpane replay last 2 --query "How do I pay?" --item billing=new-billing.md
    """
    from windowpane.cli.replay import replay as run

    given = {
        "preset": preset,
        "floor": floor,
        "top_n": top_n,
        "include_score": include_score,
        "share_of_best": share_of_best,
    }
    search = {name: value for name, value in given.items() if value is not None}
    run(_place(), session, turn, search=search, query=query, items=item or [], as_json=as_json)


@app.command("test")
@placed(*ANYWHERE)
def run_tests(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="Test this agent. Default: all.")] = None,
    from_turn: Annotated[
        tuple[str, int] | None,
        typer.Option("--from-turn", metavar="SESSION TURN", help="Write a test that this turn passes, and stop."),
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")] = None,
    as_json: Json = False,
) -> None:
    """Run the context tests beside an agent: which items a message must, may and must not select. Exit code 1: failed.

    Tests stand in tests/*.yaml in the agent's folder. No model is called.

    \b
    Examples:
      windowpane test
      windowpane test guide --junit report.xml
      windowpane test --from-turn last 2
    """
    from windowpane.cli.test import from_turn as keep
    from windowpane.cli.test import run

    if from_turn is not None:
        return keep(_place(), *from_turn)
    raise typer.Exit(run(_place(), agent, as_json=as_json, junit=junit))


@app.command()
@placed(*ANYWHERE)
def use(
    session: SessionArgument,
    turn: TurnArgument,
    as_json: Json = False,
) -> None:
    """Say which items of a turn's request the answer made use of: called, cited, quoted or drawn upon.

    \b
    Example:
      windowpane use last 3
    """
    from windowpane.cli.analytics import turn_use as run

    run(_place(), session, turn, as_json=as_json)


@app.command()
@placed(*ANYWHERE)
def analytics(
    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="From this day on, in UTC.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Up to this day, in UTC.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only turns with this agent.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only turns with this model.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Only turns of this owner. Default: of all.")] = None,
    listed: Annotated[
        str | None,
        typer.Option(
            "--csv",
            metavar="LIST",
            help="Print a list as CSV: days, models, agents, parts, items, scores, latency or sources.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what turns cost, by day, model, part and item, and how much of what was sent was used.

    \b
    Examples:
      windowpane analytics --since 2026-01-01
      windowpane analytics --csv items > items.csv
    """
    from windowpane.cli.analytics import analytics as run
    from windowpane.cli.analytics import filters_from, list_from

    filters = filters_from(owner=owner, agent=agent, model=model, since=since, until=until)
    run(_place(), filters, listed=list_from(listed), as_json=as_json)


@app.command()
@placed(*ANYWHERE)
def suggest(
    agent: Annotated[
        str | None, typer.Argument(metavar="AGENT", help="The agent. Default: the only one there is.")
    ] = None,
    number: Annotated[int | None, typer.Option("--apply", metavar="NUMBER", help="Apply this one of them.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before applying.")] = False,
    as_json: Json = False,
) -> None:
    """Suggest items to demote, promote, shorten or remove, with what was counted and the tokens that it saves.

    \b
    Examples:
      windowpane suggest
      windowpane suggest guide --apply 1
    """
    from windowpane.cli.analytics import suggest as run

    run(_place(), agent, number=number, yes=yes, as_json=as_json)


@app.command("eval")
@placed(*ANYWHERE)
def evaluate(
    agent: AgentArgument,
    labels: Labels = None,
    as_json: Json = False,
) -> None:
    """Measure how well an agent's selection does: recall, precision, F1, and whether its scores can be believed.

    Without a file, labels are what answers made use of and what was added by hand right after them.

    \b
    Examples:
      windowpane eval guide
      windowpane eval guide --labels questions.yaml
    """
    from windowpane.cli.evaluate import run_eval as run

    run(_place(), agent, labels, as_json=as_json)


@app.command("tune")
@placed(*ANYWHERE)
def tune(
    agent: AgentArgument,
    labels: Labels = None,
    write: Annotated[bool, typer.Option("--write", help="Write what is better into agent.yaml, after asking.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before writing.")] = False,
    as_json: Json = False,
) -> None:
    """Find search settings that choose better, and show it on questions that they were not chosen by.

    \b
    Examples:
      windowpane tune guide --labels questions.yaml
      windowpane tune guide --write
    """
    from windowpane.cli.evaluate import run_tune as run

    run(_place(), agent, labels, write=write, yes=yes, as_json=as_json)


@context_app.command("set")
@placed(*ANYWHERE)
def set_context(
    session: SessionArgument,
    set_name: Annotated[
        str, typer.Argument(metavar="SET", help="files, applet, endpoints, ports, or a name of yours.")
    ],
    items: Annotated[list[str], typer.Argument(metavar="ITEM", help="What stands in the set; files as full paths.")],
    merge: Annotated[
        bool, typer.Option("--merge", help="Add to what is there; the oldest make room beyond ten.")
    ] = False,
) -> None:
    """Say what a session is working on; it is reminded of it when it is taken up again.

    \b
    Examples:
      windowpane context set last files /srv/spec.md /srv/notes.md
      windowpane context set last ports 8080 --merge
    """
    from windowpane.cli.working import set_context as run

    mode = "merge" if merge else "replace"
    run(_place(), session, set_name, items, mode)


@context_app.command("get")
@placed(*ANYWHERE)
def get_context(
    session: SessionArgument,
    set_name: Annotated[str | None, typer.Argument(metavar="SET", help="One set. Default: all of them.")] = None,
) -> None:
    """Print what a session is working on, as JSON.

    \b
    Example:
      windowpane context get last files
    """
    from windowpane.cli.working import get_context as run

    run(_place(), session, set_name)


@context_app.command("clear")
@placed(*ANYWHERE)
def clear_context(
    session: SessionArgument,
    set_name: Annotated[str, typer.Argument(metavar="SET", help="The set to clear.")],
) -> None:
    """Clear one set of what a session is working on.

    \b
    Example:
      windowpane context clear last files
    """
    from windowpane.cli.working import set_context as run

    run(_place(), session, set_name, [], "replace")


@app.command()
@placed(*HERE)
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve over streamable HTTP on 127.0.0.1 instead of over pipes.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option("--host", help="With --http: another address to listen on. One that others reach needs a token."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="With --http: the port to listen on; 0 takes any free one.")
    ] = 8471,
) -> None:
    """Be an MCP server: working context, search and explanations of sessions for any MCP host.

    \b
    Examples:
      windowpane mcp
      windowpane mcp --http --port 8471
    """
    from windowpane.cli.mcp import mcp as run

    run(_here("the MCP server is started on this machine", host=host or "127.0.0.1"), http=http, port=port)


@app.command()
@placed(*HERE)
def doctor(
    ask: Annotated[
        bool, typer.Option("--ask", help="Also ask each agent's model for one word, which may cost a little.")
    ] = False,
    wait_s: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long a tool server may take to connect.")
    ] = 20.0,
    as_json: Json = False,
) -> None:
    """Check the store, the agents, their models and their tool servers, and say what to do. Exit code 1: broken.

    \b
    Examples:
      windowpane doctor
      windowpane doctor --agents ./my-agent --ask
    """
    from windowpane.cli.doctor import doctor as run

    raise typer.Exit(run(_here("it looks at this machine"), ask=ask, wait_s=wait_s, as_json=as_json))


@app.command("import")
@placed(*ANYWHERE)
def import_(
    sources: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="A project's folder, single files, or an exported session.")
    ],
    agent: Annotated[
        str | None,
        typer.Option("--agent", help="The agent to import into, which is made if needed. Default: imported."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Also take the place of files that somebody has changed.")
    ] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would become of what.")] = False,
    as_json: Json = False,
) -> None:
    """Bring in AGENTS.md, CLAUDE.md, .cursor/rules, .clinerules, SKILL.md folders and mcp.json; or a session.

    Importing again changes only what changed at its source, and never what somebody has changed here.

    \b
    Examples:
      windowpane import ~/src/project --agent project
      windowpane import ~/src/project --agent project --dry-run
      windowpane import session.json
    """
    from windowpane.cli.importing import import_project, import_session, is_export

    if len(sources) == 1 and is_export(sources[0]):
        import_session(_place(), sources[0])
        return
    settings = _here("a project becomes an agent's folder on this machine; only an exported session can go to a server")
    import_project(settings, sources, agent=agent, overwrite=overwrite, dry=dry, as_json=as_json)


@app.command("export")
@placed(*ANYWHERE)
def export(
    session: SessionArgument,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file. Default: print it.")
    ] = None,
) -> None:
    """Write a session as JSON, complete: every event, every request, every text.

    \b
    Example:
      windowpane export last -o session.json
    """
    from windowpane.cli.exporting import export_session as run

    run(_place(), session, file)


@app.command()
@placed(*ANYWHERE)
def stats(
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="A session's id, the beginning of one, or `last`. Default: all."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Count what a session holds and what it cost, or what all of them hold.

    \b
    Examples:
      windowpane stats
      windowpane stats last --json
    """
    from windowpane.cli.exporting import stats as run

    run(_place(), session, as_json=as_json)


@sessions_app.callback(invoke_without_command=True)
@placed(*ANYWHERE)
def sessions(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", help="Only sessions of this agent.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="List at most this many.")] = 20,
    as_json: Json = False,
) -> None:
    """List sessions, last used first; or show, rename or delete one.

    \b
    Examples:
      windowpane sessions
      windowpane sessions show last
      windowpane sessions rename ses_4k "Invoice import"
      windowpane sessions delete ses_4k
    """
    if context.invoked_subcommand is None:
        from windowpane.cli.sessions import list_sessions as run

        run(_place(), agent=agent, limit=limit, as_json=as_json)


@sessions_app.command("show")
@placed(*ANYWHERE)
def show_session(
    session: SessionArgument,
    as_json: Json = False,
) -> None:
    """Print a session's items and its conversation.

    \b
    Example:
      windowpane sessions show last
    """
    from windowpane.cli.sessions import show_session as run

    run(_place(), session, as_json=as_json)


@sessions_app.command("rename")
@placed(*ANYWHERE)
def rename_session(
    session: SessionArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name; an empty one takes the name away.")],
) -> None:
    """Give a session a name.

    \b
    Example:
      windowpane sessions rename last "Invoice import"
    """
    from windowpane.cli.sessions import rename_session as run

    run(_place(), session, name)


@sessions_app.command("delete")
@placed(*ANYWHERE)
def delete_session(
    session: SessionArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a session for good: its messages, its records, its texts.

    \b
    Example:
      windowpane sessions delete ses_4k
    """
    from windowpane.cli.sessions import delete_session as run

    run(_place(), session, yes=yes)


@store_app.command("copy")
def copy_store(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The store to copy from, as for --store-url.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The store to copy to, as for --store-url.")],
    as_json: Json = False,
) -> None:
    """Copy every session to another store, then compare both. Exit code 1: not everything is there.

    Sessions may be used meanwhile; what changes is copied again. A copy that was stopped goes on when it is called
    again. FROM is not changed.

    \b
    Example:
      windowpane store copy sqlite:////srv/windowpane.db postgresql://db.example/windowpane
    """
    from windowpane.cli.store import copy as run

    _here("both stores are opened from this machine")
    raise typer.Exit(run(source, target, as_json=as_json))


@token_app.command("create")
@placed("data", "tokens")
def create_token(
    owner: Annotated[str, typer.Option("--owner", help="Whose sessions the token opens.")],
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            help="read: look. chat: also begin, continue and change sessions. manage: also change agents.",
        ),
    ] = "chat",
    expires: Annotated[
        str | None, typer.Option("--expires", help="An age such as 12h, 30d or 52w, or a date. Default: never.")
    ] = None,
    note: Annotated[str, typer.Option("--note", help="What it is for, to tell it apart.")] = "",
    as_json: Json = False,
) -> None:
    """Make a token and print it. It cannot be seen again: only its hash is kept.

    \b
    Examples:
      windowpane token create --owner ann
      windowpane token create --owner ci --scope read --expires 12h --note "nightly report"
    """
    from windowpane.cli.token import create_token as run

    path = _here(TOKENS_ARE_HERE).tokens_file
    run(path, owner=owner, scope=scope, expires=expires, note=note, as_json=as_json)


@token_app.command("list")
@placed("data", "tokens")
def list_tokens(as_json: Json = False) -> None:
    """List tokens: whose they are, what they allow, and until when.

    \b
    Example:
      windowpane token list
    """
    from windowpane.cli.token import list_tokens as run

    run(_here(TOKENS_ARE_HERE).tokens_file, as_json=as_json)


@token_app.command("revoke")
@placed("data", "tokens")
def revoke_token(
    token: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `windowpane token list` shows it.")],
) -> None:
    """Make a token useless. What it has open ends within a second, on every worker.

    \b
    Example:
      windowpane token revoke k3v9x2ab
    """
    from windowpane.cli.token import revoke_token as run

    run(_here(TOKENS_ARE_HERE).tokens_file, token)


def _place() -> "Place":
    """Return where the work is done: on the server that was named, or here."""
    server = _server()
    return _settings() if server is None else server


def _server() -> "RemoteServer | None":
    url = os.environ.get("WINDOWPANE_URL")
    if not url:
        return None
    from windowpane.cli.remote import RemoteServer

    return RemoteServer(url, os.environ.get("WINDOWPANE_TOKEN"))


def _here(why: str, **given: Path | str | int | None) -> "Settings":
    """Return the settings of a command that no server can do, because of `why`."""
    if os.environ.get("WINDOWPANE_URL"):
        raise typer.BadParameter(f"no server can do this: {why}. Leave out --url and WINDOWPANE_URL")
    return _settings(**given)


def _settings(**given: Path | str | int | None) -> "Settings":
    from windowpane.cli.place import log_to_stderr, settings_from

    settings = settings_from(given)
    log_to_stderr(settings)
    return settings
