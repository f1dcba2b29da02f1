"""How the engine's values are answered: a session's state as a `SessionView`, an item as an `ItemView`.

What answers about items and tools is imported where it is used: it loads all that makes requests, and a command that
lists sessions needs none of it.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from windowpane.api.sessions import (
    ChangedSession,
    ErasedSession,
    FetchedCounts,
    FetchedList,
    FetchedView,
    ItemsChange,
    OpenTurnView,
    OwnReferenceView,
    ReferencesView,
    SessionMeta,
    SessionView,
    ToolName,
)
from windowpane.context.items import Item, ItemRef, Reference, Tool, item_hash
from windowpane.context.session import OpenTurn, SessionState
from windowpane.context.sets import SetChange
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.api.agents import ServerView
    from windowpane.sessions.erasing import Erasure
    from windowpane.stores.sessions import Changed
    from windowpane.tools.base import ServerStatus


def session_view(state: SessionState) -> SessionView:
    """Return a session as callers see it."""
    return SessionView(**_facts(state))


def erased_session(erasure: "Erasure") -> ErasedSession:
    """Return a session after a message was erased."""
    return ErasedSession(**_facts(erasure.state), remains=erasure.remains)


def items_change(change: "Changed") -> ItemsChange:
    """Return what a change of a session's items came to."""
    return ItemsChange(bool(change.recorded), change.state.context_items, excluded_items(change.state))


def excluded_items(state: SessionState) -> tuple[ItemRef, ...]:
    """Return the items that were removed by hand, in the order of their names."""
    return tuple(sorted(state.removed, key=lambda ref: ref.sort_key))


def changed_session(state: SessionState, made: SetChange | None) -> ChangedSession:
    """Return a session after a change of it.

    Raises:
        InvalidInputError: the change of the working context was refused.
    """
    if made is None:
        return ChangedSession(**_facts(state), reply="", warnings=())
    if made.refused:
        raise InvalidInputError(made.reply)
    return ChangedSession(**_facts(state), reply=made.reply, warnings=made.warnings)


def fetched_counts(state: SessionState) -> FetchedCounts:
    """Return how much of each kind a session holds."""
    kinds = [held.item.kind for held in state.fetched]
    return FetchedCounts(web_search=kinds.count("web_search"), page=kinds.count("page"))


def fetched_list(state: SessionState, remains: tuple[str, ...] = ()) -> FetchedList:
    """Return what a session holds from outside, and after clearing what remains of it."""
    from windowpane.text.tokens import count

    return FetchedList(
        items=tuple(
            FetchedView(
                kind=held.item.kind,
                url=held.item.url,
                title=held.item.title,
                site_name=held.item.site_name,
                at=held.at,
                characters=len(held.item.content),
                tokens=count(held.item.content),
            )
            for held in state.fetched
        ),
        counts=fetched_counts(state),
        remains=remains,
    )


def server_view(server: "ServerStatus") -> "ServerView":
    """Return a tool server as lists show it."""
    from windowpane.api.agents import ServerView

    return ServerView(
        name=server.name,
        state=server.state,
        error=server.error,
        version=server.version,
        tools=tuple(tool.name for tool in server.tools),
    )


def item_facts(item: Item, model: str = "") -> dict[str, Any]:
    """Return the fields of an `ItemView`. Models count tools in different ways."""
    from windowpane.request.assemble import item_tokens
    from windowpane.text.tokens import family_of
    from windowpane.tools.names import offered_name

    tool = isinstance(item, Tool)
    return {
        "type": item.ref.type,
        "name": item.name,
        "server": item.ref.server,
        "title": item.title if isinstance(item, Reference) else "",
        "description": item.description,
        "include": item.include,
        "enabled": True if tool else item.enabled,
        "permission": item.permission if tool else None,
        "priority": None if tool else item.priority,
        "version": item.version,
        "hash": item_hash(item),
        "tokens": item_tokens(item, offered_name(item.ref) if tool else "", family=family_of(model)),
    }


def references_view(state: SessionState, read: Sequence[Reference], remains: tuple[str, ...] = ()) -> ReferencesView:
    """Return what a session made from files, and after a removal what remains of it."""
    facts = {reference.name: item_facts(reference) for reference in read}
    return ReferencesView(
        tuple(
            OwnReferenceView(
                **asdict(own),
                title=facts[own.name]["title"] if own.name in facts else own.file,
                tokens=facts[own.name]["tokens"] if own.name in facts else 0,
            )
            for own in state.own_references
        ),
        remains,
    )


def _facts(state: SessionState) -> dict[str, Any]:
    return {
        "id": state.id,
        "name": state.name,
        "title": state.title,
        "agent": state.agent,
        "origin": state.origin,
        "owner": state.owner,
        "settings": state.settings,
        "items": state.context_items,
        "excluded": excluded_items(state),
        "rules": state.rules,
        "references": state.references,
        "tools": tuple(ToolName(server, name) for server, name in state.tools),
        "context": state.sets,
        "meta": SessionMeta(state.sets),
        "observed": state.observed,
        "fetched": fetched_counts(state),
        "summary": state.summary,
        "message_count": state.message_count,
        "turn_count": state.turn_count,
        "last_turn": state.last_turn,
        "token_count": state.token_count,
        "seq": state.seq,
        "created_at": state.created_at,
        "updated_at": state.updated_at,
        "open_turn": _open_view(state.open_turn) if state.open_turn else None,
        "branch_of": state.branch_of,
        "own_references": state.own_references,
    }


def _open_view(turn: OpenTurn) -> OpenTurnView:
    return OpenTurnView(
        turn=turn.turn,
        state="waiting" if turn.waits or turn.questions else "running",
        request=turn.request,
        approvals=turn.undecided,
        questions=turn.questions,
    )
