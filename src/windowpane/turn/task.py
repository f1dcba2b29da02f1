"""A turn that runs in the background: what it knows of itself, and how it tells those who follow it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import anyio

from windowpane.agents.base import Agent
from windowpane.bus.feed import Feed
from windowpane.calls.recorder import CallRecorder
from windowpane.context.events import Delta, Recorded, ToolProgress, TurnFinished
from windowpane.context.items import Tool
from windowpane.context.messages import Outcome
from windowpane.context.request import ReplyOptions
from windowpane.context.session import SessionState
from windowpane.errors import LeaseLostError, WindowpaneError
from windowpane.remarks import get_logger
from windowpane.stores.base import Lease

log = get_logger()


@dataclass(slots=True)
class TurnTask:
    """A turn that runs in the background of this process. `state` is its session as it was stored last.

    `lost` tells that another worker has taken the session over: this one writes nothing more. `ends` tells that its end
    is being stored, and `released` that its lease was given back with it.
    """

    turn: int
    state: SessionState
    lease: Lease
    agent: Agent | None = None
    brought: Sequence[Tool] = ()
    reply_options: ReplyOptions | None = None
    feed: Feed = field(default_factory=Feed)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    cancelled_by_user: bool = False
    said: list[str] = field(default_factory=list[str])
    model: str = ""
    calls: CallRecorder | None = None
    outcome: Outcome | Literal["waiting"] = "waiting"
    error: str = ""
    unrecorded: WindowpaneError | None = None
    storing: bool = False
    lost: bool = False
    ends: bool = False
    released: bool = False

    @property
    def taken_over(self) -> bool:
        """Tell whether the log has the rest of the turn: another worker goes on with it, or has closed it."""
        return self.lost and self.outcome == "waiting"

    def publish(self, recorded: Iterable[Recorded]) -> None:
        """Tell those who follow what was stored."""
        for entry in recorded:
            self.feed.publish(entry)
            if isinstance(entry.event, TurnFinished) and entry.event.turn == self.turn:
                self.outcome = entry.event.outcome
                self.error = entry.event.error.code if entry.event.error else ""

    def speak(self, said: Delta | ToolProgress) -> None:
        """Tell those who follow a little more of the answer, or how far a tool has come."""
        if isinstance(said, Delta) and said.kind == "text":
            self.said.append(said.text)
        self.feed.publish(said)

    def give_up(self, error: WindowpaneError) -> None:
        """Note that the end of the turn cannot be recorded."""
        self.unrecorded = error
        self.outcome, self.error = "interrupted", error.code

    def lose(self, error: LeaseLostError) -> None:
        """Note that another worker has the session now."""
        log.info("turn.lost", session=self.state.id, turn=self.turn, code=error.code)
        self.lost, self.error = True, error.code

    def lose_lease(self) -> None:
        """Stop the turn: its lease could not be renewed. A turn whose end is being stored needs none any more."""
        if not self.ends:
            self.lost = True
            self.scope.cancel()

    def heed_cancel(self) -> None:
        """Stop the turn when its log says that a user asked for that."""
        turn = self.state.open_turn
        if turn is not None and turn.turn == self.turn and turn.cancel_requested and not self.cancelled_by_user:
            self.cancel(by_user=True)

    def cancel(self, *, by_user: bool) -> None:
        """Stop the turn."""
        self.cancelled_by_user = by_user
        self.scope.cancel()
