"""Write an agent into a new folder: the example, an empty one, or a copy of another.

The folder becomes an agent at the very end, when everything else in it is complete, so no reader finds half of one.
"""

import json
import shutil
import tempfile
from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from windowpane.agents.manifest import MANIFEST
from windowpane.context.messages import ECHO
from windowpane.errors import InvalidInputError

CORE_PROMPT = "You are a helpful assistant. Say so when you do not know something.\n"
"""What a new agent is told, until its owner writes something better."""


def init_agent(target: Path) -> Path:
    """Write the example agent to `target`, which must be empty or not there yet, and return where it is.

    Raises:
        InvalidInputError: there is something at `target` already, or it cannot be written.
    """
    return _made(target, lambda made: _copy(files("windowpane.agents") / "template", made))


def new_agent(target: Path, description: str = "") -> Path:
    """Write an agent without items to a new folder, and return where it is.

    Raises:
        InvalidInputError: there is something at `target` already, or it cannot be written.
    """

    def write(made: Path) -> None:
        (made / "prompts").mkdir(parents=True)
        (made / "prompts" / "core.md").write_text(CORE_PROMPT, "utf-8")
        (made / MANIFEST).write_text(f"description: {json.dumps(description)}\nmodel: {ECHO}\n", "utf-8")

    return _made(target, write)


def copy_agent(source: Path, target: Path) -> Path:
    """Write a copy of an agent's folder to a new folder, and return where it is.

    Raises:
        InvalidInputError: there is something at `target` already, or it cannot be written.
    """
    # What a link leads to may be anywhere: it stays a link.
    return _made(target, lambda made: shutil.copytree(source, made, symlinks=True, ignore=_not_copied))


def _made(target: Path, write: Callable[[Path], object]) -> Path:
    place = target.resolve()
    _refuse_occupied(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as beside:
            made = Path(beside, place.name)
            write(made)
            _move(made, place)
    except (OSError, shutil.Error) as error:
        why = getattr(error, "strerror", None) or "a file cannot be copied"
        raise InvalidInputError(f"cannot write an agent to {target}: {why}") from error
    return place


_not_copied = shutil.ignore_patterns(".git", "__pycache__")


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
