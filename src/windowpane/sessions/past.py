"""A conversation that took place elsewhere, as the events of turns whose requests were not recorded."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from windowpane.context.events import Event, MessageAdded, ModelReplied, ToolReturned, TurnFinished, TurnStarted
from windowpane.context.ids import BlobHash
from windowpane.context.messages import Step
from windowpane.files.read import NO_FILES, ReadFiles
from windowpane.text.tokens import count


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a user said, and what was answered, step by step. Either may be missing; unless `finished`, more follows.

    `files` came with the message; among its blobs are those of files that tools returned.
    """

    message: str = ""
    steps: tuple[Step, ...] = ()
    finished: bool = True
    files: ReadFiles = NO_FILES

    @property
    def is_asked(self) -> bool:
        """Tell whether the user said something, or sent a file."""
        return bool(self.message or self.files.attachments)


def past_blobs(exchanges: Iterable[Exchange]) -> dict[BlobHash, str]:
    """Return the texts that the files of these exchanges need."""
    return {name: text for exchange in exchanges for name, text in exchange.files.blobs.items()}


def past_events(exchanges: Iterable[Exchange]) -> list[Event]:
    """Return the events that put these exchanges into a session that has had no turn."""
    events: list[Event] = []
    turn = 0
    for exchange in exchanges:
        if exchange.is_asked and exchange.steps:
            turn += 1
            events += _turn(turn, exchange)
        elif exchange.is_asked:
            said, files = exchange.message, exchange.files.attachments
            events.append(MessageAdded(role="user", content=said, tokens=count(said), attachments=files))
        else:
            spoken = [step.text for step in exchange.steps if step.text]
            events += [MessageAdded(role="assistant", content=text, tokens=count(text)) for text in spoken]
    return events


def _turn(turn: int, exchange: Exchange) -> list[Event]:
    said, files = exchange.message, exchange.files.attachments
    events: list[Event] = [TurnStarted(turn=turn, message=said, tokens=count(said), attachments=files)]
    for step in exchange.steps:
        events.append(ModelReplied(turn=turn, step=replace(step, results=()), tokens=count(step.text)))
        events += [ToolReturned(turn=turn, result=result) for result in step.results]
    return [*events, TurnFinished(turn=turn, outcome="completed")] if exchange.finished else events
