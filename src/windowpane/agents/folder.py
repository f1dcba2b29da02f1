"""Agents as folders on disk, always current.

Each call looks at the folder's files and reads those that changed, so an edit counts from the next request on. Where
the kernel tells that nothing happened since the last look, the files are not looked at (`watch/`). A file that cannot
be used is reported and absent: what it said before is not used in its place.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import anyio.to_thread

from windowpane.agents.agent import AgentFile, Said, put_together
from windowpane.agents.base import Agent
from windowpane.agents.files import ENTRIES, FoundFile, Scan, Shelf, scan
from windowpane.agents.init import copy_agent, new_agent
from windowpane.agents.items import read_reference, read_rule
from windowpane.agents.manifest import MANIFEST, CheckSearch, read_manifest, read_mcp_json
from windowpane.agents.prompts import read_prompt, read_site
from windowpane.agents.watch.watch import Sight, Watch
from windowpane.context.agents import Problem
from windowpane.errors import AgentNotFoundError, AlreadyThereError, InvalidInputError

FEW_FILES = 200
"""A folder with fewer files, once read, is looked at in less than the thread would cost that did it instead."""

FIRST_LOOKS = 5
"""A folder is watched after these. Many programs take no more, and the kernel needs 20 ms to give a queue back."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class FolderAgents:
    """The agents below one folder: each sub-folder with an `agent.yaml`, named as the folder is.

    A folder that has an `agent.yaml` itself is one agent. `check_search` tells settings of the search that cannot be
    used, and `clock` how long a folder has been watched. Safe to use from several threads.
    """

    def __init__(
        self, root: Path, *, check_search: CheckSearch | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._root = root.resolve()
        self._check_search = check_search
        self._watch = Watch(str(self._root), MANIFEST, clock=clock)
        self._folders: dict[str, AgentFolder] = {}
        self._lock = threading.Lock()

    def names(self) -> tuple[str, ...]:
        """Return the names of all agents, in order."""
        if os.path.lexists(self._root / MANIFEST):
            return (self._root.name,)
        try:
            with os.scandir(self._root) as entries:
                return tuple(sorted(entry.name for entry in entries if _is_agent(Path(entry.path))))
        except OSError:
            return ()

    def current(self, name: str) -> Agent:
        """Return an agent as its folder says it now.

        Raises:
            AgentNotFoundError: no such agent.
        """
        return self._unchanged(name) or self._looked_at(name)

    async def look(self, name: str) -> Agent:
        """Return an agent as `current` does, in a thread where that may take long: see `Agents.look`."""
        agent = self._unchanged(name)
        if agent is not None:
            return agent
        kept = self._folders.get(name)
        if kept is not None and kept.is_quick:
            return self._looked_at(name)
        return await anyio.to_thread.run_sync(self._looked_at, name)

    def create(self, name: str, *, description: str = "", copy_of: str | None = None) -> None:
        """Write a new agent; see `Agents.create`."""
        with self._lock:
            target = self._free(name)
            if copy_of is None:
                new_agent(target, description)
                return
            source = self._folder(copy_of)
            if source is None:
                raise AgentNotFoundError(copy_of, self.names())
            copy_agent(source, target)

    def rename(self, name: str, new_name: str) -> None:
        """Give an agent another name; see `Agents.rename`."""
        with self._lock:
            folder = self._folder(name)
            if folder is None:
                raise AgentNotFoundError(name, self.names())
            if name == new_name:
                return
            try:
                folder.rename(self._free(new_name))
            except OSError as error:
                raise InvalidInputError(f"{folder} cannot be renamed: {error.strerror}") from None

    def close(self) -> None:
        """Watch the folders no more; see `Agents.close`."""
        self._watch.close()

    def _unchanged(self, name: str) -> Agent | None:
        """Return an agent of which it is known that its folder is still there and that nothing in it changed."""
        kept = self._folders.get(name)
        return kept.unchanged() if kept is not None else None

    def _looked_at(self, name: str) -> Agent:
        folder = self._folder(name)
        if folder is None:
            self._folders.pop(name, None)
            raise AgentNotFoundError(name, self.names())
        with self._lock:
            kept = self._folders.get(name)
            if kept is None or kept.folder != folder:
                kept = self._folders[name] = AgentFolder(folder, check_search=self._check_search, watch=self._watch)
        return kept.current()

    def _free(self, name: str) -> Path:
        """Return the folder of an agent that is not there yet."""
        if not _NAME.fullmatch(name):
            raise InvalidInputError(
                f"{name[:80]!r} cannot be the name of an agent; use 1 to 64 letters, digits, - and _"
            )
        if os.path.lexists(self._root / MANIFEST):
            raise InvalidInputError(
                f"{self._root} is the folder of one agent; start the server with a folder of agents to have more"
            )
        # Some file systems do not tell large letters from small ones.
        taken = [entry.name for entry in self._root.iterdir() if entry.name.casefold() == name.casefold()]
        if taken:
            raise AlreadyThereError(f"an agent or folder {taken[0]!r}", str(self._root))
        return self._root / name

    def _folder(self, name: str) -> Path | None:
        if os.path.lexists(f"{self._root}/{MANIFEST}"):
            return self._root if name == self._root.name else None
        plain = bool(name) and "/" not in name and name[0] != "."
        return self._root / name if plain and os.path.lexists(f"{self._root}/{name}/{MANIFEST}") else None


class AgentFolder:
    """One agent's folder. Safe to use from several threads.

    With `watch`, its files are looked at when the kernel says that something happened to them.
    """

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str] = os.environ,
        *,
        check_search: CheckSearch | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.folder = folder
        self._check_search = check_search
        self._watch = watch
        self._looks = 0
        self._known: tuple[Agent, Sight] | None = None
        self._folder = str(folder.absolute())
        self._name = folder.absolute().name
        self._environ = environ
        self._lock = threading.Lock()
        self._shelf = Shelf(self._said)
        self._scan: Scan | None = None
        self._files: tuple[AgentFile, ...] = ()
        self._agent: Agent | None = None

    @property
    def is_quick(self) -> bool:
        """Tell whether the folder has been read before and has few files, so that another look takes no time."""
        return self._agent is not None and len(self._files) < FEW_FILES

    def current(self) -> Agent:
        """Return the agent as its folder says it now: the very same value when nothing changed."""
        with self._lock:
            # Another thread may have looked meanwhile.
            return self.unchanged() or (self._scanned() if self._watch is None else self._watched(self._watch))

    def unchanged(self) -> Agent | None:
        """Return the agent if the kernel tells that nothing changed since the last look, and look at no file."""
        known = self._known
        return known[0] if known is not None and self._watch is not None and self._watch.holds(known[1]) else None

    def _watched(self, watch: Watch) -> Agent:
        """Return the agent after a look, and watch the folder from before that look on."""
        if self._known is not None:
            watch.end(self._known[1])
            self._known = None
        self._looks += 1
        sight = watch.start(self._folder, ENTRIES) if self._looks > FIRST_LOOKS else None
        if sight is None:
            return self._scanned()
        try:
            agent = self._scanned(partial(watch.add, sight))
            if self._scan is not None and self._scan.changes_elsewhere:
                watch.refuse(sight)
            self._known = agent, sight
        finally:
            if self._known is None:
                watch.end(sight)
        return agent

    def _scanned(self, entering: Callable[[str], None] | None = None) -> Agent:
        seen = scan(self._folder, entering)
        if self._agent and seen == self._scan and self._shelf.settled:
            return self._agent
        files = self._shelf.values(seen.found)
        same = self._scan is not None and seen.problems == self._scan.problems and _identical(files, self._files)
        if self._agent is None or not same:
            self._agent = put_together(self._name, self._folder, files, seen.problems)
        self._scan, self._files = seen, files
        return self._agent

    def _said(self, found: FoundFile, content: str | Problem) -> AgentFile:
        return AgentFile(found, content if isinstance(content, Problem) else self._parsed(found, content))

    def _parsed(self, found: FoundFile, content: str) -> Said:
        file = found.file
        match found.kind:
            case "manifest":
                return read_manifest(file, content, self._variables(), self._folder, self._name, self._check_search)
            case "servers":
                return read_mcp_json(file, content, self._variables(), self._folder)
            case "rule":
                return read_rule(file, content, _utc(found.modified_ns))
            case "reference":
                return read_reference(file, content, _utc(found.modified_ns))
            case "site":
                return read_site(file, content)
            case "core" | "default_site":
                return read_prompt(file, content)

    def _variables(self) -> Mapping[str, str]:
        return {**self._environ, "WINDOWPANE_PYTHON": sys.executable, "AGENT_DIR": self._folder}


def _is_agent(folder: Path) -> bool:
    return not folder.name.startswith(".") and os.path.lexists(folder / MANIFEST)


def _identical(files: tuple[AgentFile, ...], before: tuple[AgentFile, ...]) -> bool:
    return len(files) == len(before) and all(new is old for new, old in zip(files, before, strict=True))


def _utc(moment_ns: int) -> str:
    seconds = moment_ns // 1_000_000_000
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    except (OverflowError, OSError, ValueError):
        return str(seconds)
