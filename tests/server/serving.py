"""A server as a process of its own: `serving.py FOLDER REPLIES`, where REPLIES is what its model will say, as JSON.

A reply is a text and the id of a tool call; with the id "never" it does not come to its end. The process prints its
address when it is ready. Its agent has one tool, `files:read`, which needs an approval.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from pydantic import TypeAdapter

from engine.world import World, tool
from server.place import engine_of
from windowpane.models.scripted import Call, Reply, ScriptedModel
from windowpane.server.run import run
from windowpane.settings import Settings
from windowpane.stores.sqlite import SQLiteStore

folder, replies = Path(sys.argv[1]), TypeAdapter(list[tuple[str, str]]).validate_json(sys.argv[2])


def main() -> None:
    """Serve until somebody stops it."""
    world = World(folder / "agents", store=SQLiteStore(folder / "windowpane.db"))
    world.rule("tone", "Be kind.", include="always")
    world.toolbox.put("files", [tool("read", "contents of {path}")])
    world.model = ScriptedModel("test", [_reply(text, call) for text, call in replies])
    settings = Settings(host="127.0.0.1", port=0, data=folder, grace_s=1)
    run(settings, engine=engine_of(world), on_ready=_say)


def _say(address: str) -> None:
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()


def _reply(text: str, call: str) -> Reply:
    if call == "never":
        return Reply(text, before_end=anyio.Event())
    return Reply(text, calls=(Call("files__read", '{"path": "a"}', id=call),) if call else ())


if __name__ == "__main__":
    main()
