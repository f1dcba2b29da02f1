"""The files of an agent: rules and references, prompts, settings; made, changed and deleted as files.

The file on disk is the truth. What is sent is read as the agent would read it, and refused with line and reason when
it cannot be used; then nothing was written. A change says which revision it is meant for.
"""

from typing import Annotated, Literal, TypeVar

from fastapi import Path, Response
from pydantic import ConfigDict, Field, model_validator

from windowpane.api.agents import FileView, ItemDetail, PromptList
from windowpane.context.items import DEFAULT_PRIORITY, IncludeMode, ItemRef, Reference, Rule
from windowpane.context.text import first_heading
from windowpane.server.dependencies import Managing, Reading
from windowpane.server.json_numbers import Whole
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import AgentName, AlsoIn, Name, RequestBody
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import IfMatch, IfNoneMatch, Key, expected, expected_or_new, tag

router = LazyRouter(prefix="/api/agents/{agent}", tags=["agents"])

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
Related = Annotated[str, Field(min_length=1, max_length=200, description="The name or the title of a reference.")]
Priority = Annotated[Whole, Field(ge=0, le=999)]
CHANGED = (404, 409, 412, 428)

T = TypeVar("T")


class NewItem(RequestBody):
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
    related: tuple[Related, ...] = ()
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
    def item(self) -> Rule | Reference:
        """Return the item that this is."""
        if self.type == "rule":
            return Rule(
                name=self.name,
                text=self.text,
                description=self.description,
                priority=self.priority,
                include=self.include,
                enabled=self.enabled,
                version=self.version,
            )
        return Reference(
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


class ItemEdit(RequestBody):
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
    related: tuple[Related, ...] | None = None
    text: str | None = None


class RawFile(RequestBody):
    """A whole file, as it is to be on disk."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"raw": "---\ninclude: always\n---\nAnswer in one sentence.\n"}]},
    )

    raw: str


@router.post("/items", status_code=201, summary="Write a new rule or reference", responses=problems(*BODY, 404, 409))
async def create_agent_item(
    pane: Managing, response: Response, agent: AgentName, new: NewItem, key: Key = None, also_in: AlsoIn = None
) -> ItemDetail:
    """Write a file for it, `rules/NAME.md` or `references/NAME.md`. It counts from the next request on.

    With an `Idempotency-Key`, finding exactly this file there is the same as having written it.
    """
    if new.raw is not None:
        made = await pane.agents.create_item_file(agent, ItemRef(new.type, new.name), new.raw, key=key, also_in=also_in)
    else:
        made = await pane.agents.create_item(agent, new.item, key=key, also_in=also_in)
    response.headers["Location"] = f"/api/agents/{agent}/items/{made.type}/{made.name}"
    return _tagged(response, made)


@router.put("/items/{type}/{name:path}", summary="Replace an item's file", responses=problems(*BODY, *CHANGED))
async def put_agent_item(
    pane: Managing,
    response: Response,
    agent: AgentName,
    kind: Written,
    name: Name,
    body: RawFile,
    if_match: IfMatch = None,
    also_in: AlsoIn = None,
) -> ItemDetail:
    """Replace the whole file of a rule or a reference. It keeps its name."""
    ref, revision = ItemRef(kind, name), expected(if_match)
    return _tagged(response, await pane.agents.put_item(agent, ref, body.raw, revision=revision, also_in=also_in))


@router.patch("/items/{type}/{name:path}", summary="Change an item", responses=problems(*BODY, *CHANGED))
async def change_agent_item(
    pane: Managing,
    response: Response,
    agent: AgentName,
    kind: Written,
    name: Name,
    change: ItemEdit,
    if_match: IfMatch = None,
    also_in: AlsoIn = None,
) -> ItemDetail:
    """Change single settings of a rule or a reference, or its text. The rest of the file stays as it is written.

    An item that becomes `always` comes into new sessions by itself, and into an open one by `also_in`.
    """
    ref, revision = ItemRef(kind, name), expected(if_match)
    changes = change.model_dump(exclude_unset=True)
    return _tagged(response, await pane.agents.change_item(agent, ref, changes, revision=revision, also_in=also_in))


@router.delete(
    "/items/{type}/{name:path}", status_code=204, summary="Delete an item's file", responses=problems(*CHANGED)
)
async def delete_agent_item(
    pane: Managing, agent: AgentName, kind: Written, name: Name, if_match: IfMatch = None
) -> None:
    """Delete the file of a rule or a reference. Past turns keep the text that they were given."""
    await pane.agents.delete_item(agent, ItemRef(kind, name), revision=expected(if_match))


@router.get("/prompts", summary="List an agent's prompts", responses=problems(404))
async def list_agent_prompts(pane: Reading, agent: AgentName) -> PromptList:
    """Return the prompts that the agent's folder has."""
    return PromptList(await pane.agents.prompts(agent))


@router.get("/prompts/{prompt:path}", summary="Read a prompt", responses=problems(404))
async def read_agent_prompt(pane: Reading, response: Response, agent: AgentName, prompt: PromptName) -> FileView:
    """Return a prompt's file as it is."""
    return _file(response, await pane.agents.prompt(agent, prompt))


@router.put("/prompts/{prompt:path}", summary="Write a prompt", responses=problems(*BODY, *CHANGED))
async def put_agent_prompt(
    pane: Managing,
    response: Response,
    agent: AgentName,
    prompt: PromptName,
    body: RawFile,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> FileView:
    """Write the core prompt, the default for sites, or a site skill. A new one is sent with `If-None-Match: *`."""
    revision = expected_or_new(if_match, if_none_match)
    return _file(response, await pane.agents.put_prompt(agent, prompt, body.raw, revision=revision))


@router.delete("/prompts/{prompt:path}", status_code=204, summary="Delete a prompt", responses=problems(*CHANGED))
async def delete_agent_prompt(pane: Managing, agent: AgentName, prompt: PromptName, if_match: IfMatch = None) -> None:
    """Delete a site skill or the default for sites. The core prompt can only be changed."""
    await pane.agents.delete_prompt(agent, prompt, revision=expected(if_match))


@router.get("/manifest", summary="Read an agent's settings as a file", responses=problems(404))
async def read_agent_manifest(pane: Managing, response: Response, agent: AgentName) -> FileView:
    """Return `agent.yaml` as it is. It can hold keys of tool servers, so who reads it must be able to change it."""
    return _file(response, await pane.agents.manifest(agent))


@router.put("/manifest", summary="Write an agent's settings", responses=problems(*BODY, *CHANGED))
async def put_agent_manifest(
    pane: Managing, response: Response, agent: AgentName, body: RawFile, if_match: IfMatch = None
) -> FileView:
    """Replace `agent.yaml`: model, settings, search, tool servers. Nothing in it may become wrong by this."""
    return _file(response, await pane.agents.put_manifest(agent, body.raw, revision=expected(if_match)))


@router.get("/files/{file:path}", summary="Read a file of an agent's folder", responses=problems(404))
async def read_agent_file(pane: Managing, response: Response, agent: AgentName, name: FileName) -> FileView:
    """Return a file that the agent reads as it is, also when it cannot be used, and what is wrong with it."""
    return _file(response, await pane.agents.file(agent, name))


@router.put("/files/{file:path}", summary="Write a file of an agent's folder", responses=problems(*BODY, *CHANGED))
async def put_agent_file(
    pane: Managing, response: Response, agent: AgentName, name: FileName, body: RawFile, if_match: IfMatch = None
) -> FileView:
    """Replace a file that the agent reads: above all one that could not be used, corrected.

    An item keeps its name; a file that holds none may become any item of its folder.
    """
    return _file(response, await pane.agents.put_file(agent, name, body.raw, revision=expected(if_match)))


@router.delete(
    "/files/{file:path}",
    status_code=204,
    summary="Delete a file of an agent's folder",
    responses=problems(*CHANGED),
)
async def delete_agent_file(pane: Managing, agent: AgentName, name: FileName, if_match: IfMatch = None) -> None:
    """Delete a file in which a rule or a reference stands: above all one that could not be used."""
    await pane.agents.delete_file(agent, name, revision=expected(if_match))


def _tagged(response: Response, item: ItemDetail) -> ItemDetail:
    if item.revision is not None:
        tag(response, item.revision)
    return item


def _file(response: Response, file: FileView) -> FileView:
    tag(response, file.revision)
    return file
