"""Bring everything that was found into an agent's folder, and say what became of it.

Importing again changes only what changed at its source. A file that was edited since it was imported, or
that was never imported, is kept and reported, unless overwriting was asked for. So no edit is lost.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from windowpane.agents.agent import CORE
from windowpane.agents.base import Agent
from windowpane.agents.edit import (
    ANY,
    FOLDERS,
    SERVERS,
    create_file,
    read_text,
    replace_file,
    revision_of,
)
from windowpane.agents.folder import AgentFolder
from windowpane.agents.importers.base import Became, Finding, FoundItem, FoundServer, NotTaken, Outcome
from windowpane.agents.importers.sources import find
from windowpane.agents.items import render_item
from windowpane.agents.manifest import MANIFEST, read_mcp_json
from windowpane.errors import MissingFileError

NEW_CORE = (
    "You help with the project that these rules and references describe. Say so when you do not know something.\n"
)
NEW_MANIFEST = "description: Imported from {source}\nmodel: echo\n"

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)")
_MARK = re.compile(r"\A---\n# imported from [^\n]*, as ([0-9a-f]{12})\n")


def import_into(folder: Path, sources: Sequence[Path], *, overwrite: bool = False, dry: bool = False) -> list[Outcome]:
    """Bring what these folders and files hold into an agent's folder, which is made if it is not there.

    Where they hold nothing, none is made. With `dry` nothing is written, and the report says what would become of
    everything.
    """
    found = [finding for source in sources for finding in find(source)]
    empty = all(isinstance(finding, NotTaken) for finding in found)
    agent = _agent(folder, sources, dry or empty)
    outcomes: list[Outcome] = []
    for finding in _distinct(found):
        match finding:
            case FoundItem():
                outcomes.append(_item(agent, finding, overwrite, dry))
            case NotTaken():
                outcomes.append(Outcome(source=finding.source, target="", became="not_imported", why=finding.why))
            case FoundServer():
                pass
    servers = [finding for finding in found if isinstance(finding, FoundServer)]
    return outcomes + _servers(agent, servers, overwrite, dry)


def _agent(folder: Path, sources: Sequence[Path], dry: bool) -> Agent:
    if not (folder / MANIFEST).exists() and not dry:
        folder.mkdir(parents=True, exist_ok=True)
        empty = AgentFolder(folder).current()
        create_file(empty, MANIFEST, NEW_MANIFEST.format(source=", ".join(source.name for source in sources)))
        if not (folder / CORE).exists():
            create_file(empty, CORE, NEW_CORE)
    return AgentFolder(folder).current()


def _distinct(found: Iterable[Finding]) -> list[Finding]:
    """Return the findings with a name for each item; the same text under two names is brought in once."""
    names: set[tuple[str, str]] = set()
    texts: dict[str, str] = {}
    distinct: list[Finding] = []
    for finding in found:
        if not isinstance(finding, FoundItem):
            distinct.append(finding)
            continue
        text = finding.item.text.strip()
        if text in texts:
            distinct.append(NotTaken(finding.source, f"it says the same as {texts[text]}"))
            continue
        texts[text] = finding.source
        kind, name, number = finding.item.ref.type, finding.item.name, 1
        while (kind, name) in names:
            number += 1
            name = f"{finding.item.name}-{number}"
        names.add((kind, name))
        distinct.append(replace(finding, item=replace(finding.item, name=name)))
    return distinct


def _item(agent: Agent, found: FoundItem, overwrite: bool, dry: bool) -> Outcome:
    ref = found.item.ref
    known = next((entry.file for entry in agent.files if entry.kind == ref.type and entry.name == ref.name), None)
    target = known or f"{FOLDERS[ref.type]}/{ref.name}.md"
    text = _marked(found)

    def outcome(became: Became, why: str) -> Outcome:
        return Outcome(source=found.source, target=target, became=became, why=why)

    try:
        there = read_text(agent, target)
    except MissingFileError:
        if not dry:
            create_file(agent, target, text)
        return outcome("created", f"{ref.type}, {found.item.include}: {found.why}")
    if there.text == text:
        return outcome("unchanged", "it was imported before")
    if not overwrite and not _untouched(there.text):
        return outcome("kept", "the file there was edited by hand; --overwrite replaces it")
    if not dry:
        replace_file(agent, target, text, revision=there.revision)
    return outcome("updated", f"{ref.type}, {found.item.include}: {found.why}")


def _marked(found: FoundItem) -> str:
    """Return the file of an item with a line that says where it came from, and what it was like then."""
    plain = render_item(found.item).removeprefix("---\n")
    source = " ".join(found.source.split())
    return f"---\n# imported from {source}, as {revision_of(plain.encode())[:12]}\n{plain}"


def _untouched(text: str) -> bool:
    mark = _MARK.match(text)
    return mark is not None and revision_of(text[mark.end() :].encode())[:12] == mark.group(1)


def _servers(agent: Agent, found: Sequence[FoundServer], overwrite: bool, dry: bool) -> list[Outcome]:
    if not found:
        return []
    try:
        before = read_text(agent, SERVERS)
        body = _table(before.text)
    except MissingFileError:
        before, body = None, dict[str, Any]()
    except ValueError as error:
        why = f"{SERVERS} cannot be read ({error}); correct it first"
        return [Outcome(source=server.source, target="", became="not_imported", why=why) for server in found]
    servers: dict[str, object] = dict(body.get("mcpServers", {}))
    described = {entry.name for entry in agent.servers} - set(servers)
    outcomes = [_server(server, servers, described, overwrite) for server in found]
    changed = any(outcome.became in ("created", "updated") for outcome in outcomes)
    if changed and not dry:
        text = json.dumps({**body, "mcpServers": servers}, indent=2, ensure_ascii=False) + "\n"
        if before is None:
            create_file(agent, SERVERS, text)
        else:
            replace_file(agent, SERVERS, text, revision=ANY if overwrite else before.revision)
    return outcomes


def _table(text: str) -> dict[str, Any]:
    body: object = json.loads(text)
    if not isinstance(body, dict):
        raise ValueError("it is no table")  # noqa: TRY004 - for the caller it is a file that is not as it should be
    return cast("dict[str, Any]", body)


def _server(server: FoundServer, servers: dict[str, object], described: set[str], overwrite: bool) -> Outcome:
    target = f"{SERVERS} {server.name}"
    wrong = _wrong(server)
    if wrong:
        return Outcome(source=server.source, target="", became="not_imported", why=wrong)
    if server.name in described:
        why = f"{MANIFEST} describes a server of that name, which counts"
        return Outcome(source=server.source, target=MANIFEST, became="kept", why=why)
    if servers.get(server.name) == server.body:
        return Outcome(source=server.source, target=target, became="unchanged", why="it was imported before")
    if server.name in servers and not overwrite:
        why = "the server there is another; --overwrite takes its place"
        return Outcome(source=server.source, target=target, became="kept", why=why)
    became: Became = "updated" if server.name in servers else "created"
    servers[server.name] = server.body
    why = server.why or "its tools wait for a person unless you permit them"
    return Outcome(source=server.source, target=target, became=became, why=why)


def _wrong(server: FoundServer) -> str:
    """Return why a server could not be used, or nothing."""
    text = json.dumps({"mcpServers": {server.name: server.body}})
    # Whether a variable is set is for the day on which the server starts.
    variables = dict.fromkeys(_VARIABLE.findall(text), "x")
    said = read_mcp_json(SERVERS, text, variables, "/")
    return "" if said.servers.get(server.name) else "; ".join(problem.reason for problem in said.problems)
