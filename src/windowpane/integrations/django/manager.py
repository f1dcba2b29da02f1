"""The context manager of existing code: the same functions, with a session of Windowpane's behind each.

A user's message begins a turn and builds its request; the messages that are then asked for are that request's, and the
assistant's message ends the turn. So code that was written for a cache gets selection, a token budget, and a record of
what every answer was made from. Between the calls nothing is held: they may come from different processes.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar, cast

from windowpane.context.events import MessageAdded
from windowpane.context.fetched import Fetched, FetchedKind
from windowpane.context.ids import SessionId, named_session_id
from windowpane.context.messages import AssistantMessage, Message, Source, Step, ToolCall, UserMessage
from windowpane.context.request import PartKind
from windowpane.context.session import HeldFetch, SessionState
from windowpane.engine import Engine
from windowpane.errors import (
    AgentNotFoundError,
    InvalidInputError,
    SequenceConflictError,
    SessionBusyError,
    SessionNotFoundError,
)
from windowpane.integrations.django.conf import settings, table
from windowpane.integrations.django.running import Running
from windowpane.turn.prepared import Prepared
from windowpane.wiring import open_engine

T = TypeVar("T")
SourceType = Literal["web_search", "js_scraping"]
KINDS: Mapping[str, FetchedKind] = {"web_search": "web_search", "js_scraping": "page", "page": "page"}
SOURCE_TYPES: Mapping[FetchedKind, SourceType] = {"web_search": "web_search", "page": "js_scraping"}
PROMPT_PARTS: frozenset[PartKind] = frozenset({"core", "site", "user_context", "time_context", "override"})
"""What `PromptBuilder` gives, and the messages therefore do not."""

WAIT_S = 30.0
"""How long a message waits for another one of its session to be taken in."""

REBUILD_WAIT_S = 2.0
"""How long what was fetched waits for another one that is put into the same request."""


class ContextMode(Enum):
    """How an answer is to be made."""

    NORMAL = "normal"
    THINKING = "thinking"
    RESEARCH = "research"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMetadata:
    """What is known about a session besides what was said in it."""

    session_id: str
    timestamp: str
    mode: ContextMode
    current_url: str | None
    user_timezone: str | None
    user_time: str | None
    token_count: int
    message_count: int


class ContextManager:
    """Sessions by the names that the site gives them. A session begins when it is first named."""

    def __init__(self, running: Running, *, owner: str = "local", agent: str | None = None) -> None:
        self.running = running
        self.owner = owner
        self._agent = agent

    def of(self, owner: str) -> "ContextManager":
        """Return the sessions of another owner."""
        return ContextManager(self.running, owner=owner, agent=self._agent)

    def close(self) -> None:
        """Close the engine behind it. The next call opens another."""
        self.running.close()

    def update_metadata(
        self,
        session_id: str,
        mode: ContextMode | str | None = None,
        current_url: str | None = None,
        user_timezone: str | None = None,
        user_time: str | None = None,
    ) -> None:
        """Change what is given; the rest stays. An empty text clears."""
        given = {
            "mode": mode.value if isinstance(mode, ContextMode) else mode,
            "current_url": current_url,
            "time_zone": user_timezone,
            "user_time": user_time,
        }
        changes = {name: value or None for name, value in given.items() if value is not None}
        self._ask(session_id, lambda engine, state: engine.sessions.update(state.id, changes))

    def add_user_message(self, session_id: str, content: str, timestamp: str | None = None) -> None:
        """Take in what the user says, and build the request for it. The time is now, whatever `timestamp` says."""

        async def add(engine: Engine, state: SessionState) -> None:
            prepared = await engine.prepared.begin(state.id, content, wait_s=WAIT_S)
            # The answer may come from another process, so this one does not keep the session to itself.
            await engine.store.release(state.id, prepared.holder)

        self._ask(session_id, add)

    def get_formatted_messages_for_api(self, session_id: str) -> list[dict[str, str]]:
        """Return the messages for the model: what was picked and fetched, the conversation, the user's message.

        The system prompt is not among them: `PromptBuilder` gives it.
        """

        async def read(engine: Engine, state: SessionState) -> list[dict[str, str]]:
            if state.open_turn is None or state.open_turn.request is None:
                return [
                    _plain(message) for message in state.recent if isinstance(message, UserMessage | AssistantMessage)
                ]
            request = await engine.past.request(state.id, state.open_turn.turn)
            return [
                {"role": message.role, "content": message.content}
                for message in request.messages
                if (message.part not in PROMPT_PARTS or message.name == "boundary") and message.content
            ]

        return self._ask(session_id, read)

    def add_assistant_message(
        self,
        session_id: str,
        content: str,
        model: str | None = None,
        sources_used: Sequence[Mapping[str, Any]] | None = None,
        tools_used: Sequence[str] | None = None,
        response_time_ms: int | None = None,
    ) -> None:
        """Record the answer to the user's message."""

        async def add(engine: Engine, state: SessionState) -> None:
            turn = state.open_turn
            if turn is None or turn.request is None:
                await engine.conversations.add(state.id, MessageAdded(role="assistant", content=content))
                return
            step = Step(
                text=content,
                model=model or "",
                latency_ms=response_time_ms or 0,
                tool_calls=tuple(ToolCall(f"used-{i}", name, "{}") for i, name in enumerate(tools_used or ())),
            )
            prepared = Prepared(state.id, turn.turn, await engine.past.request(state.id, turn.turn), holder="")
            await engine.prepared.record(prepared, [step], sources=[_source(entry) for entry in sources_used or ()])

        self._ask(session_id, add)

    def add_fetched_context(
        self,
        session_id: str,
        source_type: str,
        content: str,
        url: str | None = None,
        extracted_data: Mapping[str, Any] | None = None,
    ) -> None:
        """Take in a page or a search result. The same address again replaces it.

        A user's message that waits for its answer gets a request with it.
        """
        about = extracted_data or {}
        item = Fetched(
            kind=_kind(source_type),
            url=url or "",
            content=content,
            title=str(about.get("title") or ""),
            site_name=str(about.get("site_name") or ""),
        )

        async def add(engine: Engine, state: SessionState) -> None:
            await engine.fetched.add(state.id, [item])
            if state.open_turn is not None:
                # A turn that the engine itself runs is busy, and its request is on its way.
                with suppress(SessionBusyError):
                    await engine.prepared.build_again(state.id, wait_s=REBUILD_WAIT_S)

        self._ask(session_id, add)

    def get_session_metadata(self, session_id: str) -> ContextMetadata:
        """Return what is known about a session."""

        async def read(_: Engine, state: SessionState) -> ContextMetadata:
            return _metadata(session_id, state)

        return self._ask(session_id, read)

    def set_system_prompt(self, session_id: str, text: str) -> None:
        """Set what the session's system prompt ends with. An empty text clears it."""
        self._ask(session_id, lambda engine, state: engine.sessions.update(state.id, {"system_prompt": text or None}))

    def get_session_stats(self, session_id: str) -> dict[str, Any]:
        """Return how much there is of everything."""

        async def read(_: Engine, state: SessionState) -> dict[str, Any]:
            kinds = [SOURCE_TYPES[held.item.kind] for held in state.fetched]
            return {
                "mode": state.settings.mode or "normal",
                "message_count": state.message_count,
                "token_count": state.token_count,
                "fetched_context_counts": {kind: kinds.count(kind) for kind in SOURCE_TYPES.values()},
                "total_fetched_items": len(kinds),
            }

        return self._ask(session_id, read)

    def clear_fetched_context(self, session_id: str, source_type: str | None = None) -> None:
        """Erase what was fetched, of one kind or all of it. The conversation stays."""
        kind = None if source_type is None else _kind(source_type)
        self._ask(session_id, lambda engine, state: engine.fetched.clear(state.id, kind))

    def clear_conversation_history(self, session_id: str) -> None:
        """Erase the conversation. What was fetched stays."""
        self._ask(session_id, lambda engine, state: engine.conversations.clear(state.id))

    def clear_session(self, session_id: str) -> None:
        """Delete a session. Nothing of it is left."""
        self._ask(session_id, lambda engine, state: engine.sessions.delete(state.id))

    def get_full_context(self, session_id: str) -> dict[str, Any]:
        """Return everything as one JSON object."""

        async def read(engine: Engine, state: SessionState) -> dict[str, Any]:
            about = _metadata(session_id, state)
            messages = await engine.conversations.messages(state.id, limit=max(state.message_count, 1))
            fetched = [_fetched(held) for held in state.fetched]
            return {
                "system_prompt": state.settings.system_prompt or "",
                "metadata": {
                    "session_id": about.session_id,
                    "timestamp": about.timestamp,
                    "mode": about.mode.value,
                    "current_url": about.current_url,
                    "user_timezone": about.user_timezone,
                    "user_time": about.user_time,
                    "token_count": about.token_count,
                    "message_count": about.message_count,
                },
                "fetched_context": {
                    kind: [entry for entry in fetched if entry["source_type"] == kind] for kind in SOURCE_TYPES.values()
                },
                "conversation_history": [
                    _told(message) for message in messages if isinstance(message, UserMessage | AssistantMessage)
                ],
            }

        return self._ask(session_id, read)

    def agent_of(self, engine: Engine) -> str:
        """Return the agent that sessions are of: the one that the site names, or the first one.

        Raises:
            AgentNotFoundError: there is none.
        """
        names = engine.agents.names()
        if self._agent is None and not names:
            raise AgentNotFoundError("", names)
        return self._agent or names[0]

    async def state(self, engine: Engine, session_id: str) -> SessionState:
        """Return the session of this name, which begins now if there is none.

        Raises:
            InvalidInputError: the name cannot be used.
        """
        if not session_id.strip() or len(session_id) > 200 or not session_id.isprintable():
            raise InvalidInputError("a session's name has 1 to 200 characters, all of them printing ones")
        agent = self.agent_of(engine)
        found = named_session_id(self.owner, agent, session_id)
        try:
            return await engine.sessions.get(found)
        except SessionNotFoundError:
            return await _begun(engine, found, agent, self.owner, session_id)

    def _ask(self, session_id: str, question: Callable[[Engine, SessionState], Awaitable[T]]) -> T:
        async def asked(engine: Engine) -> T:
            return await question(engine, await self.state(engine, session_id))

        return self.running.ask(asked)


async def _begun(engine: Engine, found: SessionId, agent: str, owner: str, name: str) -> SessionState:
    try:
        return await engine.sessions.create(agent, owner=owner, name=name, session_id=found)
    except SequenceConflictError:
        return await engine.sessions.get(found)


@cache
def get_context_manager() -> ContextManager:
    """Return the site's one context manager."""
    return ContextManager(Running(lambda: open_engine(settings())), agent=cast("str | None", table().get("AGENT")))


def _kind(source_type: str) -> FetchedKind:
    if source_type not in KINDS:
        raise InvalidInputError(f"{source_type!r} is no kind of fetched context; available: {', '.join(KINDS)}")
    return KINDS[source_type]


def _source(entry: Mapping[str, Any]) -> Source:
    return Source(
        title=str(entry.get("title") or ""), score=float(entry.get("score") or 1), url=str(entry.get("url") or "")
    )


def _plain(message: Message) -> dict[str, str]:
    if isinstance(message, AssistantMessage):
        return {"role": "assistant", "content": message.model_reply.text}
    return {"role": "user", "content": message.content if isinstance(message, UserMessage) else ""}


def _told(message: UserMessage | AssistantMessage) -> dict[str, Any]:
    told: dict[str, Any] = {**_plain(message), "timestamp": message.at.isoformat()}
    if isinstance(message, AssistantMessage):
        steps = message.model_reply.steps
        told["metadata"] = {
            "model": steps[-1].model if steps else "",
            "sources_used": [{"title": source.title, "url": source.url} for source in message.sources],
            "tools_used": [call.offered_name for step in steps for call in step.tool_calls],
            "response_time_ms": sum(step.latency_ms for step in steps),
        }
    return told


def _fetched(held: HeldFetch) -> dict[str, Any]:
    return {
        "source_type": SOURCE_TYPES[held.item.kind],
        "content": held.item.content,
        "url": held.item.url or None,
        "timestamp": held.at.isoformat(),
        "extracted_data": {"title": held.item.title, "site_name": held.item.site_name},
    }


def _metadata(name: str, state: SessionState) -> ContextMetadata:
    return ContextMetadata(
        session_id=name,
        timestamp=state.created_at.isoformat() if state.created_at else "",
        mode=ContextMode(state.settings.mode or "normal"),
        current_url=state.settings.current_url,
        user_timezone=state.settings.time_zone,
        user_time=state.settings.user_time,
        token_count=state.token_count,
        message_count=state.message_count,
    )
