"""Find what was made of a text that is to be erased: later requests, the bodies of their calls, summaries.

A text that was put into a session is sent again with each later request until it falls out of the conversation. What
those requests and calls kept of it is found by what the records name and by the words themselves. A blob that was there
before the text came is never a trace of it, nor is one of the agent's or one that another message still says.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio.to_thread

from windowpane.calls.skeleton import chain_of, literals_in, names_in
from windowpane.context.events import (
    CallSent,
    Event,
    FetchedAdded,
    MessageAdded,
    ModelReplied,
    Recorded,
    RequestBuilt,
    SummaryMade,
    ToolReturned,
    TurnFinished,
    TurnStarted,
)
from windowpane.context.ids import BlobHash, SessionId, content_hash
from windowpane.context.messages import Attachment, blobs_of
from windowpane.context.request import PartKind
from windowpane.context.session import SessionState
from windowpane.errors import SessionBusyError
from windowpane.request.catalog import read_catalog
from windowpane.request.record import context_of, messages_of_record, query_in, texts_of
from windowpane.sessions.attachments import file_blobs
from windowpane.stores.base import Lease, Store
from windowpane.stores.sessions import Sessions

LONG_CHARACTERS = 24
"""A text of this length is not said twice by chance. A shorter one is looked for as whole words."""

END_CHARACTERS = 48
"""So much of the beginning and of the end of a text tells that it is there, where it was cut."""

_MADE_OF_MESSAGES: frozenset[PartKind] = frozenset({"summary", "history", "sources", "attached", "recall", "fetched"})
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What is to be gone: the events `seqs`, which say `texts` and bring `files`.

    `pages` are the names that requests give to pages.
    """

    seqs: tuple[int, ...]
    texts: tuple[str, ...]
    pages: frozenset[str] = frozenset()
    files: tuple[Attachment, ...] = ()

    @property
    def message(self) -> int | None:
        """Return the number of the message that is removed, if it is one."""
        return None if self.pages else self.seqs[0]


@dataclass(frozen=True, slots=True)
class Traces:
    """What must be erased with a text, events and blobs, and in plain words what has the same text and is kept."""

    seqs: tuple[int, ...] = ()
    blobs: tuple[BlobHash, ...] = ()
    remains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Erasure:
    """A session after a text was erased, and in plain words what has the same text and is kept."""

    state: SessionState
    remains: tuple[str, ...] = ()


class SessionLeases(Protocol):
    """Who may run a turn in a session, or change its past."""

    async def take(self, session_id: SessionId) -> Lease:
        """Return a new lease."""
        ...

    async def release(self, session_id: SessionId, lease: Lease) -> None:
        """Give a lease back."""
        ...


Choose = Callable[[SessionState, Sequence[Recorded]], Removal | None]
"""Returns what is to be gone from a session; None when there is nothing."""

Tell = Callable[[SessionState, Sequence[Recorded], Traces], Sequence[Event]]
"""Returns the events that tell of an erasure; none when the log tells of it already."""


class Erasing:
    """Erases texts from sessions while no turn runs."""

    def __init__(self, sessions: Sessions, leases: SessionLeases) -> None:
        self._sessions = sessions
        self._leases = leases

    async def erase(self, session_id: SessionId, choose: Choose, tell: Tell) -> Erasure:
        """Erase what `choose` says, and everything that was made of it. `tell` says what the log keeps of that.

        Raises:
            SessionNotFoundError: no such session.
            SessionBusyError: a turn is running, or one that waits was given the text.
            LeaseLostError: another worker has taken the session over meanwhile; erase it again.
        """
        lease = await self._leases.take(session_id)
        try:
            return await self._erase(session_id, lease, choose, tell)
        finally:
            await self._leases.release(session_id, lease)
            self._sessions.forget(session_id)

    async def _erase(self, session_id: SessionId, lease: Lease, choose: Choose, tell: Tell) -> Erasure:
        store = self._sessions.store
        while True:
            state = await self._sessions.state(session_id)
            log = [entry for entry in await store.read(session_id) if entry.seq <= state.seq]
            removal = choose(state, log)
            if removal is None:
                return Erasure(state)
            traces = await find_traces(store, session_id, log, removal)
            if state.open_turn is not None and traces.blobs:
                raise SessionBusyError(session_id)
            told = tell(state, log, traces)
            unchanged = _unless_newer(state, told)
            if not told or (await self._sessions.change(session_id, unchanged, fence=lease.fence)).recorded:
                break
        gone = [*removal.seqs, *traces.seqs]
        await store.erase(session_id, gone, blobs=traces.blobs, fence=lease.fence)
        self._sessions.forget(session_id)
        return Erasure(await self._sessions.state(session_id), traces.remains)


def _unless_newer(state: SessionState, events: Sequence[Event]) -> Callable[[SessionState], Sequence[Event]]:
    """Return the decision to append events if nothing has come since."""
    return lambda now: events if now.seq == state.seq else ()


async def find_traces(store: Store, session_id: SessionId, log: Sequence[Recorded], removal: Removal) -> Traces:
    """Return what a session has made of a text since it came."""
    hashes = await store.blob_hashes(session_id)
    blobs = await store.blobs(session_id, hashes)
    # All that a session ever sent may be read here.
    return await anyio.to_thread.run_sync(lambda: _Search(log, blobs, removal).traces())


@dataclass(slots=True)
class _Needed:
    """The blobs that a stretch of the log names: by records, by calls, and those that are the agent's."""

    records: dict[BlobHash, str] = field(default_factory=dict[BlobHash, str])
    skeletons: dict[BlobHash, str] = field(default_factory=dict[BlobHash, str])
    texts: set[BlobHash] = field(default_factory=set[BlobHash])
    sent: set[BlobHash] = field(default_factory=set[BlobHash])
    summing_up: set[BlobHash] = field(default_factory=set[BlobHash])
    agents: set[BlobHash] = field(default_factory=set[BlobHash])

    @property
    def all(self) -> set[BlobHash]:
        return {*self.records, *self.skeletons} | self.texts | self.sent | self.agents


class _Search:
    def __init__(self, log: Sequence[Recorded], blobs: Mapping[BlobHash, str], removal: Removal) -> None:
        self._log = log
        self._blobs = blobs
        self._removal = removal
        words = (each.text for each in removal.files if each.text is not None)
        self._words = _Words((*removal.texts, *(blobs[name] for name in words if name in blobs)))
        first = min(removal.seqs)
        self._before = self._needed(entry for entry in log if entry.seq < first)
        self._since = self._needed(entry for entry in log if entry.seq > first)

    def traces(self) -> Traces:
        summaries = {entry.seq: entry.event for entry in self._log if self._covers(entry)}
        living = [entry for entry in self._log if entry.seq not in {*self._removal.seqs, *summaries}]
        kept = self._before.all | self._before.agents | self._since.agents
        kept |= {content_hash(text) for entry in living for text in _said(entry.event)}
        files = set(file_blobs(entry.event for entry in living))
        kept |= files
        gone = {name for name in self._of_records() if name not in kept}
        # A call sends the blocks of its request as they are, often within a longer text.
        blocks = _Words((*self._removal.texts, *(self._blobs[name] for name in gone)))
        gone |= {name for name in self._of_queries() if name not in kept}
        for name, skeleton in self._since.skeletons.items():
            if name not in kept and (name in self._since.summing_up or blocks.are_in(literals_in(skeleton))):
                gone.add(name)
        for name in self._since.sent - kept:
            if name in self._blobs and (name in self._since.summing_up or blocks.are_in(self._blobs[name])):
                gone.add(name)
        gone |= set(blobs_of(self._removal.files)) - files
        gone |= self._left_alone(gone) - kept
        return Traces(tuple(summaries), tuple(sorted(gone)), tuple(self._remains(living)))

    def _left_alone(self, gone: set[BlobHash]) -> set[BlobHash]:
        """Return what only those bodies need that cannot be read any more: no later search would find it."""
        lost: set[BlobHash] = set()
        needed = set(self._since.texts)
        for name, skeleton in self._since.skeletons.items():
            chain = {name, *chain_of(skeleton, self._blobs)}
            if gone.isdisjoint(chain):
                needed |= {name, *names_in(skeleton)}
            else:
                lost |= {name, *names_in(skeleton)}
        return lost - needed

    def _of_records(self) -> Iterator[BlobHash]:
        """Find the messages of later requests that are made of the text, by what they are called or what they say."""
        for body in self._since.records.values():
            for part, name, blob in messages_of_record(body):
                if blob in self._blobs and part in _MADE_OF_MESSAGES:
                    named = name in self._removal.pages or self._is_around(part, name)
                    if named or self._words.are_in(self._blobs[blob]):
                        yield blob

    def _is_around(self, part: PartKind, name: str) -> bool:
        """Tell whether a block is about messages among which the removed one is."""
        message = self._removal.message
        numbers = [int(number) for number in _NUMBERS.findall(name)]
        if message is None or not numbers:
            return False
        return (part == "summary" and numbers[0] >= message) or (
            part == "recall" and numbers[0] <= message <= numbers[-1]
        )

    def _of_queries(self) -> Iterator[BlobHash]:
        """Find the queries that say the text: what a follow-up asks for is told by the messages before it.

        A record of an earlier version holds its query itself, and is found as a whole.
        """
        for name, body in self._since.records.items():
            if self._is_in_query(body):
                yield query_in(body) or name
            if self._words.are_in(body, long_only=True):
                yield name

    def _is_in_query(self, body: str) -> bool:
        query = context_of(body, self._blobs).query
        lines = {line.strip() for line in query.text.splitlines()}
        said = "\n".join((query.text, query.reason, *query.clauses))
        return self._words.are_in(said, long_only=True) or not lines.isdisjoint(self._removal.texts)

    def _covers(self, entry: Recorded) -> bool:
        """Tell whether an event is a summary of the removed message, which may say what it said."""
        message = self._removal.message
        if message is None or not isinstance(entry.event, SummaryMade):
            return False
        return entry.event.summary.through_seq >= message

    def _remains(self, living: Sequence[Recorded]) -> Iterator[str]:
        given = self._turns_given_a_page(living)
        first = min(self._removal.seqs)
        for entry in living:
            if entry.seq > first and isinstance(entry.event, TurnFinished):
                turn = entry.event.turn
                pages = (f"{kind} {source.url}" for source in entry.event.sources for kind in _KINDS)
                if not self._removal.pages.isdisjoint(pages):
                    yield f"turn {turn} names a page as a source of its answer, by title and address"
                elif turn in given:
                    yield f"the record of turn {turn} names a page by its address"
            for who, text in _spoken(entry):
                if text in self._removal.texts or self._words.are_in(text, long_only=True):
                    yield f"{who} has the same words, and is kept"

    def _turns_given_a_page(self, living: Sequence[Recorded]) -> set[int]:
        """Return the turns whose records name a page that is erased."""
        names = [json.dumps(name, ensure_ascii=False)[1:-1] for name in self._removal.pages]
        built = [entry.event for entry in living if isinstance(entry.event, RequestBuilt)]
        return {each.turn for each in built if any(name in self._blobs.get(each.request, "") for name in names)}

    def _needed(self, stretch: Iterable[Recorded]) -> _Needed:
        needed = _Needed()
        for entry in stretch:
            if isinstance(entry.event, RequestBuilt):
                self._add_request(needed, entry.event)
            elif isinstance(entry.event, CallSent):
                self._add_call(needed, entry.event)
        return needed

    def _add_request(self, needed: _Needed, built: RequestBuilt) -> None:
        if built.catalog and (catalog := self._blobs.get(built.catalog)) is not None:
            needed.agents |= {built.catalog, *(entry.hash for entry in read_catalog(catalog).entries)}
        body = self._blobs.get(built.request)
        if body is None or built.request in needed.records:
            return
        needed.records[built.request] = body
        made = {blob for part, _, blob in messages_of_record(body) if part in _MADE_OF_MESSAGES}
        made |= {query} if (query := query_in(body)) else set()
        needed.texts |= made
        needed.agents |= set(texts_of(body)) - made

    def _add_call(self, needed: _Needed, sent: CallSent) -> None:
        skeleton = self._blobs.get(sent.body)
        if skeleton is None:
            return
        names = set(names_in(skeleton))
        needed.skeletons[sent.body] = skeleton
        needed.sent |= names
        if sent.purpose == "summary":
            needed.summing_up |= {sent.body, *names}
        chain = (name for name in chain_of(skeleton, self._blobs) if name in self._blobs)
        needed.skeletons |= {name: self._blobs[name] for name in chain}


_KINDS = ("page", "web_search")


class _Words:
    """Texts to look for, as they are and as JSON writes them, whole or cut."""

    def __init__(self, texts: Iterable[str]) -> None:
        forms: dict[str, None] = {}
        for text in texts:
            for piece in _pieces(text):
                written = (json.dumps(piece, ensure_ascii=escaped)[1:-1] for escaped in (False, True))
                forms |= dict.fromkeys((piece, *written))
        self._long = [form for form in forms if len(form) >= LONG_CHARACTERS]
        words = [rf"(?<!\w){re.escape(form)}(?!\w)" for form in forms if len(form) < LONG_CHARACTERS]
        self._words = re.compile("|".join(words)) if words else None

    def are_in(self, text: str, *, long_only: bool = False) -> bool:
        """Tell whether one of them is in a text."""
        if any(form in text for form in self._long):
            return True
        return not long_only and self._words is not None and self._words.search(text) is not None


def _pieces(text: str) -> Iterator[str]:
    for whole in (text.strip(), " ".join(text.split())):
        if whole:
            yield whole
        if len(whole) > 2 * END_CHARACTERS:
            yield whole[:END_CHARACTERS]
            yield whole[-END_CHARACTERS:]


def _said(event: Event) -> Iterator[str]:
    """Yield the texts of an event as later requests write them."""
    match event:
        case TurnStarted(message=text) | MessageAdded(content=text):
            yield text
        case ModelReplied(step=step):
            yield step.text
        case ToolReturned(result=result):
            yield result.content
        case _:
            return


def _spoken(entry: Recorded) -> Iterator[tuple[str, str]]:
    """Yield who said something in an event that stays, and what."""
    match entry.event:
        case TurnStarted(turn=turn, message=text):
            yield f"the user's message of turn {turn}", text
        case MessageAdded(content=text):
            yield f"message {entry.seq}", text
        case ModelReplied(turn=turn, step=step, own_words=own_words):
            yield f"the answer of turn {turn}", "\n".join((step.text, step.thinking, own_words))
            for call in step.tool_calls:
                yield f"a tool call of turn {turn}", call.arguments
        case ToolReturned(turn=turn, result=result):
            yield f"a tool result of turn {turn}", result.content
        case FetchedAdded(items=items):
            for item in items:
                yield f"the page {item.url}", item.content
        case SummaryMade(summary=summary):
            facts = (*summary.key_facts, *summary.preferences, *summary.evicted)
            yield "a summary of the conversation", "\n".join((summary.overview, summary.current_topic, *facts))
        case _:
            return
