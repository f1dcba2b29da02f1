"""What a pane can do: one protocol for a pane in this process and for a server somewhere else.

`windowpane.open()` gives a pane whose engine runs in this process; `windowpane.Client` is a pane over HTTP. Both have
these methods with these types, so a program can use either. A pane acts for one owner: a session of another owner is
not found.

Items are named by an `ItemRef` or as text: `rule:tone`, `reference:billing`, `weather:get_forecast`.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import date
from typing import Any, Literal, Protocol

from windowpane.api.agents_pane import AgentsApi, ModelsApi
from windowpane.api.analytics import Dashboard, Listed, SpendingApi
from windowpane.api.comparison import Comparison
from windowpane.api.context_tests import SavedTest
from windowpane.api.explanation import Explanation
from windowpane.api.export import SessionExport
from windowpane.api.replay import Rebuilt, Rerun, WhatIf
from windowpane.api.sessions import (
    ChangedSession,
    ErasedSession,
    FetchedList,
    FindView,
    ItemsChange,
    MessagePage,
    ReferencesApi,
    SessionListView,
    SessionView,
    SetWish,
    Statistics,
)
from windowpane.api.suggestions import Similar
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
    TurnView,
)
from windowpane.api.xray import CallsApi
from windowpane.context.events import Live, SessionItem, WatchEvent
from windowpane.context.fetched import Fetched, FetchedKind
from windowpane.context.items import ItemRef, Tool
from windowpane.context.messages import AnswerAction, Decision, NewFile, ToolResult
from windowpane.context.request import ReplyOptions, Request
from windowpane.context.sets import ChangeMode, ContextSets
from windowpane.context.summary import Summary

Role = Literal["user", "assistant", "system"]


class SessionsApi(CallsApi, ReferencesApi, Protocol):
    """Sessions: begin, list, read, change, delete."""

    async def create(
        self,
        agent: str | None = None,
        *,
        name: str = "",
        settings: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> SessionView:
        """Begin a session with every `always` item of its agent; without an agent, of the first one.

        With `key`, the same call again returns the session that the first call made.

        Raises:
            AgentNotFoundError: no such agent.
            InvalidSettingError: a setting cannot be used.
            KeyReusedError: `key` was used for another session.
        """
        ...

    async def list(
        self, *, agent: str | None = None, query: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionListView:
        """Return sessions, last used first; with `query`, those that `find` finds something in, found last first.

        With `query` a page may be short, or even empty, and still have a cursor: then there is more to look through.
        """
        ...

    async def find(
        self, query: str, *, agent: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> FindView:
        """Return turns, messages, names and items that have all words of a line, each from its beginning.

        A line may also ask for what a turn's request had: `left-out:billing`, `sent:billing`, `over:10k` and
        `under:500` tokens, `is:degraded`, `agent:guide`. Items are found with the first page.

        Raises:
            InvalidInputError: the line asks for nothing, or the cursor is not one of this list.
        """
        ...

    async def get(self, session_id: str) -> SessionView:
        """Return a session as it is now.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...

    async def update(
        self,
        session_id: str,
        changes: Mapping[str, Any],
        *,
        context: Mapping[str, Sequence[str]] | None = None,
        set_context: SetWish | None = None,
        expected_seq: int | None = None,
    ) -> ChangedSession:
        """Change `name`, `agent`, settings and working context in one step. A setting of None goes back to the agent's.

        With another `agent` the session keeps those of its items that the agent has, and gets its `always` items. Turns
        before keep what they were given. `context` replaces the whole working context, then `set_context` changes one
        set of it. Everything is checked before anything is changed.

        Raises:
            InvalidSettingError: a setting cannot be used.
            InvalidInputError: the working context cannot be changed like this.
            StaleRevisionError: the session has changed since `expected_seq`.
            AgentNotFoundError: there is no such agent to give to the session.
            SessionBusyError: the session is to have another agent, and its turn is not over.
        """
        ...

    async def delete(self, session_id: str) -> None:
        """Delete a session so that nothing of it is left. A running turn is stopped."""
        ...

    async def clear_history(self, session_id: str) -> SessionView:
        """Erase every message and request for good. Items, settings and the session itself stay."""
        ...

    async def fork(
        self, session_id: str, turn: int | None = None, *, name: str | None = None, key: str | None = None
    ) -> SessionView:
        """Begin a new session that is this one as it was before a turn; without a turn, with all that is finished."""
        ...

    async def export(self, session_id: str) -> SessionExport:
        """Return a session as one document: every event, every request with its texts."""
        ...

    async def import_(self, document: SessionExport, *, name: str | None = None, key: str | None = None) -> SessionView:
        """Store an exported session as a new one, with the times and texts that it had."""
        ...

    async def messages(self, session_id: str, *, before: int | None = None, limit: int = 50) -> MessagePage:
        """Return the latest messages before a sequence number, oldest first."""
        ...

    async def attachment(self, session_id: str, blob: str) -> bytes:
        """Return the bytes of a file that came with a message or from a tool; `blob` is what the session calls it."""
        ...

    async def add_message(self, session_id: str, role: Role, content: str, *, key: str | None = None) -> SessionView:
        """Add a message that was said elsewhere. No model is called. With `key`, the same call again adds nothing."""
        ...

    async def remove_message(self, session_id: str, seq: int) -> ErasedSession:
        """Take back, and erase, a message that was added a short while ago.

        Later requests, calls and summaries lose its text too; `remains` says what has the same words and is kept.
        """
        ...

    async def items(self, session_id: str) -> tuple[SessionItem, ...]:
        """Return the items of a session, in the order in which they came."""
        ...

    async def add_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Add an item by hand, whatever its include mode. Adding it twice changes nothing.

        Raises:
            UnknownItemError: the agent has no such item.
        """
        ...

    async def remove_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Take an item out, also an `always` one. It stays out until it is added by hand."""
        ...

    async def exclude_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Never let an item into this session: it is taken out, is not selected, and the model cannot find it.

        Raises:
            UnknownItemError: the agent has no such item.
        """
        ...

    async def readmit_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Let an item that was removed or excluded be selected again. It does not come into the session by this."""
        ...

    async def context(self, session_id: str) -> ContextSets:
        """Return the working context: every set by its name."""
        ...

    async def set_context(
        self, session_id: str, set_name: str, items: Sequence[str], mode: ChangeMode = "replace"
    ) -> ChangedSession:
        """Change one set of the working context; no items with mode `replace` clear it."""
        ...

    async def replace_context(self, session_id: str, sets: Mapping[str, Sequence[str]]) -> ChangedSession:
        """Make these sets the whole working context, all or none of them."""
        ...

    async def promote(self, session_id: str, paths: Sequence[str]) -> ChangedSession:
        """Take files that tools were seen to touch into the set `files`."""
        ...

    async def fetched(self, session_id: str) -> FetchedList:
        """Return the pages and search results that a session holds."""
        ...

    async def fetch_page(self, session_id: str, url: str) -> FetchedList:
        """Fetch a page from the public web. Private and local addresses are refused, also after redirects."""
        ...

    async def push_page(
        self, session_id: str, url: str, *, title: str = "", text: str = "", html: str = ""
    ) -> FetchedList:
        """Take in a page that was read elsewhere. The same page again replaces its older copy."""
        ...

    async def add_fetched(self, session_id: str, items: Sequence[Fetched]) -> FetchedList:
        """Take in pages or search results that were fetched elsewhere."""
        ...

    async def clear_fetched(self, session_id: str, kind: FetchedKind | None = None) -> FetchedList:
        """Erase what was fetched, of one kind or all of it. The conversation stays.

        Requests and calls lose the texts too; `remains` says what has the same words and is kept.
        """
        ...

    async def statistics(self, session_id: str) -> Statistics:
        """Count what a session holds, and what its turns cost."""
        ...

    async def summary(self, session_id: str) -> Summary | None:
        """Return the summary of the messages that are not sent whole any more; None while there is none."""
        ...

    async def sum_up(self, session_id: str) -> Summary | None:
        """Make the summary that is due, if one is; it is made after each turn anyway."""
        ...


class TurnsApi(Protocol):
    """Past turns: what a turn was given and did, why, and what would have come of other settings."""

    async def receipts(self, session_id: str, *, first: int = 1, limit: int = 50) -> TurnReceipts:
        """Return turns in brief, from `first` on: what each was given, and what it cost.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...

    async def get(self, session_id: str, turn: int) -> TurnRecord:
        """Return a turn with everything that happened in it.

        Raises:
            TurnNotFoundError: no such turn, or it was erased.
        """
        ...

    async def request(self, session_id: str, turn: int) -> Request:
        """Return a turn's request, byte for byte as it was sent."""
        ...

    async def context(self, session_id: str, turn: int) -> PastContext:
        """Return the record of a turn's request: every item, part and candidate, and why."""
        ...

    async def calls(self, session_id: str, turn: int) -> CallList:
        """Return the calls of a turn, retries included, in the order in which they were sent."""
        ...

    async def call(self, session_id: str, turn: int, number: int) -> CallRecord:
        """Return a call of a turn, counted from 1: as built, as sent, and whose each byte is.

        Raises:
            CallNotFoundError: the turn has no such call.
        """
        ...

    async def item(self, session_id: str, turn: int, item: ItemRef | str) -> SentItem:
        """Return an item as a turn was given it, and whether the agent has changed it since."""
        ...

    async def explain(self, session_id: str, turn: int, item: ItemRef | str) -> Explanation:
        """Return why an item was in a turn's request or not."""
        ...

    async def explanations(self, session_id: str, turn: int) -> tuple[Explanation, ...]:
        """Return for each item that the agent had then why it was in the turn's request or not."""
        ...

    async def compare(
        self, session_id: str, turn: int, other: int, *, other_session_id: str | None = None
    ) -> Comparison:
        """Return what changed from a turn's request to another's, which may be of another session."""
        ...

    async def rebuild(self, session_id: str, turn: int) -> Rebuilt:
        """Rebuild a turn's request from the log, and tell whether it is the recorded one to the byte."""
        ...

    async def replay(self, session_id: str, turn: int, what_if: WhatIf) -> Rerun:
        """Run a turn's selection again with other settings, another query or other texts. No model is called."""
        ...

    async def debug(self, session_id: str, turn: int, *, topic: str | None = None) -> ContextDebug:
        """Return what a turn's model was told of the conversation."""
        ...

    async def usage(self, session_id: str, turn: int) -> TurnUsage:
        """Return what a turn cost, call by call and together."""
        ...

    async def use(self, session_id: str, turn: int) -> tuple[ItemUse, ...]:
        """Return which items of a turn's request its answer made use of."""
        ...

    async def save_test(self, session_id: str, turn: int, *, name: str = "") -> SavedTest:
        """Write a context test that a turn passes into its agent's folder."""
        ...


class AnalyticsApi(SpendingApi, Protocol):
    """Many turns together: what they cost, and whether it was used."""

    async def dashboard(
        self,
        *,
        agent: str | None = None,
        model: str | None = None,
        since: date | None = None,
        until: date | None = None,
        everyone: bool = False,
    ) -> Dashboard:
        """Return turns, tokens and cost by day, model, agent, part and item; use, selection quality and latency."""
        ...

    async def csv(
        self,
        listed: Listed,
        *,
        agent: str | None = None,
        model: str | None = None,
        since: date | None = None,
        until: date | None = None,
        everyone: bool = False,
    ) -> str:
        """Return one of the dashboard's lists as CSV."""
        ...

    async def similar(self, session_id: str, message: str) -> Similar:
        """Return items that were of use together in past turns of the same owner that asked for about the same."""
        ...


class Pane(Protocol):
    """Windowpane for one owner, in this process or on a server."""

    @property
    def sessions(self) -> SessionsApi:
        """Sessions: begin, list, read, change, delete."""
        ...

    @property
    def turns(self) -> TurnsApi:
        """Past turns."""
        ...

    @property
    def agents(self) -> AgentsApi:
        """Agents and their files."""
        ...

    @property
    def models(self) -> ModelsApi:
        """Models that turns can use."""
        ...

    @property
    def analytics(self) -> AnalyticsApi:
        """Many turns together."""
        ...

    def turn(
        self,
        session_id: str,
        message: str,
        *,
        key: str | None = None,
        wait_s: float = 0,
        tools: Sequence[Tool] = (),
        reply_options: ReplyOptions | None = None,
        attachments: Sequence[NewFile] = (),
    ) -> AsyncGenerator[Live]:
        """Answer a message, yielding everything as it happens.

        The turn runs on when the caller goes away; its answer is in the session. With `key`, sending the same message
        again joins the first turn. `tools` are tools of the server `client`, which the caller runs itself;
        `reply_options` say what the answer must be; `attachments` are files that come with the message, which may then
        have no words. The stream ends when the turn is finished, or when it waits for an approval (`approve`) or for
        the results of such tools (`answer_calls`).

        Raises:
            SessionNotFoundError: no such session.
            InvalidInputError: the message is empty, too long, or not valid Unicode.
            SessionBusyError: another turn is running and did not end within `wait_s`.
            ApprovalPendingError: the turn before waits for a decision.
            KeyReusedError: `key` was used for another message.
        """
        ...

    async def ask(
        self,
        session_id: str,
        message: str,
        *,
        key: str | None = None,
        wait_s: float = 0,
        attachments: Sequence[NewFile] = (),
    ) -> TurnView:
        """Answer a message, and return the turn at its end or at the approval that it waits for."""
        ...

    def retry(self, session_id: str, turn: int, *, key: str | None = None) -> AsyncGenerator[Live]:
        """Answer the message of the last turn again, in a new turn, when it failed or was stopped.

        Raises:
            ConflictError: it is not the last turn, or it was answered.
        """
        ...

    def approve(self, session_id: str, decisions: Mapping[str, Decision]) -> AsyncGenerator[Live]:
        """Decide about waiting tool calls, by call id, and yield what the turn does then.

        Raises:
            NothingToApproveError: no call waits, or one of the ids is not a waiting call's.
        """
        ...

    async def answer_question(
        self, session_id: str, question_id: str, action: AnswerAction, content: Mapping[str, Any] | None = None
    ) -> SessionView:
        """Answer what a running tool asks (`question.asked`); the turn goes on. `content` are the fields of a form."""
        ...

    def answer_calls(self, session_id: str, results: Sequence[ToolResult]) -> AsyncGenerator[Live]:
        """Give the results of tools that the caller runs itself, and yield what the turn does then.

        Raises `NoResultAwaitedError` when no call waits for one, or one of the ids is not a waiting call's.
        """
        ...

    async def cancel(self, session_id: str) -> SessionView:
        """Stop the turn that is running or waiting, wherever it runs. What it said so far is kept.

        Raises:
            NoTurnRunningError: there is nothing to stop.
        """
        ...

    async def preview(self, session_id: str, message: str, *, attachments: Sequence[NewFile] = ()) -> Request:
        """Return the request that a message would make, without storing anything or calling a model."""
        ...

    def watch(self, session_id: str, *, after: int | None = None) -> AsyncGenerator[WatchEvent]:
        """Yield everything that happens to a session, until it is deleted.

        First comes the log after a sequence number, then the working context as it stands, then what happens. Without
        `after` only what happens from now on.
        """
        ...

    async def explain(self, session_id: str, turn: int, item: ItemRef | str) -> Explanation:
        """Return why an item was in a turn's request or not, and the smallest change that would have turned it round.

        Raises:
            TurnNotFoundError: no such turn, or no request was recorded for it.
            UnknownItemError: the agent had no such item then.
        """
        ...
