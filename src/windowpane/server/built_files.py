"""Files that a build put beside the package: the page and the guide.

Each is read once, and again when it has changed. It has an `ETag`, so a browser that has it already is answered with
304, and it travels packed where that is worth it.
"""

import gzip
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

FOR_EVER = "public, max-age=31536000, immutable"
"""For files that carry a hash of their content in their names."""

ASK_EACH_TIME = "no-cache"
WORTH_PACKING_BYTES = 1024
ROOT_MARK = b'name="windowpane-root" content="'
"""Where the page reads below which prefix it is served."""

GUIDE_MARK = b'name="windowpane-guide" content="'
"""Where it reads the address of the guide."""


@dataclass(frozen=True, slots=True)
class BuiltFile:
    """A file's content. `packed` is None where packing is not worth it."""

    body: bytes
    packed: bytes | None
    tag: str
    media_type: str


@lru_cache(maxsize=32)
def below(file: BuiltFile, root: str, guide: str = "") -> BuiltFile:
    """Return a page whose relative addresses lead below a prefix, whatever address it is shown at.

    `guide` is the address of the guide, empty where there is none.
    """
    body = file.body.replace(b'"./', f'"{root}/'.encode()).replace(ROOT_MARK, ROOT_MARK + root.encode())
    body = body.replace(GUIDE_MARK, GUIDE_MARK + guide.encode())
    return _built(body, file.media_type)


async def find(folder: Path, path: str) -> BuiltFile | None:
    """Return a file below a folder, or None when there is no such file."""
    return await anyio.to_thread.run_sync(_found, folder, path)


def answer(request: Request, file: BuiltFile, caching: str) -> Response:
    """Return a file as the answer to a request."""
    headers = {"Cache-Control": caching, "ETag": file.tag, "Vary": "Accept-Encoding"}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    body = file.body
    if file.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        body = file.packed
        headers["Content-Encoding"] = "gzip"
    return Response(body, headers=headers, media_type=file.media_type)


def _found(folder: Path, name: str) -> BuiltFile | None:
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            return None
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, ValueError):
        # A name may hold what no file name can.
        return None


@lru_cache(maxsize=256)
def _read(path: Path, changed: int) -> BuiltFile:
    return _built(path.read_bytes(), guess_type(path.name)[0] or "application/octet-stream")


def _built(body: bytes, media_type: str) -> BuiltFile:
    packed = gzip.compress(body, mtime=0) if len(body) >= WORTH_PACKING_BYTES else None
    return BuiltFile(body, packed, f'"{sha256(body).hexdigest()[:32]}"', media_type)
