"""Files for the applets of the page: list, read and write them below the roots, and see what git says changed."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, cast

import anyio.to_thread
from fastapi import Query, Request, Response
from pydantic import ConfigDict, Field

from windowpane.errors import ConflictError, InvalidInputError
from windowpane.server.applets.gitdiff import REVISION, Diff, diff
from windowpane.server.applets.roots import Entry, OpenedFile, Roots
from windowpane.server.dependencies import Managing
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import RequestBody
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import IfMatch, IfNoneMatch, expected_or_new, tag

router = LazyRouter(prefix="/api/files", tags=["files"])

FilePath = Annotated[
    str, Query(alias="path", min_length=1, max_length=4096, description="The whole path.", examples=["/srv/notes.md"])
]


class FileContent(RequestBody):
    """The whole text of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [{"text": "Hello\n"}]})

    text: str


@dataclass(frozen=True, slots=True)
class RootList:
    """The folders whose files may be shown and edited; `WINDOWPANE_ROOTS` names them.

    `offered` is the folder that the server was started in, where it may be shared; null where it may not. It is among
    the roots when it is shared.
    """

    roots: tuple[str, ...]
    offered: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderView:
    """What a folder holds, folders first, and the cursor of the next page; null when this was the last."""

    path: str
    entries: tuple[Entry, ...]
    cursor: str | None


def roots_of(request: Request) -> Roots:
    """Return the folders that this server may look into."""
    return cast("Roots", getattr(request.app.state, "roots", None) or Roots())


@router.get("", summary="List the shared folders", responses=problems())
async def list_roots(pane: Managing, request: Request) -> RootList:
    """Return the roots, and the folder that may become one."""
    return await anyio.to_thread.run_sync(_listed, roots_of(request))


class SharedFolder(RequestBody):
    """Whether the offered folder is shared. It is named, so that no other one is shared by mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Annotated[str, Field(max_length=4096)]
    share: bool = True


@router.post("", summary="Share the folder that the server was started in", responses=problems(*BODY, 409))
async def share_folder(pane: Managing, request: Request, sharing: SharedFolder) -> RootList:
    """Share the offered folder with the page, or take it back. The answer is kept with the server's data.

    Only a server that `windowpane serve` runs on a loopback address, without tokens and roots of its own, offers one.
    """
    roots = roots_of(request)
    if roots.offer is None or sharing.path != str(roots.offer.folder):
        raise ConflictError(f"the server does not offer {sharing.path[:200]!r}; name the folder in WINDOWPANE_ROOTS")
    await anyio.to_thread.run_sync(roots.offer.answer, sharing.share)
    return await anyio.to_thread.run_sync(_listed, roots)


def _listed(roots: Roots) -> RootList:
    return RootList(roots.paths, str(roots.offer.folder) if roots.offer else None)


@router.get("/list", summary="List a folder", responses=problems(404))
async def list_folder(
    pane: Managing,
    request: Request,
    path: FilePath,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    cursor: Annotated[str | None, Query(description="The cursor of the page before.")] = None,
) -> FolderView:
    """Return what a folder below a root holds."""
    entries = await anyio.to_thread.run_sync(roots_of(request).entries, path)
    names = [_cursor(entry) for entry in entries]
    if cursor is not None and cursor not in names:
        raise InvalidInputError("this is not the cursor of an entry that is there now; start again without one")
    start = 0 if cursor is None else names.index(cursor) + 1
    page = entries[start : start + limit]
    return FolderView(path=path, entries=page, cursor=names[start + limit - 1] if start + limit < len(names) else None)


def _cursor(entry: Entry) -> str:
    return f"{'d' if entry.kind == 'folder' else 'f'}.{entry.name}"


@router.get("/content", summary="Read a file", responses=problems(404))
async def read_file(pane: Managing, request: Request, response: Response, path: FilePath) -> OpenedFile:
    """Return a text file below a root. Its `ETag` is what a change of it names."""
    found = await anyio.to_thread.run_sync(roots_of(request).read, path)
    tag(response, found.revision)
    return found


@router.put("/content", summary="Write a file", responses=problems(*BODY, 404, 409, 412, 428))
async def write_file(
    pane: Managing,
    request: Request,
    response: Response,
    path: FilePath,
    body: FileContent,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> OpenedFile:
    """Write a text file below a root, whole or not at all. A new one is sent with `If-None-Match: *`."""
    revision = expected_or_new(if_match, if_none_match)
    written = await anyio.to_thread.run_sync(partial(roots_of(request).write, path, body.text, revision=revision))
    tag(response, written.revision)
    return written


@router.get("/diff", summary="See what changed in a repository", responses=problems(404))
async def read_diff(
    pane: Managing,
    request: Request,
    path: FilePath,
    base: Annotated[
        str, Query(max_length=200, pattern=REVISION, description="Since this commit, branch or tag.")
    ] = "HEAD",
) -> Diff:
    """Return what changed at a path since a commit, by asking git. Nothing that the repository names is run."""
    return await diff(roots_of(request), path, base)
