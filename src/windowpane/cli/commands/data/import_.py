"""`windowpane import`: import a project's instructions into an agent, or an exported session."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import with_pane
from windowpane.cli.options import ANYWHERE, Json, new_app, where
from windowpane.cli.settings import local_settings
from windowpane.cli.terminal import Screen, counted
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.agents.importers.base import Outcome
    from windowpane.api.export import SessionExport
    from windowpane.api.pane import Pane
    from windowpane.settings import Settings

app = new_app()

STYLES = {"created": "green", "updated": "green", "unchanged": "dim", "kept": "yellow", "not_imported": "yellow"}
WORDS = {"not_imported": "not imported"}
DEFAULT_AGENT = "imported"
NOTHING = (
    "Nothing to import was found. `windowpane import --help` says what is read. The page opens a shared session: "
    "`windowpane serve`, then /shared."
)
LOCAL = "it writes an agent folder on this machine; only an exported session can be imported into a server"


@app.command("import")
@where(*ANYWHERE)
def import_(
    sources: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="A project folder, files, or an exported session.")
    ],
    agent: Annotated[
        str | None,
        typer.Option("--agent", help="Agent to import into; it is created if needed. Default: imported."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Also replace files that were edited after an earlier import.")
    ] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only print what would be imported.")] = False,
    as_json: Json = False,
) -> None:
    """Import a project's instructions, or an exported session.

    A project may have AGENTS.md, CLAUDE.md, GEMINI.md, rules of Cursor, Cline, Copilot, Windsurf and others,
    SKILL.md folders and mcp.json.
    Importing again updates what changed in the source, and keeps files that were edited here.

    \b
    Examples:
      windowpane import ~/src/project --agent project
      windowpane import ~/src/project --agent project --dry-run
      windowpane import session.json
    """
    if len(sources) == 1 and _is_export(sources[0]):
        with_pane(lambda pane: _import_session(pane, sources[0]))
    else:
        _import_project(local_settings(LOCAL), sources, agent=agent, overwrite=overwrite, dry=dry, as_json=as_json)


def _import_project(
    settings: "Settings", sources: Sequence[Path], *, agent: str | None, overwrite: bool, dry: bool, as_json: bool
) -> None:
    from windowpane.agents.importers.run import import_into
    from windowpane.agents.importers.weight import weight_after, weight_of

    for source in sources:
        if not source.exists():
            raise InvalidInputError(f"{source} does not exist")
    folder = _folder(settings, agent)
    before = weight_of(folder)
    outcomes = import_into(folder, sources, overwrite=overwrite, dry=dry)
    after = weight_after(folder, sources, overwrite=overwrite) if dry else weight_of(folder)
    screen = Screen()
    if as_json:
        tokens = {"before": before, "after": after}
        screen.json({"agent": str(folder), "dry": dry, "outcomes": outcomes, "tokens": tokens})
        return
    for outcome in outcomes:
        to = f" → {outcome.target}" if outcome.target else ""
        became = WORDS.get(outcome.became, outcome.became)
        screen.line(f"{became:<13}{outcome.source}{to}  ({outcome.why})", STYLES[outcome.became])
    _sum_up(screen, folder, outcomes, dry)
    if outcomes:
        screen.remark(
            f"Every request of this agent: {after.every_request:,} tokens of prompt, rules and references, "
            f"{before.every_request:,} before. When a message needs them, or by hand: {after.when_needed:,}, "
            f"{before.when_needed:,} before. Tools come on top when their servers connect."
        )


async def _import_session(pane: "Pane", file: Path) -> None:
    """Store an exported session as a new one."""
    Screen().line((await pane.sessions.import_(_exported_in(file))).id)


def _exported_in(file: Path) -> "SessionExport":
    from windowpane.api.export import read_export

    try:
        body = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{file} cannot be read as an exported session: {error}") from None
    if not isinstance(body, dict):
        raise InvalidInputError(f"{file} is not an exported session")
    return read_export(body)  # pyright: ignore[reportUnknownArgumentType]  # JSON of no known shape


def _is_export(file: Path) -> bool:
    """Tell whether a file is an exported session, by the name of the format in it."""
    return file.suffix == ".json" and file.is_file() and b'"windowpane.session"' in file.read_bytes()


def _folder(settings: "Settings", agent: str | None) -> Path:
    """Return the folder of the agent. A folder with an `agent.yaml` is itself an agent."""
    root = settings.agents_folder
    if (root / "agent.yaml").exists() and agent in (None, root.name):
        return root
    name = agent or DEFAULT_AGENT
    if "/" in name or name.startswith("."):
        raise InvalidInputError(f"{name!r} is not an agent name; an agent is a folder in {root}")
    return root / name


def _sum_up(screen: Screen, folder: Path, outcomes: "Sequence[Outcome]", dry: bool) -> None:
    written = sum(outcome.became in ("created", "updated") for outcome in outcomes)
    if not outcomes:
        screen.remark(NOTHING)
        return
    screen.remark(f"{counted(written, 'change')} {'would be made' if dry else 'made'} in {folder}")
    if not dry:
        screen.remark(f"Chat with it: windowpane chat --agents {folder}")
