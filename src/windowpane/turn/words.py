"""Keep the words of a reply while it streams, so that they are not lost with the process.

They are written over in one place beside the log, at most every two seconds. The worker that closes a turn which
another left behind puts them into the log, as a reply that was interrupted.
"""

import json
from collections.abc import Callable

import anyio

from windowpane.context.events import Event, ModelReplied
from windowpane.context.messages import Step
from windowpane.context.session import OpenTurn, SessionState
from windowpane.stores.base import Store
from windowpane.text.tokens import count

KEEP_EVERY_S = 2.0
"""How often the words of a reply are kept while it streams, at most."""


async def keep_said(store: Store, said: Callable[[], tuple[SessionState, str]], fence: int) -> None:
    """Keep what a turn says, now and again, as `said` tells it with the session as it was stored last."""
    kept = (0, "")
    while True:
        state, text = said()
        turn = state.open_turn
        if turn is not None and text and kept != (now := (len(turn.steps), text)):
            await keep_words(store, state, turn, text, fence)
            kept = now
        await anyio.sleep(KEEP_EVERY_S)


async def keep_words(store: Store, state: SessionState, turn: OpenTurn, text: str, fence: int) -> None:
    """Keep what the turn has said of its next reply."""
    body = json.dumps({"turn": turn.turn, "step": len(turn.steps), "text": text}).encode()
    await store.put_partial(state.id, body, fence=fence)


async def kept_words(store: Store, state: SessionState) -> list[Event]:
    """Return what an open turn that its worker left behind had said of its next reply; nothing when it had not."""
    turn = state.open_turn
    body = await store.partial(state.id) if turn is not None and not turn.waits else None
    if turn is None or body is None:
        return []
    kept = json.loads(body)
    if (kept["turn"], kept["step"]) != (turn.turn, len(turn.steps)):
        return []
    step = Step(text=kept["text"], finish_reason="interrupted")
    return [ModelReplied(turn=turn.turn, step=step, tokens=count(step.text))]
