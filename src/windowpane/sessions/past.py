"""A conversation that took place elsewhere, as the events of turns whose requests were not recorded."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from windowpane.context.events import Event, MessageAdded, ModelReplied, ToolReturned, TurnFinished, TurnStarted
from windowpane.context.messages import Step
from windowpane.text.tokens import count


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a user said, and what was answered, step by step. Either may be missing; unless `finished`, more follows."""

    message: str = ""
    steps: tuple[Step, ...] = ()
    finished: bool = True


def past_events(exchanges: Iterable[Exchange]) -> list[Event]:
    """Return the events that put these exchanges into a session that has had no turn."""
    events: list[Event] = []
    turn = 0
    for exchange in exchanges:
        if exchange.message and exchange.steps:
            turn += 1
            events += _turn(turn, exchange)
        elif exchange.message:
            events.append(MessageAdded(role="user", content=exchange.message, tokens=count(exchange.message)))
        else:
            said = [step.text for step in exchange.steps if step.text]
            events += [MessageAdded(role="assistant", content=text, tokens=count(text)) for text in said]
    return events


def _turn(turn: int, exchange: Exchange) -> list[Event]:
    events: list[Event] = [TurnStarted(turn=turn, message=exchange.message, tokens=count(exchange.message))]
    for step in exchange.steps:
        events.append(ModelReplied(turn=turn, step=replace(step, results=()), tokens=count(step.text)))
        events += [ToolReturned(turn=turn, result=result) for result in step.results]
    return [*events, TurnFinished(turn=turn, outcome="completed")] if exchange.finished else events
