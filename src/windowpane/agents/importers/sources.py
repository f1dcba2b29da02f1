"""Find what other programs take instructions from, in a project's folder.

| file | becomes | include |
|---|---|---|
| `AGENTS.md`, `CLAUDE.md`, `GEMINI.md`, `.cursorrules` and the like | a rule | `always`; below the top `agent` |
| rules of Cursor, Cline, Claude Code, Copilot and others | a rule | see `rules.py` |
| `SKILL.md` in a folder | a reference, and one for each text beside it | `agent` |
| `mcp.json` and its like, `server.json` of the MCP registry | tool servers | see `servers.py` |
"""

import os
from collections.abc import Iterator
from pathlib import Path

from windowpane.agents.importers.base import Finding, FoundItem, NotTaken
from windowpane.agents.importers.rules import RuleMode, mode_of
from windowpane.agents.importers.servers import REGISTRY_FILE, SERVER_FILES, registered_in, servers_in
from windowpane.agents.importers.texts import name_of, parts_of, text_of, with_files
from windowpane.context.items import Reference, Rule
from windowpane.context.text import first_heading

DEEPEST = 8
MOST_FILES = 50_000
PASSED_BY = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", "dist", "build", "target"}
)
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursorrules", ".windsurfrules", ".goosehints")
ALMOST = ("CLAUDE.local.md", "AGENTS.override.md")
SKILL_TEXTS = (".md", ".txt", ".rst", ".json", ".yaml", ".yml", ".csv", ".toml")
"""The files of a skill that can be read. What can only be run is not brought in."""


def find(root: Path) -> list[Finding]:
    """Return everything in a folder, or in one file, that can be brought in, in the order of names."""
    if root.is_file():
        return list(_in_file(root.parent, root.name))
    found: list[Finding] = []
    for file in _files(root):
        found += _in_file(root, file)
    return found


def _files(root: Path) -> Iterator[str]:
    """Return the files below a folder, by their names within it; links are not followed."""
    seen = 0
    for folder, below, names in os.walk(root):
        within = Path(folder).relative_to(root)
        below[:] = sorted(name for name in below if name not in PASSED_BY) if len(within.parts) < DEEPEST else []
        for name in sorted(names):
            seen += 1
            if seen > MOST_FILES:
                return
            yield str(within / name)


def _in_file(root: Path, file: str) -> Iterator[Finding]:
    path = Path(file)
    if path.name == "SKILL.md":
        yield from _skill(root, path)
    elif path.name in INSTRUCTIONS or file == ".github/copilot-instructions.md":
        yield from _instructions(root, path)
    elif file in SERVER_FILES:
        yield from servers_in(root, path)
    elif path.name == REGISTRY_FILE:
        yield from registered_in(root, path)
    elif path.name in ALMOST:
        yield NotTaken(file, "it is one person's own; import it by name if you want it")
    elif not _is_in_skill(root, path):
        yield from _rule(root, path)


def _instructions(root: Path, path: Path) -> Iterator[Finding]:
    text = text_of(root, path)
    if isinstance(text, NotTaken):
        yield text
        return
    above = path.parent.as_posix()
    top = above in (".", ".github", ".claude", ".gemini", ".junie")
    name = name_of(path.stem if top else f"{path.stem} {above}")
    about = f"Instructions from {path.as_posix()}" if top else f"Instructions for work in {above}/"
    why = "it holds for the whole project" if top else f"it holds for {above}/ only"
    whole = with_files(root, path, text)
    also = f"; with {', '.join(whole.files)}" if whole.files else ""
    yield FoundItem(str(path), Rule(name, whole.text, about, include="always" if top else "agent"), why + also)
    yield from whole.missed


def _rule(root: Path, path: Path) -> Iterator[Finding]:
    if mode_of({}, path) is None:
        return
    parts = parts_of(root, path)
    if isinstance(parts, NotTaken):
        yield parts
        return
    front, text = parts
    mode = mode_of(front, path)
    if isinstance(mode, RuleMode):
        named = path.name.lstrip(".").partition(".")[0]
        about = mode.about or ("" if path.suffix == ".mdc" else f"From {path.as_posix()}")
        yield FoundItem(str(path), Rule(name_of(named), text, about, include=mode.include), mode.why)
    elif mode is not None:
        yield NotTaken(str(path), mode)


def _is_in_skill(root: Path, path: Path) -> bool:
    """Tell whether a file is one of a skill, which brings its files along."""
    return any((root / folder / "SKILL.md").is_file() for folder in path.parents if folder.name)


def _skill(root: Path, path: Path) -> Iterator[Finding]:
    parts = parts_of(root, path)
    if isinstance(parts, NotTaken):
        yield parts
        return
    front, text = parts
    name = name_of(front.get("name") or path.parent.name or "skill")
    folder = root / path.parent
    beside = [file for file in _files(folder) if Path(file).name != "SKILL.md"] if path.parent.name else []
    texts = [file for file in beside if Path(file).suffix.lower() in SKILL_TEXTS]
    said = {file: text_of(folder, Path(file)) for file in texts}
    names = {file: name_of(f"{name} {_stem(file)}") for file, text in said.items() if isinstance(text, str)}
    skill = Reference(
        name,
        text.rstrip("\n") + _list_of_files(names) if names else text,
        front.get("description", ""),
        include="agent",
        related=tuple(names.values()),
        title=first_heading(text) or name,
    )
    yield FoundItem(str(path), skill, "a skill is chosen by its description")
    for file, content in said.items():
        source = str(path.parent / file)
        if isinstance(content, NotTaken):
            yield NotTaken(source, content.why)
            continue
        own = names[file]
        about = f"{file} of the skill {name}"
        reference = Reference(own, content, about, include="agent", title=first_heading(content) or own)
        yield FoundItem(source, reference, "the model can open it: a text of a skill")
    for file in beside:
        if file not in said:
            yield NotTaken(
                str(path.parent / file), "only a skill's texts are brought in; give the agent a tool to run it"
            )


def _stem(file: str) -> str:
    path = Path(file)
    return (path.with_suffix("") if path.suffix.lower() == ".md" else path).as_posix()


def _list_of_files(names: dict[str, str]) -> str:
    """Return what tells the model under which names it can open the files that a skill's text speaks of."""
    listed = "\n".join(f"- {file}: `read_reference` with the name `{name}`" for file, name in names.items())
    return f"\n\nFiles of this skill:\n\n{listed}\n"
