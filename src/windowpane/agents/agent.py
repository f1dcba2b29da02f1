"""Put an agent together from what its files say.

What concerns more than one file is settled here: two items of one name, two skills for one host, a related reference
that is not there, a server in both `agent.yaml` and `mcp.json`. The first file in the order of names wins, and the
other is reported.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from windowpane.agents.base import Agent, FileEntry, FileKind, Prompts, ServerEntry
from windowpane.agents.fields import shortened
from windowpane.agents.files import FoundFile
from windowpane.agents.items import ItemFile
from windowpane.agents.manifest import MANIFEST, UNREADABLE, Manifest
from windowpane.agents.prompts import PromptFile
from windowpane.context.agents import Problem
from windowpane.context.items import Reference, Rule

CORE = "prompts/core.md"
WRITE_CORE = "missing: say in it who the agent is, what it is for and what it must never do; it does not start without"

Said = Manifest | ItemFile | PromptFile | Problem
"""What a file says, or why it cannot be read at all."""


@dataclass(frozen=True, slots=True, eq=False)
class AgentFile:
    """A file and what it says."""

    found: FoundFile
    said: Said


def put_together(name: str, folder: str, files: tuple[AgentFile, ...], missed: tuple[Problem, ...]) -> Agent:
    """Return the agent that these files make. `missed` are the problems with files that could not be looked at."""
    problems = [*missed, *(problem for file in files for problem in _problems(file.said))]
    own = next((said for said in _manifests(files, "manifest")), UNREADABLE)
    unread = (file.said for file in files if file.found.kind == "manifest" and isinstance(file.said, Problem))
    rules = _unique(files, "rule", problems)
    references = _unique(files, "reference", problems)
    problems += _unknown_related(references)
    named = _names_by_title(references)
    return Agent(
        name=name,
        folder=folder,
        description=own.description,
        questions=own.questions,
        settings=own.settings,
        rules=tuple(sorted((file.item for file in rules if isinstance(file.item, Rule)), key=_order)),
        references=tuple(
            sorted((_resolved(file.item, named) for file in references if isinstance(file.item, Reference)), key=_order)
        ),
        prompts=_prompts(files, problems),
        servers=_servers([*_manifests(files, "servers"), own]),
        problems=tuple(sorted(problems, key=lambda problem: (problem.file, problem.line or 0))),
        unreadable=own.unreadable or next((each for each in (*unread, *missed) if each.file == MANIFEST), None),
        files=_entries(files, [*rules, *references]),
    )


def _entries(files: Iterable[AgentFile], used: Iterable[ItemFile]) -> tuple[FileEntry, ...]:
    names = {said.file: said.item.name for said in used if said.item}
    return tuple(
        FileEntry(
            file=file.found.file,
            kind=file.found.kind,
            name=names.get(file.found.file),
            modified_ns=file.found.modified_ns,
        )
        for file in files
    )


def _problems(said: Said) -> tuple[Problem, ...]:
    return (said,) if isinstance(said, Problem) else said.problems


def _manifests(files: Iterable[AgentFile], kind: FileKind) -> list[Manifest]:
    return [file.said for file in files if file.found.kind == kind and isinstance(file.said, Manifest)]


def _unique(files: Iterable[AgentFile], kind: FileKind, problems: list[Problem]) -> list[ItemFile]:
    first: dict[str, ItemFile] = {}
    for file in files:
        said = file.said
        if file.found.kind != kind or not isinstance(said, ItemFile) or said.item is None:
            continue
        kept = first.setdefault(said.item.name, said)
        if kept is not said:
            reason = f"not used: {kept.file} is already the {kind} named {said.item.name!r}"
            problems.append(Problem(file=said.file, line=said.name_line, reason=reason))
    return list(first.values())


def _unknown_related(references: list[ItemFile]) -> list[Problem]:
    named = _names_by_title(references)
    return [
        Problem(file=file.file, line=line, reason=f"related names {shortened(name)!r}, and there is no such reference")
        for file in references
        for name, line in file.related_lines.items()
        if name not in named
    ]


def _names_by_title(references: list[ItemFile]) -> dict[str, str]:
    """Return what each reference can be called in `related`: its name, or its title where that is no other's name."""
    items = [file.item for file in references if isinstance(file.item, Reference)]
    titles = {item.title: item.name for item in reversed(items)}
    return titles | {item.name: item.name for item in items}


def _resolved(item: Reference, named: Mapping[str, str]) -> Reference:
    related = tuple(dict.fromkeys(named.get(name, name) for name in item.related))
    return item if related == item.related else replace(item, related=related)


def _order(item: Rule | Reference) -> tuple[int, str]:
    return (item.priority, item.name)


def _prompts(files: Iterable[AgentFile], problems: list[Problem]) -> Prompts:
    said = [(file.found.kind, file.said) for file in files if isinstance(file.said, PromptFile)]
    texts = {kind: prompt.text for kind, prompt in said if kind != "site"}
    sites: dict[str, PromptFile] = {}
    for kind, prompt in said:
        for host, line in prompt.hosts if kind == "site" and prompt.text is not None else ():
            kept = sites.setdefault(host, prompt)
            if kept is not prompt:
                reason = f"not used for {host}: {kept.file} is already the skill for that host"
                problems.append(Problem(file=prompt.file, line=line, reason=reason))
    if all(problem.file != CORE for problem in problems) and texts.get("core") is None:
        problems.append(Problem(file=CORE, line=None, reason=WRITE_CORE))
    return Prompts(
        core=texts.get("core"),
        default_site=texts.get("default_site"),
        sites={host: prompt.text for host, prompt in sites.items() if prompt.text is not None},
    )


def _servers(manifests: list[Manifest]) -> tuple[ServerEntry, ...]:
    """Return the servers in the order of their names; those of a later manifest take the place of earlier ones."""
    servers: dict[str, ServerEntry | None] = {}
    for manifest in manifests:
        servers |= manifest.servers
    return tuple(server for _, server in sorted(servers.items()) if server is not None)
