"""Past turns of a server's sessions."""

from dataclasses import asdict

from windowpane.api.comparison import Comparison
from windowpane.api.context_tests import SavedTest
from windowpane.api.explanation import Explanation, ExplanationList
from windowpane.api.replay import Rebuilt, Rerun, WhatIf
from windowpane.api.turns import (
    CallList,
    CallRecord,
    ContextDebug,
    ItemUse,
    PastContext,
    SentItem,
    TurnReceipts,
    TurnRecord,
    TurnUsage,
    TurnUse,
)
from windowpane.client.connection import Connection, item_path, session_path
from windowpane.context.items import ItemRef, as_ref
from windowpane.context.request import Request


class RemoteTurns:
    """Past turns: what a turn was given and did, why, and what would have come of other settings."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection

    async def receipts(self, session_id: str, *, first: int = 1, limit: int = 50) -> TurnReceipts:
        """Return turns in brief, from `first` on: what each was given, and what it cost."""
        return await self._server.get(
            TurnReceipts, f"{session_path(session_id)}/turns", {"first": first, "limit": limit}
        )

    async def get(self, session_id: str, turn: int) -> TurnRecord:
        """Return a turn with everything that happened in it."""
        return await self._server.get(TurnRecord, _turn(session_id, turn))

    async def request(self, session_id: str, turn: int) -> Request:
        """Return a turn's request, byte for byte as it was sent."""
        return await self._server.get(Request, f"{_turn(session_id, turn)}/request")

    async def context(self, session_id: str, turn: int) -> PastContext:
        """Return the record of a turn's request."""
        return await self._server.get(PastContext, f"{_turn(session_id, turn)}/context")

    async def calls(self, session_id: str, turn: int) -> CallList:
        """Return the calls of a turn, retries included, in the order in which they were sent."""
        return await self._server.get(CallList, f"{_turn(session_id, turn)}/calls")

    async def call(self, session_id: str, turn: int, number: int) -> CallRecord:
        """Return a call of a turn, counted from 1: as built, as sent, and whose each byte is."""
        return await self._server.get(CallRecord, f"{_turn(session_id, turn)}/calls/{number}")

    async def item(self, session_id: str, turn: int, item: ItemRef | str) -> SentItem:
        """Return an item as a turn was given it, and whether the agent has changed it since."""
        ref = as_ref(item)
        path = f"{_turn(session_id, turn)}/items/{item_path(ref)}"
        return await self._server.get(SentItem, path, {"server": ref.server})

    async def explain(self, session_id: str, turn: int, item: ItemRef | str) -> Explanation:
        """Return why an item was in a turn's request or not."""
        ref = as_ref(item)
        path = f"{_turn(session_id, turn)}/explain/{item_path(ref)}"
        return await self._server.get(Explanation, path, {"server": ref.server})

    async def explanations(self, session_id: str, turn: int) -> tuple[Explanation, ...]:
        """Return for each item that the agent had then why it was in the turn's request or not."""
        return (await self._server.get(ExplanationList, f"{_turn(session_id, turn)}/explain")).items

    async def compare(
        self, session_id: str, turn: int, other: int, *, other_session_id: str | None = None
    ) -> Comparison:
        """Return what changed from a turn's request to another's."""
        params = {"with": other, "session": other_session_id}
        return await self._server.get(Comparison, f"{_turn(session_id, turn)}/compare", params)

    async def rebuild(self, session_id: str, turn: int) -> Rebuilt:
        """Rebuild a turn's request from the log, and tell whether it is the recorded one to the byte."""
        return await self._server.get(Rebuilt, f"{_turn(session_id, turn)}/replay")

    async def replay(self, session_id: str, turn: int, what_if: WhatIf) -> Rerun:
        """Run a turn's selection again with something different about it."""
        items = [
            {"ref": asdict(ref), "text": what_if.texts.get(ref), "description": what_if.descriptions.get(ref)}
            for ref in dict.fromkeys((*what_if.texts, *what_if.descriptions))
        ]
        body = {"search": dict(what_if.search), "query": what_if.query, "items": items}
        return await self._server.send(Rerun, "POST", f"{_turn(session_id, turn)}/replay", body)

    async def debug(self, session_id: str, turn: int, *, topic: str | None = None) -> ContextDebug:
        """Return what a turn's model was told of the conversation."""
        return await self._server.get(ContextDebug, f"{_turn(session_id, turn)}/debug", {"topic": topic})

    async def usage(self, session_id: str, turn: int) -> TurnUsage:
        """Return what a turn cost, call by call and together."""
        return await self._server.get(TurnUsage, f"{_turn(session_id, turn)}/usage")

    async def use(self, session_id: str, turn: int) -> tuple[ItemUse, ...]:
        """Return which items of a turn's request its answer made use of."""
        return (await self._server.get(TurnUse, f"{_turn(session_id, turn)}/use")).items

    async def save_test(self, session_id: str, turn: int, *, name: str = "") -> SavedTest:
        """Write a context test that a turn passes into its agent's folder."""
        return await self._server.send(SavedTest, "POST", f"{_turn(session_id, turn)}/test", {"name": name})


def _turn(session_id: str, turn: int) -> str:
    return f"{session_path(session_id)}/turns/{turn}"
