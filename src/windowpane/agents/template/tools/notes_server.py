"""A tool server that keeps notes: Markdown files in the `notes` folder beside this one.

It speaks MCP over its pipes and needs nothing but the `mcp` package. Copy it as a start for your own.
"""

import re
import tempfile
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

NOTES = Path(__file__).resolve().parent.parent / "notes"
MOST_CHARS = 100_000
MOST_MATCHES = 20

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)

server = MCPServer("notes", instructions="Notes of the person you work for, as Markdown.", log_level="WARNING")


@server.tool(annotations=READS)
def list_notes() -> str:
    """List the names of all notes, each with its first line."""
    return "\n".join(f"{path.stem}: {_first_line(path)}" for path in _notes()) or "There are no notes yet."


@server.tool(annotations=READS)
def read_note(name: str) -> str:
    """Read a note by its name."""
    path = _path(name)
    if not path.is_file():
        raise ToolError(f"there is no note {name!r}; available: {', '.join(path.stem for path in _notes()) or 'none'}")
    return _text(path)


@server.tool(annotations=WRITES)
def write_note(name: str, text: str, append: bool = False) -> str:
    """Write a note, as Markdown. Replaces a note of that name, or adds to its end when `append` is true."""
    path = _path(name)
    before = f"{_text(path).rstrip()}\n\n" if append and path.is_file() else ""
    whole = f"{before}{text.rstrip()}\n"
    if len(whole) > MOST_CHARS:
        raise ToolError(f"the note would have {len(whole)} characters, and no more than {MOST_CHARS} are kept")
    _replace(path, whole)
    return f"Wrote {name}: {len(whole)} characters."


@server.tool(annotations=READS)
def search_notes(words: str) -> str:
    """Find the notes that hold all of these words, and show the lines where they stand."""
    wanted = words.casefold().split()
    if not wanted:
        raise ToolError("give at least one word to look for")
    found: list[str] = []
    for path in _notes():
        text = _text(path)
        if all(word in f"{path.stem}\n{text}".casefold() for word in wanted):
            lines = [line.strip() for line in text.splitlines() if any(word in line.casefold() for word in wanted)]
            found.append("\n".join([f"{path.stem}:", *(f"  {line}" for line in lines[:3])]))
    return "\n".join(found[:MOST_MATCHES]) or f"No note holds {words!r}."


def _path(name: str) -> Path:
    """Return where a note is kept. Only plain names are taken, so that nothing outside the folder can be named."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", name):
        raise ToolError(f"{name!r} cannot be the name of a note; use letters, digits, _ and -")
    path = NOTES / f"{name}.md"
    if path.is_symlink():
        raise ToolError(f"{name!r} is a link, and links are not followed")
    return path


def _notes() -> list[Path]:
    return sorted(path for path in NOTES.glob("*.md") if path.is_file() and not path.is_symlink())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _first_line(path: Path) -> str:
    return next((line.strip("# ") for line in _text(path).splitlines() if line.strip()), "")


def _replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, and never half of it."""
    NOTES.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=NOTES, delete=False) as file:
        file.write(text)
    Path(file.name).replace(path)


if __name__ == "__main__":
    server.run()
