"""`agent.yaml` and `mcp.json`: what an agent is by default, and which tool servers it has.

A setting that cannot be read has its default, so that a slip of the pen does not take the agent away. One default is
stricter: when it cannot be known whether tool calls wait for a person, they all do. When the whole file cannot be read,
or not the model that it names, the agent answers nothing: another model is not what its author chose.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from windowpane.agents.base import ServerEntry
from windowpane.agents.fields import Fields, Notes
from windowpane.agents.servers import read_servers
from windowpane.agents.tree import Node, TableNode, TreeError, read_json, read_yaml, value_of
from windowpane.context.agents import AgentSettings, Problem
from windowpane.context.calls import ModelPrice
from windowpane.context.carried import CacheMode
from windowpane.context.messages import FileKind
from windowpane.context.session import Mode, ToolPermission
from windowpane.errors import InvalidSettingError

MANIFEST = "agent.yaml"
"""The file that makes a folder an agent."""

TOOL_PERMISSIONS: tuple[ToolPermission, ...] = ("always", "never", "tool")
CACHE_MODES: tuple[CacheMode, ...] = ("auto", "stable", "fresh")
MODES: tuple[Mode, ...] = ("normal", "thinking", "research")
INPUTS: tuple[FileKind, ...] = ("image", "pdf")
STRICTEST: ToolPermission = "always"

_MOST_TOKENS = 100_000_000
_MOST_CALLS = 10_000
_MOST_DOLLARS = 1_000_000
_LEAST_MESSAGES, _MOST_MESSAGES = 5, 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a file says about the agent. A server that cannot be used is None, so that no other takes its place."""

    description: str = ""
    questions: tuple[str, ...] = ()
    settings: AgentSettings = field(default_factory=AgentSettings)
    servers: Mapping[str, ServerEntry | None] = field(default_factory=dict[str, ServerEntry | None])
    problems: tuple[Problem, ...] = ()
    unreadable: Problem | None = None
    """Why the agent must not answer until the file is corrected."""


UNREADABLE = Manifest(settings=AgentSettings(tool_permission=STRICTEST))
"""What is known of an agent whose `agent.yaml` cannot be read."""


CheckSearch = Callable[[Mapping[str, Any]], object]
"""Raises `InvalidSettingError` for settings of the search that cannot be used."""


def read_manifest(
    file: str,
    content: str,
    variables: Mapping[str, str],
    folder: str,
    name: str,
    check_search: CheckSearch | None = None,
) -> Manifest:
    """Return what `agent.yaml` says about the agent of this name."""
    notes = Notes(file)
    table = _table(read_yaml, content, notes)
    if table is None:
        return Manifest(
            settings=UNREADABLE.settings, problems=tuple(notes.problems), unreadable=next(iter(notes.problems))
        )
    fields = Fields(table, notes)
    model = fields.text("model", "")
    unreadable = next(iter(notes.problems), None)
    if fields.text("name", name) != name:
        notes.remark(fields.line("name"), f"the agent is named {name!r} after its folder; rename the folder instead")
    description = fields.text("description", "")
    questions = tuple(question.text for question in fields.texts("questions"))
    settings = _settings(
        fields, model, _search(fields, notes, check_search), _prices(fields, notes), _memory(fields, notes)
    )
    servers = fields.table("mcpServers")
    fields.finish()
    return Manifest(
        description=description,
        questions=questions,
        settings=settings,
        servers=read_servers(servers, notes, variables, folder) if servers else {},
        problems=tuple(notes.problems),
        unreadable=unreadable,
    )


def read_mcp_json(file: str, content: str, variables: Mapping[str, str], folder: str) -> Manifest:
    """Return what `mcp.json` says: servers only, under `mcpServers` or under `servers`."""
    notes = Notes(file)
    table = _table(read_json, content, notes)
    if table is None:
        return Manifest(problems=tuple(notes.problems))
    fields = Fields(table, notes)
    entries = {
        name: entry
        for key in ("servers", "mcpServers")
        if (servers := fields.table(key)) is not None
        for name, entry in servers.entries.items()
    }
    fields.finish(ignored=("$schema", "inputs"))
    servers = read_servers(TableNode(table.line, entries), notes, variables, folder)
    return Manifest(servers=servers, problems=tuple(notes.problems))


def _table(read: Callable[[str], Node], content: str, notes: Notes) -> TableNode | None:
    try:
        node = read(content)
    except TreeError as error:
        notes.fail(error.line, error.reason)
        return None
    if isinstance(node, TableNode):
        return node
    notes.fail(node.line, "the file must be a table of names and values")
    return None


def _search(fields: Fields, notes: Notes, check: CheckSearch | None) -> dict[str, Any]:
    table = fields.table("search")
    settings: dict[str, Any] = value_of(table) if table else {}
    try:
        if check is not None:
            check(settings)
    except InvalidSettingError as error:
        notes.remark(_line_of(table, error.name), f"{error}; until then all of search has its defaults")
        return {}
    return settings


def _line_of(table: TableNode | None, name: str) -> int | None:
    """Return the line of `search.…`, or the nearest that there is above it."""
    line, node = None, table
    for key in name.split(".")[1:]:
        if not isinstance(node, TableNode) or key not in node.entries:
            break
        line, node = node.entries[key]
    return line


def _prices(fields: Fields, notes: Notes) -> dict[str, ModelPrice]:
    table = fields.table("prices")
    found: dict[str, ModelPrice] = {}
    for model, (line, node) in (table.entries if table else {}).items():
        if not isinstance(node, TableNode):
            notes.remark(line, f"prices.{model} must be a table with `input` and `output`")
            continue
        entry = Fields(node, notes, f"prices.{model}.")
        taken, written, *cached = (
            entry.number(name, None, 0, _MOST_DOLLARS)
            for name in ("input", "output", "cache_read", "cache_write", "cache_write_1h")
        )
        entry.finish()
        if taken is None or written is None:
            notes.remark(line, f"prices.{model} needs `input` and `output`, in dollars for a million tokens")
            continue
        read, kept, kept_1h = cached
        found[model] = ModelPrice(
            input=taken, output=written, cache_read=read, cache_write=kept, cache_write_1h=kept_1h
        )
    return found


def _settings(
    fields: Fields, model: str, search: Mapping[str, Any], prices: Mapping[str, ModelPrice], memory: Mapping[str, Any]
) -> AgentSettings:
    default = AgentSettings()
    return AgentSettings(
        model=model or default.model,
        temperature=fields.number("temperature", default.temperature, 0, 2),
        top_p=fields.number("top_p", default.top_p, 0, 1),
        max_output_tokens=fields.integer("max_output_tokens", default.max_output_tokens, 1, _MOST_TOKENS),
        max_chat_turns=fields.integer("max_chat_turns", default.max_chat_turns, 1, _MOST_CALLS),
        tool_permission=_tool_permission(fields, default.tool_permission),
        mode=fields.choice("mode", MODES) or default.mode,
        context_window=fields.integer("context_window", 0, 1, _MOST_TOKENS) or None,
        prices=prices,
        search=search,
        cache=fields.choice("cache", CACHE_MODES) or default.cache,
        memory=memory,
        working_context=fields.flag("working_context", default.working_context),
        finders=fields.flag("finders", default.finders),
        strict_tools=fields.flag("strict_tools", default.strict_tools),
        inputs=_inputs(fields),
    )


def _inputs(fields: Fields) -> tuple[FileKind, ...] | None:
    """Return the files that the model takes, or None where the agent does not say."""
    if fields.node("inputs") is None:
        return None
    named = {each.text for each in fields.texts("inputs")}
    fields.refuse_unknown("inputs", named, INPUTS)
    return tuple(kind for kind in INPUTS if kind in named)


def _memory(fields: Fields, notes: Notes) -> dict[str, Any]:
    table = fields.table("memory")
    if table is None:
        return {}
    own = Fields(table, notes, "memory.")
    messages = own.integer("messages", 0, _LEAST_MESSAGES, _MOST_MESSAGES)
    own.finish()
    return {"messages": messages} if messages else {}


def _tool_permission(fields: Fields, default: ToolPermission) -> ToolPermission:
    chosen = fields.choice("tool_permission", TOOL_PERMISSIONS)
    if chosen is None:
        return default if fields.node("tool_permission") is None else STRICTEST
    return chosen
