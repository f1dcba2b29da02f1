"""Prompt files: the core prompt, the default for sites, and one file per site.

A site's file is named for its host, or names its hosts in the front matter. A host also stands for all hosts below
it, so nothing but the plain host is written.
"""

import re
from dataclasses import dataclass

from windowpane.agents.fields import Fields, Notes, shortened
from windowpane.agents.frontmatter import read_document
from windowpane.agents.tree import TreeError
from windowpane.context.agents import Problem

_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFile:
    """What one prompt file says. `text` is None when it cannot be used. `hosts` have the lines that name them."""

    file: str
    text: str | None = None
    problems: tuple[Problem, ...] = ()
    hosts: tuple[tuple[str, int | None], ...] = ()


def read_prompt(file: str, content: str) -> PromptFile:
    """Return the prompt that a file holds."""
    return _read(file, content, for_site=False)


def read_site(file: str, content: str) -> PromptFile:
    """Return the site skill that a file holds, and its hosts."""
    return _read(file, content, for_site=True)


def _read(file: str, content: str, *, for_site: bool) -> PromptFile:
    notes = Notes(file)
    try:
        document = read_document(content)
    except TreeError as error:
        notes.fail(error.line, error.reason)
        return PromptFile(file=file, problems=tuple(notes.problems))
    fields = Fields(document.front, notes)
    fields.text("description", "")
    hosts = _hosts(file, fields, notes) if for_site else ()
    fields.finish()
    if not document.text.strip():
        notes.fail(None, "the file has no text")
    return PromptFile(
        file=file, text=None if notes.failed else document.text, problems=tuple(notes.problems), hosts=hosts
    )


def _hosts(file: str, fields: Fields, notes: Notes) -> tuple[tuple[str, int | None], ...]:
    written = [(host.text, host.line) for host in fields.texts("hosts")]
    stem = file.rpartition("/")[2][: -len(".md")]
    hosts: list[tuple[str, int | None]] = []
    for host, line in written or [(stem, fields.line("hosts"))]:
        plain = _plain_host(host)
        if plain is None:
            notes.fail(line, f"{shortened(host)!r} is not a host; write it plainly, such as example.org")
        elif plain not in dict(hosts):
            hosts.append((plain, line))
    return tuple(hosts)


def _plain_host(host: str) -> str | None:
    """Return a host in lower case and ASCII, without the dot of the root, or None when it is no host."""
    try:
        plain = host.lower().removesuffix(".").encode("idna").decode("ascii")
    except UnicodeError:
        return None
    return plain if _HOST.fullmatch(plain) else None
