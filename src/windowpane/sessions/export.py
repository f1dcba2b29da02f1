"""A session as one document: everything that happened, when, and every text that its requests were made of.

Importing what was exported gives the same session under another id and, maybe, another owner. What is imported may
come from anywhere: it is read again from beginning to end before anything of it is stored, and what could not have
happened is refused. It brings no permissions along: which tools may run without asking is decided here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

from pydantic import ValidationError

from windowpane.api.export import ExportedEvent, SessionExport
from windowpane.calls.skeleton import chain_of, names_in
from windowpane.context.events import (
    ApprovalDecided,
    Branch,
    CallEnded,
    CallSent,
    Event,
    FetchedAdded,
    FetchedCleared,
    MessageRemoved,
    Recorded,
    ReferenceAdded,
    RequestBuilt,
    SessionCreated,
    SessionUpdated,
    ToolReturned,
    TurnStarted,
)
from windowpane.context.fold import apply
from windowpane.context.ids import BlobHash, SessionId, content_hash
from windowpane.context.messages import Decision, blobs_of
from windowpane.context.session import SessionState
from windowpane.context.sets import replace_all
from windowpane.errors import BlobNotFoundError, InvalidInputError, InvalidSettingError, TurnNotFoundError
from windowpane.errors.faults import first_fault
from windowpane.files.references import MAX_REFERENCES, read_own
from windowpane.request.catalog import read_catalog
from windowpane.request.record import messages_of_record, rebuild, texts_of
from windowpane.request.settings import checked_changes
from windowpane.sessions.attachments import attachments_in, check_attachment, file_blobs
from windowpane.sessions.fetching import checked_page
from windowpane.stores.base import Store
from windowpane.stores.codec import decode_state, encode_state

MAX_NAME_CHARACTERS = 200


async def export(store: Store, session_id: SessionId) -> SessionExport:
    """Return a session as one document.

    Raises:
        SessionNotFoundError: no such session.
    """
    log = await store.read(session_id)
    return SessionExport(
        id=session_id,
        events=tuple(ExportedEvent(entry.seq, entry.at, entry.event) for entry in log),
        blobs=await store.blobs(session_id, await store.blob_hashes(session_id)),
        exported_at=datetime.now(UTC),
    )


def own_copy(
    document: SessionExport, *, owner: str, name: str | None = None, keep_permissions: bool = False
) -> SessionExport:
    """Return an export that can be stored for this owner, under another name if one is given.

    Permissions are dropped, unless the session is the owner's own: then they are what the owner decided.

    Raises:
        InvalidInputError: it is not a session that could have happened here.
    """
    events = tuple(
        replace(entry, event=_checked_event(entry.event if keep_permissions else without_permissions(entry.event)))
        for entry in document.events
    )
    if not events or not isinstance(events[0].event, SessionCreated):
        raise InvalidInputError("an exported session begins with session.created")
    created = events[0].event
    begins = replace(created, owner=owner, name=created.name if name is None else name)
    events = (replace(events[0], event=begins), *events[1:])
    _check_order(events)
    _check_texts(events, document.blobs)
    state = fold_checked(events)
    _check_state(state)
    _check_references(state, document.blobs)
    return replace(document, events=events)


def without_permissions(event: Event) -> Event:
    """Return an event that lets no tool run without asking: calls that were allowed were allowed once.

    Nor does it let a resource be read: no server here has named it.
    """
    if isinstance(event, SessionCreated) and "tool_permission" in event.settings:
        return replace(event, settings={n: v for n, v in event.settings.items() if n != "tool_permission"})
    if isinstance(event, SessionUpdated) and "tool_permission" in event.changes:
        return replace(event, changes={n: v for n, v in event.changes.items() if n != "tool_permission"})
    if isinstance(event, ApprovalDecided):
        decisions: dict[str, Decision] = {
            call: "allow_once" if decision == "allow_session" else decision
            for call, decision in event.decisions.items()
        }
        return replace(event, decisions=decisions)
    if isinstance(event, ToolReturned) and event.result.links:
        return replace(event, result=replace(event.result, links=()))
    return event


def _checked_event(event: Event) -> Event:
    """Return an event whose pages are no longer than fetched ones, and lead to the web.

    Raises:
        InvalidInputError: a page has an address that no page can have.
    """
    if not isinstance(event, FetchedAdded):
        return event
    return replace(event, items=tuple(checked_page(item) for item in event.items))


def before_turn(document: SessionExport, turn: int | None) -> SessionExport:
    """Return the session as it was before a turn began, or, with None, before a turn that has not finished.

    Only the texts that the turns before were made of come along.

    Raises:
        TurnNotFoundError: no such turn, or it was erased.
    """
    state = fold_checked(document.events)
    if turn is None:
        turn = state.open_turn.turn if state.open_turn else state.last_turn + 1
    start = len(document.events) + 1 if turn == state.last_turn + 1 else state.turn_starts.of(turn)
    if start is None:
        raise TurnNotFoundError(document.id, turn)
    first, *others = document.events[: start - 1]
    if isinstance(first.event, SessionCreated):
        first = replace(first, event=replace(first.event, branch_of=Branch(document.id, turn, start - 1)))
    kept = (first, *others)
    names = needed_texts(kept, document.blobs)
    return replace(
        document, events=kept, blobs={name: document.blobs[name] for name in names if name in document.blobs}
    )


def needed_texts(events: Iterable[ExportedEvent], blobs: Mapping[BlobHash, str]) -> tuple[BlobHash, ...]:
    """Return the names of every text that these events speak of."""
    names: dict[BlobHash, None] = {}
    for entry in events:
        names |= dict.fromkeys(file_blobs([entry.event]))
        if isinstance(entry.event, ReferenceAdded):
            names[entry.event.reference.blob] = None
        if isinstance(entry.event, CallSent):
            names |= dict.fromkeys(_sent_texts(entry.event, blobs))
        if isinstance(entry.event, CallEnded) and entry.event.answer is not None:
            names[entry.event.answer] = None
        if isinstance(entry.event, RequestBuilt):
            request, catalog = entry.event.request, entry.event.catalog
            names[request] = None
            names |= dict.fromkeys(texts_of(blobs[request]) if request in blobs else ())
            if catalog is not None:
                names[catalog] = None
                names |= {
                    each.hash: None for each in (read_catalog(blobs[catalog]).entries if catalog in blobs else ())
                }
    return tuple(names)


def _sent_texts(sent: CallSent, blobs: Mapping[BlobHash, str]) -> Iterator[BlobHash]:
    """Yield the names of what a call sent: its head, its body, and the texts that the body is made of."""
    yield sent.head
    yield sent.body
    if (skeleton := blobs.get(sent.body)) is None:
        return
    chain = tuple(chain_of(skeleton, blobs))
    yield from chain
    for each in (skeleton, *(blobs[name] for name in chain if name in blobs)):
        yield from names_in(each)


def fold_checked(events: Iterable[ExportedEvent]) -> SessionState:
    """Return the state after these events.

    Raises:
        InvalidInputError: a turn begins out of its place.
    """
    state = SessionState(id=SessionId(""))
    for entry in events:
        if isinstance(entry.event, TurnStarted) and entry.event.turn != state.last_turn + 1:
            raise InvalidInputError(f"event {entry.seq} begins turn {entry.event.turn}, and it is not its turn")
        state = apply(state, Recorded(entry.seq, entry.at, entry.event))
    return state


def _check_order(events: Iterable[ExportedEvent]) -> None:
    for place, entry in enumerate(events, 1):
        if entry.seq != place:
            raise InvalidInputError(f"the event in place {place} says that it is number {entry.seq}")
        if entry.at.tzinfo is None:
            raise InvalidInputError(f"event {place} does not say in which time zone its time is")
        if place > 1 and isinstance(entry.event, SessionCreated):
            raise InvalidInputError(f"event {place} begins the session a second time")


def _check_texts(events: Sequence[ExportedEvent], blobs: Mapping[BlobHash, str]) -> None:
    for name, text in blobs.items():
        if content_hash(text) != name:
            raise InvalidInputError(f"the text given for hash {name[:12]!r} has another hash")
    may_be_erased = _may_be_erased(events)
    for entry in events:
        _check_files(entry, blobs, may_be_erased)
        if not isinstance(entry.event, RequestBuilt):
            continue
        if entry.event.request not in blobs and may_be_erased(entry.event.request):
            continue
        try:
            record = blobs[entry.event.request]
            context = rebuild(record, blobs).context
            needed = (text for _, _, text in messages_of_record(record) if not may_be_erased(text))
            tuple(blobs[text] for text in needed)
            # A record holds the parts of a name; not all that can be written down is one.
            tuple(each.ref for each in (*context.items, *context.candidates))
            if entry.event.catalog is not None:
                read_catalog(blobs[entry.event.catalog])
        except KeyError as error:
            raise InvalidInputError(f"event {entry.seq} needs the text {error}, which is not there") from None
        except BlobNotFoundError as error:
            raise InvalidInputError(
                f"event {entry.seq} needs the text {error.blob_hash!r}, which is not there"
            ) from None
        except ValueError:
            raise InvalidInputError(f"event {entry.seq} names a record that is none") from None


def _check_files(
    entry: ExportedEvent, blobs: Mapping[BlobHash, str], may_be_erased: Callable[[BlobHash], bool]
) -> None:
    for each in attachments_in(entry.event):
        for name in blobs_of([each]):
            if name not in blobs and not may_be_erased(name):
                raise InvalidInputError(f"event {entry.seq} needs the file {each.name!r}, which is not there")
        if each.blob in blobs:
            check_attachment(each, blobs[each.blob])


def _check_references(state: SessionState, blobs: Mapping[BlobHash, str]) -> None:
    """Make sure that the references which the session made from files are what it says of them."""
    if len(state.own_references) > MAX_REFERENCES:
        raise InvalidInputError(f"the session has more than {MAX_REFERENCES} references of its own")
    for own in state.own_references:
        if own.blob in blobs:
            read_own(own, blobs[own.blob])
        elif state.branch_of is None:
            raise InvalidInputError(f"the session needs the reference {own.name!r}, which is not there")


def _may_be_erased(events: Sequence[ExportedEvent]) -> Callable[[BlobHash], bool]:
    """Return what tells whether a text can be missing. The log of a fork does not say what its origin erased later."""
    first = events[0].event
    if isinstance(first, SessionCreated) and first.branch_of is not None:
        return lambda _: True
    told = (entry.event.erased for entry in events if isinstance(entry.event, MessageRemoved | FetchedCleared))
    return {name for names in told for name in names}.__contains__


def _check_state(state: SessionState) -> None:
    # What a session is named and set to stands in its events as plain values, of whatever kind.
    if type(state.name) is not str or len(state.name) > MAX_NAME_CHARACTERS:
        raise InvalidSettingError("name", f"must be a text of no more than {MAX_NAME_CHARACTERS} characters")
    checked_changes({name: value for name, value in asdict(state.settings).items() if value is not None})
    sets = replace_all(state.sets)
    if sets.refused:
        raise InvalidInputError(sets.reply)
    try:
        decode_state(encode_state(state))
    except ValidationError as error:
        where = ": ".join(filter(None, first_fault(error)))
        raise InvalidInputError(f"the session file has an invalid value: {where}") from None
