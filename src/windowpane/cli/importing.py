"""`windowpane import`: bring in what was written for other programs, or a session that was exported."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from windowpane.agents.importers.base import Outcome
from windowpane.agents.importers.run import import_into
from windowpane.api.export import SessionExport, read_export
from windowpane.cli.door import Place, ask
from windowpane.cli.screen import Screen, counted
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError
from windowpane.settings import Settings

if TYPE_CHECKING:
    from windowpane.client import Client

STYLES = {"created": "green", "updated": "green", "unchanged": "dim", "kept": "yellow", "not_imported": "yellow"}
WORDS = {"not_imported": "not imported"}
DEFAULT_AGENT = "imported"


def import_project(
    settings: Settings, sources: Sequence[Path], *, agent: str | None, overwrite: bool, dry: bool, as_json: bool
) -> None:
    """Bring what folders and files hold into an agent's folder, and print what became of what.

    Raises:
        InvalidInputError: a source is not there, or the agent's name leads elsewhere.
    """
    for source in sources:
        if not source.exists():
            raise InvalidInputError(f"there is nothing at {source}")
    folder = _folder(settings, agent)
    outcomes = import_into(folder, sources, overwrite=overwrite, dry=dry)
    screen = Screen()
    if as_json:
        report = {"agent": str(folder), "dry": dry, "outcomes": [asdict(outcome) for outcome in outcomes]}
        screen.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
        return
    for outcome in outcomes:
        to = f" → {outcome.target}" if outcome.target else ""
        became = WORDS.get(outcome.became, outcome.became)
        screen.line(f"{became:<13}{outcome.source}{to}  ({outcome.why})", STYLES[outcome.became])
    _sum_up(screen, folder, outcomes, dry)


def import_session(place: Place, file: Path) -> None:
    """Store an exported session as a new one.

    Raises:
        InvalidInputError: the file is not an exported session.
    """
    document = exported_in(file)

    async def here(engine: Engine) -> str:
        return (await engine.import_session(document)).id

    async def there(client: "Client") -> str:
        return (await client.import_session(document)).id

    Screen().line(ask(place, here, there))


def exported_in(file: Path) -> SessionExport:
    """Return the session that a file holds.

    Raises:
        InvalidInputError: it holds none.
    """
    try:
        body = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{file} cannot be read as an exported session: {error}") from None
    if not isinstance(body, dict):
        raise InvalidInputError(f"{file} holds no exported session")
    return read_export(body)  # pyright: ignore[reportUnknownArgumentType]  # JSON of no known shape


def is_export(file: Path) -> bool:
    """Tell whether a file is an exported session, by the name of the format in it."""
    return file.suffix == ".json" and file.is_file() and b'"windowpane.session"' in file.read_bytes()


def _folder(settings: Settings, agent: str | None) -> Path:
    """Return the folder of the agent that is meant; one that has an `agent.yaml` itself is that agent."""
    root = settings.agents_folder
    if (root / "agent.yaml").exists() and agent in (None, root.name):
        return root
    name = agent or DEFAULT_AGENT
    if "/" in name or name.startswith("."):
        raise InvalidInputError(f"{name!r} is no agent's name; an agent is a folder in {root}")
    return root / name


def _sum_up(screen: Screen, folder: Path, outcomes: Sequence[Outcome], dry: bool) -> None:
    written = sum(outcome.became in ("created", "updated") for outcome in outcomes)
    if not outcomes:
        screen.remark("Nothing was found that can be imported.")
        return
    screen.remark(f"{counted(written, 'change')} {'would be made' if dry else 'made'} in {folder}")
    if not dry:
        screen.remark(f"windowpane chat --agents {folder} talks to it")
