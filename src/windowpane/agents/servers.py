"""The entries of `mcpServers`: the shape of the `mcp.json` files that people have, and how tools are included.

An entry that cannot be used as written is left out and reported: a mistyped permission must not become a looser
one. The body that is handed over has exactly the keys that describe a tool server.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from windowpane.agents.base import ServerEntry
from windowpane.agents.fields import Fields, Notes, shortened
from windowpane.agents.items import INCLUDE_MODES
from windowpane.agents.tree import Node, ScalarNode, TableNode
from windowpane.context.items import BUILT_IN_SERVER, CLIENT_SERVER, IncludeMode, Permission

PERMISSIONS: tuple[Permission, ...] = ("required", "not_required", "forbidden")
DEFAULT_TIMEOUT_S = 60.0
LONGEST_TIMEOUT_S = 24 * 3600.0

_VARIABLE = re.compile(r"\$\{([^}]*+)(?:\}|\Z)")
_NAMED = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_HTTP_TYPES = ("http", "streamable-http", "streamable_http", "streamableHttp")
_TYPES = ("stdio", *_HTTP_TYPES)


def read_servers(
    table: TableNode, notes: Notes, variables: Mapping[str, str], folder: str
) -> dict[str, ServerEntry | None]:
    """Return the servers of an `mcpServers` table by name; None for one that cannot be used.

    `variables` fill `${NAME}`; a relative `cwd` is taken from `folder`.
    """
    servers: dict[str, ServerEntry | None] = {}
    for name, (line, node) in table.entries.items():
        own = Notes(notes.file)
        body = _body(name, line, node, own, _Filling(own, f"mcpServers.{name}", variables), folder)
        notes.problems += own.problems
        servers[name] = None if own.failed else ServerEntry(name=name, body=body)
    return servers


class _Filling:
    """Put the values of variables in the place of their names."""

    def __init__(self, notes: Notes, where: str, variables: Mapping[str, str]) -> None:
        self._notes = notes
        self._where = where
        self._variables = variables
        self.needed = True

    def fill(self, text: str, line: int | None) -> str:
        return _VARIABLE.sub(lambda match: self._value(match, line), text) if self.needed else text

    def fill_all(self, texts: Mapping[str, ScalarNode]) -> dict[str, str]:
        return {name: self.fill(scalar.text, scalar.line) for name, scalar in texts.items()}

    def _value(self, match: re.Match[str], line: int | None) -> str:
        if not match.group().endswith("}"):
            return match.group()
        named = _NAMED.fullmatch(match.group(1))
        if named is None or "${" in match.group(1):
            self._notes.fail(line, f"{self._where}: {shortened(match.group())} is not a variable; write ${{NAME}}")
            return ""
        name, default = named.groups()
        value = self._variables.get(name)
        if value is None and default is None:
            self._notes.fail(
                line, f"{self._where}: the variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
        return value or default or ""


def _body(name: str, line: int, node: Node, notes: Notes, filling: _Filling, folder: str) -> dict[str, Any]:
    if not name.strip() or not isinstance(node, TableNode):
        notes.fail(line, "a server is written as a name and a table with its command or url")
        return {}
    if name == BUILT_IN_SERVER:
        notes.fail(line, f"{name} is the name of the tools that are built in; give this server another")
        return {}
    if name == CLIENT_SERVER:
        notes.fail(line, f"{name} is the name of the tools that a client brings along; give this server another")
        return {}
    fields = Fields(node, notes, f"mcpServers.{name}.")
    enabled = filling.needed = _is_enabled(fields, notes)
    body: dict[str, Any] = {
        **_process(fields, filling, folder),
        **_address(fields, notes, filling),
        "include": fields.choice("include", INCLUDE_MODES),
        "always_up_to": _most_always(fields),
        "permission": fields.choice("permission", PERMISSIONS),
        **_tools(name, fields, notes),
        "enabled": enabled,
        "timeout_s": fields.number("timeout_s", DEFAULT_TIMEOUT_S, 0.1, LONGEST_TIMEOUT_S),
    }
    _check_kind(name, line, fields, notes, body)
    fields.finish()
    return body


def _most_always(fields: Fields) -> int | None:
    return fields.integer("always_up_to", 0, 0, 10_000) if fields.line("always_up_to") else None


def _is_enabled(fields: Fields, notes: Notes) -> bool:
    enabled, disabled = fields.flag("enabled", default=True), fields.flag("disabled", default=False)
    if fields.line("enabled") and fields.line("disabled") and enabled == disabled:
        notes.fail(fields.line("disabled"), "enabled and disabled contradict one another; keep one of them")
    return enabled and not disabled


def _process(fields: Fields, filling: _Filling, folder: str) -> dict[str, Any]:
    cwd = filling.fill(fields.text("cwd", ""), fields.line("cwd"))
    return {
        "command": filling.fill(fields.text("command", ""), fields.line("command")) or None,
        "args": tuple(filling.fill(arg.text, arg.line) for arg in fields.texts("args")),
        "env": filling.fill_all(fields.text_table("env")),
        "cwd": str(Path(folder, cwd)) if cwd else None,
    }


def _address(fields: Fields, notes: Notes, filling: _Filling) -> dict[str, Any]:
    written, line = fields.text("url", ""), fields.line("url")
    url = filling.fill(written, line)
    if filling.needed and url and not _is_http(url):
        notes.fail(line, f"url must begin with http:// or https:// and name a host, not {shortened(written)}")
    headers = filling.fill_all(fields.text_table("headers"))
    if any(not value.isprintable() for value in headers.values()):
        notes.fail(fields.line("headers"), "a header may hold only printing characters")
    return {"url": url or None, "headers": headers}


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _tools(server: str, fields: Fields, notes: Notes) -> dict[str, Any]:
    include: dict[str, IncludeMode] = {}
    permission: dict[str, Permission] = {}
    table = fields.table("tools")
    for tool, (line, node) in (table.entries if table else {}).items():
        if not isinstance(node, TableNode):
            notes.fail(line, f"mcpServers.{server}.tools.{tool} must be a table with include or permission")
            continue
        settings = Fields(node, notes, f"mcpServers.{server}.tools.{tool}.")
        if mode := settings.choice("include", INCLUDE_MODES):
            include[tool] = mode
        if permitted := settings.choice("permission", PERMISSIONS):
            permission[tool] = permitted
        settings.finish()
    return {"tool_include": include, "tool_permission": permission}


def _check_kind(name: str, line: int, fields: Fields, notes: Notes, body: Mapping[str, Any]) -> None:
    kind = fields.choice("type", _TYPES) or fields.choice("transport", _TYPES)
    by_process, by_url = fields.line("command") is not None, fields.line("url") is not None
    if by_process == by_url:
        notes.fail(line, f"server {name!r} needs a command or a url, and has {'both' if by_url else 'neither'}")
    elif not (body["command"] or body["url"]) and not notes.failed:
        notes.fail(line, f"server {name!r} has an empty {'url' if by_url else 'command'}")
    elif kind is not None and (kind in _HTTP_TYPES) != by_url:
        notes.fail(fields.line("type") or fields.line("transport"), f"server {name!r} is not of type {kind}")
    for key in ("args", "env", "cwd") if by_url else ("headers",):
        if fields.line(key) is not None and by_process != by_url:
            notes.remark(
                fields.line(key),
                f"mcpServers.{name}.{key} has no effect on a server with a {'url' if by_url else 'command'}",
            )
