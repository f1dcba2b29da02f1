"""One turn with a tool, whose spans are sent where the `OTEL_…` variables say. It prints the session's id."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from opentelemetry import trace

from windowpane.context.messages import Usage
from windowpane.models.scripted import Call, Reply
from windowpane.server.process.tracing import configure_tracing
from windowpane.testing import World, tool


async def main(folder: Path) -> None:
    """Run the turn."""
    configure_tracing()
    world = World(folder)
    world.toolbox.put("files", [tool("read", "contents of {path}", permission="not_required")])
    read = Call("files__read", '{"path": "a"}', id="c1")
    world.says(
        Reply("I look.", calls=(read,), usage=Usage(11, 7, 5, 3), finish_reason="tool_call"),
        Reply("Done.", usage=Usage(20, 2), finish_reason="stop"),
    )
    async with world.pane() as pane:
        session = await pane.sessions.create()
        await pane.ask(session.id, "Read a.")
    sys.stdout.write(session.id)
    getattr(trace.get_tracer_provider(), "shutdown", lambda: None)()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
