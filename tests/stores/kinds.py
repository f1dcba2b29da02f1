"""Every store that keeps the contract. Another store joins by adding one entry to `KINDS`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from windowpane.context.events import Event, MessageAdded, Recorded, SessionCreated
from windowpane.context.ids import SessionId, new_session_id
from windowpane.stores.base import Store
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite import SQLiteStore


@dataclass(frozen=True, slots=True)
class Kind:
    """A store: how a test names a fresh place for its data, and how any process opens that place."""

    name: str
    fresh: Callable[[Path], str]
    open: Callable[[str], Store]
    shared: bool
    """Whether several processes can open one place."""


KINDS = (
    Kind("memory", fresh=lambda directory: "", open=lambda place: MemoryStore(), shared=False),
    Kind("sqlite", fresh=lambda directory: str(directory / "sessions.db"), open=SQLiteStore, shared=True),
)


def created(owner: str = "ana", agent: str = "pane") -> SessionCreated:
    return SessionCreated(agent=agent, owner=owner, settings={}, items=())


def said(content: str) -> MessageAdded:
    return MessageAdded(role="user", content=content)


async def begin(store: Store, owner: str = "ana", agent: str = "pane") -> SessionId:
    session = new_session_id()
    await store.append(session, [created(owner, agent)], expected_seq=0)
    return session


def events(log: list[Recorded]) -> list[Event]:
    return [recorded.event for recorded in log]


def contents(log: list[Recorded]) -> list[str]:
    return [recorded.event.content for recorded in log if isinstance(recorded.event, MessageAdded)]
