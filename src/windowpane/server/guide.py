"""The guide: the documentation as a searchable site under `/docs/guide`, where `make docs` has built it.

No token is needed: the guide says nothing about this server. Its pages hold short scripts of their theme. The policy of
a page names the hashes of exactly these, so that no other script in a page can run.
"""

import re
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from windowpane.errors import MissingFileError
from windowpane.server.built_files import ASK_EACH_TIME, answer, find
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.middleware.headers import PAGE_POLICY

router = LazyRouter(include_in_schema=False)

GUIDE = Path(__file__).parent.parent / "guide"
"""Where `make docs` puts the site."""

HOME = "/docs/guide/"
NOT_BUILT = "the guide is not built; run `make docs` in a clone of the repository"

_SCRIPT = re.compile(rb"<script>(.*?)(?:</script>|\Z)", re.DOTALL)


@router.get("/docs")
@router.get("/docs/guide")
async def first_page() -> Response:
    """Lead to the guide's first page."""
    return RedirectResponse(HOME)


@router.get("/docs/guide/{path:path}")
async def guide(request: Request, path: str) -> Response:
    """Return a page of the guide, or a file that its pages load."""
    folder: Path = request.app.state.guide
    found = await find(folder, f"{path}index.html" if path.endswith("/") or not path else path)
    if found is None and path and await find(folder, f"{path}/index.html"):
        return RedirectResponse(f"{HOME}{path}/")
    if found is None:
        built = await find(folder, "index.html") is not None
        raise MissingFileError(request.url.path) if built else MissingFileError(request.url.path, NOT_BUILT)
    response = answer(request, found, ASK_EACH_TIME)
    if found.media_type == "text/html":
        # Also with 304: browsers take its headers for those of the page that they have kept.
        response.headers["Content-Security-Policy"] = _policy(found.body)
    return response


@lru_cache(maxsize=256)
def _policy(page: bytes) -> str:
    scripts = dict.fromkeys(f"'sha256-{b64encode(sha256(found).digest()).decode()}'" for found in _SCRIPT.findall(page))
    policy = PAGE_POLICY.replace("script-src 'self'", " ".join(("script-src 'self'", *scripts)))
    # The search box brings its own style element. There is no text of users in the guide that could use this.
    return policy.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
