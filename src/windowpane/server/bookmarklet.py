"""A page for the bookmarklet: it shows what another site's page has sent along, and keeps it when the user says so.

Other sites may not change anything here, so a bookmarklet, which acts for the site it is used on, only opens this
page with the text behind the `#` of its address. That part never leaves the browser. The page itself, which is ours,
puts it into the session that the user chooses, after a click. What comes along is shown as text and never as markup.
"""

import base64
import hashlib
from html import escape

from starlette.responses import HTMLResponse

from windowpane.server.lazy_routes import LazyRouter

router = LazyRouter(include_in_schema=False)

LONGEST_CHARACTERS = 20_000
"""How much of a page comes along: more than is kept, so that what is cut is marked as cut."""

BOOKMARKLET = (
    "javascript:void(open('ADDRESS/push#'+encodeURIComponent(JSON.stringify({url:location.href,"
    f"title:document.title,text:document.body.innerText.slice(0,{LONGEST_CHARACTERS})}}))))"
)
"""What to keep as a bookmark, with the server's address in the place of ADDRESS."""

SCRIPT = """
const part = (id) => document.getElementById(id);
const root = () => location.pathname.replace(/\\/push$/, "");

function pageIn(fragment) {
  const page = JSON.parse(decodeURIComponent(fragment.slice(1)));
  const { url, title = "", text } = page;
  if (![url, title, text].every((value) => typeof value === "string")) throw new TypeError("not a page");
  if (!/^https?:$/.test(new URL(url).protocol)) throw new TypeError("not a web page");
  return { url, title, text };
}

async function sessionsNow() {
  const answer = await fetch(`${root()}/api/sessions?limit=50`);
  return (await answer.json()).sessions;
}

async function keep(page, session) {
  const answer = await fetch(`${root()}/api/sessions/${encodeURIComponent(session)}/pages`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(page),
  });
  return answer.ok ? "The page is in the session." : (await answer.json()).detail;
}

async function show() {
  const fragment = location.hash;
  history.replaceState(null, "", location.pathname);
  part("bookmarklet").href = part("bookmarklet").dataset.code.replace("ADDRESS", location.origin + root());
  if (fragment.length < 2) return;
  let page;
  try {
    page = pageIn(fragment);
  } catch {
    part("said").textContent = "What came along is not a page.";
    return;
  }
  part("title").textContent = page.title || "(no title)";
  part("url").textContent = page.url;
  part("text").textContent = page.text;
  for (const session of await sessionsNow()) part("session").add(new Option(session.title || session.id, session.id));
  part("page").hidden = false;
  part("how").hidden = true;
  part("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    part("said").textContent = await keep(page, part("session").value);
  });
}

show();
"""

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Send a page to Windowpane</title>
<style>
  :root {{ color-scheme: light dark; }}
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; }}
  pre {{ white-space: pre-wrap; overflow-wrap: anywhere; max-height: 40vh; overflow-y: auto; padding: .75rem 1rem;
    border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }}
  #url {{ overflow-wrap: anywhere; }}
</style>
<h1>Send a page to a session</h1>
<section id="page" hidden>
  <h2 id="title"></h2>
  <p id="url"></p>
  <pre id="text"></pre>
  <form id="form">
    <label>Session <select id="session" required></select></label>
    <button>Keep this page</button>
  </form>
</section>
<section id="how">
  <p>Drag this to your bookmarks, and use it on the page that you want to send:
  <a id="bookmarklet" href="#" data-code="{code}">Send to Windowpane</a></p>
</section>
<p id="said" role="status"></p>
<script>{script}</script>
</html>
"""


def _hash_of(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'sha256-{_hash_of(SCRIPT)}'; style-src 'unsafe-inline'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    # The site that opened this page keeps no hold of it.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@router.get("/push")
async def push() -> HTMLResponse:
    """Return a page that keeps another page when the user says so."""
    return HTMLResponse(PAGE.format(code=escape(BOOKMARKLET), script=SCRIPT), headers=HEADERS)
