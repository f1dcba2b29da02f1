"""Which calls of a log the recording proxy saw as well.

Claude Code and Codex name their conversations to both, so the session that the proxy recorded is found by its id. A
call of the log is one of its calls when both have the same answer: the same words and the same tool calls. Each
recorded call stands for one of the log.
"""

from collections import Counter
from collections.abc import Sequence

from windowpane.calls.conversation import read_conversation
from windowpane.context.calls import CallOutcome, FoldedReply
from windowpane.context.events import CallEnded
from windowpane.context.ids import SessionId, keyed_session_id
from windowpane.errors import SessionNotFoundError
from windowpane.json_codec import JsonCodec
from windowpane.stores.base import Store
from windowpane.xray.importing.told import ToldCall, ToldSession

_REPLY = JsonCodec(FoldedReply)

Answer = tuple[str, ...]
"""By what the answer of a call is known in two records of it."""


class SeenCalls:
    """Looks for calls among those that the proxy recorded for an owner."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner

    async def without(self, told: ToldSession, calls: Sequence[ToldCall]) -> list[ToldCall]:
        """Return the calls of a conversation that the proxy did not see."""
        seen: Counter[Answer] = Counter()
        for session_id in self._recorded(told) if calls else ():
            seen += await self._answers(session_id)
        new: list[ToldCall] = []
        for call in calls:
            answer = _answer(call.outcome, call.reply)
            if seen[answer]:
                seen[answer] -= 1
            else:
                new.append(call)
        return new

    def _recorded(self, told: ToldSession) -> list[SessionId]:
        """Return the sessions in which the proxy would have recorded a conversation: `xray/threads.py` names them."""
        key = ("xray", told.program, told.conversation)
        first = read_conversation(told.calls[0].protocol, told.calls[0].body).said[:1]
        threads = (told.thread, *first) if told.thread else ()
        return [keyed_session_id(self._owner, *key), *(keyed_session_id(self._owner, *key, own) for own in threads)]

    async def _answers(self, session_id: SessionId) -> Counter[Answer]:
        try:
            log = await self._store.read(session_id)
        except SessionNotFoundError:
            return Counter()
        ended = [entry.event for entry in log if isinstance(entry.event, CallEnded) and entry.event.answer]
        texts = await self._store.blobs(session_id, [event.answer for event in ended if event.answer])
        return Counter(
            _answer(event.outcome, _REPLY.adapter.validate_json(texts[event.answer]))
            for event in ended
            if event.answer and event.answer in texts
        )


def _answer(outcome: CallOutcome, reply: FoldedReply) -> Answer:
    if outcome != "complete":
        return ("failed",)
    return (reply.text, *(call.id for call in reply.tool_calls))
