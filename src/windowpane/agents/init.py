"""Write the example agent into a new folder.

The folder becomes an agent at the very end, when everything else in it is complete, so no reader finds half of one.
"""

import shutil
import tempfile
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from windowpane.agents.manifest import MANIFEST
from windowpane.errors import InvalidInputError


def init_agent(target: Path) -> Path:
    """Write the example agent to `target`, which must be empty or not there yet, and return where it is.

    Raises:
        InvalidInputError: there is something at `target` already, or it cannot be written.
    """
    place = target.resolve()
    _refuse_occupied(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as beside:
            made = Path(beside, place.name)
            _copy(files("windowpane.agents") / "template", made)
            _move(made, place)
    except OSError as error:
        raise InvalidInputError(f"cannot write an agent to {target}: {error.strerror}") from error
    return place


def _refuse_occupied(place: Path) -> None:
    if place.exists() and not place.is_dir():
        raise InvalidInputError(f"{place} is a file; name a new folder for the agent")
    if place.is_dir() and any(place.iterdir()):
        raise InvalidInputError(f"{place} is not empty, and nothing in it was changed; name a new folder for the agent")


def _copy(source: Traversable, target: Path) -> None:
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            _copy(entry, target / entry.name)
        elif entry.is_file():
            (target / entry.name).write_bytes(entry.read_bytes())


def _move(made: Path, place: Path) -> None:
    if not place.exists():
        made.rename(place)
        return
    # The folder itself must stay: a shell may be in it.
    for entry in sorted(made.iterdir(), key=lambda entry: entry.name == MANIFEST):
        shutil.move(entry, place / entry.name)
