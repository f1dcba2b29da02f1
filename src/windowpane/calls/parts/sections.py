"""Split a text of a prompt into its sections, by structure alone: tags, headings, names of fields and of files.

A system prompt is split at its headings. What a program puts into a user's message is enclosed in tags; the rest of
the message is what its user wrote. No text of any program's prompt is known here.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from windowpane.api.turns import SentKind

LONGEST_NAME = 80
"""How many characters of a heading or a first line name a section."""

INTRODUCTION = "introduction"
"""The name of what stands before the first heading."""

DEEPEST = 8
"""How deep tags within tags are looked into."""

Voice = Literal["system", "user", "tool"]
"""Who is speaking where the text stands: headings divide a system prompt, and belong to the text elsewhere."""


@dataclass(frozen=True, slots=True)
class TextSection:
    """A section begins at `start`, in characters, and goes on to the next."""

    start: int
    kind: SentKind
    name: str


def sections_of(text: str, voice: Voice) -> tuple[TextSection, ...]:
    """Return the sections of a text, the first at 0, without a gap between them."""
    found = list(_tidied(_regions(text, 0, voice, _PLAIN[voice])))
    return tuple(found) if found else (TextSection(0, _PLAIN[voice], ""),)


_PLAIN: Mapping[Voice, SentKind] = {"system": "system", "user": "message", "tool": "result"}

_TAGS: Mapping[str, SentKind] = {
    **dict.fromkeys(
        ("env", "environment", "environment_context", "environment_details", "session_context", "user_info"),
        "environment",
    ),
    **dict.fromkeys(
        ("instructions", "user_instructions", "custom_instructions", "project_context", "loaded_context", "rules"),
        "instructions",
    ),
    **dict.fromkeys(("skills", "available_skills", "skills_instructions", "agent_skills"), "skills"),
    **dict.fromkeys(("mcp", "mcp_servers", "mcp_instructions"), "mcp"),
    **dict.fromkeys(("system-reminder", "system_reminder", "reminder", "permissions"), "reminder"),
}
"""Tags in which programs enclose what they add, and what each encloses."""

_DIVIDED: frozenset[SentKind] = frozenset(("reminder", "environment", "instructions"))
"""Enclosed texts that hold sections of other kinds."""

_OPENING = re.compile(r"^[ \t]*<(?P<tag>[A-Za-z][\w-]{0,40})(?P<rest>[^<>\n]{0,80})>", re.MULTILINE)
_CLOSING = re.compile(r"</(?P<tag>[A-Za-z][\w-]{0,40}[^<>\n]{0,80})>\s*")
_FENCE = re.compile(r"^\s{0,3}(```|~~~)")
_HEADING = re.compile(r"^(?P<level>#{1,2}) (?P<title>\S.*)$")
_BILLING = re.compile(r"^(x-(?=[\w-]*billing)[\w-]*+|Co-Authored-By):", re.IGNORECASE)
_FILE = re.compile(
    r"^[^\w\n]{0,8}(?:[A-Z][\w ]{1,40}? (?:of|from):? )(?P<path>[^\s:`*]+\.(?:md|mdc|txt|rst))\b(?!.*\bEnd of\b)"
)
_FILE_FOR = re.compile(r"^#{1,3} (?P<file>[\w.-]+\.md) \w+ for (?P<folder>\S+)")
_LISTED = re.compile(r"^(- [\w:.-]+: |\w+$)")
"""An entry of a list of names: `- name: what it is`, or a name alone."""
_LEADS: tuple[tuple[re.Pattern[str], SentKind, str], ...] = (
    (re.compile(r"\bskills?\b", re.IGNORECASE), "skills", ""),
    (re.compile(r"\bagents?\b", re.IGNORECASE), "system", "agents"),
    (re.compile(r"\btools?\b", re.IGNORECASE), "system", "list of tools"),
)
_TITLES: tuple[tuple[re.Pattern[str], SentKind], ...] = (
    (re.compile(r"[\w-]\.mdc?$"), "instructions"),
    (re.compile(r"\bMCP\b", re.IGNORECASE), "mcp"),
    (re.compile(r"\bskills\b", re.IGNORECASE), "skills"),
    (re.compile(r"^(environment|git ?status|workspace)\b", re.IGNORECASE), "environment"),
)


def _regions(
    text: str, base: int, voice: Voice, kind: SentKind, name: str = "", *, depth: int = 0
) -> Iterator[TextSection]:
    """Yield the sections of a text that stands at `base`: those of its tags, and those of what is between them."""
    at = 0
    closings = _Closings(text)
    while (opening := _next_tag(text, at, voice, closings, inner=depth > 0)) is not None:
        found, end, own = opening
        if text[at : found.start()].strip():
            yield from _between(text[at : found.start()], base + at, voice, kind, name)
        yield from _tagged(text[found.start() : end], base + found.start(), found, own, depth)
        at = end
    if text[at:].strip() or at == 0:
        yield from _between(text[at:], base + at, voice, kind, name)


class _Closings:
    """Where tags of a text are closed. They are read once, however many tags are opened."""

    def __init__(self, text: str) -> None:
        self._places: dict[str, list[tuple[int, int]]] = {}
        for found in _CLOSING.finditer(text):
            self._places.setdefault(found["tag"], []).append(found.span())

    def behind(self, opening: re.Match[str]) -> int | None:
        """Return where what closes a tag ends, with the blanks behind it. A tag may repeat its attributes there."""
        written = {f"{opening['tag']}{opening['rest']}", opening["tag"]}
        first = (self._first(each, opening.end()) for each in written)
        return min((place for place in first if place is not None), default=(0, None))[1]

    def _first(self, tag: str, at: int) -> tuple[int, int] | None:
        places = self._places.get(tag, [])
        behind = bisect_left(places, (at, 0))
        return places[behind] if behind < len(places) else None


def _next_tag(
    text: str, at: int, voice: Voice, closings: _Closings, *, inner: bool
) -> tuple[re.Match[str], int, SentKind] | None:
    for found in _OPENING.finditer(text, at):
        tag = found["tag"].lower()
        kind = _TAGS.get(tag)
        if voice == "tool" and tag not in ("system-reminder", "system_reminder"):
            continue
        end = closings.behind(found)
        if end is None:
            continue
        if kind is None and end == len(text) and not inner and not text[: found.start()].strip():
            # An unknown tag encloses all of it: the program wrote it, not its user.
            kind = "reminder" if voice == "user" else "system"
        if kind is not None:
            return found, end, kind
    return None


def _tagged(text: str, base: int, opening: re.Match[str], kind: SentKind, depth: int) -> Iterator[TextSection]:
    """Yield the sections of an enclosed text. What stands before the first that can be told belongs to that one."""
    start = opening.end() - opening.start()
    inner = text[start : text.rindex("</")]
    name = opening["tag"] if kind != "reminder" else _first_line(inner) or opening["tag"]
    if kind not in _DIVIDED or depth == DEEPEST:
        yield TextSection(base, kind, name)
        return
    found = [
        section
        for section in _regions(inner, base + start, "user", kind, name, depth=depth + 1)
        if section.kind not in (kind, "message") or section.name != name
    ]
    if kind == "environment":
        yield TextSection(base, kind, name)
        yield from found
    elif found:
        yield replace(found[0], start=base)
        yield from found[1:]
    else:
        yield TextSection(base, kind, name)


def _between(text: str, base: int, voice: Voice, kind: SentKind, name: str) -> Iterator[TextSection]:
    """Yield the sections of a text without tags that are known."""
    if voice == "tool":
        yield TextSection(base, kind, name)
        return
    program = voice == "system" or kind != "message"
    marks = list(_marks(text, base, headings=voice == "system", program=program))
    if not marks or text[: marks[0].start - base].strip():
        first = name or (INTRODUCTION if voice == "system" else "")
        yield TextSection(base, kind, first)
    yield from marks


@dataclass(slots=True)
class _Place:
    """What was read before the line at hand."""

    in_fence: bool = False
    in_file: bool = False
    mcp: bool = False
    blank: bool = True


def _marks(text: str, base: int, *, headings: bool, program: bool) -> Iterator[TextSection]:
    """Yield where sections begin, line by line."""
    place = _Place()
    at = 0
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        plain = line.rstrip()
        if _FENCE.match(plain):
            place.in_fence = not place.in_fence
        elif not place.in_fence:
            found = _file_or_field(plain, place, program=program)
            if found is None and not place.in_file:
                found = _heading(plain, place, headings=headings, program=program)
                if found is None and program and place.blank:
                    found = _lead(plain, lines[number + 1 : number + 5], place)
            if found is not None:
                yield TextSection(base + at, *found)
        place.blank = not plain
        at += len(line)


def _file_or_field(line: str, place: _Place, *, program: bool) -> tuple[SentKind, str] | None:
    if found := _FILE_FOR.match(line):
        place.in_file = True
        return "instructions", f"{found['folder'].rstrip('/')}/{found['file']}"
    if program and (found := _FILE.match(line)):
        place.in_file = True
        return "instructions", found["path"]
    if _BILLING.match(line) and not place.in_file:
        return "billing", line.partition(":")[0]
    return None


def _heading(line: str, place: _Place, *, headings: bool, program: bool) -> tuple[SentKind, str] | None:
    found = _HEADING.match(line)
    if found is None:
        return None
    title = found["title"].strip("#*: ")[:LONGEST_NAME]
    if place.mcp and len(found["level"]) > 1:
        return "mcp", title
    kind: SentKind | None = next((kind for pattern, kind in _TITLES if pattern.search(title)), None)
    if kind is None and not headings:
        return None
    place.mcp = kind == "mcp" and program
    return ("system", title) if kind is None or not program else (kind, title)


def _lead(line: str, after: list[str], place: _Place) -> tuple[SentKind, str] | None:
    """Return what a list is of that a line of prose announces: skills, agents, tools."""
    listed = [each.rstrip() for each in after if each.strip()]
    if _LISTED.match(line) or not line.endswith((":", ".")) or not any(map(_LISTED.match, listed[:1])):
        return None
    for pattern, kind, name in _LEADS:
        if pattern.search(line):
            place.mcp = False
            return kind, name or "skills"
    return None


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line.strip("#*: ")[:LONGEST_NAME]


def _tidied(found: Iterator[TextSection]) -> Iterator[TextSection]:
    """Yield sections in their order, the first from 0, and neighbours with one kind and name as one."""
    last: TextSection | None = None
    for section in found:
        if last is not None and section.kind == last.kind and (section.name == last.name or _encloses_file(section)):
            continue
        yield section if last is not None else replace(section, start=0)
        last = section


def _encloses_file(section: TextSection) -> bool:
    """Tell whether a section is named by its tag alone: it is the text of the file that was named before."""
    return section.kind == "instructions" and section.name.lower() in _TAGS
