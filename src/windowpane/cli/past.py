"""What a command uses that looks back: the server that `--url` names, or a store alone, which is there at once."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol

from windowpane.cli.connect import command_on, open_pane, open_states
from windowpane.cli.lookup import SessionsToRead, hashes_now
from windowpane.cli.settings import server_url, settings
from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef, item_hash
from windowpane.loading import loading

if TYPE_CHECKING:
    from windowpane.agents.base import Agents
    from windowpane.api.comparison import Comparison
    from windowpane.api.explanation import Explanation
    from windowpane.api.turns import CallList, CallRecord
    from windowpane.context.ids import BlobHash
    from windowpane.context.request import Request

P = ParamSpec("P")


class CallsToRead(SessionsToRead, Protocol):
    """Sessions, and the calls that were made for them."""

    async def calls(self, session_id: str) -> "CallList":
        """Return every call that was made for a session."""
        ...

    async def call(self, session_id: str, number: int) -> "CallRecord":
        """Return one of those calls, counted from 1."""
        ...


class TurnsToRead(Protocol):
    """Past turns: what each was given, and why."""

    async def request(self, session_id: str, turn: int) -> "Request":
        """Return a turn's request."""
        ...

    async def calls(self, session_id: str, turn: int) -> "CallList":
        """Return the calls of a turn."""
        ...

    async def call(self, session_id: str, turn: int, number: int) -> "CallRecord":
        """Return a call of a turn, counted from 1."""
        ...

    async def explain(self, session_id: str, turn: int, item: ItemRef | str) -> "Explanation":
        """Return why an item was in a turn's request or not."""
        ...

    async def explanations(self, session_id: str, turn: int) -> "tuple[Explanation, ...]":
        """Return that for each item that the agent had then."""
        ...

    async def compare(
        self, session_id: str, turn: int, other: int, *, other_session_id: str | None = None
    ) -> "Comparison":
        """Return what changed from a turn's request to another's."""
        ...


@dataclass(frozen=True, slots=True)
class PastView:
    """Sessions and past turns, and the hashes of an agent's rules and references as they are now."""

    sessions: CallsToRead
    turns: TurnsToRead
    hashes_now: "Callable[[str], Awaitable[dict[ItemRef, BlobHash]]]"


def on_past(command: "Callable[Concatenate[PastView, P], Awaitable[None]]") -> Callable[..., None]:
    """Make a command of a function of the past: it gets `--data`, `--agents`, `--store-url` and `--url`."""
    return command_on(with_past, command)


def with_past(command: "Callable[[PastView], Awaitable[None]]") -> None:
    """Run a command with what can be looked back at."""
    import anyio

    async def opened() -> None:
        async with open_past() as past:
            await command(past)

    anyio.run(opened)


@asynccontextmanager
async def open_past() -> AsyncGenerator[PastView]:
    """Open what can be looked back at."""
    if server_url():
        async with open_pane() as pane:
            yield PastView(pane.sessions, pane.turns, partial(hashes_now, pane, kinds=("rule", "reference")))
        return
    async with open_states() as states:
        with loading():
            from windowpane.local.past.records import StoreRecords
            from windowpane.local.past.turns import PastSessionCalls, PastTurns
            from windowpane.wiring import open_agents

        agents = open_agents(settings().agents_folder)
        records = StoreRecords(states)
        yield PastView(PastSessionCalls(states, records), PastTurns(records, _named), partial(_written, agents))


async def _named(session_id: str) -> SessionId:
    """Return the session of a name: on this machine a command sees those of all owners."""
    return SessionId(session_id)


async def _written(agents: "Agents", name: str) -> "dict[ItemRef, BlobHash]":
    agent = await agents.look(name)
    return {item.ref: item_hash(item) for item in (*agent.rules, *agent.references)}
