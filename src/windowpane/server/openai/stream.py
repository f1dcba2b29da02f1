"""Answers as OpenAI's clients read them from a stream."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any

import anyio

from windowpane.engine import Engine
from windowpane.errors import NoTurnRunningError, SessionNotFoundError
from windowpane.server.openai.conversation import Answering
from windowpane.server.sse import as_json

DONE = b"data: [DONE]\n\n"


def data(body: Mapping[str, Any], event: str = "") -> bytes:
    """Return one server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {as_json(dict(body))}\n\n".encode()


async def until_gone(engine: Engine, turn: Answering, events: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield events; when the client is gone and cannot come back for the answer, stop the turn."""
    whole = False
    try:
        async with aclosing(events):
            async for event in events:
                yield event
        whole = True
    finally:
        if turn.once and not whole:
            with anyio.CancelScope(shield=True), suppress(NoTurnRunningError, SessionNotFoundError):
                await engine.cancel(turn.session_id)
