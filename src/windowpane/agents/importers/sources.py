"""Read the files that other programs take instructions from.

| file | becomes | include |
|---|---|---|
| `AGENTS.md`, `CLAUDE.md`, `.cursorrules`, Copilot's instructions | a rule | `always`; below the top `agent` |
| `.cursor/rules/*.mdc` | a rule | `always` if `alwaysApply`; `agent` with globs or a description; else `manual` |
| `.clinerules`, `.clinerules/*.md` | a rule | `always`; `agent` with `paths` |
| `SKILL.md` in a folder | a reference, and one for each Markdown file beside it | `agent`; `manual` |
| `mcp.json`, `.mcp.json`, `.cursor/mcp.json`, `.vscode/mcp.json` | tool servers | as servers are |

Front matter of other programs is not always YAML (`globs: *.ts`), so it is read line by line.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from windowpane.agents.files import MAX_BYTES
from windowpane.agents.frontmatter import first_heading, split_document
from windowpane.agents.importers.base import Finding, FoundItem, FoundServer, NotTaken
from windowpane.agents.tree import TreeError
from windowpane.context.items import IncludeMode, Reference, Rule

DEEPEST = 8
MOST_FILES = 50_000
PASSED_BY = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", "dist", "build", "target"}
)
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", ".cursorrules", ".windsurfrules", ".goosehints")
SERVER_FILES = ("mcp.json", ".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", "claude_desktop_config.json")
ALMOST = ("CLAUDE.local.md", "AGENTS.override.md")

_LINE = re.compile(r"^([A-Za-z][A-Za-z0-9_-]*)[ \t]*:[ \t]*(.*?)[ \t]*$")
_ITEM = re.compile(r"^[ \t]+-[ \t]*(.*?)[ \t]*$")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_MENTION = re.compile(r"(?:^|\s)@((?:\.{1,2}/|~/|/)?[\w./-]+\.\w+)")


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
    folders = path.parent.parts
    if path.name == "SKILL.md":
        yield from _skill(root, path)
    elif path.name in INSTRUCTIONS or file == ".github/copilot-instructions.md":
        yield from _instructions(root, path)
    elif path.name == ".clinerules" or (".clinerules" in folders and path.suffix.lower() in (".md", ".txt")):
        yield from _cline(root, path)
    elif path.suffix == ".mdc" or (folders[-2:] == (".cursor", "rules") and path.suffix == ".md"):
        yield from _cursor(root, path)
    elif file in SERVER_FILES:
        yield from _servers(root, path)
    elif path.name in ALMOST:
        yield NotTaken(file, "it is one person's own; import it by name if you want it")


def _instructions(root: Path, path: Path) -> Iterator[Finding]:
    text = _text(root, path)
    if isinstance(text, NotTaken):
        yield text
        return
    above = path.parent.as_posix()
    top = above in (".", ".github", ".claude")
    name = _name(path.stem if top else f"{path.stem} {above}")
    about = f"Instructions from {path.as_posix()}" if top else f"Instructions for work in {above}/"
    why = "it holds for the whole project" if top else f"it holds for {above}/ only"
    yield FoundItem(str(path), Rule(name, text, about, include="always" if top else "agent"), why)
    for mention in dict.fromkeys(_MENTION.findall(text)):
        yield NotTaken(
            f"{path} @{mention}", "what it points to is not read; import that file's text yourself if needed"
        )


def _cline(root: Path, path: Path) -> Iterator[Finding]:
    parts = _parts(root, path)
    if isinstance(parts, NotTaken):
        yield parts
        return
    front, text = parts
    name = _name("clinerules" if path.name == ".clinerules" else path.stem)
    paths = front.get("paths", "")
    include: IncludeMode = "agent" if paths else "always"
    about = f"Applies to {paths}" if paths else f"From {path.as_posix()}"
    why = f"it is for files like {paths}" if paths else "Cline always sends it"
    yield FoundItem(str(path), Rule(name, text, about, include=include), why)


def _cursor(root: Path, path: Path) -> Iterator[Finding]:
    parts = _parts(root, path)
    if isinstance(parts, NotTaken):
        yield parts
        return
    front, text = parts
    always, globs, about = (
        front.get("alwaysApply", "").lower() == "true",
        front.get("globs", ""),
        front.get("description", ""),
    )
    include, why = _cursor_mode(always, globs, about)
    described = ". ".join(part for part in (about.rstrip("."), f"Applies to {globs}" if globs else "") if part)
    yield FoundItem(str(path), Rule(_name(path.stem), text, described, include=include), why)


def _cursor_mode(always: bool, globs: str, about: str) -> tuple[IncludeMode, str]:
    if always:
        return "always", "alwaysApply is true"
    if globs:
        return "agent", f"it is for files like {globs}"
    if about:
        return "agent", "it is described, for the model to choose"
    return "manual", "it has neither alwaysApply, globs nor a description"


def _skill(root: Path, path: Path) -> Iterator[Finding]:
    parts = _parts(root, path)
    if isinstance(parts, NotTaken):
        yield parts
        return
    front, text = parts
    name = _name(front.get("name") or path.parent.name or "skill")
    folder = root / path.parent
    beside = [file for file in _files(folder) if file != "SKILL.md"] if path.parent.name else []
    texts = [file for file in beside if Path(file).suffix.lower() == ".md" and Path(file).name != "SKILL.md"]
    names = {file: _name(f"{name} {Path(file).with_suffix('').as_posix()}") for file in texts}
    skill = Reference(
        name,
        text,
        front.get("description", ""),
        include="agent",
        related=tuple(names.values()),
        title=first_heading(text) or name,
    )
    yield FoundItem(str(path), skill, "a skill is chosen by its description")
    for file, own in names.items():
        said = _text(folder, Path(file))
        source = str(path.parent / file)
        if isinstance(said, NotTaken):
            yield NotTaken(source, said.why)
        else:
            reference = Reference(own, said, f"Part of the skill {name}", title=first_heading(said) or own)
            yield FoundItem(source, reference, "a part of a skill is added by hand")
    for file in beside:
        if file not in names and Path(file).name != "SKILL.md":
            yield NotTaken(
                str(path.parent / file), "only a skill's texts are brought in; give the agent a tool to run it"
            )


def _servers(root: Path, path: Path) -> Iterator[Finding]:
    text = _text(root, path)
    if isinstance(text, NotTaken):
        yield text
        return
    try:
        body: Any = json.loads(text)
    except ValueError as error:
        yield NotTaken(str(path), f"it is not JSON: {error}")
        return
    table = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    servers: Any = table.get("mcpServers") or table.get("servers")
    if not isinstance(servers, dict):
        yield NotTaken(str(path), "it lists no servers under `mcpServers` or `servers`")
        return
    for name, entry in cast("dict[str, Any]", servers).items():
        yield _server(root, f"{path} {name}", name, entry)


def _server(root: Path, source: str, name: str, entry: Any) -> FoundServer | NotTaken:
    if not isinstance(entry, dict):
        return NotTaken(source, "it is not described by a table")
    body = cast("dict[str, Any]", entry)
    if "${input:" in json.dumps(body):
        return NotTaken(source, "it asks for something when it starts (`${input:…}`); use an environment variable")
    if "command" in body and "cwd" not in body:
        # Other programs start servers in the project's folder, and relative arguments mean that one.
        return FoundServer(source, name, {**body, "cwd": str(root.resolve())}, "it runs in the folder it came from")
    return FoundServer(source, name, body)


def _parts(root: Path, path: Path) -> tuple[dict[str, str], str] | NotTaken:
    text = _text(root, path)
    if isinstance(text, NotTaken):
        return text
    try:
        _, front, _, body = split_document(text)
    except TreeError as error:
        return NotTaken(str(path), error.reason)
    return _loose(front), body.lstrip("\r\n")


def _loose(front: str) -> dict[str, str]:
    """Return front matter as plain texts; a list becomes one text with commas."""
    found: dict[str, str] = {}
    last = ""
    for line in front.splitlines():
        if match := _LINE.match(line):
            last = match.group(1)
            found[last] = _unquoted(match.group(2))
        elif last and (match := _ITEM.match(line)):
            found[last] = ", ".join(part for part in (found[last], _unquoted(match.group(1))) if part)
        elif last and line.strip() and line[:1] in " \t":
            found[last] = f"{found[last].lstrip('>|-').strip()} {line.strip()}".strip()
    return found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    if value.startswith("[") and value.endswith("]"):
        return ", ".join(_unquoted(part.strip()) for part in value[1:-1].split(",") if part.strip())
    return value


def _text(root: Path, path: Path) -> str | NotTaken:
    try:
        content = (root / path).read_bytes()
        if len(content) > MAX_BYTES:
            return NotTaken(str(path), f"it has {len(content):,} bytes, and no more than {MAX_BYTES:,} are read")
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        return NotTaken(str(path), "it is not UTF-8 text")
    except OSError as error:
        return NotTaken(str(path), f"it cannot be read: {error.strerror}")
    return text if text.strip() else NotTaken(str(path), "it is empty")


def _name(words: str) -> str:
    return _UNFIT.sub("-", words).strip("-").lower()[:80] or "imported"
