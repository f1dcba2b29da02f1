"""Find the session that a call belongs to.

A program that names its conversations is believed: a name is a session, and each conversation beside the first one,
such as a subagent's, is a session of its own that knows its parent. Without a name, a request belongs to the session
that it continues: it begins with everything that session's last request said, or brings its last answer along. Where
two do, the longest common beginning decides.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic_core import from_json

from windowpane.calls.conversation import SentConversation, read_conversation
from windowpane.calls.documents import as_map
from windowpane.calls.protocol import kind_of
from windowpane.calls.skeleton import LastBody
from windowpane.context.calls import CallOutcome, FoldedReply, Origin
from windowpane.context.events import SessionCreated
from windowpane.context.ids import BlobHash, SessionId, keyed_session_id, new_session_id
from windowpane.context.messages import Usage
from windowpane.errors import SequenceConflictError, SessionNotFoundError
from windowpane.sessions.calls.past import PastCalls
from windowpane.sessions.past_requests import PastRequests
from windowpane.stores.base import Lease
from windowpane.stores.sessions import Sessions
from windowpane.xray.marks import ClientMarks

MOST_GROUPS = 1000
MOST_THREADS = 200
"""How many programs and named sessions are remembered, and how many conversations of each. The store has the rest."""

LOOKED_AT = 20
"""How many of a program's sessions are looked through for one that a request continues."""


@dataclass(slots=True)
class Thread:
    """One conversation, and what the next call of it is compared with. `said` has the fingerprints of its messages."""

    session_id: SessionId
    said: tuple[str, ...] = ()
    shape: str = ""
    reply: FoldedReply | None = None
    usage: Usage | None = None
    outcome: CallOutcome | None = None
    attempt: int = 0
    running: int = 0
    used_at: float = 0.0
    last_body: LastBody | None = None
    erased_seq: int = 0
    stored: set[BlobHash] = field(default_factory=set[BlobHash])
    lease: Lease | None = None

    def repeats(self, conversation: SentConversation) -> bool:
        """Tell whether a request says what the last one said, which got no whole answer: it is tried again."""
        return conversation.said == self.said and not self.running and self.outcome in ("error", "cut")

    def shared(self, conversation: SentConversation) -> int:
        """Return how many messages the two have in common at the beginning."""
        pairs = zip(self.said, conversation.said, strict=False)
        return next(
            (at for at, (one, other) in enumerate(pairs) if one != other), min(len(self.said), len(conversation.said))
        )

    def continues(self, conversation: SentConversation) -> bool:
        """Tell whether a request goes on with this conversation."""
        if conversation.previous:
            return self.reply is not None and self.reply.id == conversation.previous
        if self.repeats(conversation):
            return True
        shared, before = self.shared(conversation), len(self.said)
        if len(conversation.said) <= before or not before:
            return False
        return shared == before or (shared >= before - 1 and self._answered_in(conversation))

    def _answered_in(self, conversation: SentConversation) -> bool:
        """Tell whether a request brings the last answer along: its words, or a result of its calls."""
        if self.reply is None:
            return False
        calls = {call.id for call in self.reply.tool_calls}
        if any(result.call_id in calls for result in conversation.results):
            return True
        text = self.reply.text.strip()
        spoken = (message for message in conversation.messages if message.speaker == "assistant")
        return bool(text) and any("".join(message.texts).strip() == text for message in spoken)


@dataclass(slots=True)
class _Group:
    """The conversations that a program has under one name, or without one. The first is the main one."""

    threads: list[Thread] = field(default_factory=list[Thread])


class Threads:
    """The conversations that pass through."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._past = PastCalls(sessions, PastRequests(sessions))
        self._groups: OrderedDict[tuple[str, ...], _Group] = OrderedDict()
        self._gone: set[SessionId] = set()

    async def of(self, owner: str, provider: str, marks: ClientMarks, conversation: SentConversation) -> Thread:
        """Return the conversation that a request belongs to; it is begun if there is none."""
        group = self._group((owner, marks.program, marks.conversation, "" if marks.conversation else provider))
        if marks.conversation:
            return await self._named(group, owner, marks, conversation)
        found = self._continued(group, conversation) or await self._from_store(owner, marks, conversation)
        if found is None:
            found = await self._begun(new_session_id(), owner, marks)
        self._keep(group, found)
        return found

    async def helper_of(
        self, owner: str, provider: str, marks: ClientMarks, conversation: SentConversation
    ) -> Thread | None:
        """Return the conversation beside which a request asks for something small; None when there is none."""
        if marks.conversation:
            group = self._group((owner, marks.program, marks.conversation, ""))
            return await self._main(group, owner, marks)
        group = self._group((owner, marks.program, "", provider))
        likely = [thread for thread in group.threads if thread.shared(conversation)]
        return max(likely, key=lambda thread: thread.shared(conversation), default=None)

    def all(self) -> list[Thread]:
        """Return every conversation that is remembered."""
        return [thread for group in self._groups.values() for thread in group.threads]

    def forget(self, session_id: SessionId) -> None:
        """Drop a conversation whose session was deleted. Its id is not used again: its log is known to be longer."""
        self._gone.add(session_id)
        for key, group in list(self._groups.items()):
            if group.threads and group.threads[0].session_id == session_id:
                del self._groups[key]
            group.threads = [thread for thread in group.threads if thread.session_id != session_id]

    def _group(self, key: tuple[str, ...]) -> _Group:
        group = self._groups.setdefault(key, _Group())
        self._groups.move_to_end(key)
        while len(self._groups) > MOST_GROUPS:
            self._groups.popitem(last=False)
        return group

    def _keep(self, group: _Group, thread: Thread) -> None:
        if thread in group.threads:
            group.threads.remove(thread)
        group.threads.append(thread)
        del group.threads[:-MOST_THREADS]

    def _continued(self, group: _Group, conversation: SentConversation) -> Thread | None:
        going_on = [thread for thread in reversed(group.threads) if thread.continues(conversation)]
        return max(going_on, key=lambda thread: thread.shared(conversation), default=None)

    async def _named(self, group: _Group, owner: str, marks: ClientMarks, conversation: SentConversation) -> Thread:
        main = await self._main(group, owner, marks)
        if not main.said and not marks.thread:
            return main
        known = [thread for thread in reversed(group.threads) if thread.shared(conversation)]
        if conversation.previous:
            known = [thread for thread in group.threads if thread.continues(conversation)]
        if known:
            return max(known, key=lambda thread: thread.shared(conversation))
        # A conversation that was cut short or summed up begins with other words, and is the same agent's.
        if not marks.thread and main.shape == conversation.shape:
            return main
        own = marks.thread or (conversation.said[0] if conversation.said else conversation.shape)
        child = keyed_session_id(owner, "xray", marks.program, marks.conversation, own)
        found = next((thread for thread in group.threads if thread.session_id == child), None)
        if found is None:
            found = await self._begun(child, owner, marks, parent=main.session_id)
            group.threads.append(found)
        return found

    async def _main(self, group: _Group, owner: str, marks: ClientMarks) -> Thread:
        if not group.threads:
            main = keyed_session_id(owner, "xray", marks.program, marks.conversation)
            group.threads.append(await self._begun(main, owner, marks))
        return group.threads[0]

    async def _begun(
        self, session_id: SessionId, owner: str, marks: ClientMarks, *, parent: SessionId | None = None
    ) -> Thread:
        """Begin a session, or go on with the one that an earlier run of the proxy began."""
        origin = Origin(program=marks.program, version=marks.version, conversation=marks.conversation, parent=parent)
        created = SessionCreated(agent=origin.agent, owner=owner, settings={}, items=(), origin=origin)
        session_id = new_session_id() if session_id in self._gone else session_id
        try:
            await self._sessions.create(session_id, [created])
        except SequenceConflictError:
            return await self._resumed(session_id)
        return Thread(session_id)

    async def _from_store(self, owner: str, marks: ClientMarks, conversation: SentConversation) -> Thread | None:
        """Return the conversation of an earlier run that a request continues."""
        if not any(message.speaker == "assistant" for message in conversation.messages):
            return None
        page = await self._sessions.store.sessions(owner, agent=Origin(program=marks.program).agent, limit=LOOKED_AT)
        known = {thread.session_id for thread in self.all()}
        found: list[Thread] = []
        for row in page.rows:
            if row.id not in known:
                try:
                    found.append(await self._resumed(row.id))
                except SessionNotFoundError:
                    continue
        return self._continued(_Group(found), conversation)

    async def _resumed(self, session_id: SessionId) -> Thread:
        """Return a conversation as its session's last answered call tells it."""
        thread = Thread(session_id)
        for call in reversed(await self._past.of_session(session_id)):
            if call.purpose != "answer" or (wire := await self._past.wire(session_id, call)) is None:
                continue
            kind = kind_of("POST", urlsplit(wire.head.url).path)
            if kind is not None and wire.body is not None:
                said = read_conversation(kind.protocol, as_map(from_json(wire.body)), kind.model)
                thread.said, thread.shape = said.said, said.shape
            break
        return thread
