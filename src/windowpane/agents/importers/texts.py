"""Read files of other programs: texts, front matter that is not always YAML, and the files that a text points to."""

import re
from dataclasses import dataclass
from pathlib import Path

from windowpane.agents.files import MAX_BYTES
from windowpane.agents.frontmatter import split_document
from windowpane.agents.importers.base import NotTaken
from windowpane.agents.tree import TreeError

DEEPEST_MENTION = 5
"""How far files that point to files are followed, as Claude Code does."""

_LINE = re.compile(r"^([A-Za-z][A-Za-z0-9_-]*+)[ \t]*+:(.*)$")
_ITEM = re.compile(r"^[ \t]++-(.*)$")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_MENTION = re.compile(r"(?:^|\s)@((?:\.{1,2}/|~/|/)?[\w./-]*\w)")
_CODE = re.compile(r"^(`{3,}+|~{3,}+).*?(?:^\1|\Z)|`[^`\n]*+`", re.DOTALL | re.MULTILINE)
# What is not closed is taken to its end as well: it would be read again from each quote or comment in it.
_JSON_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*+"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_JSON_COMMA = re.compile(r'("(?:\\.|[^"\\\n])*+"?)|,(?=\s*[}\]])')


def text_of(root: Path, path: Path) -> str | NotTaken:
    """Return the text of a file."""
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


def parts_of(root: Path, path: Path) -> tuple[dict[str, str], str] | NotTaken:
    """Return the front matter of a file, read line by line, and its text."""
    text = text_of(root, path)
    if isinstance(text, NotTaken):
        return text
    try:
        _, front, _, body = split_document(text)
    except TreeError as error:
        return NotTaken(str(path), error.reason)
    return _loose(front), body.lstrip("\r\n")


def name_of(words: str) -> str:
    """Return a name that an item can have."""
    return _UNFIT.sub("-", words).strip("-").lower()[:80] or "imported"


def plain_json(text: str) -> str:
    """Return JSON with comments and commas at the end of lists as plain JSON; lines stay where they are."""
    text = _JSON_COMMENT.sub(lambda match: match[1] or "\n" * match[0].count("\n"), text)
    return _JSON_COMMA.sub(lambda match: match[1] or "", text)


@dataclass(frozen=True, slots=True)
class WithFiles:
    """A text with the files that it points to behind it, their names, and what was not followed."""

    text: str
    files: tuple[str, ...]
    missed: tuple[NotTaken, ...]


def with_files(root: Path, path: Path, text: str) -> WithFiles:
    """Return a text with every file that it points to with `@`, and those that they point to, each once.

    Only files of the project are read. Code is not looked into.
    """
    seen = {(root / path).resolve()}
    found: list[tuple[str, str]] = []
    missed: list[NotTaken] = []

    def follow(source: Path, said: str, depth: int) -> None:
        for mention in dict.fromkeys(_MENTION.findall(_CODE.sub("", said))):
            file = (root / source.parent / mention).resolve()
            if file in seen or (_may_be_a_name(mention) and not file.is_file()):
                continue
            read = _mentioned(root, file, mention, depth)
            if isinstance(read, str):
                missed.append(NotTaken(f"{source} @{mention}", read))
                continue
            seen.add(file)
            within, text = read
            found.append((str(within), text))
            follow(within, text, depth + 1)

    follow(path, text, 1)
    behind = "".join(f"\n\n# {name}\n\n{said.strip()}" for name, said in found)
    whole = f"{text.rstrip()}{behind}\n" if found else text
    return WithFiles(whole, tuple(name for name, _ in found), tuple(missed))


def _may_be_a_name(mention: str) -> bool:
    """Tell whether what stands behind `@` could be a person or a package as well as a file."""
    return not Path(mention).suffix and not mention.startswith((".", "~", "/"))


def _mentioned(root: Path, file: Path, mention: str, depth: int) -> tuple[Path, str] | str:
    """Return a file of the project and its text, or why it is not read."""
    top = root.resolve()
    if mention.startswith("~") or not file.is_relative_to(top):
        return "it is outside of the project; import that file's text yourself if needed"
    if depth > DEEPEST_MENTION:
        return f"it is pointed to {depth} files deep, and no more than {DEEPEST_MENTION} are followed"
    within = file.relative_to(top)
    if not file.is_file():
        return "there is no such file in the project"
    text = text_of(top, within)
    return text.why if isinstance(text, NotTaken) else (within, text)


def _loose(front: str) -> dict[str, str]:
    """Return front matter as plain texts; a list becomes one text with commas."""
    found: dict[str, str] = {}
    last = ""
    for line in front.splitlines():
        if match := _LINE.match(line):
            last = match.group(1)
            found[last] = _unquoted(match.group(2).strip(" \t"))
        elif last and (match := _ITEM.match(line)):
            found[last] = ", ".join(part for part in (found[last], _unquoted(match.group(1).strip(" \t"))) if part)
        elif last and line.strip() and line[:1] in " \t":
            found[last] = f"{found[last].lstrip('>|-').strip()} {line.strip()}".strip()
    return found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    if value.startswith("[") and value.endswith("]"):
        return ", ".join(_unquoted(part.strip()) for part in value[1:-1].split(",") if part.strip())
    return value
