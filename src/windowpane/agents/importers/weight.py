"""Weigh an agent: how many tokens its rules and references add to every request, and how many only when needed."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from windowpane.agents.edit import SERVERS
from windowpane.agents.folder import AgentFolder
from windowpane.agents.importers.run import import_into
from windowpane.agents.manifest import MANIFEST
from windowpane.text.render import render_item
from windowpane.text.tokens import count

_PARTS = ("rules", "references", "prompts", MANIFEST, SERVERS)


@dataclass(frozen=True, slots=True)
class ImportWeight:
    """Tokens of an agent's prompts, rules and references: in every request, and only when selected or added by hand."""

    every_request: int = 0
    when_needed: int = 0


def weight_of(folder: Path) -> ImportWeight:
    """Return what an agent weighs. One that is not there weighs nothing."""
    if not (folder / MANIFEST).exists():
        return ImportWeight()
    agent = AgentFolder(folder).current()
    items = [item for item in (*agent.rules, *agent.references) if item.enabled]
    always = sum(count(render_item(item)) for item in items if item.include == "always")
    all_of_it = sum(count(render_item(item)) for item in items)
    return ImportWeight(always + count(agent.prompts.core or ""), all_of_it - always)


def weight_after(folder: Path, sources: Sequence[Path], *, overwrite: bool) -> ImportWeight:
    """Return what an agent would weigh after an import, which is made in a copy of it."""
    with TemporaryDirectory() as place:
        copy = Path(place) / folder.name
        copy.mkdir()
        for part in _PARTS:
            if (folder / part).is_dir():
                shutil.copytree(folder / part, copy / part)
            elif (folder / part).exists():
                shutil.copy2(folder / part, copy / part)
        import_into(copy, sources, overwrite=overwrite)
        return weight_of(copy)
