"""The first page: the server is running, which agents there are, what to try."""

from html import escape

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from windowpane.agents.base import Agent
from windowpane.server.opened import OpenEngine

router = APIRouter(include_in_schema=False)

PAGE = """<!doctype html>
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
<p>It decides what goes into every model request, records it, and shows why.</p>
<h2>Agents</h2>
{agents}
<h2>Try</h2>
<pre><code>windowpane chat
windowpane sessions
windowpane context SESSION
windowpane doctor</code></pre>
<p>Or talk to it: <a href="/api/agents">/api/agents</a>, <a href="/api/sessions">/api/sessions</a>;
<a href="/openapi.json">/openapi.json</a> describes everything.</p>
</html>
"""
NO_AGENTS = "<p>There is none yet: <code>windowpane init</code> makes one.</p>"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@router.get("/")
async def home(engine: OpenEngine) -> HTMLResponse:
    """Return a page that needs nothing but itself."""
    lines = "\n".join(_line(engine.agents.current(name)) for name in engine.agents.names())
    page = PAGE.format(agents=f"<ul>\n{lines}\n</ul>" if lines else NO_AGENTS)
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})


def _line(agent: Agent) -> str:
    name, about = escape(agent.name), escape(agent.description)
    problems = f", {len(agent.problems)} problems" if agent.problems else ""
    return (
        f'<li><a href="/api/agents/{name}">{name}</a>{f": {about}" if about else ""}'
        f" ({len(agent.rules)} rules, {len(agent.references)} references{problems})</li>"
    )
