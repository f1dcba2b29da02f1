"""An agent whose selection the tests know: what is about photos comes in, what is about cheese does not.

A request of it that is about photos has 5 rules (3 agent, 2 always) and 2 references (1 agent, 1 manual), and with the
three tools that `at_desk` adds, 3 tools (all manual).
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from browser.place import MODEL, Place
from patience import PATIENCE_S

AGENT = "desk"
TOOLS = ("list_notes", "read_note", "search_notes")
FILES: dict[str, str] = {
    "prompts/core.md": "You look after photos.",
    "rules/authentication-rules.md": "always 1 Who may do what|Ask who it is.",
    "rules/house-style.md": "always 1 How to write|Write plainly.",
    "rules/photo-rights.md": "agent 40 Whose photos may be uploaded|Only upload photos that you took yourself.",
    "rules/photo-size.md": "agent 3 How large uploaded photos may be|Photos that are uploaded have at most 20 MB.",
    "rules/photo-names.md": "agent 20 How uploaded photos are named|Uploaded photos are named after their day.",
    "references/photo-upload.md": "agent 100 How photos are uploaded|Photos are uploaded with the button at the top.",
    "references/albums.md": "manual 50 What albums are|An album holds photos.",
    "references/cheese.md": "agent 500 How Gouda ripens|Gouda ripens in a cellar for months.",
}


def write_desk(place: Place) -> None:
    """Write what is not as it should be, and wait until the server has seen it."""
    for name, text in {"agent.yaml": settings(place), **FILES}.items():
        wanted = item(text) if "|" in text else text
        file = place.folder / "agents" / AGENT / name
        if not file.is_file() or file.read_text() != wanted:
            place.write(name, wanted, AGENT)
    deadline = time.monotonic() + PATIENCE_S
    while not is_ready(place):
        assert time.monotonic() < deadline, "the server does not see the agent"
        time.sleep(0.2)


def settings(place: Place, gate: Path | None = None) -> str:
    """Return the agent's settings. With a gate, its tool server does not start before there is such a file."""
    server = f"{place.folder}/agents/pane/tools/notes_server.py"
    waiting = f"import pathlib, runpy, time\nwhile not pathlib.Path('{gate}').exists(): time.sleep(0.05)\n"
    args = [server] if gate is None else ["-c", f"{waiting}runpy.run_path('{server}', run_name='__main__')"]
    return f"""description: Looks after photos.
model: {MODEL}
working_context: false
finders: false
search: {{text: {{floor: 0, share_of_best: 0, top_n: 4, include_score: 1}}}}
mcpServers:
  notes:
    command: ${{WINDOWPANE_PYTHON}}
    args: {json.dumps(args)}
    include: manual
    permission: not_required
"""


def is_ready(place: Place) -> bool:
    """Tell whether the server has the agent as it is written, with its tools."""
    if place.client.get(f"/api/agents/{AGENT}").is_error:
        return False
    found = {item["name"]: item for item in place.call("GET", f"/api/agents/{AGENT}/items")["items"]}
    texts = {name.split("/")[1].removesuffix(".md"): text for name, text in FILES.items() if "|" in text}
    return set(found) >= {*texts, *TOOLS} and all(
        place.call("GET", f"/api/agents/{AGENT}/items/{found[name]['type']}/{quote(name)}")["text"].strip()
        == text.split("|")[1]
        for name, text in texts.items()
    )


def item(text: str) -> str:
    """Return a file of an item that is written as `include priority description|text`."""
    front, body = text.split("|")
    include, priority, description = front.split(" ", 2)
    return f"---\ninclude: {include}\npriority: {priority}\ndescription: {description}\n---\n{body}\n"


def at_desk(place: Place, name: str) -> str:
    """Return a new session of the agent, with one reference and three tools that were added by hand."""
    session: str = place.new_session(name, AGENT)
    added: list[dict[str, Any]] = [{"type": "reference", "name": "albums"}]
    added += [{"type": "tool", "name": tool, "server": "notes"} for tool in TOOLS]
    for ref in added:
        place.call("POST", f"/api/sessions/{session}/items", ref)
    return session
