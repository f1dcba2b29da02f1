"""Rules and references as Markdown files: `read_rule`, `read_reference`, and back again with `render_item`.

Reading what was rendered gives the same item, whatever its text holds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from windowpane.agents.fields import Fields, Notes, shortened
from windowpane.agents.frontmatter import read_document
from windowpane.agents.tree import TreeError
from windowpane.context.agents import Problem
from windowpane.context.items import DEFAULT_PRIORITY, IncludeMode, Reference, Rule
from windowpane.context.text import first_heading

INCLUDE_MODES: tuple[IncludeMode, ...] = ("always", "manual", "agent")
HIGHEST_PRIORITY = 999

_NEVER_FOLDED = 2**31
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MARKDOWN_SUFFIX = re.compile(r"\.md$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFile:
    """What one file says. `item` is None when it cannot be used; the lines say where names stand, for later checks."""

    file: str
    item: Rule | Reference | None = None
    problems: tuple[Problem, ...] = ()
    name_line: int | None = None
    related_lines: Mapping[str, int]


def read_rule(file: str, content: str, version: str) -> ItemFile:
    """Return the rule that a file holds. `version` counts when the file names none."""
    return _read(file, content, version, Rule)


def read_reference(file: str, content: str, version: str) -> ItemFile:
    """Return the reference that a file holds. `version` counts when the file names none."""
    return _read(file, content, version, Reference)


def render_item(item: Rule | Reference) -> str:
    """Return the file that reads as this item; write it without translating line ends.

    Settings that have their default are left out, and so is an empty version: then the file's time is the version.
    """
    front: dict[str, Any] = {"name": item.name}
    if item.description:
        front["description"] = item.description
    if item.priority != DEFAULT_PRIORITY:
        front["priority"] = item.priority
    front["include"] = item.include
    if not item.enabled:
        front["enabled"] = False
    if item.version:
        front["version"] = item.version
    if isinstance(item, Reference):
        if item.title != _default_title(item.name, item.text):
            front["title"] = item.title
        if item.related:
            front["related"] = list(item.related)
    return f"---\n{dumped(front)}---\n{item.text}"


def dumped(value: Any, *, flow: bool = False) -> str:
    """Return a value as YAML that reads as the same value; with `flow` all of it on one line."""
    return yaml.dump(
        value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_NEVER_FOLDED, default_flow_style=flow
    )


class _Dumper(yaml.SafeDumper):
    """Writes texts with line ends and other unseen characters as escapes: the other styles do not keep them all."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_text)


def _read(file: str, content: str, version: str, kind: type[Rule] | type[Reference]) -> ItemFile:
    notes = Notes(file)
    try:
        document = read_document(content)
    except TreeError as error:
        notes.fail(error.line, error.reason)
        return ItemFile(file=file, problems=tuple(notes.problems), related_lines={})
    fields, text = Fields(document.front, notes), document.text
    name = fields.text("name", _MARKDOWN_SUFFIX.sub("", file.rpartition("/")[2]))
    if not _NAME.fullmatch(name):
        notes.fail(fields.line("name"), f"the name {shortened(name)!r} may hold only letters, digits, _ and -")
    item = Rule(
        name=name,
        text=text,
        description=fields.text("description", ""),
        priority=fields.integer("priority", DEFAULT_PRIORITY, 0, HIGHEST_PRIORITY),
        include=fields.choice("include", INCLUDE_MODES) or "manual",
        enabled=fields.flag("enabled", default=True),
        version=fields.text("version", version),
    )
    related_lines: dict[str, int] = {}
    if kind is Reference:
        related_lines = {name.text: name.line for name in fields.texts("related")}
        item = Reference(
            name=item.name,
            text=item.text,
            description=item.description,
            priority=item.priority,
            include=item.include,
            enabled=item.enabled,
            version=item.version,
            related=tuple(related_lines),
            title=fields.text("title", _default_title(name, text)),
        )
    fields.finish()
    return ItemFile(
        file=file,
        item=None if notes.failed else item,
        problems=tuple(notes.problems),
        name_line=fields.line("name"),
        related_lines=related_lines,
    )


def _default_title(name: str, text: str) -> str:
    return first_heading(text) or name
