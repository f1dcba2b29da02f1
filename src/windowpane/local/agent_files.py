"""The files of agents, in this process: items, prompts, settings and tool servers; made, changed and deleted as files.

The file on disk is the truth. What is sent is read as the agent would read it, and refused with line and reason when
it cannot be used; then nothing was written. A change says which revision it is meant for.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar, cast

import anyio.to_thread

from windowpane.agents.base import Agent
from windowpane.agents.edit import (
    FileText,
    ToolChange,
    change_item,
    change_server,
    create_item_file,
    delete_file,
    delete_item,
    delete_prompt,
    file_text,
    item_text,
    prompt_file,
    put_file,
    put_item_file,
    put_manifest,
    put_prompt,
    read_text,
    server_text,
)
from windowpane.agents.items import render_item
from windowpane.agents.prompts import read_site
from windowpane.api.agents import FileView, ItemDetail, PromptView, ServerDetail, ToolView
from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef, Reference, Rule, Tool, as_ref, tool_ref
from windowpane.errors import AlreadyThereError, InvalidInputError, MissingFileError, NotFoundError, UnknownItemError
from windowpane.local.bound import Bound
from windowpane.local.views import item_facts
from windowpane.tools.base import ServerConfig

SERVER_SETTINGS = ("include", "permission", "enabled", "tools")
T = TypeVar("T")


class LocalAgentFiles:
    """Items, prompts, settings and tool servers of agents, as files."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._engine = bound.engine

    async def item(self, agent: str, item: ItemRef | str) -> ItemDetail:
        """Return an item with all it says, and the revision that a change of it names."""
        ref = as_ref(item)
        found = next((found for found in await self._engine.agent_items.of(agent) if found.ref == ref), None)
        if found is None:
            raise UnknownItemError(str(ref))
        tool = isinstance(found, Tool)
        current = await self._current(agent)
        file = None if tool else await _in_thread(item_text, current, ref)
        return ItemDetail(
            **item_facts(found, current.settings.model),
            text=None if tool else found.text,
            related=found.related if isinstance(found, Reference) else (),
            parameters=found.parameters if tool else None,
            file=file and file.file,
            raw=file and file.text,
            revision=file and file.revision,
        )

    async def create_item(
        self, agent: str, item: Rule | Reference, *, key: str | None = None, also_in: str | None = None
    ) -> ItemDetail:
        """Write a new rule or reference."""
        return await self.create_item_file(agent, item.ref, render_item(item), key=key, also_in=also_in)

    async def create_item_file(
        self, agent: str, item: ItemRef | str, raw: str, *, key: str | None = None, also_in: str | None = None
    ) -> ItemDetail:
        """Write a new rule or reference as a whole file, with its front matter."""
        ref, before = as_ref(item), await self._current(agent)
        session = await self._bound.also_in(also_in, agent)
        try:
            await _in_thread(create_item_file, before, ref, raw)
        except AlreadyThereError:
            if not key or not await _in_thread(_same, before, ref, raw):
                raise
        await self._add(session, [ref])
        return await self.item(agent, ref)

    async def put_item(
        self, agent: str, item: ItemRef | str, raw: str, *, revision: str, also_in: str | None = None
    ) -> ItemDetail:
        """Replace the whole file of a rule or a reference."""
        ref = as_ref(item)
        session = await self._bound.also_in(also_in, agent)
        await _in_thread(partial(put_item_file, await self._current(agent), ref, raw, revision=revision))
        await self._add(session, [ref])
        return await self.item(agent, ref)

    async def change_item(
        self,
        agent: str,
        item: ItemRef | str,
        changes: Mapping[str, Any],
        *,
        revision: str,
        also_in: str | None = None,
    ) -> ItemDetail:
        """Change single settings of a rule or a reference, or its `text`."""
        ref, settings = as_ref(item), dict(changes)
        text = settings.pop("text", None)
        session = await self._bound.also_in(also_in, agent)
        await _in_thread(partial(change_item, await self._current(agent), ref, settings, text=text, revision=revision))
        await self._add(session, [ref])
        return await self.item(agent, ref)

    async def delete_item(self, agent: str, item: ItemRef | str, *, revision: str) -> None:
        """Delete the file of a rule or a reference."""
        await _in_thread(partial(delete_item, await self._current(agent), as_ref(item), revision=revision))

    async def prompts(self, agent: str) -> tuple[PromptView, ...]:
        """Return an agent's prompts: `core`, `default_site`, then site skills by name."""
        found = await self._current(agent)
        files = [entry for entry in found.files if entry.kind in ("core", "default_site", "site")]
        texts = await _in_thread(lambda: [_readable(found, entry.file) for entry in files])
        views = [_prompt_view(text) for text in texts if text is not None]
        return tuple(sorted(views, key=lambda view: (view.name.count("/"), view.name)))

    async def prompt(self, agent: str, name: str) -> FileView:
        """Return a prompt's file."""
        return await self.file(agent, prompt_file(name))

    async def put_prompt(self, agent: str, name: str, raw: str, *, revision: str | None) -> FileView:
        """Write a prompt's file. A revision of None writes a new one."""
        await _in_thread(partial(put_prompt, await self._current(agent), name, raw, revision=revision))
        return await self.prompt(agent, name)

    async def delete_prompt(self, agent: str, name: str, *, revision: str) -> None:
        """Delete a site skill or the default for sites."""
        await _in_thread(partial(delete_prompt, await self._current(agent), name, revision=revision))

    async def manifest(self, agent: str) -> FileView:
        """Return `agent.yaml` as it is."""
        return await self.file(agent, "agent.yaml")

    async def put_manifest(self, agent: str, raw: str, *, revision: str) -> FileView:
        """Write `agent.yaml`."""
        await _in_thread(partial(put_manifest, await self._current(agent), raw, revision=revision))
        return await self.manifest(agent)

    async def file(self, agent: str, file: str) -> FileView:
        """Return a file that the agent reads, and what is wrong with it."""
        found = await self._current(agent)
        text = await _in_thread(file_text, found, file)
        wrong = tuple(problem for problem in found.problems if problem.file == file)
        return FileView(file=file, raw=text.text, revision=text.revision, problems=wrong)

    async def put_file(self, agent: str, file: str, raw: str, *, revision: str) -> FileView:
        """Write a file that the agent reads."""
        await _in_thread(partial(put_file, await self._current(agent), file, raw, revision=revision))
        return await self.file(agent, file)

    async def delete_file(self, agent: str, file: str, *, revision: str) -> None:
        """Delete a file that holds a rule or a reference."""
        await _in_thread(partial(delete_file, await self._current(agent), file, revision=revision))

    async def server(self, agent: str, server: str) -> ServerDetail:
        """Return a tool server with its settings and its tools."""
        found = await self._current(agent)
        status = next(
            (status for status in await self._engine.agent_items.servers(agent) if status.name == server), None
        )
        if status is None:
            raise NotFoundError(f"agent {agent!r} has no tool server {server!r}")
        entry = next((entry for entry in found.servers if entry.name == server), None)
        config = ServerConfig(name=server, **entry.body) if entry else ServerConfig(name=server)
        file = await _in_thread(_server_file, found, server)
        return ServerDetail(
            name=server,
            state=status.state,
            error=status.error,
            version=status.version,
            include=config.include,
            permission=config.permission,
            enabled=config.enabled,
            tools=tuple(
                ToolView(
                    name=tool.name,
                    description=tool.description,
                    include=tool.include,
                    permission=tool.permission,
                    own_include=config.tool_include.get(tool.name),
                    own_permission=config.tool_permission.get(tool.name),
                )
                for tool in status.tools
            ),
            file=file.file,
            revision=file.revision,
        )

    async def change_server(
        self,
        agent: str,
        server: str,
        changes: Mapping[str, Any],
        *,
        revision: str,
        also_in: str | None = None,
    ) -> ServerDetail:
        """Change `include`, `permission` or `enabled` of a server, or `tools`: those two settings by tool name."""
        if unknown := sorted(set(changes) - set(SERVER_SETTINGS)):
            raise InvalidInputError(f"a tool server has no setting {unknown[0]!r}; it has {', '.join(SERVER_SETTINGS)}")
        settings = dict(changes)
        named = cast("Mapping[str, Mapping[str, Any]]", settings.pop("tools", {}))
        tools = {name: ToolChange(own.get("include"), own.get("permission")) for name, own in named.items()}
        change = partial(change_server, await self._current(agent), server, settings, tools, revision=revision)
        session = await self._bound.also_in(also_in, agent)
        await _in_thread(change)
        detail = await self.server(agent, server)
        always = [tool.name for tool in detail.tools if tool.include == "always"]
        await self._add(session, [tool_ref(server, name) for name in always if "include" in settings or name in tools])
        return detail

    async def _add(self, session: SessionId | None, refs: Iterable[ItemRef]) -> None:
        """Add items to the session that receives them as well, if there is one."""
        if session is not None:
            for ref in refs:
                await self._engine.items.add(session, ref)

    async def _current(self, agent: str) -> Agent:
        return await self._engine.agents.look(agent)


def _same(agent: Agent, ref: ItemRef, text: str) -> bool:
    try:
        return item_text(agent, ref).text == text
    except MissingFileError:
        return False


def _readable(agent: Agent, file: str) -> FileText | None:
    try:
        return read_text(agent, file)
    except MissingFileError:
        return None


def _prompt_view(text: FileText) -> PromptView:
    name = text.file.removeprefix("prompts/").removesuffix(".md")
    hosts = tuple(host for host, _ in read_site(text.file, text.text).hosts) if name.startswith("sites/") else ()
    return PromptView(name=name, file=text.file, hosts=hosts, characters=len(text.text))


def _server_file(agent: Agent, server: str) -> FileText:
    """Return the file that describes a server. Tools that were put in by a program are described by none."""
    try:
        return server_text(agent, server)
    except MissingFileError:
        return FileText("", "", "")


async def _in_thread(work: Callable[..., T], *arguments: Any) -> T:
    return await anyio.to_thread.run_sync(work, *arguments)
