"""`windowpane xray`: record what another agent sends to its model, and look at it."""

import io
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import Group, Json, SessionArgument, new_app, where
from windowpane.cli.settings import local_settings
from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from windowpane.api.pane import Pane
    from windowpane.settings import Settings
    from windowpane.xray.app import XrayApp

WHY_LOCAL = "it runs the program on this machine"
HOST = "127.0.0.1"

NOTHING_CAME = (
    "no call came through the proxy: a program that reads its address from a file of its own (Codex) needs it there; "
    "see `windowpane xray --listen`"
)

CALLS_SHOWN = 20
"""After so many calls of an import the line on the terminal is drawn again."""


class _XrayGroup(Group):
    """Understands `xray -- COMMAND` and `xray --listen` beside its commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command where the short form leaves it out."""
        own = args[: args.index("--")] if "--" in args else args
        if "--listen" in own:
            args = ["listen", *(arg for arg in own if arg != "--listen")]
        elif "--" in args and not any(name in own for name in self.commands):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = new_app(
    cls=_XrayGroup,
    no_args_is_help=True,
    help="""Record what another agent sends to its model, to the byte, and look at it.

    \b
    Examples:
      windowpane xray -- claude -p "say hi"     run a program and record its calls
      windowpane xray --listen                  record any number of programs
      windowpane xray report last               show what was sent and what it cost
      windowpane xray import ~/.claude/projects read logs, traces and exports of other tools

    Requests and answers are passed on unchanged. Keys are passed on and never stored.
    """,
)

Port = Annotated[
    int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port to listen on; 0: any free port.")
]


@app.command("run", context_settings={"ignore_unknown_options": True})
@where("data", "store_url")
def run_program(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="The program and its arguments.")],
    port: Port = 0,
) -> None:
    """Run a program in this terminal and record its calls; the same as `windowpane xray -- COMMAND…`.

    Its base URLs (ANTHROPIC_BASE_URL, OPENAI_BASE_URL, …) lead to a proxy on this machine, which passes calls on to
    where they led before. The exit code is the program's.

    \b
    Examples:
      windowpane xray -- claude
      windowpane xray -- python my_agent.py
    """
    import anyio

    with _held_back():
        settings = local_settings(WHY_LOCAL)
        raise typer.Exit(anyio.run(_run_program, settings, command, port))


@app.command("listen")
@where("data", "store_url")
def listen(port: Port = 8471) -> None:
    """Record any number of programs until Ctrl-C; the same as `windowpane xray --listen`.

    \b
    Examples:
      windowpane xray --listen
      windowpane xray --listen --port 9001
    """
    import anyio

    settings = local_settings(WHY_LOCAL)
    anyio.run(_listen, settings, port)


class _Held(io.StringIO):
    """Keeps lines in the form that they would have in the terminal."""

    def isatty(self) -> bool:
        """Tell whether the lines are for people."""
        return sys.__stderr__ is not None and sys.__stderr__.isatty()


@contextmanager
def _held_back() -> Generator[None]:
    """Print what is logged at the end: while the program runs, the terminal is its own."""
    held = _Held()
    try:
        with redirect_stderr(held):
            yield
    finally:
        sys.stderr.write(held.getvalue())


async def _run_program(settings: "Settings", command: Sequence[str], port: int) -> int:
    from windowpane.serving.sockets import address_of, listening
    from windowpane.xray.environment import child_environment
    from windowpane.xray.standalone import check_command, run_child, serving

    check_command(command)
    with listening(HOST, port) as listener:
        child = child_environment(os.environ, address_of(listener), settings.xray_upstreams)
        async with _store(settings) as store:
            proxy = _proxy(store, child.upstreams)
            async with proxy.running(), serving(_guarded(proxy), listener):
                code = await run_child(command, child.variables)
    _say_what_was_recorded(proxy)
    return code


async def _listen(settings: "Settings", port: int) -> None:
    from windowpane.serving.sockets import address_of, listening
    from windowpane.xray.environment import child_environment
    from windowpane.xray.standalone import serving, until_stopped

    screen = Screen()
    with listening(HOST, port) as listener:
        child = child_environment({}, address_of(listener), settings.xray_upstreams)
        async with _store(settings) as store:
            proxy = _proxy(store, child.upstreams)
            async with proxy.running(), serving(_guarded(proxy), listener):
                screen.line("Recording. Start programs with these variables (Ctrl-C stops):")
                for name, value in child.variables.items():
                    screen.line(f"  export {name}={value}")
                await until_stopped()
    _say_what_was_recorded(proxy)


def _store(settings: "Settings") -> "AbstractAsyncContextManager[Any]":
    from windowpane.wiring import open_sessions

    return open_sessions(settings)


def _proxy(store: Any, upstreams: Mapping[str, str]) -> "XrayApp":
    from windowpane.callers import LOCAL_OWNER
    from windowpane.xray.app import XrayApp
    from windowpane.xray.upstreams import upstreams_of

    return XrayApp(store, upstreams_of(upstreams), lambda scope: LOCAL_OWNER)


def _guarded(proxy: "XrayApp") -> Any:
    """Keep web pages out, which could reach a port on this machine."""
    from windowpane.server.middleware.cross_site import CrossSiteGuard

    # All that it has to offer comes from a provider, with the user's key or without one.
    return CrossSiteGuard(proxy, guarded=[""])


def _say_what_was_recorded(proxy: "XrayApp") -> None:
    """Say on stderr where to look: stdout is the program's."""
    room = proxy.recorder.room
    sessions = proxy.recorder.sessions
    lines = [f"windowpane: {counted(room.recorded, 'call')} recorded in {counted(len(sessions), 'session')}"]
    lines += [f"  windowpane xray report {session}" for session in sessions]
    if sessions:
        lines.append("  windowpane serve        shows them on a page")
    elif not room.lost:
        lines.append(f"  {NOTHING_CAME}")
    if lost := sum(room.lost.values()):
        why = ", ".join(f"{count} {reason}" for reason, count in room.lost.items())
        lines.append(f"  {counted(lost, 'call')} passed on and not recorded ({why})")
    sys.stderr.write("\n".join(lines) + "\n")


@app.command("import")
@where("data", "store_url")
def import_files(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files, or folders with files below them.")],
    as_json: Json = False,
) -> None:
    """Read logs, traces and exports of other tools as sessions: Claude Code, Codex, OpenTelemetry, Langfuse, LiteLLM.

    What a file is, is told by what stands in it. What was imported before is not imported twice, so the command can be
    run again when the files have grown. Lines that cannot be read are named.

    \b
    Examples:
      windowpane xray import ~/.claude/projects ~/.codex/sessions
      windowpane xray import spans.jsonl langfuse-export.json
    """
    import anyio

    settings = local_settings("it reads files of this machine")
    raise typer.Exit(anyio.run(_import_files, settings, paths, as_json))


async def _import_files(settings: "Settings", paths: Sequence[Path], as_json: bool) -> int:
    import anyio.to_thread

    from windowpane.callers import LOCAL_OWNER
    from windowpane.cli.progress import show
    from windowpane.cli.render_xray import draw_import
    from windowpane.xray.importing.files import files_at, read_file
    from windowpane.xray.importing.report import ImportReport
    from windowpane.xray.importing.writer import Importer

    files = list(files_at(paths))
    report = ImportReport()
    at = "importing"

    def show_calls(done: int, total: int) -> None:
        if done % CALLS_SHOWN == 0 or done == total:
            show(at, done, total, "calls")

    async with _store(settings) as store:
        importer = Importer(store, LOCAL_OWNER, show_calls)
        for done, path in enumerate(files):
            at = f"importing file {done + 1} of {len(files)}:"
            show("importing", done, len(files), "files")
            read = await anyio.to_thread.run_sync(read_file, path)
            report.add_file(read, named=path in paths)
            for told in read.sessions:
                report.add_session(told, await importer.write(told))
        show("importing", len(files), len(files), "files")
    draw_import(Screen(), report, as_json=as_json)
    return 1 if report.unknown else 0


@app.command("report")
@on_pane
async def report(pane: "Pane", session: SessionArgument, as_json: Json = False) -> None:
    """Show what a session's calls sent, what that is made of, what broke the prompt cache, and what is of no use.

    \b
    Examples:
      windowpane xray report last
      windowpane xray report ses_4k --json
    """
    from windowpane.cli.render_xray import draw_report

    found = await find_session(pane, session)
    screen = Screen()
    seen = await pane.sessions.xray(found.id)
    if as_json:
        screen.json(seen)
    else:
        draw_report(screen, seen)


@app.command("compare")
@on_pane
async def compare(
    pane: "Pane",
    session: SessionArgument,
    before: Annotated[
        int, typer.Argument(metavar="BEFORE", help="The number of the earlier call, as `report` shows it.")
    ],
    after: Annotated[int, typer.Argument(metavar="AFTER", help="The number of the later call.")],
    as_json: Json = False,
) -> None:
    """Show what is different between two calls of a session, part by part.

    \b
    Examples:
      windowpane xray compare last 1 2
    """
    from windowpane.cli.render_xray import draw_comparison

    found = await find_session(pane, session)
    screen = Screen()
    compared = await pane.sessions.compare_calls(found.id, before, after)
    if as_json:
        screen.json(compared)
    else:
        draw_comparison(screen, compared)
