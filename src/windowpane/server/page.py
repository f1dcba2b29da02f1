"""The page: the files that `web/` is built into, at every address that the page itself understands.

Files under `assets` carry a hash of their content in their names, so browsers may keep them for ever; the others are
asked for each time and answered with 304 when nothing changed. Where the page was not built, a plain one says what to
do, and that everything else works.
"""

from html import escape
from pathlib import Path

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from windowpane.api.agents import AgentSummary
from windowpane.server.built_files import ASK_EACH_TIME, FOR_EVER, answer, below, find
from windowpane.server.dependencies import AnyonesPane, MaybeAsking
from windowpane.server.guide import HOME as GUIDE_HOME
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.middleware.headers import PAGE_POLICY
from windowpane.server.middleware.root_path import root_of
from windowpane.server.problems import answer_http_error

router = LazyRouter(include_in_schema=False)

BUNDLE = Path(__file__).parent.parent / "static"
"""Where the package's build puts the page."""

PLACES = ("/", "/s/{rest:path}", "/agents", "/agents/{rest:path}", "/analytics", "/shared")
"""The addresses of the page, after `web/src/routing/route.ts`. What is not here is not found."""

DOORS = frozenset(("api", "v1", "mcp", "assets", "docs", "push"))
"""Where programs ask: what is not there is a problem in JSON, also for a browser."""

PLAIN = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Windowpane</title>
<style>
  :root {{ color-scheme: light dark; }}
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; }}
  code, pre {{ font-family: ui-monospace, monospace; font-size: .9em; }}
  pre {{ padding: .75rem 1rem; overflow-x: auto; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }}
  li {{ margin: .25rem 0; }}
</style>
<h1>Windowpane is running</h1>
<p>Its page was not built. In a clone of the repository, <code>make serve</code> builds it; an installed package
has it inside.</p>
<h2>Agents</h2>
{agents}
<h2>Try</h2>
<pre><code>windowpane chat
windowpane sessions
windowpane context SESSION
windowpane doctor</code></pre>
<p>Or talk to it: <a href="{root}/api/agents">/api/agents</a>, <a href="{root}/api/sessions">/api/sessions</a>;
<a href="{root}/openapi.json">/openapi.json</a> describes everything.</p>
</html>
"""
NO_CALLER = "<p>Show a token to see them.</p>"
NO_AGENTS = "<p>There is none yet: <code>windowpane init</code> makes one.</p>"
PLAIN_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def home(request: Request, pane: AnyonesPane, caller: MaybeAsking) -> Response:
    """Return the page, whichever of its places is asked for, or the plain one where it was not built."""
    built = await _page(request)
    if built is not None:
        # Also with 304: browsers take its headers for those of the page that they have kept.
        built.headers["Content-Security-Policy"] = PAGE_POLICY
        return built
    root = root_of(request.scope)
    lines = "\n".join(_line(agent, root) for agent in await pane.agents.list()) if caller else ""
    agents = f"<ul>\n{lines}\n</ul>" if lines else NO_AGENTS if caller else NO_CALLER
    page = PLAIN.format(agents=agents, root=root)
    return HTMLResponse(page, headers={"Content-Security-Policy": PLAIN_POLICY})


for place in PLACES:
    router.add_api_route(place, home)


async def answer_missing(request: Request, error: Exception) -> Response:
    """Answer a browser that asks for what is not there with the page, which says so; and others with a problem."""
    if isinstance(error, HTTPException) and error.status_code == 404 and _is_visit(request):
        built = await _page(request)
        if built is not None and built.status_code == 200:
            built.status_code = 404
            built.headers["Content-Security-Policy"] = PAGE_POLICY
            return built
    return await answer_http_error(request, error)


def _is_visit(request: Request) -> bool:
    first = request.url.path.split("/")[1]
    return (
        request.method == "GET"
        and first not in DOORS
        and "." not in request.url.path
        and "text/html" in request.headers.get("accept", "")
    )


@router.get("/assets/{name}")
async def asset(request: Request, name: str) -> Response:
    """Return a script, a style or a picture of the page."""
    return await _answer(request, f"assets/{name}", FOR_EVER) or _missing()


@router.get("/theme.js")
@router.get("/icon.svg")
async def file(request: Request) -> Response:
    """Return a file that keeps its name when it changes."""
    return await _answer(request, request.url.path[1:], ASK_EACH_TIME) or _missing()


async def _page(request: Request) -> Response | None:
    """Return the page, with its addresses below the prefix of the request."""
    found = await find(request.app.state.bundle, "index.html")
    if found is None:
        return None
    root = root_of(request.scope)
    guide = root + GUIDE_HOME if await find(request.app.state.guide, "index.html") else ""
    return answer(request, below(found, root, guide), ASK_EACH_TIME)


async def _answer(request: Request, path: str, caching: str) -> Response | None:
    """Return a file of the bundle, or None when there is no such file."""
    found = await find(request.app.state.bundle, path)
    return answer(request, found, caching) if found else None


def _missing() -> Response:
    raise HTTPException(404)


def _line(agent: AgentSummary, root: str) -> str:
    name, about = escape(agent.name), escape(agent.description)
    problems = f", {agent.problems} problems" if agent.problems else ""
    return (
        f'<li><a href="{root}/api/agents/{name}">{name}</a>{f": {about}" if about else ""}'
        f" ({agent.rules} rules, {agent.references} references{problems})</li>"
    )
