"""What of a session's log can be found: its name, its turns with what their requests had, and added messages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from windowpane.context.events import (
    MessageAdded,
    ModelReplied,
    Recorded,
    SessionCreated,
    SessionUpdated,
    TurnFinished,
    TurnStarted,
)
from windowpane.context.ids import BlobHash
from windowpane.context.request import RequestContext
from windowpane.insight.finding.words import fact, terms_of
from windowpane.request.record import context_of, last_built
from windowpane.stores.finding import IndexedText


@dataclass(frozen=True, slots=True)
class SaidStretch:
    """One thing that can be found, as the log has it, and what names the record of its request, if it has one."""

    turn: int
    events: tuple[Recorded, ...]

    @property
    def record(self) -> BlobHash | None:
        """Return what names the record of the last request of the turn."""
        built = last_built(self.events, self.turn) if self.turn else None
        return built and built.request

    @property
    def text(self) -> str:
        """Return what was said."""
        return "\n\n".join(said for entry in self.events if (said := said_in(entry)))


def said_in(entry: Recorded) -> str:
    """Return the words of an event that a person can look for."""
    match entry.event:
        case TurnStarted() as event:
            return event.message
        case ModelReplied() as event:
            return event.step.text
        case TurnFinished() as event:
            return event.error.partial if event.error else ""
        case MessageAdded() as event:
            return event.content
        case _:
            return ""


def stretches_of(events: Sequence[Recorded]) -> tuple[list[SaidStretch], int]:
    """Return what a stretch of a log holds, and through where it is complete: an open turn is looked at again."""
    found: list[SaidStretch] = []
    begun: list[Recorded] = []
    through = events[-1].seq if events else 0
    for entry in events:
        event = entry.event
        if isinstance(event, TurnStarted):
            begun = [entry]
            found.append(SaidStretch(event.turn, ()))
        elif begun:
            begun.append(entry)
        elif isinstance(event, MessageAdded):
            found.append(SaidStretch(0, (entry,)))
        if begun:
            found[-1] = SaidStretch(found[-1].turn, tuple(begun))
        if isinstance(event, TurnFinished):
            begun = []
    return found, begun[0].seq - 1 if begun else through


def documents_of(stretches: Iterable[SaidStretch], records: Mapping[BlobHash, str]) -> list[IndexedText]:
    """Return what stretches are found by. A turn whose record is gone is found by its words alone."""
    found: list[IndexedText] = []
    for stretch in stretches:
        body = records.get(stretch.record) if stretch.record else None
        context = context_of(body, records) if body else None
        began = stretch.events[0]
        found.append(
            IndexedText(
                seq=began.seq,
                turn=stretch.turn,
                at=began.at,
                terms=terms_of(stretch.text) | _facts(context),
                tokens=context.budget.used_tokens if context else 0,
            )
        )
    return found


def name_in(events: Iterable[Recorded]) -> str | None:
    """Return the last name that a session was given in some events; None when they give none."""
    name: str | None = None
    for entry in events:
        match entry.event:
            case SessionCreated() as event:
                name = event.name
            case SessionUpdated() as event if "name" in event.changes:
                name = str(event.changes["name"] or "")
            case _:
                pass
    return name


def _facts(context: RequestContext | None) -> frozenset[str]:
    if context is None:
        return frozenset()
    sent = {item.name for item in context.items if item.status in _SENT} | {item.name for item in context.carried}
    out = {item.name for item in context.items if item.status not in _SENT}
    out |= {candidate.name for candidate in (*context.candidates, *context.absent)} - sent
    facts = {fact("request"), *(fact("sent", name) for name in sent), *(fact("left_out", name) for name in out)}
    return frozenset(facts | ({fact("degraded")} if context.degraded else set()))


_SENT = ("used", "truncated")
