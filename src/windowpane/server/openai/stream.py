"""Answers as OpenAI's clients read them from a stream."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any

import anyio

from windowpane.engine import Engine
from windowpane.errors import NoTurnRunningError, SessionNotFoundError
from windowpane.server.openai.conversation import Answering
from windowpane.server.openai.reply import Heard
from windowpane.server.sse import as_json

FIRST_S = 15.0
"""How long the head of a response waits for the first word. Proxies give up on a head that takes a minute."""

DONE = b"data: [DONE]\n\n"


def data(body: Mapping[str, Any], event: str = "") -> bytes:
    """Return one server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {as_json(dict(body))}\n\n".encode()


async def first_of(heard: AsyncGenerator[Heard], wait_s: float = FIRST_S) -> tuple[Heard | None, AsyncGenerator[Heard]]:
    """Return what is heard first, if that is soon, and everything that is heard, that included.

    So what fails before the first word can still be told by the status of the response.
    """
    task = asyncio.ensure_future(anext(heard))
    await asyncio.wait({task}, timeout=wait_s)

    async def everything() -> AsyncGenerator[Heard]:
        async with aclosing(heard):
            yield await task
            async for more in heard:
                yield more

    return task.result() if task.done() else None, everything()


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
