"""A server for a process of its own. Its agent has one tool, `files:read`, which needs an approval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from server.place import engine_of
from windowpane.callers import TokenFile
from windowpane.models.scripted import Call, Reply, ScriptedModel
from windowpane.server.process.run import run
from windowpane.settings import Settings
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, tool


def serve(folder: Path, replies: Sequence[tuple[str, str]], say: Callable[[str], None]) -> None:
    """Serve until somebody stops it, and say the address when it is ready.

    A reply of its model is a text and the id of a tool call; with the id "never" it does not come to its end.
    """
    world = World(folder / "agents", store=SQLiteStore(folder / "windowpane.db"))
    world.rule("tone", "Be kind.", include="always")
    world.toolbox.put("files", [tool("read", "contents of {path}")])
    world.model = ScriptedModel("test", [_reply(text, call) for text, call in replies])
    settings = Settings(host="127.0.0.1", port=0, data=folder, grace_s=1)
    run(settings, engine=engine_of(world), on_ready=say)


def _reply(text: str, call: str) -> Reply:
    if call == "never":
        return Reply(text, before_end=anyio.Event())
    return Reply(text, calls=(Call("files__read", '{"path": "a"}', id=call),) if call else ())


def serve_with_token(folder: Path, say: Callable[[str], None]) -> None:
    """Serve at log level debug to callers with a token, and say the address and the token when it is ready."""
    world = World(folder / "agents", store=SQLiteStore(folder / "windowpane.db"))
    settings = Settings(host="127.0.0.1", port=0, data=folder, grace_s=1, log_level="debug", require_token=True)
    _, token = TokenFile(settings.tokens_file).create("local", ["manage"])
    run(settings, engine=engine_of(world), on_ready=lambda address: say(f"{address} {token}"))
