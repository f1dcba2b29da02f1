"""The files of an agent: rules and references, prompts, settings; made, changed and deleted as files.

The file on disk is the truth. What is sent is read as the agent would read it, and refused with line and reason when
it cannot be used; then nothing was written. A change says which revision it is meant for.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import anyio.to_thread
from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from windowpane.agents.base import Agent
from windowpane.agents.edit import (
    FileText,
    change_item,
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
)
from windowpane.agents.frontmatter import first_heading
from windowpane.agents.items import render_item
from windowpane.agents.prompts import read_site
from windowpane.api.agents import FileView, ItemDetail, PromptList, PromptView
from windowpane.context.items import DEFAULT_PRIORITY, IncludeMode, ItemRef, Reference, Rule
from windowpane.engine import Engine
from windowpane.errors import AlreadyThereError, MissingFileError
from windowpane.server.dependencies import Managing, Reading
from windowpane.server.json_numbers import Whole
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import IfMatch, IfNoneMatch, Key, expected, expected_or_new, tag
from windowpane.server.routes.agents import AgentName, detail_of
from windowpane.server.routes.items import Name

router = APIRouter(prefix="/api/agents/{agent}", tags=["agents"])

WrittenType = Literal["rule", "reference"]
Written = Annotated[WrittenType, Path(alias="type", description="What it is: rule or reference.")]
PromptName = Annotated[
    str,
    Path(
        description="`core`, `default_site`, or `sites/` and the host it is for.",
        pattern=r"^(core|default_site|sites/[A-Za-z0-9_-][A-Za-z0-9._-]{0,252})$",
    ),
]
FileName = Annotated[
    str,
    Path(
        alias="file",
        max_length=4096,
        description="The file's name in the agent's folder, as problems name it.",
        examples=["rules/be-brief.md"],
    ),
]
ItemName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$", examples=["answer-briefly"])]
Priority = Annotated[Whole, Field(ge=0, le=999)]
CHANGED = (404, 409, 412, 428)

T = TypeVar("T")


class NewItem(BaseModel):
    """A new rule or reference: its settings and its text, or `raw`, the whole file with its front matter."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"type": "rule", "name": "be-brief", "include": "always", "text": "Answer in one sentence."}]
        },
    )

    type: WrittenType
    name: ItemName
    description: str = ""
    priority: Priority = DEFAULT_PRIORITY
    include: IncludeMode = "manual"
    enabled: bool = True
    version: str = ""
    title: str | None = None
    related: tuple[ItemName, ...] = ()
    text: str = ""
    raw: str | None = None

    @model_validator(mode="after")
    def _raw_is_all(self) -> "NewItem":
        if self.raw is not None and self.model_fields_set - {"type", "name", "raw"}:
            raise ValueError("`raw` is the whole file; send it with type and name alone")
        if self.type == "rule" and (self.title is not None or self.related):
            raise ValueError("a rule has no title and no related references")
        return self

    @property
    def file_text(self) -> str:
        """Return the file that this is."""
        if self.raw is not None:
            return self.raw
        if self.type == "rule":
            return render_item(
                Rule(
                    name=self.name,
                    text=self.text,
                    description=self.description,
                    priority=self.priority,
                    include=self.include,
                    enabled=self.enabled,
                    version=self.version,
                )
            )
        return render_item(
            Reference(
                name=self.name,
                text=self.text,
                description=self.description,
                priority=self.priority,
                include=self.include,
                enabled=self.enabled,
                version=self.version,
                related=self.related,
                title=(first_heading(self.text) or self.name) if self.title is None else self.title,
            )
        )


class ItemEdit(BaseModel):
    """What changes about an item. What is not named stays; null takes a setting away, so that its default counts."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"include": "agent", "priority": 200}]}
    )

    description: str | None = None
    priority: Priority | None = None
    include: IncludeMode | None = None
    enabled: bool | None = None
    version: str | None = None
    title: str | None = None
    related: tuple[ItemName, ...] | None = None
    text: str | None = None


class RawFile(BaseModel):
    """A whole file, as it is to be on disk."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"raw": "---\ninclude: always\n---\nAnswer in one sentence.\n"}]},
    )

    raw: str


@router.post("/items", status_code=201, summary="Write a new rule or reference", responses=problems(*BODY, 404, 409))
async def create_agent_item(
    engine: Managing, response: Response, agent: AgentName, new: NewItem, key: Key = None
) -> ItemDetail:
    """Write a file for it, `rules/NAME.md` or `references/NAME.md`. It counts from the next request on.

    With an `Idempotency-Key`, finding exactly this file there is the same as having written it.
    """
    ref, text = ItemRef(new.type, new.name), new.file_text
    before = engine.agents.current(agent)
    try:
        written = await _in_thread(create_item_file, before, ref, text)
    except AlreadyThereError:
        written = await _same(before, ref, text) if key else None
        if written is None:
            raise
    response.headers["Location"] = f"/api/agents/{before.name}/items/{ref.type}/{ref.name}"
    tag(response, written.revision)
    return await detail_of(engine, agent, ref)


async def _same(agent: Agent, ref: ItemRef, text: str) -> FileText | None:
    try:
        found = await _in_thread(item_text, agent, ref)
    except MissingFileError:
        return None
    return found if found.text == text else None


@router.put("/items/{type}/{name:path}", summary="Write an item's file anew", responses=problems(*BODY, *CHANGED))
async def put_agent_item(
    engine: Managing,
    response: Response,
    agent: AgentName,
    kind: Written,
    name: Name,
    body: RawFile,
    if_match: IfMatch = None,
) -> ItemDetail:
    """Replace the whole file of a rule or a reference. It keeps its name."""
    ref, revision = ItemRef(kind, name), expected(if_match)
    found = engine.agents.current(agent)
    written = await _in_thread(partial(put_item_file, found, ref, body.raw, revision=revision))
    tag(response, written.revision)
    return await detail_of(engine, agent, ref)


@router.patch("/items/{type}/{name:path}", summary="Change an item", responses=problems(*BODY, *CHANGED))
async def change_agent_item(
    engine: Managing,
    response: Response,
    agent: AgentName,
    kind: Written,
    name: Name,
    change: ItemEdit,
    if_match: IfMatch = None,
) -> ItemDetail:
    """Change single settings of a rule or a reference, or its text. The rest of the file stays as it is written."""
    ref, revision = ItemRef(kind, name), expected(if_match)
    settings = change.model_dump(exclude_unset=True, exclude={"text"})
    found = engine.agents.current(agent)
    written = await _in_thread(partial(change_item, found, ref, settings, text=change.text, revision=revision))
    tag(response, written.revision)
    return await detail_of(engine, agent, ref)


@router.delete(
    "/items/{type}/{name:path}", status_code=204, summary="Delete an item's file", responses=problems(*CHANGED)
)
async def delete_agent_item(
    engine: Managing, agent: AgentName, kind: Written, name: Name, if_match: IfMatch = None
) -> None:
    """Delete the file of a rule or a reference. Past turns keep the text that they were given."""
    revision = expected(if_match)
    await _in_thread(partial(delete_item, engine.agents.current(agent), ItemRef(kind, name), revision=revision))


@router.get("/prompts", summary="List an agent's prompts", responses=problems(404))
async def list_agent_prompts(engine: Reading, agent: AgentName) -> PromptList:
    """Return the prompts that the agent's folder has."""
    found = engine.agents.current(agent)
    files = [entry for entry in found.files if entry.kind in ("core", "default_site", "site")]
    texts = await _in_thread(lambda: [_readable(found, entry.file) for entry in files])
    views = [_prompt_view(text) for text in texts if text is not None]
    return PromptList(tuple(sorted(views, key=lambda view: (view.name.count("/"), view.name))))


@router.get("/prompts/{prompt:path}", summary="Read a prompt", responses=problems(404))
async def read_agent_prompt(engine: Reading, response: Response, agent: AgentName, prompt: PromptName) -> FileView:
    """Return a prompt's file as it is."""
    return await _read(engine, response, agent, prompt_file(prompt))


@router.put("/prompts/{prompt:path}", summary="Write a prompt", responses=problems(*BODY, *CHANGED))
async def put_agent_prompt(
    engine: Managing,
    response: Response,
    agent: AgentName,
    prompt: PromptName,
    body: RawFile,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> FileView:
    """Write the core prompt, the default for sites, or a site skill. A new one is sent with `If-None-Match: *`."""
    revision = expected_or_new(if_match, if_none_match)
    await _in_thread(partial(put_prompt, engine.agents.current(agent), prompt, body.raw, revision=revision))
    return await _read(engine, response, agent, prompt_file(prompt))


@router.delete("/prompts/{prompt:path}", status_code=204, summary="Delete a prompt", responses=problems(*CHANGED))
async def delete_agent_prompt(engine: Managing, agent: AgentName, prompt: PromptName, if_match: IfMatch = None) -> None:
    """Delete a site skill or the default for sites. The core prompt can only be changed."""
    revision = expected(if_match)
    await _in_thread(partial(delete_prompt, engine.agents.current(agent), prompt, revision=revision))


@router.get("/manifest", summary="Read an agent's settings as a file", responses=problems(404))
async def read_agent_manifest(engine: Reading, response: Response, agent: AgentName) -> FileView:
    """Return `agent.yaml` as it is."""
    return await _read(engine, response, agent, "agent.yaml")


@router.put("/manifest", summary="Write an agent's settings", responses=problems(*BODY, *CHANGED))
async def put_agent_manifest(
    engine: Managing, response: Response, agent: AgentName, body: RawFile, if_match: IfMatch = None
) -> FileView:
    """Write `agent.yaml` anew: model, settings, search, tool servers. Nothing in it may become wrong by this."""
    revision = expected(if_match)
    await _in_thread(partial(put_manifest, engine.agents.current(agent), body.raw, revision=revision))
    return await _read(engine, response, agent, "agent.yaml")


@router.get("/files/{file:path}", summary="Read a file of an agent's folder", responses=problems(404))
async def read_agent_file(engine: Managing, response: Response, agent: AgentName, name: FileName) -> FileView:
    """Return a file that the agent reads as it is, also when it cannot be used, and what is wrong with it."""
    return await _read(engine, response, agent, name)


@router.put("/files/{file:path}", summary="Write a file of an agent's folder", responses=problems(*BODY, *CHANGED))
async def put_agent_file(
    engine: Managing, response: Response, agent: AgentName, name: FileName, body: RawFile, if_match: IfMatch = None
) -> FileView:
    """Write a file that the agent reads anew: above all one that could not be used, corrected.

    An item keeps its name; a file that holds none may become any item of its folder.
    """
    revision = expected(if_match)
    await _in_thread(partial(put_file, engine.agents.current(agent), name, body.raw, revision=revision))
    return await _read(engine, response, agent, name)


@router.delete(
    "/files/{file:path}",
    status_code=204,
    summary="Delete a file of an agent's folder",
    responses=problems(*CHANGED),
)
async def delete_agent_file(engine: Managing, agent: AgentName, name: FileName, if_match: IfMatch = None) -> None:
    """Delete a file in which a rule or a reference stands: above all one that could not be used."""
    revision = expected(if_match)
    await _in_thread(partial(delete_file, engine.agents.current(agent), name, revision=revision))


async def _read(engine: Engine, response: Response, agent: str, file: str) -> FileView:
    found = engine.agents.current(agent)
    text = await _in_thread(file_text, found, file)
    tag(response, text.revision)
    wrong = tuple(problem for problem in found.problems if problem.file == file)
    return FileView(file=file, raw=text.text, revision=text.revision, problems=wrong)


def _readable(agent: Agent, file: str) -> FileText | None:
    try:
        return read_text(agent, file)
    except MissingFileError:
        return None


def _prompt_view(text: FileText) -> PromptView:
    name = text.file.removeprefix("prompts/").removesuffix(".md")
    hosts = tuple(host for host, _ in read_site(text.file, text.text).hosts) if name.startswith("sites/") else ()
    return PromptView(name=name, file=text.file, hosts=hosts, characters=len(text.text))


async def _in_thread(work: Callable[..., T], *arguments: Any) -> T:
    return await anyio.to_thread.run_sync(work, *arguments)
